/**
 * Threads that are started once and then do one job after the other. They run the built package:
 * worker threads cannot load TypeScript.
 */
import { Worker } from 'node:worker_threads'

export class Crew {
  readonly #workers: readonly Worker[]

  constructor(threads: number) {
    const url = new URL('crew.worker.mjs', import.meta.url)
    this.#workers = Array.from({ length: threads }, (_, number) => new Worker(url, { workerData: { number } }))
  }

  /** Lets the first `threads` of the crew do a job at the same time. */
  work<T>(threads: number, job: string, order: object): Promise<T[]> {
    const answers = this.#workers.slice(0, threads).map((worker) => {
      return new Promise<T>((resolve, reject) => {
        worker.once('message', (answer: T) => {
          worker.off('error', reject)
          resolve(answer)
        })
        worker.once('error', reject)
        worker.postMessage({ job, threads, ...order })
      })
    })
    return Promise.all(answers)
  }

  async dismiss(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()))
  }
}

/** A number of them that pass at the same time: see `passGate`. */
export function gate(): SharedArrayBuffer {
  return new SharedArrayBuffer(8)
}

/**
 * Which steps travel together. A row is in one call at a time: a second one would find it written by the first, and start over. So steps
 * wait for a call that has one of their rows, and then travel in one call, however many they are: a hot key costs two trips at a time, not
 * two for each batch. Few calls are under way at a time, so that the pool's other users get connections.
 */
import { weightOf } from '../remote/batches.ts'
import type { Job } from './groups.ts'

/** Decides steps, tells of each as soon as it is decided or has failed, and never rejects. */
export type Run = (jobs: readonly Job[], onDone: (jobs: readonly Job[]) => void) => Promise<void>

export class Calls {
  readonly #run: Run
  readonly #mostCalls: number
  readonly #mostWeight: number
  /** The rows of the calls under way. */
  readonly #busy = new Set<string>()
  #underWay = 0
  /** In the order they came. */
  #waiting: Job[] = []

  constructor(run: Run, mostCalls: number, mostWeight: number) {
    this.#run = run
    this.#mostCalls = mostCalls
    this.#mostWeight = mostWeight
  }

  add(jobs: readonly Job[]): void {
    this.#waiting.push(...jobs)
    this.#sendAll()
  }

  #sendAll(): void {
    while (this.#underWay < this.#mostCalls && this.#waiting.length > 0) {
      const jobs = this.#next()
      if (jobs.length === 0) return
      void this.#send(jobs)
    }
  }

  async #send(jobs: readonly Job[]): Promise<void> {
    for (const { ids } of jobs) for (const id of ids) this.#busy.add(id)
    this.#underWay += 1
    await this.#run(jobs, (done) => this.#finish(done))
    this.#underWay -= 1
    this.#sendAll()
  }

  /** All steps of a row are done together, so that others may have it. */
  #finish(done: readonly Job[]): void {
    for (const { ids } of done) for (const id of ids) this.#busy.delete(id)
    this.#sendAll()
    for (const { onDone } of done) onDone()
  }

  /** What may leave now: nothing overtakes a step that waits for one of the same rows. */
  #next(): Job[] {
    const leaving: Job[] = []
    const staying: Job[] = []
    const wanted = new Set<string>()
    let weight = 0
    for (const job of this.#waiting) {
      const isFree = weight < this.#mostWeight && job.ids.every((id) => !this.#busy.has(id) && !wanted.has(id))
      if (isFree) {
        leaving.push(job)
        weight += weightOf(job.step)
      } else {
        staying.push(job)
        for (const id of job.ids) wanted.add(id)
      }
    }
    this.#waiting = staying
    return leaving
  }
}

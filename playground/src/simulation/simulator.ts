/**
 * The page's side of the worker. Of several runs asked for in a hurry only the last matters: the
 * ones between are never started.
 */
import type { Moment } from './cursor.ts'
import type { Answer, Failure, Job, Request, RunOf } from './job.ts'
import { answerTo } from './worker.ts'

export interface Listener<J extends Job> {
  ran(run: RunOf<J>): void
  looked?(call: number, moments: readonly Moment[]): void
  failed(failure: Failure): void
}

export class Simulator<J extends Job> {
  /**
   * Undefined where browsers start no workers: a page that was opened as a file simulates by
   * itself, and stands still meanwhile.
   */
  readonly #worker: Worker | undefined
  readonly #listener: Listener<J>
  #lastId = 0
  #sent: Request | undefined
  #nextJob: J | undefined
  #nextCall: number | undefined

  /** `script` is the address of the page's own script: see main.ts. */
  constructor(script: string, listener: Listener<J>) {
    this.#listener = listener
    this.#worker = script.startsWith('file:') ? undefined : new Worker(script)
    this.#worker?.addEventListener('message', ({ data }: MessageEvent<Answer>) => this.#answered(data))
    this.#worker?.addEventListener('error', ({ message }) =>
      listener.failed({ kind: 'limit', message: message ?? 'the worker could not be started' }),
    )
  }

  run(job: J): void {
    this.#nextJob = job
    // A look belongs to the run before it.
    this.#nextCall = undefined
    this.#send()
  }

  look(call: number): void {
    this.#nextCall = call
    this.#send()
  }

  close(): void {
    this.#worker?.terminate()
  }

  #send(): void {
    if (this.#sent !== undefined) return
    const id = ++this.#lastId
    if (this.#nextJob !== undefined) this.#sent = { id, ask: 'run', job: this.#nextJob }
    else if (this.#nextCall !== undefined) this.#sent = { id, ask: 'look', call: this.#nextCall }
    else return
    if (this.#sent.ask === 'run') this.#nextJob = undefined
    else this.#nextCall = undefined
    this.#post(this.#sent)
  }

  #post(request: Request): void {
    if (this.#worker === undefined) setTimeout(async () => this.#answered(await answerTo(request)))
    else this.#worker.postMessage(request)
  }

  #answered(answer: Answer): void {
    const sent = this.#sent
    this.#sent = undefined
    // What a newer run will replace is not shown.
    if (sent?.id === answer.id && this.#nextJob === undefined) {
      if ('failure' in answer) this.#listener.failed(answer.failure)
      else if ('run' in answer) this.#listener.ran(answer.run as RunOf<J>)
      else this.#listener.looked?.((sent as { call: number }).call, answer.moments)
    }
    this.#send()
  }
}

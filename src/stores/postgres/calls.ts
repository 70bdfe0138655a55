/**
 * Which steps travel together. A row is in one call at a time: a second one would find it written
 * by the first, and start over. So steps wait for a call that has one of their rows, and then
 * travel in one call, however many they are: a hot key costs two trips at a time, not two for each
 * batch. Few calls are under way at a time, so that the pool's other users get connections.
 */
import { weightOf } from '../remote/batches.ts'
import type { Job } from './groups.ts'

/** Rows are read and written whole, so more of a large state weighs than in Redis. */
const MOST_WORDS = 1_000

/** Decides steps, tells of each as soon as it is decided or has failed, and never rejects. */
export type Run = (jobs: readonly Job[], onDone: (jobs: readonly Job[]) => void) => Promise<void>

/** The steps that want one row and have not left, in the order they came. */
class Line {
  /** Whether a call that is under way has the row. */
  isBusy = false
  #jobs: Job[] = []
  #gone = 0

  get first(): Job | undefined {
    return this.#jobs[this.#gone]
  }

  push(job: Job): void {
    this.#jobs.push(job)
  }

  shift(): void {
    this.#gone += 1
    if (2 * this.#gone < this.#jobs.length) return
    this.#jobs = this.#jobs.slice(this.#gone)
    this.#gone = 0
  }
}

export class Calls {
  readonly #run: Run
  readonly #mostCalls: number
  readonly #mostWeight: number
  #underWay = 0
  /** Of each row that is wanted or under way. */
  readonly #lines = new Map<string, Line>()
  /**
   * All steps that may leave, in the order in which that came about. A call that has left since may
   * have a row of theirs.
   */
  readonly #free = new Set<Job>()

  constructor(run: Run, mostCalls: number, mostWeight: number) {
    this.#run = run
    this.#mostCalls = mostCalls
    this.#mostWeight = mostWeight
  }

  add(jobs: readonly Job[]): void {
    for (const job of jobs) {
      for (const id of job.ids) this.#lineFor(id).push(job)
      this.#noteIfFree(job)
    }
    this.#sendAll()
  }

  #lineFor(id: string): Line {
    const line = this.#lines.get(id) ?? new Line()
    this.#lines.set(id, line)
    return line
  }

  #sendAll(): void {
    while (this.#underWay < this.#mostCalls && this.#free.size > 0) {
      const jobs = this.#next()
      if (jobs.length === 0) return
      void this.#send(jobs)
    }
  }

  async #send(jobs: readonly Job[]): Promise<void> {
    for (const { ids } of jobs) for (const id of ids) this.#lineFor(id).isBusy = true
    this.#underWay += 1
    await this.#run(jobs, (done) => this.#finish(done))
    this.#underWay -= 1
    this.#sendAll()
  }

  /** All steps of a row are done together, so that others may have it. */
  #finish(done: readonly Job[]): void {
    for (const { ids } of done) for (const id of ids) this.#release(id)
    this.#sendAll()
    for (const { onDone } of done) onDone()
  }

  #release(id: string): void {
    const line = this.#lineFor(id)
    line.isBusy = false
    if (line.first === undefined) this.#lines.delete(id)
    else this.#noteIfFree(line.first)
  }

  /**
   * What leaves now. When a step leaves, those behind it may leave with it, up to the weight of a
   * call.
   */
  #next(): Job[] {
    const leaving: Job[] = []
    let weight = 0
    for (const job of this.#free) {
      if (weight >= this.#mostWeight) break
      this.#free.delete(job)
      // Otherwise it is noted again when that call is done.
      if (!this.#isFree(job)) continue
      leaving.push(job)
      weight += weightOf(job.step, MOST_WORDS)
      this.#leaveLines(job)
    }
    return leaving
  }

  #leaveLines(job: Job): void {
    for (const id of job.ids) {
      const line = this.#lineFor(id)
      line.shift()
      if (line.first !== undefined) this.#noteIfFree(line.first)
    }
  }

  #noteIfFree(job: Job): void {
    if (this.#isFree(job)) this.#free.add(job)
  }

  /** Nothing overtakes a step that waits for one of the same rows. */
  #isFree(job: Job): boolean {
    return job.ids.every((id) => {
      const { isBusy, first } = this.#lineFor(id)
      return !isBusy && first === job
    })
  }
}

/**
 * The simulated server behind a limit: so many workers, first come, first served. Calls that no
 * worker is free for wait inside.
 */
import type { Clock } from '../sluice.ts'

interface Call {
  readonly workMs: () => number
  readonly done: () => void
}

export class Server {
  readonly #clock: Clock
  #workers: number
  #busy = 0
  readonly #line: Call[] = []

  constructor(clock: Clock, workers: number) {
    this.#clock = clock
    this.#workers = workers
  }

  /** Those at work go on; fewer workers take the next call later. */
  set workers(workers: number) {
    this.#workers = workers
    this.#begin()
  }

  /** How long the work takes is asked when it begins. */
  submit(workMs: () => number, done: () => void): void {
    this.#line.push({ workMs, done })
    this.#begin()
  }

  #begin(): void {
    while (this.#busy < this.#workers) {
      const call = this.#line.shift()
      if (call === undefined) return
      this.#busy += 1
      this.#clock.setTimer(() => this.#end(call), Math.round(call.workMs() * 1000))
    }
  }

  #end({ done }: Call): void {
    this.#busy -= 1
    done()
    this.#begin()
  }
}

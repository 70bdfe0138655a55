/** The simulated server: what a request goes through once it is let in. */
import type { SimulatedTime } from './events.ts'
import type { Random } from './random.ts'

export interface ServerNumbers {
  /** How many requests it works on at a time. With `sharing`: its cores. */
  readonly workers: number
  /**
   * `queue` (default): first come, first served. `sharing`: all at once, each slower. `stations`:
   * each worker has a line of its own, and a request is sent to one at random.
   */
  readonly discipline?: 'queue' | 'sharing' | 'stations'
  /** Requests beyond this many inside are dropped, after 1 ms. */
  readonly room?: number
  /** The share of requests that fail whatever the load. */
  readonly flaky?: number
  /** An outage: a share of the requests fails after so long, and no worker sees them. */
  readonly failing?: { readonly share: number; readonly afterMs: number }
  /** Service times grow by this factor with each request inside beyond `from`. */
  readonly contention?: { readonly from: number; readonly factor: number }
  /** Service times are multiplied by this. */
  readonly slowness?: number
}

type Done = (isOk: boolean) => void

interface Job {
  workMs: number
  readonly done: Done
}

export class Server {
  readonly #time: SimulatedTime
  readonly #random: Random
  #numbers: ServerNumbers
  #inside = 0
  #lines: Line[]

  constructor(time: SimulatedTime, random: Random, numbers: ServerNumbers) {
    this.#time = time
    this.#random = random
    this.#numbers = numbers
    this.#lines = linesOf(time, numbers)
  }

  /** More or fewer workers, other service times: what is inside stays. */
  change(numbers: Partial<ServerNumbers>): void {
    this.#numbers = { ...this.#numbers, ...numbers }
    const { workers, discipline } = this.#numbers
    if (discipline !== 'stations') (this.#lines[0] as Line).resize(workers)
    else if (workers !== this.#lines.length) this.#lines = linesOf(this.#time, this.#numbers)
  }

  submit(serviceMs: number, done: Done): void {
    const { room = Number.POSITIVE_INFINITY, flaky = 0, failing, contention, slowness = 1 } = this.#numbers
    if (this.#inside >= room) {
      this.#time.after(1, () => done(false))
      return
    }
    if (failing !== undefined && this.#random() < failing.share) {
      this.#time.after(failing.afterMs, () => done(false))
      return
    }
    this.#inside += 1
    const isOk = flaky === 0 || this.#random() >= flaky
    const crowd = contention === undefined ? 1 : contention.factor ** Math.max(0, this.#inside - contention.from)
    const line = this.#lines[this.#lines.length === 1 ? 0 : Math.floor(this.#random() * this.#lines.length)] as Line
    line.add({
      workMs: serviceMs * slowness * crowd,
      done: () => {
        this.#inside -= 1
        done(isOk)
      },
    })
  }
}

function linesOf(time: SimulatedTime, { workers, discipline = 'queue' }: ServerNumbers): Line[] {
  if (discipline === 'sharing') return [new SharingLine(time, workers)]
  if (discipline === 'queue') return [new QueueLine(time, workers)]
  return Array.from({ length: workers }, () => new QueueLine(time, 1))
}

interface Line {
  add(job: Job): void
  resize(workers: number): void
}

class QueueLine implements Line {
  readonly #time: SimulatedTime
  #workers: number
  #busy = 0
  #waiting: Job[] = []
  #first = 0

  constructor(time: SimulatedTime, workers: number) {
    this.#time = time
    this.#workers = workers
  }

  add(job: Job): void {
    this.#waiting.push(job)
    this.#start()
  }

  resize(workers: number): void {
    this.#workers = workers
    this.#start()
  }

  #start(): void {
    while (this.#busy < this.#workers && this.#first < this.#waiting.length) {
      const job = this.#waiting[this.#first++] as Job
      this.#busy += 1
      this.#time.after(job.workMs, () => {
        this.#busy -= 1
        job.done(true)
        this.#start()
      })
    }
    if (this.#first > 1_000) {
      this.#waiting = this.#waiting.slice(this.#first)
      this.#first = 0
    }
  }
}

/** All are worked on at once; each gets at most one core. */
class SharingLine implements Line {
  readonly #time: SimulatedTime
  #cores: number
  #jobs: Job[] = []
  #sinceMs = 0
  #stop: () => void = () => {}

  constructor(time: SimulatedTime, cores: number) {
    this.#time = time
    this.#cores = cores
  }

  add(job: Job): void {
    this.#progress()
    this.#jobs.push(job)
    this.#plan()
  }

  resize(cores: number): void {
    this.#progress()
    this.#cores = cores
    this.#plan()
  }

  get #pace(): number {
    return Math.min(1, this.#cores / this.#jobs.length)
  }

  #progress(): void {
    const doneMs = (this.#time.nowMs - this.#sinceMs) * this.#pace
    this.#sinceMs = this.#time.nowMs
    for (const job of this.#jobs) job.workMs -= doneMs
  }

  #plan(): void {
    this.#stop()
    if (this.#jobs.length === 0) return
    const leastMs = this.#jobs.reduce((least, { workMs }) => Math.min(least, workMs), Number.POSITIVE_INFINITY)
    this.#stop = this.#time.after(Math.max(0, leastMs / this.#pace), () => this.#finish())
  }

  #finish(): void {
    this.#progress()
    const finished = this.#jobs.filter(({ workMs }) => workMs <= 0.001)
    this.#jobs = this.#jobs.filter(({ workMs }) => workMs > 0.001)
    this.#plan()
    for (const { done } of finished) done(true)
  }
}

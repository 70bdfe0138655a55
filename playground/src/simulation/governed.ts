/**
 * A server that the user makes faster and slower, under more calls than it can answer: behind a
 * limit that a governor moves, and behind one that stays. The best number in flight is known: one
 * for each worker. Fewer leave workers idle; more only wait inside.
 */
import {
  aimd,
  concurrency,
  createLimiter,
  type FakeClock,
  fakeClock,
  type Governor,
  type GovernorState,
  govern,
  knee,
  vegas,
} from '../sluice.ts'
import { add, columnAt, type Line, newLine, raise, SAMPLES, sampleAt } from './samples.ts'
import { Server } from './server.ts'
import { COLUMNS, mulberry32 } from './traffic.ts'

export const GOVERNED_MS = 64_000
/** What a call takes on average once a worker has it. */
export const SERVICE_MS = 50
/** A call that took longer counts as dropped, and its answer as too late. */
export const TOO_LATE_MS = 1_000
export const GOVERNOR_NAMES = ['knee', 'aimd', 'vegas'] as const
export type GovernorName = (typeof GOVERNOR_NAMES)[number]
export const BOUNDS = { min: 1, max: 200 } as const
const SEED = 4

export interface GovernedJob {
  readonly scene: 'knee'
  readonly governor: GovernorName
  /** The limit that stays. */
  readonly fixed: number
  readonly perSecond: number
  /** Workers of the server, by column. */
  readonly columns: readonly number[]
}

export interface GovernedSide {
  /** The limit at the end of each sample. */
  readonly limit: Line
  /** Most calls in flight within each sample. */
  readonly inflight: Line
  /** Answers in time a second. */
  readonly perSecond: Line
  /** Mean time to an answer, in milliseconds; NaN where there was none. */
  readonly latencyMs: Line
  readonly inTime: number
  readonly refused: number
  readonly meanMs: number
  readonly mostInflight: number
}

export interface GovernedRun {
  readonly scene: 'knee'
  readonly governed: GovernedSide
  readonly fixed: GovernedSide
  /**
   * The best: as many in flight as there are workers, and the answers a second that they can give.
   */
  readonly bestLimit: Line
  readonly bestPerSecond: Line
  readonly bestInTime: number
}

const GOVERNORS: Readonly<Record<GovernorName, () => Governor<GovernorState>>> = {
  knee: () => knee(BOUNDS) as Governor<GovernorState>,
  aimd: () => aimd(BOUNDS),
  vegas: () => vegas(BOUNDS) as unknown as Governor<GovernorState>,
}

export function playGoverned(job: GovernedJob): GovernedRun {
  const by = GOVERNORS[job.governor]()
  const bestLimit = Float64Array.from({ length: SAMPLES }, (_, k) => columnAt(job.columns, k, SAMPLES))
  const bestPerSecond = bestLimit.map((workers) => Math.min(job.perSecond, (workers * 1000) / SERVICE_MS))
  return {
    scene: 'knee',
    governed: new SidePlayer(job, by.initial.limit, by).play(),
    fixed: new SidePlayer(job, job.fixed).play(),
    bestLimit,
    bestPerSecond,
    bestInTime: (bestPerSecond.reduce((sum, each) => sum + each, 0) * GOVERNED_MS) / 1000 / SAMPLES,
  }
}

class SidePlayer {
  readonly #job: GovernedJob
  readonly #clock: FakeClock = fakeClock()
  readonly #server: Server
  readonly #limiter
  readonly #limitNow: () => number
  readonly #gapMs = exponential(mulberry32(SEED))
  readonly #serviceMs = exponential(mulberry32(SEED + 1))
  readonly #limit = newLine()
  readonly #inflight = newLine()
  readonly #answers = newLine()
  readonly #tookMs = newLine()
  #refused = 0

  constructor(job: GovernedJob, max: number, by?: Governor<GovernorState>) {
    this.#job = job
    const clock = this.#clock
    this.#server = new Server(clock, job.columns[0] as number)
    this.#limiter = createLimiter({ inflight: concurrency({ max }) }, { clock })
    const governed = by === undefined ? undefined : govern(this.#limiter, { limit: 'inflight', by, clock })
    this.#limitNow = () => governed?.limit ?? max
  }

  play(): GovernedSide {
    for (let column = 1; column < COLUMNS; column++) this.#at((column * GOVERNED_MS) / COLUMNS, () => this.#resize(column))
    this.#arrive()
    for (let sample = 0; sample < SAMPLES; sample++) {
      this.#clock.setMs(((sample + 1) * GOVERNED_MS) / SAMPLES)
      this.#limit[sample] = this.#limitNow()
      raise(this.#inflight, sample, this.#limiter.inflight())
    }
    return this.#result()
  }

  #at(ms: number, act: () => void): void {
    this.#clock.setTimer(act, Math.round(ms * 1000))
  }

  #resize(column: number): void {
    this.#server.workers = this.#job.columns[column] as number
  }

  #arrive(): void {
    this.#at(this.#gapMs(1000 / this.#job.perSecond), () => {
      this.#arrive()
      this.#call()
    })
  }

  #call(): void {
    // Drawn for refused calls too: then the same calls come whatever the limit is.
    const serviceMs = this.#serviceMs(SERVICE_MS)
    const sinceMs = this.#nowMs
    const permit = this.#limiter.consume('server')
    if (!permit.allowed) {
      this.#refused += 1
      return
    }
    raise(this.#inflight, sampleAt(sinceMs, GOVERNED_MS), this.#limiter.inflight())
    this.#server.submit(
      () => serviceMs,
      () => {
        const tookMs = this.#nowMs - sinceMs
        permit.release({ outcome: tookMs > TOO_LATE_MS ? 'dropped' : 'ok' })
        this.#answered(tookMs)
      },
    )
  }

  get #nowMs(): number {
    return this.#clock.nowUs() / 1000
  }

  #answered(tookMs: number): void {
    if (tookMs > TOO_LATE_MS) return
    const sample = sampleAt(this.#nowMs, GOVERNED_MS)
    add(this.#answers, sample, 1)
    add(this.#tookMs, sample, tookMs)
  }

  #result(): GovernedSide {
    const sum = (line: Line) => line.reduce((all, value) => all + value, 0)
    const inTime = sum(this.#answers)
    const sampleS = GOVERNED_MS / SAMPLES / 1000
    return {
      limit: this.#limit,
      inflight: this.#inflight,
      perSecond: recent(this.#answers).map((count) => count / sampleS),
      latencyMs: ratios(recent(this.#tookMs), recent(this.#answers)),
      inTime,
      refused: this.#refused,
      meanMs: inTime === 0 ? 0 : sum(this.#tookMs) / inTime,
      mostInflight: Math.max(...this.#inflight),
    }
  }
}

/** The mean of the last second: a sample alone is ragged. */
function recent(line: Line): Line {
  const count = Math.round((1_000 * SAMPLES) / GOVERNED_MS)
  return line.map((_, k) => {
    const from = Math.max(0, k + 1 - count)
    return line.subarray(from, k + 1).reduce((sum, value) => sum + value, 0) / (k + 1 - from)
  })
}

const ratios = (sums: Line, counts: Line): Line => sums.map((sum, k) => sum / (counts[k] as number))

const exponential = (random: () => number) => (mean: number) => -Math.log(1 - random()) * mean

/**
 * Calls get slow rather than many: the same calls to the same server, behind a rate limit alone,
 * and behind one that also limits what runs at once. Everything happens at whole milliseconds of a
 * fake clock; between two of them, callers whose turn has come go on.
 */
import { type Clock, concurrency, createLimiter, fakeClock, gcra } from '../sluice.ts'
import { columnAt, type Line, newLine, raise, sampleAt } from './samples.ts'
import { Server } from './server.ts'
import { mulberry32 } from './traffic.ts'

export const SLOW_MS = 32_000
/** How many calls the server works on at a time. */
export const SLOW_WORKERS = 10
/** An answer that takes longer is too late for its caller. */
export const PATIENCE_MS = 2_000
/** A unit of the hand-drawn row. */
export const SLOW_UNIT_MS = 100

/** Who calls, and the share of each. */
export const CALLERS = ['web', 'app', 'reports'] as const
const SHARES = [0.5, 0.3, 0.2] as const
const SEED = 5

export interface SlowJob {
  readonly scene: 'slow'
  readonly perSecond: number
  /** Permits a second of the rate limit. */
  readonly rate: number
  /** The highest number of calls at once. */
  readonly max: number
  /** How long callers wait for a place at most. */
  readonly waitMs: number
  /** How long a call takes, by column, in units of 100 ms. */
  readonly columns: readonly number[]
}

export interface SlowSide {
  /** Most calls in flight within each sample. */
  readonly inflight: Line
  /** Most callers that waited within each sample, by caller. */
  readonly waiting: readonly Line[]
  readonly mostInflight: number
  readonly mostWaiting: number
  readonly inTime: number
  readonly late: number
  readonly gaveUp: number
  readonly longestMs: number
}

export interface SlowRun {
  readonly scene: 'slow'
  readonly calls: number
  readonly rateAlone: SlowSide
  readonly atOnce: SlowSide
}

interface Arrival {
  readonly atMs: number
  readonly caller: number
}

/** What a caller holds while its call runs. */
type Release = () => void

/** Waits for its turn; rejects when that takes too long. */
type Enter = () => Promise<Release>

export async function playSlow(job: SlowJob): Promise<SlowRun> {
  const arrivals = arrivalsOf(job.perSecond)
  const rateAlone = await new SidePlayer(job, arrivals, rateAloneGate).play()
  const atOnce = await new SidePlayer(job, arrivals, atOnceGate).play()
  return { scene: 'slow', calls: arrivals.length, rateAlone, atOnce }
}

const rateOf = ({ rate }: SlowJob) => gcra({ rate: { permits: rate, per: '1s' }, burst: rate })

function rateAloneGate(job: SlowJob, clock: Clock): Enter {
  const limiter = createLimiter({ rate: rateOf(job) }, { clock })
  return async () => {
    await limiter.acquire('database', { timeoutMs: job.waitMs })
    return () => undefined
  }
}

function atOnceGate(job: SlowJob, clock: Clock): Enter {
  const limiter = createLimiter({ rate: rateOf(job), inflight: concurrency({ max: job.max }) }, { clock })
  return async () => {
    const permit = await limiter.acquire('database', { timeoutMs: job.waitMs })
    return () => permit.release()
  }
}

/** At random, and the same for everybody. */
function arrivalsOf(perSecond: number): Arrival[] {
  const random = mulberry32(SEED)
  const arrivals: Arrival[] = []
  for (let ms = 0; ; ) {
    ms += (-Math.log(1 - random()) * 1000) / perSecond
    if (ms >= SLOW_MS) return arrivals
    arrivals.push({ atMs: Math.floor(ms), caller: callerOf(random()) })
  }
}

function callerOf(chance: number): number {
  if (chance < SHARES[0]) return 0
  return chance < SHARES[0] + SHARES[1] ? 1 : 2
}

/** Beyond the end of the picture the server answers what is left, for as long as this. */
const LONGEST_MS = 4 * SLOW_MS
/**
 * So many turns of the microtask queue lie at most between a release and the caller that it lets
 * in.
 */
const TURNS = 8

class SidePlayer {
  readonly #job: SlowJob
  readonly #arrivals: readonly Arrival[]
  readonly #clock = fakeClock()
  /** The same, noting whether a timer has fired. */
  readonly #noting: Clock = {
    nowUs: this.#clock.nowUs,
    setTimer: (fn, us) =>
      this.#clock.setTimer(() => {
        this.#isStirred = true
        fn()
      }, us),
  }
  readonly #server = new Server(this.#noting, SLOW_WORKERS)
  readonly #enter: Enter
  readonly #inflightLine = newLine()
  readonly #waitingLines = CALLERS.map(newLine)
  readonly #waiting = CALLERS.map(() => 0)
  readonly #totals = { mostInflight: 0, mostWaiting: 0, inTime: 0, late: 0, gaveUp: 0, longestMs: 0 }
  #inflight = 0
  /** Whether anything has happened that callers may go on for. */
  #isStirred = false

  constructor(job: SlowJob, arrivals: readonly Arrival[], gate: (job: SlowJob, clock: Clock) => Enter) {
    this.#job = job
    this.#arrivals = arrivals
    this.#enter = gate(job, this.#noting)
  }

  async play(): Promise<SlowSide> {
    let next = 0
    for (let ms = 0; ms < LONGEST_MS && (ms < SLOW_MS || this.#isBusy); ms++) {
      this.#clock.setMs(ms)
      for (; this.#arrivals[next]?.atMs === ms; next++) void this.#call(this.#arrivals[next] as Arrival)
      if (this.#isStirred) await this.#goOn()
      this.#note(ms)
    }
    // Answers that never came count as too late.
    this.#totals.late += this.#inflight
    return { inflight: this.#inflightLine, waiting: this.#waitingLines, ...this.#totals }
  }

  async #goOn(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn++) await undefined
    this.#isStirred = false
  }

  get #isBusy(): boolean {
    return this.#inflight > 0 || this.#waiting.some((count) => count > 0)
  }

  async #call({ atMs, caller }: Arrival): Promise<void> {
    this.#isStirred = true
    this.#wait(caller, 1)
    try {
      const release = await this.#enter()
      this.#work(atMs, release)
    } catch {
      this.#totals.gaveUp += 1
    }
    this.#wait(caller, -1)
  }

  #wait(caller: number, by: number): void {
    this.#waiting[caller] = (this.#waiting[caller] as number) + by
  }

  #work(sinceMs: number, release: Release): void {
    this.#inflight += 1
    const done = () => {
      this.#inflight -= 1
      release()
      this.#answered(this.#nowMs - sinceMs)
    }
    this.#server.submit(() => columnAt(this.#job.columns, this.#nowMs, SLOW_MS) * SLOW_UNIT_MS, done)
  }

  get #nowMs(): number {
    return this.#clock.nowUs() / 1000
  }

  #answered(tookMs: number): void {
    this.#totals[tookMs <= PATIENCE_MS ? 'inTime' : 'late'] += 1
    this.#totals.longestMs = Math.max(this.#totals.longestMs, tookMs)
  }

  #note(ms: number): void {
    const sample = sampleAt(ms, SLOW_MS)
    raise(this.#inflightLine, sample, this.#inflight)
    for (const [k, count] of this.#waiting.entries()) raise(this.#waitingLines[k] as Line, sample, count)
    this.#totals.mostInflight = Math.max(this.#totals.mostInflight, this.#inflight)
    const all = this.#waiting.reduce((sum, count) => sum + count, 0)
    this.#totals.mostWaiting = Math.max(this.#totals.mostWaiting, all)
  }
}

/**
 * A server under load, with a limit in front of it, on simulated time. The run depends on a
 * scenario (JSON) and a seed, and on nothing else. The same seed gives the same arrivals whatever
 * the limit does.
 */
import { SimulatedTime } from './events.ts'
import { type Distribution, randomOf, samplerOf } from './random.ts'
import { Server, type ServerNumbers } from './server.ts'

export interface Stream {
  /** Open: requests come at this pace, by chance (default) or evenly. */
  readonly perSecond?: number
  readonly even?: boolean
  /** So many come together, on average (exponential). Default: one by one. */
  readonly batch?: number
  /** Closed: so many clients, each with one request at a time, and a pause between them. */
  readonly clients?: number
  readonly pauseMs?: number
  readonly serviceMs: Distribution
  /** Whether they count as goodput. Default true. */
  readonly counts?: boolean
  /** Clients give up after this long. Their request stays in the server until it is done. */
  readonly timeoutMs?: number
  /**
   * How often a client tries again that was refused, dropped or gave up; and how long it waits
   * before, doubled each time.
   */
  readonly retries?: number
  readonly backoffMs?: number
}

export interface Step extends Partial<ServerNumbers> {
  readonly atS: number
  /** The pace of open streams, multiplied. */
  readonly load?: number
}

export interface Scenario {
  readonly name: string
  readonly seconds: number
  readonly server: ServerNumbers
  readonly streams: readonly Stream[]
  readonly steps?: readonly Step[]
  /** The bounds of the governor. */
  readonly min?: number
  readonly max?: number
}

/** What stands in front of the server. */
export interface Gate {
  /** Whether a request may go in; counts it if so. */
  tryEnter(): boolean
  leave(heldMs: number, outcome: 'ok' | 'dropped'): void
}

export type GateOf = (time: SimulatedTime) => Gate

export interface Result {
  /** Useful answers in time, per second. */
  readonly goodput: number
  readonly p99Ms: number
  readonly meanMs: number
  readonly dropped: number
  /** Useful answers in each second. */
  readonly perSecond: readonly number[]
  /** When each useful answer came and how long it took, in order. */
  readonly answers: readonly (readonly [atMs: number, tookMs: number])[]
}

export function simulate(scenario: Scenario, seed: number, gateOf: GateOf): Result {
  const time = new SimulatedTime()
  const server = new Server(time, randomOf(seed * 7 + 1), scenario.server)
  const gate = gateOf(time)
  const run = new Run(time, server, gate)
  for (const [k, stream] of scenario.streams.entries()) run.start(stream, seed * 1_000 + 17 * k)
  for (const { atS, load, ...numbers } of scenario.steps ?? []) {
    time.after(atS * 1000, () => {
      server.change(numbers)
      if (load !== undefined) run.load = load
    })
  }
  time.runUntilMs(scenario.seconds * 1000)
  return run.result(scenario.seconds)
}

class Run {
  readonly #time: SimulatedTime
  readonly #server: Server
  readonly #gate: Gate
  readonly #answers: [number, number][] = []
  /** Clients of closed streams that wait for a place. */
  readonly #line: (() => void)[] = []
  #dropped = 0
  load = 1

  constructor(time: SimulatedTime, server: Server, gate: Gate) {
    this.#time = time
    this.#server = server
    this.#gate = gate
  }

  start(stream: Stream, seed: number): void {
    const random = randomOf(seed)
    const draw = samplerOf(stream.serviceMs, randomOf(seed + 1))
    if (stream.clients !== undefined) {
      for (let k = 0; k < stream.clients; k++) this.#client(stream, draw, random)
      return
    }
    const meanMs = 1000 / (stream.perSecond as number)
    const { batch = 1 } = stream
    const gapMs = stream.even ? () => meanMs : () => -meanMs * batch * Math.log(1 - random())
    const arrive = () => {
      const count = batch === 1 ? 1 : Math.ceil(-batch * Math.log(1 - random()))
      for (let k = 0; k < count; k++) this.#request(stream, draw(), random, () => {})
      this.#time.after(gapMs() / this.load, arrive)
    }
    this.#time.after(gapMs() / this.load, arrive)
  }

  /**
   * A client that asks again when it has an answer; refused, it waits in line for the next place.
   */
  #client(stream: Stream, draw: () => number, random: () => number): void {
    const { pauseMs = 0 } = stream
    const ask = () =>
      this.#request(stream, draw(), random, (isLetIn) => {
        if (!isLetIn) this.#line.push(ask)
        else if (pauseMs === 0) ask()
        else this.#time.after(pauseMs * 2 * random(), ask)
      })
    this.#time.after(random() * Math.max(1, pauseMs), ask)
  }

  /** As many of those in line as there are places. */
  #wake(): void {
    for (let left = this.#line.length; left > 0; left--) {
      const before = this.#line.length
      this.#line.shift()?.()
      // Refused: back in line, and so would the others be.
      if (this.#line.length === before) return
    }
  }

  #request(
    stream: Stream,
    serviceMs: number,
    random: () => number,
    then: (isLetIn: boolean) => void,
    tried = 0,
    sinceMs = this.#time.nowMs,
  ): void {
    const { timeoutMs = Number.POSITIVE_INFINITY, retries = 0, backoffMs = 100, counts = true } = stream
    const again = (isLetIn: boolean) => {
      if (tried >= retries) return then(isLetIn)
      const waitMs = backoffMs * 2 ** tried * (0.5 + random())
      this.#time.after(waitMs, () => this.#request(stream, serviceMs, random, then, tried + 1))
    }
    if (!this.#gate.tryEnter()) {
      again(false)
      return
    }
    const inMs = this.#time.nowMs
    let isGone = false
    const stop =
      timeoutMs === Number.POSITIVE_INFINITY
        ? undefined
        : this.#time.after(timeoutMs, () => {
            isGone = true
            this.#dropped += 1
            again(true)
          })
    this.#server.submit(serviceMs, (isOk) => {
      stop?.()
      const tookMs = this.#time.nowMs - inMs
      this.#gate.leave(tookMs, isOk && !isGone ? 'ok' : 'dropped')
      if (!isGone) {
        if (isOk && counts) this.#answers.push([this.#time.nowMs, this.#time.nowMs - sinceMs])
        if (!isOk) this.#dropped += 1
        isOk ? then(true) : again(true)
      }
      this.#wake()
    })
  }

  result(seconds: number): Result {
    const took = this.#answers.map(([, ms]) => ms)
    const perSecond = new Array<number>(seconds).fill(0)
    for (const [atMs] of this.#answers) {
      const second = Math.min(seconds - 1, Math.floor(atMs / 1000))
      perSecond[second] = (perSecond[second] as number) + 1
    }
    return {
      goodput: this.#answers.length / seconds,
      p99Ms: percentile(took, 0.99),
      meanMs: took.reduce((sum, ms) => sum + ms, 0) / Math.max(1, took.length),
      dropped: this.#dropped / seconds,
      perSecond,
      answers: this.#answers,
    }
  }
}

export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) return 0
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] as number
}

/** A limit that never changes. */
export function fixedGate(limit: number): GateOf {
  return () => {
    let inflight = 0
    return {
      tryEnter: () => {
        if (inflight >= limit) return false
        inflight += 1
        return true
      },
      leave: () => {
        inflight -= 1
      },
    }
  }
}

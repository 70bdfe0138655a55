/**
 * Traces: long sequences of calls on one key, made up on the way. A trace is told what the last
 * call was answered and chooses the next one so that it hurts: exactly at the announced retry, one
 * microsecond before it, back in time by a little, by a window, by more, after the key has gone
 * idle, at the same instant. Every call has numbers of its own, as plans and versions side by side
 * do. Equal seeds and equal answers give equal traces.
 */
import type { OracleKind, OracleNumbers } from '../../src/testing/oracle.ts'
import { Random } from './random.ts'

export const CALLS_PER_TRACE = 200

/**
 * Both can be set from outside to look further than the tests do:
 * `SLUICE_SEED=7 SLUICE_TRACES=100000 npx vitest run test/model`.
 */
export const SEED = fromEnvironment('SLUICE_SEED', 20_260_417)
export const traceCount = (usual: number) => fromEnvironment('SLUICE_TRACES', usual)

export type Moment =
  | 'at retry'
  | 'just before retry'
  | 'around its time'
  | 'step back'
  | 'idle gap'
  | 'same instant'
  | 'small step'
  | 'long step'

/** One call on the key; one cost for each limit of the trace. */
export interface Call {
  readonly op: 'take' | 'ask' | 'give' | 'cancel' | 'charge' | 'settle' | 'forget'
  readonly nowUs: number
  readonly moment: Moment
  /** The numbers of the caller: an index into `palette`. */
  readonly numbers: number
  /** For `settle`: what was really used. */
  readonly costs: readonly number[]
  /** -1 unless it is a reservation. */
  readonly aheadUs: number
  readonly ofUs: number
  /** For `cancel`: which of the reservations that were not cancelled yet. */
  readonly reservation: number
  /** For `settle`: which of the latest charges, counted from the last. */
  readonly charge: number
}

/** What the last call was answered, over all limits of the trace. */
export interface Seen {
  readonly limited: boolean
  /** The longest of all. */
  readonly retryUs: number
  readonly resetUs: number
  readonly remaining: readonly number[]
  /** Above 0 when the call took something ahead of its time. */
  readonly delayUs: number
  readonly openReservations: number
  /** How many of the latest charges may be settled. */
  readonly openCharges: number
}

/** What a trace must know of the numbers of a limit to make its life hard. */
export interface SizedNumbers {
  readonly capacity: number
  readonly windowUs: number
}

export interface TraceOptions<Numbers extends SizedNumbers = TraceNumbers> {
  /** Time never goes back. */
  readonly forwardOnly?: boolean
  /** Other numbers than those of the levels: first some, then some to change to. */
  readonly numbers?: { some(random: Random): Numbers; varied(random: Random, numbers: Numbers): Numbers }
}

const DAY_US = 86_400_000_000
const MAX_PERMITS = 1_000_000_000
const MAX_USED = 1_000_000_000_000
const MAX_PERIOD_US = 366 * DAY_US
const MAX_FILL_US = 36_525 * DAY_US
const LATEST_US = 5_000_000_000_000_000

/** Numbers that a limit accepts, and the whole microseconds in which their capacity leaks. */
export interface TraceNumbers extends OracleNumbers {
  readonly windowUs: number
}

interface Move {
  readonly nowUs: number
  readonly moment: Moment
}

export class Trace<Kind extends string = OracleKind, Numbers extends SizedNumbers = TraceNumbers> {
  readonly seed: number
  readonly kinds: readonly Kind[]
  readonly maxAheadUs: number
  /** By index: the numbers of each limit. */
  readonly palette: readonly (readonly Numbers[])[]
  readonly #random: Random
  readonly #forwardOnly: boolean
  #nowUs: number
  #numbers = 0
  #last: Call | undefined
  /** When something may have been taken, lately. */
  #takenUs: number[] = []

  constructor(seed: number, kinds: readonly Kind[], options: TraceOptions<Numbers> = {}) {
    const random = new Random(seed)
    this.seed = seed
    this.kinds = kinds
    this.#random = random
    this.#forwardOnly = options.forwardOnly ?? false
    const numbers = options.numbers ?? (LEVEL_NUMBERS as unknown as NonNullable<TraceOptions<Numbers>['numbers']>)
    this.palette = paletteOf(random, kinds.length, numbers)
    this.maxAheadUs = someMaxAheadUs(random, (this.palette[0] as Numbers[])[0] as Numbers)
    this.#nowUs = random.pick([0, 1, 1_700_000_000_000_000, 1_700_000_000_000_000, random.whole(0, LATEST_US), LATEST_US])
  }

  next(seen: Seen): Call {
    const call = this.#tryAgain(seen) ?? this.#newCall(seen)
    this.#nowUs = call.nowUs
    this.#numbers = call.numbers
    this.#last = call
    if (call.op === 'take') this.#takenUs = [...this.#takenUs.slice(-4), call.nowUs]
    return call
  }

  /** A refused call again, when it was told to come again or one microsecond too early. */
  #tryAgain(seen: Seen): Call | undefined {
    if (this.#last === undefined || !seen.limited || this.#nowUs + seen.retryUs > LATEST_US) return undefined
    const moment = this.#random.weighted<Moment | undefined>([
      [35, 'at retry'],
      [35, 'just before retry'],
      [30, undefined],
    ])
    if (moment === undefined) return undefined
    return { ...this.#last, moment, nowUs: this.#nowUs + seen.retryUs - (moment === 'at retry' ? 0 : 1) }
  }

  #newCall(seen: Seen): Call {
    const random = this.#random
    const numbers = random.chance(0.4) ? random.whole(0, this.palette.length - 1) : this.#numbers
    const limits = this.palette[numbers] as readonly Numbers[]
    const { nowUs, moment } = this.#move(seen, random.pick(limits).windowUs)
    const op = moment === 'around its time' ? 'cancel' : this.#op(seen)
    // One reservation draws another, so that there is something reserved after something.
    const early = this.maxAheadUs > 0 && random.chance(op !== 'take' ? 0.1 : seen.delayUs > 0 ? 0.9 : 0.5)
    const isWritten = op === 'charge' || op === 'settle'
    return {
      op,
      nowUs,
      moment,
      numbers,
      costs: limits.map(({ capacity }, k) =>
        isWritten ? someUse(random, capacity) : someCost(random, capacity, seen.remaining[k] ?? capacity),
      ),
      aheadUs: early ? random.pick([this.maxAheadUs, this.maxAheadUs, random.whole(0, this.maxAheadUs)]) : -1,
      ofUs: op === 'give' ? this.#someOfUs(nowUs, random.pick(limits).windowUs) : -1,
      reservation: this.#someReservation(seen.openReservations),
      charge: isWritten ? random.whole(0, Math.max(0, seen.openCharges - 1)) : 0,
    }
  }

  #op(seen: Seen): Call['op'] {
    return this.#random.weighted<Call['op']>([
      [66, 'take'],
      [12, 'ask'],
      [8, 'give'],
      [3, 'charge'],
      [seen.openCharges > 0 ? 10 : 0, 'settle'],
      [seen.openReservations > 0 ? 16 : 0, 'cancel'],
      [2, 'forget'],
    ])
  }

  /** Often the last but one: one that something was reserved after. */
  #someReservation(open: number): number {
    const index = this.#random.pick([open - 1, open - 1, open - 2, this.#random.whole(0, Math.max(0, open - 1))])
    return Math.max(0, index)
  }

  #move(seen: Seen, windowUs: number): Move {
    const moment = this.#random.weighted<Moment>([
      [28, 'same instant'],
      [18, 'small step'],
      [14, 'long step'],
      [20, 'idle gap'],
      [this.#forwardOnly ? 0 : 20, 'step back'],
      [seen.delayUs > 0 ? 60 : 0, 'around its time'],
    ])
    const nowUs = this.#nowUs + this.#leapUs(moment, seen, windowUs)
    if (nowUs >= 0 && nowUs <= LATEST_US) return { nowUs, moment }
    if (nowUs < 0 || this.#forwardOnly) return { nowUs: this.#nowUs, moment: 'same instant' }
    // The end of time is reached: go on from somewhere earlier.
    return { nowUs: this.#random.whole(0, this.#nowUs), moment: 'step back' }
  }

  #leapUs(moment: Moment, seen: Seen, windowUs: number): number {
    const random = this.#random
    switch (moment) {
      case 'small step':
        return random.pick([1, 1, 2, random.whole(1, 10), random.whole(1, 1_000)])
      case 'long step':
        return random.magnitude(1, windowUs)
      case 'idle gap':
        return seen.resetUs + random.pick([0, 0, 1, random.magnitude(1, windowUs)])
      case 'around its time':
        return random.pick([0, random.whole(0, seen.delayUs), seen.delayUs - 1, seen.delayUs])
      case 'step back':
        return -random.pick([
          1,
          random.whole(1, 1_000),
          random.magnitude(1, windowUs),
          windowUs,
          windowUs + 1,
          windowUs + random.magnitude(1, windowUs),
        ])
      default:
        return 0
    }
  }

  #someOfUs(nowUs: number, windowUs: number): number {
    const random = this.#random
    if (random.chance(0.4)) return -1
    if (this.#takenUs.length > 0 && random.chance(0.5)) return random.pick(this.#takenUs)
    const agoUs = random.pick([0, 1, windowUs - 1, windowUs, random.whole(0, windowUs), -random.whole(0, windowUs)])
    return Math.max(-1, nowUs - agoUs)
  }
}

/**
 * Costs around what is there now, because that is where decisions tip; some that can never fit, and
 * some of nothing.
 */
function someCost(random: Random, capacity: number, remaining: number): number {
  return random.weighted([
    [20, 1],
    [8, Math.min(capacity, random.whole(1, 5))],
    [26, Math.min(capacity, Math.max(1, remaining))],
    [22, Math.min(capacity, remaining + 1)],
    [8, random.whole(1, capacity)],
    [6, random.magnitude(1, capacity)],
    [6, capacity],
    [2, Math.min(MAX_PERMITS, capacity + random.magnitude(1, 1_000))],
    [2, 0],
  ])
}

/** What was used, whether it fits or not: mostly not much more than that. */
function someUse(random: Random, capacity: number): number {
  return random.weighted([
    [20, 0],
    [20, 1],
    [20, random.whole(1, capacity)],
    [10, capacity],
    [10, capacity + 1],
    [16, random.whole(1, 3 * capacity)],
    [3, random.magnitude(1, MAX_USED)],
    [1, MAX_USED],
  ])
}

/**
 * A few sets of numbers that meet on one key: some near each other, some that have nothing in
 * common.
 */
function paletteOf<Numbers extends SizedNumbers>(
  random: Random,
  limits: number,
  { some, varied }: NonNullable<TraceOptions<Numbers>['numbers']>,
): Numbers[][] {
  const first = Array.from({ length: limits }, () => some(random))
  const others = [1, 2, 3].map(() => first.map((numbers) => (random.chance(0.6) ? varied(random, numbers) : some(random))))
  return [first, ...others]
}

export function someNumbers(random: Random): TraceNumbers {
  const some = random.weighted<() => OracleNumbers>([
    [15, () => ({ capacity: random.whole(1, 20), permits: 7, periodUs: 1_000_000 })],
    [10, () => ({ capacity: 1_000_000, permits: 999_983, periodUs: DAY_US })],
    [10, () => ({ capacity: random.magnitude(1, MAX_PERMITS), permits: 10, periodUs: 1 })],
    [10, () => ({ capacity: random.whole(1, 99), permits: 1, periodUs: MAX_PERIOD_US })],
    [15, () => ({ ...randomPace(random), capacity: MAX_PERMITS })],
    [40, () => ({ ...randomPace(random), capacity: random.chance(0.5) ? random.whole(1, 12) : random.magnitude(1, MAX_PERMITS) })],
  ])
  return inDomain(some())
}

/** The nearest numbers that a limit accepts. */
function inDomain(numbers: OracleNumbers): TraceNumbers {
  const periodUs = Math.min(numbers.periodUs, MAX_PERIOD_US)
  const permits = Math.min(numbers.permits, MAX_PERMITS, 10 * periodUs)
  const mostInTime = Number((BigInt(MAX_FILL_US) * BigInt(permits)) / BigInt(periodUs))
  const capacity = Math.min(numbers.capacity, MAX_PERMITS, mostInTime)
  return { capacity, permits, periodUs, windowUs: windowUsOf(capacity, permits, periodUs) }
}

/** The whole microseconds in which the capacity leaks. */
function windowUsOf(capacity: number, permits: number, periodUs: number): number {
  const units = BigInt(capacity) * BigInt(periodUs)
  return Number((units + BigInt(permits) - 1n) / BigInt(permits))
}

function randomPace(random: Random): { permits: number; periodUs: number } {
  const periodUs = random.pick([
    random.magnitude(1, 1_000),
    random.magnitude(1, MAX_PERIOD_US),
    random.pick([1_000_000, 60_000_000, DAY_US]),
  ])
  return { permits: random.magnitude(1, Math.min(MAX_PERMITS, 10 * periodUs)), periodUs }
}

function varied(random: Random, { capacity, permits, periodUs }: OracleNumbers): TraceNumbers {
  const variant = random.pick([
    { capacity: capacity * 2, permits, periodUs },
    { capacity: Math.ceil(capacity / 2), permits, periodUs },
    { capacity: capacity + 1, permits, periodUs },
    { capacity, permits: permits * 2 + 1, periodUs },
    { capacity, permits, periodUs: periodUs * 3 + 1 },
    { capacity: random.magnitude(1, MAX_PERMITS), permits, periodUs: Math.max(periodUs - 1, 1) },
  ])
  return inDomain(variant)
}

const LEVEL_NUMBERS = { some: someNumbers, varied }

function someMaxAheadUs(random: Random, { windowUs }: SizedNumbers): number {
  return random.chance(0.5) ? 0 : random.magnitude(1, Math.min(MAX_PERIOD_US, 3 * windowUs))
}

function fromEnvironment(name: string, usual: number): number {
  const given = process.env[name]
  if (given === undefined || given === '') return usual
  const value = Number(given)
  if (!Number.isInteger(value) || value < 0) throw new Error(`${name}=${given} must be a whole number`)
  return value
}

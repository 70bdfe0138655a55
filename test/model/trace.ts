/**
 * Traces: long sequences of calls on one key, made up on the way. A trace is told what the last
 * call was answered and chooses the next one so that it hurts: exactly at the announced retry, one
 * microsecond before it, back in time by a little, by a window, by more, after the key has gone
 * idle, at the same instant. Charges are settled up and down, at once or windows later, and
 * reservations before and after their time. Every call has numbers of its own, as plans and
 * versions side by side do. Equal seeds and equal answers give equal traces.
 */
import type { OracleKind, OracleNumbers } from '../../src/testing/oracle.ts'
import { Random } from './random.ts'

export const CALLS_PER_TRACE = 200

/** Times are 0 to 2^52 microseconds: a trace never goes beyond. */
export const LATEST_US = 2 ** 52

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
  readonly op: 'take' | 'ask' | 'give' | 'charge' | 'settle' | 'forget'
  readonly nowUs: number
  readonly moment: Moment
  /** The numbers of the caller: an index into `palette`. */
  readonly numbers: number
  /** For `settle`: what was really used; 0 cancels. */
  readonly costs: readonly number[]
  /** -1 unless it is a reservation. */
  readonly aheadUs: number
  /** For `settle`: an index into `open` of what was seen. */
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
  /** The latest charges, which may be settled: the last one first. */
  readonly open: readonly OpenCharge[]
}

export interface OpenCharge {
  readonly costs: readonly number[]
  readonly enteredUs: number
  /** When its caller may act. */
  readonly dueUs: number
}

/** What a trace must know of the numbers of a limit to make its life hard. */
export interface SizedNumbers {
  readonly capacity: number
  readonly windowUs: number
  /** No more permits than this are in use: what is charged beyond is dropped. */
  readonly mostUsed: number
  /** No limiter with these numbers may be booked further ahead. */
  readonly mostAheadUs: number
}

export interface TraceOptions<Numbers extends SizedNumbers = TraceNumbers> {
  /** Time never goes back. */
  readonly forwardOnly?: boolean
  /** Other numbers than those of the levels: first some, then some to change to. */
  readonly numbers?: { some(random: Random): Numbers; varied(random: Random, numbers: Numbers): Numbers }
}

const DAY_US = 86_400_000_000
const MAX_PERMITS = 1_000_000_000
const MAX_COST = 1_000_000_000_000
const MAX_PERIOD_US = 366 * DAY_US
/** Every limit may be booked so far ahead. */
const USUAL_AHEAD_US = 60_000_000
const UNITS = 2n ** 52n

/** Numbers that a limit keeps as they are asked, and what a trace must know of them. */
export interface TraceNumbers extends OracleNumbers, SizedNumbers {}

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

  constructor(seed: number, kinds: readonly Kind[], options: TraceOptions<Numbers> = {}) {
    const random = new Random(seed)
    this.seed = seed
    this.kinds = kinds
    this.#random = random
    this.#forwardOnly = options.forwardOnly ?? false
    const numbers = options.numbers ?? (LEVEL_NUMBERS as unknown as NonNullable<TraceOptions<Numbers>['numbers']>)
    this.palette = paletteOf(random, kinds.length, numbers)
    this.maxAheadUs = someMaxAheadUs(random, this.palette)
    this.#nowUs = random.pick([0, 1, 1_700_000_000_000_000, 1_700_000_000_000_000, random.whole(0, LATEST_US), LATEST_US])
  }

  next(seen: Seen): Call {
    const call = this.#tryAgain(seen) ?? this.#newCall(seen)
    this.#nowUs = call.nowUs
    this.#numbers = call.numbers
    this.#last = call
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
    const { windowUs } = random.pick(limits)
    const charge = this.#someCharge(seen.open)
    const { nowUs, moment } = this.#move(seen, seen.open[charge], windowUs)
    const op = moment === 'around its time' ? 'settle' : this.#op(seen, windowUs)
    // One reservation draws another, so that there is something reserved after something.
    const early = this.maxAheadUs > 0 && random.chance(op !== 'take' ? 0.1 : seen.delayUs > 0 ? 0.9 : 0.6)
    return {
      op,
      nowUs,
      moment,
      numbers,
      costs: limits.map((each, k) => this.#someCost(op, each, seen.remaining[k], seen.open[charge]?.costs[k])),
      aheadUs: early ? random.pick([this.maxAheadUs, this.maxAheadUs, random.whole(0, this.maxAheadUs)]) : -1,
      charge: op === 'settle' ? charge : 0,
    }
  }

  /** What is far in debt is given up now and then: it would stay so to the end of the trace. */
  #op({ resetUs, open }: Seen, windowUs: number): Call['op'] {
    return this.#random.weighted<Call['op']>([
      [66, 'take'],
      [12, 'ask'],
      [8, 'give'],
      [7, 'charge'],
      [open.length > 0 ? 16 : 0, 'settle'],
      [resetUs > 20 * windowUs ? 12 : 2, 'forget'],
    ])
  }

  #someCost(op: Call['op'], numbers: Numbers, remaining = numbers.capacity, charged = 0): number {
    if (op === 'charge') return someUse(this.#random, numbers)
    return op === 'settle' ? someActual(this.#random, numbers, charged) : someCost(this.#random, numbers, remaining)
  }

  /** Often the last, or one before it: one that something was charged after. */
  #someCharge(open: readonly OpenCharge[]): number {
    const random = this.#random
    return Math.min(Math.max(0, open.length - 1), random.pick([0, 1, 2, random.whole(0, open.length), random.whole(0, open.length)]))
  }

  #move(seen: Seen, charge: OpenCharge | undefined, windowUs: number): Move {
    const moment = this.#random.weighted<Moment>([
      [28, 'same instant'],
      [18, 'small step'],
      [14, 'long step'],
      [16, 'idle gap'],
      [this.#forwardOnly ? 0 : 20, 'step back'],
      [charge === undefined ? 0 : seen.delayUs > 0 ? 60 : 8, 'around its time'],
    ])
    const nowUs = this.#nowUs + this.#leapUs(moment, seen, charge, windowUs)
    if (nowUs >= 0 && nowUs <= LATEST_US) return { nowUs, moment }
    if (nowUs < 0 || this.#forwardOnly) return { nowUs: this.#nowUs, moment: 'same instant' }
    // The end of time is reached: go on from somewhere earlier.
    return { nowUs: this.#random.whole(0, this.#nowUs), moment: 'step back' }
  }

  #leapUs(moment: Moment, { resetUs }: Seen, charge: OpenCharge | undefined, windowUs: number): number {
    const random = this.#random
    switch (moment) {
      case 'small step':
        return random.pick([1, 1, 2, random.whole(1, 10), random.whole(1, 1_000)])
      case 'long step':
        return random.magnitude(1, windowUs)
      case 'idle gap':
        return resetUs + random.pick([0, 0, 1, random.magnitude(1, windowUs)])
      case 'around its time':
        return Math.max(0, this.#someTimeOf(charge as OpenCharge, windowUs) - this.#nowUs)
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

  /** When its caller may act, before that, and up to three windows later. */
  #someTimeOf({ enteredUs, dueUs }: OpenCharge, windowUs: number): number {
    const random = this.#random
    const early = random.whole(enteredUs, dueUs)
    const soon = enteredUs + random.magnitude(1, Math.max(1, dueUs - enteredUs))
    return random.pick([early, soon, dueUs - 1, dueUs, dueUs + 1, enteredUs + random.whole(0, 3 * windowUs)])
  }
}

/**
 * Costs around what is there now, because that is where decisions tip; some that can never fit, and
 * some of nothing.
 */
function someCost(random: Random, { capacity }: SizedNumbers, remaining: number): number {
  if (capacity === 0) return random.pick([0, 1, random.magnitude(1, 1_000)])
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
function someUse(random: Random, { capacity, mostUsed }: SizedNumbers): number {
  const most = Math.min(MAX_COST, mostUsed)
  return random.weighted([
    [20, 0],
    [20, 1],
    [20, random.whole(1, capacity)],
    [10, capacity],
    [10, capacity + 1],
    [12, random.whole(1, 3 * capacity)],
    [2, random.magnitude(1, most)],
    [6, random.pick([most - capacity, most - 1, most, most + 1])],
    [1, MAX_COST],
  ])
}

/** What a charge turned out to be: mostly less. */
function someActual(random: Random, numbers: SizedNumbers, charged: number): number {
  return random.weighted([
    [40, 0],
    [35, random.whole(0, charged)],
    [3, charged],
    [8, charged + 1],
    [14, charged + someUse(random, numbers)],
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
    [4, () => ({ ...randomPace(random), capacity: 0 })],
  ])
  return inDomain(some())
}

/** The nearest numbers that a limit keeps as they are asked: others would be kept slower. */
export function inDomain(numbers: OracleNumbers): TraceNumbers {
  let periodUs = Math.min(numbers.periodUs, MAX_PERIOD_US)
  let permits = Math.min(numbers.permits, MAX_PERMITS, 10 * periodUs)
  while (roomIn(permits, periodUs) < 0n) {
    periodUs = Math.ceil(periodUs / 2)
    permits = Math.floor(permits / 2)
  }
  const [p, q] = lowestTerms(permits, periodUs)
  const capacity = smaller(Math.min(numbers.capacity, MAX_PERMITS), roomIn(permits, periodUs) / (2n * q))
  const units = BigInt(capacity) * q
  return {
    capacity,
    permits,
    periodUs,
    windowUs: Number((units + p - 1n) / p),
    mostUsed: Number(UNITS / q),
    mostAheadUs: Number((UNITS - 1n - 2n * units) / p),
  }
}

/**
 * How many units are left for twice the capacity, when the limit is booked as far ahead as usual.
 */
function roomIn(permits: number, periodUs: number): bigint {
  const [p] = lowestTerms(permits, periodUs)
  return UNITS - 1n - BigInt(USUAL_AHEAD_US) * p
}

function lowestTerms(permits: number, periodUs: number): [p: bigint, q: bigint] {
  let [a, b] = [permits, periodUs]
  while (b > 0) [a, b] = [b, a % b]
  return [BigInt(permits / a), BigInt(periodUs / a)]
}

function smaller(a: number, b: bigint): number {
  return BigInt(a) < b ? a : Number(b)
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
    { capacity: random.chance(0.5) ? 0 : capacity, permits, periodUs },
  ])
  return inDomain(variant)
}

const LEVEL_NUMBERS = { some: someNumbers, varied }

/** None, or what all numbers can keep: about as far as the first reach. */
function someMaxAheadUs(random: Random, palette: readonly (readonly SizedNumbers[])[]): number {
  const [[{ windowUs }]] = palette as [[SizedNumbers]]
  const mostUs = Math.min(MAX_PERIOD_US, ...palette.flat().map(({ mostAheadUs }) => mostAheadUs))
  return random.chance(0.5) ? 0 : Math.min(mostUs, random.magnitude(1, Math.max(1, 3 * windowUs)))
}

function fromEnvironment(name: string, usual: number): number {
  const given = process.env[name]
  if (given === undefined || given === '') return usual
  const value = Number(given)
  if (!Number.isInteger(value) || value < 0) throw new Error(`${name}=${given} must be a whole number`)
  return value
}

/**
 * Plays arrivals against limits: the library itself, on a clock that is told the time.
 *
 * The result is as large as the picture, not as the traffic: the axis is cut into cells, and each
 * holds counts and the range of what the limit keeps inside. All of it is read from decisions, as
 * any user of the library could.
 */
import { createLimiter, type Decision, type LimitData, type MemoryStore, memoryStore } from '../sluice.ts'
import { type LimitType, type Shape, shapeOf } from './limits.ts'
import type { Arrivals } from './traffic.ts'

export const CELLS = 480

export interface Totals {
  readonly admitted: number
  readonly refused: number
  /**
   * Most permits that acted within any one window, wherever it lies, and how long those took from
   * the first to the last.
   */
  readonly mostInWindow: number
  readonly mostWithinUs: number
  readonly windowUs: number
  /**
   * The longest wait in any answer: to come back when refused, to act when admitted. Infinity:
   * never.
   */
  readonly longestWaitUs: number
}

export interface Row {
  readonly type: LimitType
  readonly capacity: number
  /**
   * Calls by the time at which they may act: a leaky bucket's admissions leave it later than they
   * came.
   */
  readonly admitted: Uint32Array<ArrayBuffer>
  /** Calls by the time at which they came. */
  readonly refused: Uint32Array<ArrayBuffer>
  /** Least and most of the inner quantity within each cell. */
  readonly low: Float64Array<ArrayBuffer>
  readonly high: Float64Array<ArrayBuffer>
  /** What the quantity cannot exceed. */
  readonly ceiling: number
  readonly totals: Totals
}

export interface Run {
  readonly atUs: Float64Array<ArrayBuffer>
  readonly cost: Float64Array<ArrayBuffer>
  readonly lengthUs: number
  readonly arrived: Uint32Array<ArrayBuffer>
  readonly rows: readonly Row[]
  /** The first call that an algorithm refused, to look at first; -1 if there is none. */
  readonly firstRefused: number
}

/** A limiter whose clock stands where it is put. */
export class SteppedLimiter {
  readonly shape: Shape
  readonly #store = memoryStore()
  readonly #limiter
  #nowUs = 0

  constructor(data: LimitData) {
    this.shape = shapeOf(data)
    const clock = { nowUs: () => this.#nowUs, setTimer: () => () => undefined }
    this.#limiter = createLimiter(this.shape.limit, { name: 'page', store: this.#store, clock })
  }

  consume(atUs: number, cost: number): Decision {
    this.#nowUs = atUs
    return this.#limiter.consume('key', cost)
  }

  /** How the key stands: a cost of 0 asks and takes nothing. */
  look(atUs: number): Decision {
    this.#nowUs = atUs
    return this.#limiter.peek('key', 0)
  }

  /** The state as text, for showing what a decision alone does not say. */
  inspect(): ReturnType<MemoryStore['inspect']> {
    return this.#store.inspect('page', 'default', 'key')
  }
}

/**
 * What the limit keeps, in the words people use for it: tokens, water, a count, or how far the TAT
 * lies ahead, in seconds.
 */
export function quantityOf({ type, capacity, intervalUs }: Shape, { remaining, resetAfterMs }: Decision): number {
  if (type === 'gcra') return resetAfterMs / 1000
  if (intervalUs === 0) return capacity - remaining
  const used = Math.min((resetAfterMs * 1000) / intervalUs, capacity)
  return type === 'tokenBucket' ? capacity - used : used
}

export function ceilingOf({ type, capacity, intervalUs }: Shape): number {
  return type === 'gcra' ? (capacity * intervalUs) / 1_000_000 : capacity
}

export function play(arrivals: Arrivals, limits: readonly LimitData[]): Run {
  const { atUs, cost, lengthUs } = arrivals
  const played = limits.map((data) => new RowPlayer(new SteppedLimiter(data), arrivals).play())
  const refusals = played.map(({ firstRefused }) => firstRefused).filter((k) => k >= 0)
  return {
    atUs,
    cost,
    lengthUs,
    arrived: countedBy(atUs, lengthUs),
    rows: played.map(({ row }) => row),
    firstRefused: refusals.length === 0 ? -1 : Math.min(...refusals),
  }
}

function countedBy(atUs: Float64Array, lengthUs: number): Uint32Array<ArrayBuffer> {
  const counts = new Uint32Array(CELLS)
  for (const us of atUs) add(counts, us, lengthUs)
  return counts
}

/** What lies beyond the end of the axis is not drawn. */
function add(counts: Uint32Array, us: number, lengthUs: number): void {
  const cell = Math.floor((us / lengthUs) * CELLS)
  if (cell < CELLS) counts[cell] = (counts[cell] as number) + 1
}

class RowPlayer {
  readonly #stage: SteppedLimiter
  readonly #arrivals: Arrivals
  readonly #admitted = new Uint32Array(CELLS)
  readonly #refused = new Uint32Array(CELLS)
  readonly #low = new Float64Array(CELLS).fill(Number.POSITIVE_INFINITY)
  readonly #high = new Float64Array(CELLS).fill(Number.NEGATIVE_INFINITY)
  /** When the admitted act, and the permits of each: for the fullest window. */
  readonly #actedUs: number[] = []
  readonly #permits: number[] = []
  #refusedCount = 0
  #longestWaitUs = 0
  #firstRefused = -1

  constructor(stage: SteppedLimiter, arrivals: Arrivals) {
    this.#stage = stage
    this.#arrivals = arrivals
  }

  play(): { readonly row: Row; readonly firstRefused: number } {
    const { atUs, lengthUs } = this.#arrivals
    let call = 0
    for (let cell = 0; cell < CELLS; cell++) {
      this.#look(cell, Math.floor((cell * lengthUs) / CELLS))
      const endUs = cell === CELLS - 1 ? Number.POSITIVE_INFINITY : ((cell + 1) * lengthUs) / CELLS
      while (call < atUs.length && (atUs[call] as number) < endUs) this.#call(cell, call++)
    }
    return { row: this.#row(), firstRefused: this.#firstRefused }
  }

  /**
   * The range of a cell begins with what is there when it begins, and takes in what was there
   * before and after every call.
   */
  #look(cell: number, us: number): void {
    const quantity = quantityOf(this.#stage.shape, this.#stage.look(us))
    this.#note(cell, quantity)
    if (cell > 0) this.#note(cell - 1, quantity)
  }

  #note(cell: number, quantity: number): void {
    if (quantity < (this.#low[cell] as number)) this.#low[cell] = quantity
    if (quantity > (this.#high[cell] as number)) this.#high[cell] = quantity
  }

  #call(cell: number, call: number): void {
    const us = this.#arrivals.atUs[call] as number
    const cost = this.#arrivals.cost[call] as number
    const decision = this.#stage.consume(us, cost)
    const quantity = quantityOf(this.#stage.shape, decision)
    this.#note(cell, quantity)
    if (decision.allowed) this.#admit(cell, us, cost, decision, quantity)
    else this.#refuse(call, us, decision)
  }

  #admit(cell: number, us: number, cost: number, { delayMs }: Decision, quantity: number): void {
    const { type, intervalUs } = this.#stage.shape
    const sign = type === 'tokenBucket' ? 1 : -1
    this.#note(cell, quantity + sign * cost * (type === 'gcra' ? intervalUs / 1_000_000 : 1))
    const delayUs = Math.round(delayMs * 1000)
    add(this.#admitted, us + delayUs, this.#arrivals.lengthUs)
    this.#actedUs.push(us + delayUs)
    this.#permits.push(cost)
    this.#longestWaitUs = Math.max(this.#longestWaitUs, delayUs)
  }

  #refuse(call: number, us: number, { retryAfterMs }: Decision): void {
    if (this.#firstRefused < 0) this.#firstRefused = call
    add(this.#refused, us, this.#arrivals.lengthUs)
    this.#refusedCount += 1
    this.#longestWaitUs = Math.max(this.#longestWaitUs, Math.round(retryAfterMs * 1000))
  }

  #row(): Row {
    const { shape } = this.#stage
    return {
      type: shape.type,
      capacity: shape.capacity,
      admitted: this.#admitted,
      refused: this.#refused,
      low: this.#low,
      high: this.#high,
      ceiling: ceilingOf(shape),
      totals: {
        admitted: this.#actedUs.length,
        refused: this.#refusedCount,
        ...fullestWindow(this.#actedUs, this.#permits, shape.windowUs),
        windowUs: shape.windowUs,
        longestWaitUs: this.#longestWaitUs,
      },
    }
  }
}

/** Most permits in any stretch of `windowUs`, its end not included. Times are in order. */
export function fullestWindow(
  timesUs: readonly number[],
  permits: readonly number[],
  windowUs: number,
): Pick<Totals, 'mostInWindow' | 'mostWithinUs'> {
  let mostInWindow = 0
  let mostWithinUs = 0
  let within = 0
  let first = 0
  for (let last = 0; last < timesUs.length; last++) {
    const lastUs = timesUs[last] as number
    within += permits[last] as number
    while ((timesUs[first] as number) <= lastUs - windowUs) within -= permits[first++] as number
    if (within <= mostInWindow) continue
    mostInWindow = within
    mostWithinUs = lastUs - (timesUs[first] as number)
  }
  return { mostInWindow, mostWithinUs }
}

/**
 * A model of waiting for limits that can be booked ahead, on top of the oracle, which keeps the
 * level of each limit: permits in use, those booked ahead included. The model has no bookings and
 * no timers. It knows who waits, in order, and for how much:
 *  - a booked caller may act once the level, without the permits of those behind it, has drained to
 *    the capacity; in a leaky bucket, once it
 *    has drained to the waiter's own water;
 *  - a leaving one takes its permits with it;
 *  - one that could not act within `maxAheadUs` waits outside, in order, and is booked as soon as
 *    it can.
 *
 * Updates change capacities only: waiting under another pace is held against polling
 * (polling.test.ts).
 */
import type { StateFields } from '../../src/algorithms/algorithm.ts'
import { Oracle, type OracleKind, type OracleNumbers, type OracleState } from '../../src/testing/oracle.ts'

export interface ModelWaiter {
  readonly id: number
  /** One for each limit. */
  readonly costs: readonly number[]
  readonly deadlineUs: number
}

export type End = 'served' | 'TIMEOUT' | 'IMPOSSIBLE' | 'QUEUE_FULL' | 'CLOSED' | 'aborted'

export interface Ended {
  readonly id: number
  readonly how: End
  readonly atUs: number
  /** How it had been waiting until then. */
  readonly from: 'entering' | 'booked' | 'outside'
}

const NEVER = Number.POSITIVE_INFINITY

/**
 * How long those who wait and one more take at least, if nobody leaves: no limit lets more than
 * twice its capacity pass within one window.
 */
export function leastUs(
  limits: readonly { readonly capacity: number; readonly windowUs: number }[],
  waiting: readonly ModelWaiter[],
  { costs }: ModelWaiter,
): number {
  const waits = limits.map(({ capacity, windowUs }, k) => {
    const own = costs[k] as number
    const permits = waiting.reduce((sum, waiter) => sum + (waiter.costs[k] as number), own)
    return own === 0 ? 0 : Math.floor((permits / capacity - 2) * windowUs)
  })
  return Math.max(0, ...waits)
}

/** What a limiter is held against: who waits, and what the store should hold. */
export interface Model {
  readonly nowUs: number
  readonly booked: readonly ModelWaiter[]
  readonly outside: readonly ModelWaiter[]
  /** Those who have ended, in their order. */
  readonly ended: readonly Ended[]
  enter(waiter: ModelWaiter): void
  /** Some leave at once: nobody gets what another of them left behind. */
  leave(ids: readonly number[]): void
  /** Others who do not wait: they take if it fits now. */
  consume(costs: readonly number[]): boolean
  refund(costs: readonly number[]): void
  reset(): void
  /** Other numbers, by their index. */
  update(index: number): void
  close(): void
  advanceTo(us: number): void
  /** When something happens by itself next. */
  nextUs(): number
  /**
   * How long a newcomer would have to wait before it may act, if nobody waited; Infinity if it can
   * never.
   */
  waitUs(costs: readonly number[]): number
  /** What the store holds of a limit, and what it should hold, as texts to compare. */
  states(limit: number, held: StateFields | undefined): readonly [seen: string, meant: string]
}

export class WaitModel implements Model {
  readonly oracles: readonly Oracle[]
  readonly ended: Ended[] = []
  nowUs = 0
  booked: ModelWaiter[] = []
  outside: ModelWaiter[] = []
  readonly #kinds: readonly OracleKind[]
  readonly #palette: readonly (readonly OracleNumbers[])[]
  readonly #maxAheadUs: number
  readonly #maxQueue: number
  /**
   * When the first outside asks again. Nothing tells it that others took something meanwhile, so
   * that is kept from its last question.
   */
  #retryAtUs = 0
  #index = 0

  constructor(kinds: readonly OracleKind[], palette: readonly (readonly OracleNumbers[])[], maxAheadUs: number, maxQueue: number) {
    const [first] = palette as [readonly OracleNumbers[]]
    this.#kinds = kinds
    this.#palette = palette
    this.#maxAheadUs = maxAheadUs
    this.#maxQueue = maxQueue
    this.oracles = kinds.map((kind, k) => new Oracle(kind, first[k] as OracleNumbers))
  }

  #leastUs(waiter: ModelWaiter): number {
    const bounds = (this.#palette[this.#index] as readonly OracleNumbers[]).map(({ capacity, permits, periodUs }) => ({
      capacity,
      windowUs: Math.ceil((capacity * periodUs) / permits),
    }))
    return leastUs(bounds, [...this.booked, ...this.outside], waiter)
  }

  get #size(): number {
    return this.booked.length + this.outside.length
  }

  enter(waiter: ModelWaiter): void {
    this.#touch()
    const waitUs = this.waitUs(waiter.costs)
    const mustWait = waitUs > 0 || (this.outside.length > 0 && waiter.costs.some((cost) => cost > 0))
    const isFull = this.#size >= this.#maxQueue
    if (waitUs === NEVER) this.#end(waiter, 'IMPOSSIBLE', 'entering')
    else if (!mustWait) this.#serve(waiter, 'entering')
    else if (this.#isTooLate(waiter, waitUs, isFull ? 0 : this.#aheadUs(waiter))) this.#end(waiter, 'TIMEOUT', 'entering')
    else if (isFull) this.#end(waiter, 'QUEUE_FULL', 'entering')
    else if (this.outside.length > 0 && this.nowUs + this.#leastUs(waiter) > waiter.deadlineUs) this.#end(waiter, 'TIMEOUT', 'entering')
    else this.#stand(waiter, waitUs)
    this.#goOn()
  }

  leave(ids: readonly number[]): void {
    const leaving = (waiter: ModelWaiter) => ids.includes(waiter.id)
    for (const waiter of this.booked.filter(leaving)) {
      this.#give(waiter.costs)
      this.#retryAtUs = 0
      this.#takeOut(waiter)
      this.#end(waiter, 'aborted', 'booked')
    }
    for (const waiter of this.outside.filter(leaving)) {
      this.#takeOut(waiter)
      this.#end(waiter, 'aborted', 'outside')
    }
    this.#goOn()
  }

  consume(costs: readonly number[]): boolean {
    const outcomes = this.oracles.map((oracle, k) => oracle.ask(this.nowUs, costs[k] as number, -1))
    if (outcomes.some((outcome) => outcome !== 'allowed')) return false
    for (const [k, oracle] of this.oracles.entries()) oracle.take(this.nowUs, costs[k] as number, -1)
    return true
  }

  refund(costs: readonly number[]): void {
    for (const [k, oracle] of this.oracles.entries()) oracle.give(this.nowUs, costs[k] as number)
    this.#tryAgain()
  }

  reset(): void {
    for (const oracle of this.oracles) oracle.forget()
    this.#everybodyOutside()
    this.#tryAgain()
  }

  update(index: number): void {
    this.#index = index
    const numbers = this.#palette[index] as readonly OracleNumbers[]
    for (const { costs } of this.booked) this.#give(costs)
    this.#everybodyOutside()
    for (const [k, oracle] of this.oracles.entries()) oracle.changeNumbers(numbers[k] as OracleNumbers)
    this.#tryAgain()
  }

  close(): void {
    for (const { costs } of this.booked) this.#give(costs)
    for (const waiter of this.booked) this.#end(waiter, 'CLOSED', 'booked')
    for (const waiter of this.outside) this.#end(waiter, 'CLOSED', 'outside')
    this.booked = []
    this.outside = []
  }

  advanceTo(us: number): void {
    for (let nextUs = this.nextUs(); nextUs <= us; nextUs = this.nextUs()) {
      this.nowUs = Math.max(this.nowUs, nextUs)
      this.#goOn()
      this.#timeOut()
    }
    this.nowUs = us
  }

  nextUs(): number {
    const [first] = this.booked
    const deadlines = this.outside.map(({ deadlineUs }) => deadlineUs)
    return Math.min(first ? this.#dueUs(first) : NEVER, this.outside.length > 0 ? this.#retryAtUs : NEVER, ...deadlines)
  }

  waitUs(costs: readonly number[]): number {
    this.#touch()
    let longestUs = 0
    for (const [k, oracle] of this.oracles.entries()) {
      const cost = BigInt(costs[k] as number)
      const { periodUs, full } = oracle.numbers
      if (cost * periodUs > full) return NEVER
      const restingAt = this.#kinds[k] === 'leakyBucket' ? 0n : full - cost * periodUs
      if (cost > 0n) longestUs = Math.max(longestUs, this.#drainsToUs(oracle, 0n, restingAt))
    }
    return longestUs
  }

  states(limit: number, held: StateFields | undefined): readonly [string, string] {
    const { state } = this.oracles[limit] as Oracle
    return [JSON.stringify(held), JSON.stringify(state && FIELDS[this.#kinds[limit] as OracleKind](state))]
  }

  /** When the first of those who are booked may act. */
  #dueUs(first: ModelWaiter): number {
    let longestUs = 0
    for (const [k, oracle] of this.oracles.entries()) {
      const cost = BigInt(first.costs[k] as number)
      const { periodUs, full } = oracle.numbers
      const behind = this.booked.slice(1).reduce((sum, { costs }) => sum + BigInt(costs[k] as number), 0n)
      const restingAt = this.#kinds[k] === 'leakyBucket' ? cost * periodUs : full
      if (cost > 0n) longestUs = Math.max(longestUs, this.#drainsToUs(oracle, behind * periodUs, restingAt))
    }
    return this.nowUs + longestUs
  }

  /** How long until a level, without some of it, has drained so far. */
  #drainsToUs(oracle: Oracle, without: bigint, restingAt: bigint): number {
    const { permits } = oracle.numbers
    const over = oracle.levelAt(this.nowUs) - without - restingAt
    return over <= 0n ? 0 : Number(dividedUp(over, permits))
  }

  /** How far ahead a waiter may book: never beyond its deadline. */
  #aheadUs({ deadlineUs }: ModelWaiter): number {
    return Math.max(0, Math.min(this.#maxAheadUs, deadlineUs - this.nowUs))
  }

  /**
   * Whether a waiter who is booked as soon as it may act `aheadUs` later would act after its
   * deadline.
   */
  #isTooLate({ costs, deadlineUs }: ModelWaiter, waitUs: number, aheadUs: number): boolean {
    return waitUs > aheadUs && this.nowUs + this.#bookableInUs(costs, aheadUs) + aheadUs > deadlineUs
  }

  /**
   * How long until a booking may be made that is acted on at most `aheadUs` later: all levels drain
   * at their own pace until then.
   */
  #bookableInUs(costs: readonly number[], aheadUs: number): number {
    const fitsIn = (us: number) => this.oracles.every((oracle, k) => oracle.fits(this.nowUs + us, costs[k] as number, aheadUs))
    let early = -1
    let late = 1
    while (!fitsIn(late)) late *= 2
    while (late - early > 1) {
      const middle = Math.floor((early + late) / 2)
      if (fitsIn(middle)) late = middle
      else early = middle
    }
    return late
  }

  #stand(waiter: ModelWaiter, waitUs: number): void {
    const aheadUs = this.#aheadUs(waiter)
    if (this.outside.length === 0 && waitUs <= aheadUs) {
      this.#take(waiter.costs, waitUs)
      this.booked.push(waiter)
      return
    }
    if (this.outside.length === 0) this.#retryAtUs = this.nowUs + this.#bookableInUs(waiter.costs, aheadUs)
    this.outside.push(waiter)
  }

  #goOn(): void {
    this.#serveDue()
    for (let [first] = this.outside; first !== undefined && this.#retryAtUs <= this.nowUs; [first] = this.outside) {
      this.#ask(first)
      this.#serveDue()
    }
  }

  #serveDue(): void {
    for (let [first] = this.booked; first !== undefined && this.#dueUs(first) <= this.nowUs; [first] = this.booked) {
      this.booked.shift()
      this.#end(first, 'served', 'booked')
    }
  }

  #ask(first: ModelWaiter): void {
    this.#touch()
    const waitUs = this.waitUs(first.costs)
    const aheadUs = this.#aheadUs(first)
    const isTooLate = waitUs < NEVER && this.#isTooLate(first, waitUs, aheadUs)
    if (waitUs > aheadUs && waitUs < NEVER && !isTooLate) {
      this.#retryAtUs = this.nowUs + this.#bookableInUs(first.costs, aheadUs)
      return
    }
    this.#takeOut(first)
    if (waitUs === NEVER) this.#end(first, 'IMPOSSIBLE', 'outside')
    else if (isTooLate) this.#end(first, 'TIMEOUT', 'outside')
    else if (waitUs === 0) this.#serve(first, 'outside')
    else {
      this.#take(first.costs, waitUs)
      this.booked.push(first)
    }
  }

  #timeOut(): void {
    for (;;) {
      const late = this.outside.find(({ deadlineUs }) => deadlineUs <= this.nowUs)
      if (late === undefined) return
      this.#takeOut(late)
      this.#end(late, 'TIMEOUT', 'outside')
      this.#goOn()
    }
  }

  #tryAgain(): void {
    this.#retryAtUs = 0
    this.#goOn()
  }

  #everybodyOutside(): void {
    this.outside = [...this.booked, ...this.outside]
    this.booked = []
  }

  #takeOut(waiter: ModelWaiter): void {
    if (waiter === this.outside[0]) this.#retryAtUs = 0
    this.booked = this.booked.filter((other) => other !== waiter)
    this.outside = this.outside.filter((other) => other !== waiter)
  }

  #serve(waiter: ModelWaiter, from: Ended['from']): void {
    this.#take(waiter.costs, 0)
    this.#end(waiter, 'served', from)
  }

  #end({ id }: ModelWaiter, how: End, from: Ended['from']): void {
    this.ended.push({ id, how, atUs: this.nowUs, from })
  }

  #touch(): void {
    for (const oracle of this.oracles) oracle.touch(this.nowUs)
  }

  /** The oracle must agree that it can be taken so early, and not earlier. */
  #take(costs: readonly number[], waitUs: number): void {
    const isEarlier = this.oracles.every((oracle, k) => oracle.fits(this.nowUs, costs[k] as number, waitUs - 1))
    if (waitUs > 0 && isEarlier) throw new Error(`the model makes ${costs} wait for ${waitUs}: it fits earlier`)
    for (const [k, oracle] of this.oracles.entries()) {
      const outcome = oracle.take(this.nowUs, costs[k] as number, waitUs)
      if (outcome !== 'allowed') throw new Error(`the model lets ${costs} wait for ${waitUs}: then it is ${outcome}`)
    }
  }

  #give(costs: readonly number[]): void {
    for (const [k, oracle] of this.oracles.entries()) oracle.give(this.nowUs, costs[k] as number)
  }
}

/** A state of the oracle by the names that the store calls its numbers by. */
const FIELDS: Readonly<Record<OracleKind, (state: OracleState) => StateFields>> = {
  gcra({ units, atUs, numbers: { permits } }) {
    const tat = atUs * permits + units
    return { tatUs: Number(tat / permits), part: Number(tat % permits), atUs: Number(atUs) }
  },
  tokenBucket({ units, atUs, numbers: { full, periodUs } }) {
    // Of a level above the capacity tokens are owed.
    const tokens = -dividedUp(units - full, periodUs)
    return { tokens: Number(tokens), part: Number(full - units - tokens * periodUs), atUs: Number(atUs) }
  },
  leakyBucket: ({ units, atUs, numbers: { periodUs } }) => ({
    water: Number(units / periodUs),
    part: Number(units % periodUs),
    atUs: Number(atUs),
  }),
}

/** The least whole number that is no less than a / b, also for an `a` below zero. */
function dividedUp(a: bigint, b: bigint): bigint {
  return a > 0n ? (a + b - 1n) / b : a / b
}

/**
 * The oracle: what Sluice means, computed slowly and obviously. It imports nothing, so it shares no formula with what it judges.
 *
 * **The definition.** A limit has a capacity C and a pace of p permits every q microseconds. A key has a *level*: permits in use. Taking n raises
 * it by n; time makes it leak at p / q, never below zero. A key without state is fresh: its level is zero. A cost fits when level + cost <= C.
 *
 * **Exact.** With p / q in lowest terms a level is always a whole number of 1 / q permits, because readings of the clock are whole
 * microseconds. So a level is one `bigint`: permits times q. There is no closed form here for "when" or "how many": the oracle answers
 * whether something fits, whether there is room, whether a key is idle, at any time one likes to ask about. The tests find out from these
 * whether a claimed `retryUs`, `remaining`, `resetUs` or `delayUs` is the right one, by what it means.
 *
 * **Taking.** A cost above C is impossible. Cost 0 is always allowed, changes nothing and creates no key. A cost may be taken `aheadUs` early: then it
 * is allowed if it would fit at some moment not later than that, which (levels only fall) is to say that it fits then. A refusal changes nothing.
 *
 * **Ceiling.** Nobody books further ahead than A microseconds, so no honest level is above C + A x p / q. One that is gets cut down to it.
 *
 * **The clock steps back.** State carries the time at which it was written, and only writing moves that time.
 *  - token bucket and leaky bucket: an earlier reading counts as the time of writing, up to one window (the whole microseconds in which C permits leak).
 *    Beyond a window the state is re-dated: it now counts as written at the reading, its level kept.
 *  - gcra: keeps a moment, not a level: leaking runs backwards as well. An earlier reading sees a higher level, up to the ceiling; a state that
 *    was idle for a while has leaked below zero, and comes up again from there.
 * Both repairs (re-dating, cutting) are written by any call that touches the key, also by a question and by a refusal.
 *
 * **Changed numbers.** The first contact under new numbers, by any call, settles the level to now under the old ones (with the old window and the
 * old ceiling). What lies above the old C is booked, the rest is held. Held is clamped to the new C, booked stays on top; the
 * sum is rounded up to the new 1 / q, cut to the new ceiling and written, even if it is zero. Then the new window is looked at.
 *
 * **Giving back** never creates a key, does nothing when nothing is in use, nothing when what is given back was taken a window ago or
 * more, and never leads below zero.
 *
 * **A leaky bucket as a queue.** Whoever reserves acts when the water that was there before has leaked, so that is what `aheadUs` bounds, and its
 * time has come when only its own water is left.
 *
 * **Cancelling** a reservation looks at its ticket: the level as the reservation left it. Under other numbers: nothing. If the ticket's level has
 * leaked to C or below, its time has come: nothing. Otherwise the cost is given back minus what was taken after it, which is
 * what the key's level is above the ticket's.
 */
export type OracleKind = 'gcra' | 'tokenBucket' | 'leakyBucket'

export interface OracleNumbers {
  readonly capacity: number
  readonly permits: number
  readonly periodUs: number
}

/** A level as it was written: whole units of 1 / `numbers.periodUs` permits, the time of writing, and the numbers it is in. */
export interface OracleState {
  readonly units: bigint
  readonly atUs: bigint
  readonly numbers: LowestTerms
}

export interface LowestTerms {
  /** `capacity permits periodUs`: equal names mean equal numbers. */
  readonly name: string
  readonly capacity: bigint
  readonly permits: bigint
  readonly periodUs: bigint
  /** The capacity in units. */
  readonly full: bigint
  /** The highest honest level in units. */
  readonly ceiling: bigint
  /** The whole microseconds in which the capacity leaks. */
  readonly windowUs: bigint
}

export class Oracle {
  readonly #kind: OracleKind
  readonly #maxAheadUs: bigint
  readonly #known = new Map<OracleNumbers, LowestTerms>()
  #numbers: LowestTerms
  #state: OracleState | undefined

  constructor(kind: OracleKind, numbers: OracleNumbers, maxAheadUs: number) {
    this.#kind = kind
    this.#maxAheadUs = BigInt(maxAheadUs)
    this.#numbers = this.#reduced(numbers)
  }

  /** What a store should hold for the key; undefined for nothing. After a reservation this is its ticket. */
  get state(): OracleState | undefined {
    return this.#state
  }

  get numbers(): LowestTerms {
    return this.#numbers
  }

  /** The key's state was written under other numbers than the present ones: the next contact will carry it over. */
  get isOutdated(): boolean {
    return this.#state !== undefined && this.#state.numbers !== this.#numbers
  }

  /** Takes effect at the next contact with the key. */
  changeNumbers(numbers: OracleNumbers): void {
    this.#numbers = this.#reduced(numbers)
  }

  // Questions. They are about a key that has been touched under the present numbers, and about times from that contact on.

  /** The level in units at a reading of the clock. */
  levelAt(nowUs: number): bigint {
    return this.#state === undefined ? 0n : this.#inUse(this.#state, BigInt(nowUs))
  }

  /** Whether so many permits could be added without passing the capacity. */
  hasRoom(nowUs: number, permits: number): boolean {
    return this.levelAt(nowUs) + BigInt(permits) * this.#numbers.periodUs <= this.#numbers.full
  }

  /** Whether a cost may be taken at that reading: now, or for a reservation (`aheadUs` of 0 or more) at most `aheadUs` early. */
  fits(nowUs: number, cost: number, aheadUs: number): boolean {
    if (cost === 0) return true
    // In a queue a reservation may act when the water before it has leaked.
    if (this.#kind === 'leakyBucket' && aheadUs >= 0) return this.levelAt(nowUs + aheadUs) === 0n
    return this.hasRoom(nowUs + Math.max(aheadUs, 0), cost)
  }

  /** Whether the key behaves as if never used: nothing in use, and its time does not stand still. */
  isIdleAt(nowUs: number): boolean {
    if (this.#state === undefined) return true
    const standsStill = this.#kind !== 'gcra' && BigInt(nowUs) < this.#state.atUs
    return !standsStill && this.levelAt(nowUs) === 0n
  }

  // Verbs. Each touches the key first.

  ask(nowUs: number, cost: number, aheadUs: number): 'allowed' | 'limited' | 'impossible' {
    this.touch(nowUs)
    if (BigInt(cost) > this.#numbers.capacity) return 'impossible'
    return this.fits(nowUs, cost, aheadUs) ? 'allowed' : 'limited'
  }

  /** Takes, if allowed. */
  take(nowUs: number, cost: number, aheadUs: number): 'allowed' | 'limited' | 'impossible' {
    const outcome = this.ask(nowUs, cost, aheadUs)
    if (outcome === 'allowed' && cost > 0) this.#write(nowUs, this.levelAt(nowUs) + BigInt(cost) * this.#numbers.periodUs)
    return outcome
  }

  /** `ofUs`: when the cost was taken; -1 if that is not known. */
  give(nowUs: number, cost: number, ofUs: number): void {
    this.touch(nowUs)
    const isPast = ofUs >= 0 && BigInt(nowUs) - BigInt(ofUs) >= this.#numbers.windowUs
    if (!isPast) this.#lower(nowUs, BigInt(cost) * this.#numbers.periodUs)
  }

  cancel(nowUs: number, cost: number, ticket: OracleState): void {
    this.touch(nowUs)
    if (this.#state === undefined || ticket.numbers !== this.#numbers) return
    const mark = this.#inUse(ticket, this.#countsAs(this.#state, BigInt(nowUs)))
    const turn = this.#kind === 'leakyBucket' ? BigInt(cost) * this.#numbers.periodUs : this.#numbers.full
    if (mark <= turn) return
    const takenAfter = larger(0n, this.levelAt(nowUs) - mark)
    this.#lower(nowUs, BigInt(cost) * this.#numbers.periodUs - takenAfter)
  }

  forget(): void {
    this.#state = undefined
  }

  /** What any contact does first: repair the clock, and carry over to the present numbers. */
  touch(nowUs: number): void {
    const before = this.#state
    if (before === undefined) return
    const now = BigInt(nowUs)
    this.#state = this.#repaired(before, now)
    if (before.numbers !== this.#numbers) {
      this.#state = this.#repaired(this.#carriedOver(this.#state, now), now)
    }
  }

  #repaired(state: OracleState, nowUs: bigint): OracleState {
    const { numbers } = state
    if (this.#kind === 'gcra') {
      return this.#inUse(state, nowUs) > numbers.ceiling ? { numbers, units: numbers.ceiling, atUs: nowUs } : state
    }
    const atUs = state.atUs - nowUs > numbers.windowUs ? nowUs : state.atUs
    return { numbers, units: smaller(state.units, numbers.ceiling), atUs }
  }

  #carriedOver(state: OracleState, nowUs: bigint): OracleState {
    const from = state.numbers
    const to = this.#numbers
    const level = this.#inUse(state, nowUs)
    const booked = larger(0n, level - from.full)
    const held = level - booked
    // Both sides are brought to 1 / (old q x new q), so that nothing is lost before the one rounding at the end.
    const exact = smaller(held * to.periodUs, to.full * from.periodUs) + booked * to.periodUs
    const units = dividedUp(exact, from.periodUs)
    return { numbers: to, units: smaller(units, to.ceiling), atUs: this.#countsAs(state, nowUs) }
  }

  /** The reading that a reading counts as: a bucket's time does not run before it was written. */
  #countsAs(state: OracleState, nowUs: bigint): bigint {
    return this.#kind === 'gcra' ? nowUs : larger(nowUs, state.atUs)
  }

  #inUse(state: OracleState, nowUs: bigint): bigint {
    const elapsedUs = this.#countsAs(state, nowUs) - state.atUs
    return larger(0n, state.units - elapsedUs * state.numbers.permits)
  }

  #lower(nowUs: number, units: bigint): void {
    const level = this.levelAt(nowUs)
    if (level > 0n && units > 0n) this.#write(nowUs, larger(0n, level - units))
  }

  #write(nowUs: number, units: bigint): void {
    const now = BigInt(nowUs)
    const atUs = this.#state === undefined ? now : this.#countsAs(this.#state, now)
    this.#state = { numbers: this.#numbers, units, atUs }
  }

  #reduced(numbers: OracleNumbers): LowestTerms {
    let reduced = this.#known.get(numbers)
    if (reduced === undefined) {
      reduced = this.#alreadyNamed(lowestTerms(numbers, this.#maxAheadUs))
      this.#known.set(numbers, reduced)
    }
    return reduced
  }

  /** Equal numbers are one object, so that they can be compared by identity. */
  #alreadyNamed(numbers: LowestTerms): LowestTerms {
    for (const other of this.#known.values()) if (other.name === numbers.name) return other
    return numbers
  }
}

function lowestTerms(numbers: OracleNumbers, maxAheadUs: bigint): LowestTerms {
  const divisor = commonDivisor(BigInt(numbers.permits), BigInt(numbers.periodUs))
  const capacity = BigInt(numbers.capacity)
  const permits = BigInt(numbers.permits) / divisor
  const periodUs = BigInt(numbers.periodUs) / divisor
  const full = capacity * periodUs
  const windowUs = dividedUp(full, permits)
  return { name: `${capacity} ${permits} ${periodUs}`, capacity, permits, periodUs, full, ceiling: full + maxAheadUs * permits, windowUs }
}

function commonDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : commonDivisor(b, a % b)
}

function dividedUp(a: bigint, b: bigint): bigint {
  return (a + b - 1n) / b
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

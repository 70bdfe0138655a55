/**
 * The oracle: what Sluice means, computed slowly and obviously. It imports nothing, so it shares no
 * formula with what it judges.
 *
 * **The definition.** A limit has a capacity C and a pace of p permits every q microseconds. A key
 * has a *level*: permits in use. Taking n raises it by n; time makes it leak at p / q, never below
 * zero. A key without state is fresh: its level is zero. A cost fits when level + cost <= C.
 *
 * **Exact.** With p / q in lowest terms a level is always a whole number of 1 / q permits, because
 * readings of the clock are whole microseconds. So a level is one `bigint`: permits times q. There
 * is no closed form here for "when" or "how many": the oracle answers whether something fits,
 * whether there is room, whether a key is idle, at any time one likes to ask about. The tests find
 * out from these whether a claimed `retryUs`, `remaining`, `resetUs` or `delayUs` is the right one,
 * by what it means.
 *
 * **Numbers.** The level belongs to the key, the capacity to the caller. A state leaks at the pace
 * it was written under. A caller with other numbers (`changeNumbers` before the call) compares that
 * same level with its own C. Only a charge writes the caller's numbers into the state: then the
 * level is expressed in the caller's 1 / q, rounded up, and leaks at the caller's pace from there
 * on. Nothing is cut. Questions, refusals and giving back leave the numbers as they are. Numbers of
 * the same pace need no rounding.
 *
 * **Taking.** A cost above C is impossible. Cost 0 is always allowed, changes nothing and creates
 * no key. A refusal changes nothing. A reservation may take a cost `aheadUs` early: the caller may
 * act once the cost fits, with the level expressed at the caller's pace now and leaking at it. It
 * is allowed if that is so after `aheadUs`. If not, it becomes so by the state's own leaking.
 *
 * **A leaky bucket as a queue.** A caller acts when the water that was there before has leaked, at
 * the caller's pace. A reservation bounds that by `aheadUs`, and its time has come when only its
 * own water is left.
 *
 * **The clock steps back.** State carries the time at which it was written, and only writing moves
 * that time.
 *  - token bucket and leaky bucket: an earlier reading counts as the time of writing, up to one
 *    window (the whole microseconds in which C permits leak,
 *    by the numbers of the state). Beyond a window the state is re-dated: it now counts as written at the reading, its level kept.
 *  - gcra: the same for a level above the C it is written under, that is, booked ahead, and as long
 *    as its date is ahead of the clock. A lower
 *    level keeps a moment, not a date: leaking runs backwards as well. An earlier reading sees a higher level, which is cut to that C; a state that was idle for a while has leaked
 *    below zero, and comes up again from there.
 * Both repairs (re-dating, cutting) are written by any call that touches the key, also by a
 * question and by a refusal.
 *
 * **Giving back** happens in the numbers of the state. It never creates a key, does nothing when
 * nothing is in use, and never leads below zero. At most one call's worth is given back: the larger
 * C of the state's and the caller's. If it is said when it was taken, what has leaked of it since
 * is not given back; nobody says what was there before it, so it has leaked from the first
 * microsecond on.
 *
 * **Charging** lands whether it fits or not. It is `limited` if the level is above C then. No level
 * is above 1e12 permits, or above what leaks in 37,000 days: what is charged beyond either is
 * dropped.
 *
 * **Settling** up is charging the difference now. Settling down gives the difference back, but no
 * more than would still be in use of that charge had nobody come after it. How long that would be
 * is known to the microsecond, rounded up; where a microsecond is not whole units and the level is
 * above what that charge left, the last one may be another's. At another pace it is whole permits
 * of the pace that it was charged at.
 *
 * **Cancelling** a reservation looks at its ticket: the level as the reservation left it. If the
 * state is at another pace now: nothing. If the ticket's level has leaked to its C or below, its
 * time has come: nothing. Otherwise the cost is given back minus what was taken after it, which is
 * what the key's level is above the ticket's.
 */
export type OracleKind = 'gcra' | 'tokenBucket' | 'leakyBucket'

export interface OracleNumbers {
  readonly capacity: number
  readonly permits: number
  readonly periodUs: number
}

/**
 * A level as it was written: whole units of 1 / `numbers.periodUs` permits, the time of writing,
 * and the numbers it is in.
 */
export interface OracleState {
  readonly units: bigint
  readonly atUs: bigint
  /** Whether an earlier reading counts as `atUs`. Without a date leaking runs backwards. */
  readonly isDated: boolean
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
  /** The whole microseconds in which the capacity leaks. */
  readonly windowUs: bigint
}

/**
 * The numbers that something was charged under, and when the key would have been idle after it,
 * rounded up.
 */
export interface OracleCharge {
  readonly numbers: LowestTerms
  readonly drainedUs: bigint
}

const MOST_PERMITS = 1_000_000_000_000n
const MOST_US = 37_000n * 86_400_000_000n

export class Oracle {
  readonly #kind: OracleKind
  readonly #known = new Map<OracleNumbers, LowestTerms>()
  #numbers: LowestTerms
  #state: OracleState | undefined

  constructor(kind: OracleKind, numbers: OracleNumbers) {
    this.#kind = kind
    this.#numbers = this.#reduced(numbers)
  }

  /**
   * What a store should hold for the key; undefined for nothing. After a reservation this is its
   * ticket.
   */
  get state(): OracleState | undefined {
    return this.#state
  }

  /** The numbers of the caller. */
  get numbers(): LowestTerms {
    return this.#numbers
  }

  /** Whether the key's state leaks at another pace than the caller's. */
  get isAtAnotherPace(): boolean {
    return this.#state !== undefined && !isSamePace(this.#state.numbers, this.#numbers)
  }

  /** Says who calls from now on. Changes nothing by itself. */
  changeNumbers(numbers: OracleNumbers): void {
    this.#numbers = this.#reduced(numbers)
  }

  // Questions. They are about a key that has been touched, and about times from that contact on.

  /** The level in units of 1 / q permits, by the numbers of the state. */
  levelAt(nowUs: number): bigint {
    return inUse(this.#stateAt(nowUs), BigInt(nowUs))
  }

  /** Whether so many permits could be added without passing the caller's capacity. */
  hasRoom(nowUs: number, permits: number): boolean {
    return hasRoom(this.#stateAt(nowUs), BigInt(nowUs), BigInt(permits), this.#numbers.capacity)
  }

  /**
   * Whether a cost may be taken at that reading: now, or for a reservation (`aheadUs` of 0 or more)
   * at most `aheadUs` early.
   */
  fits(nowUs: number, cost: number, aheadUs: number): boolean {
    if (cost === 0) return true
    return aheadUs < 0 ? this.hasRoom(nowUs, cost) : this.mayAct(nowUs, cost, aheadUs)
  }

  /** Whether a caller that is charged `cost` at that reading may act so long after it. */
  mayAct(nowUs: number, cost: number, afterUs: number): boolean {
    const before = this.#atCallersPace(nowUs)
    const thenUs = BigInt(nowUs + afterUs)
    if (this.#kind === 'leakyBucket') return inUse(before, thenUs) === 0n
    return hasRoom(before, thenUs, BigInt(cost), this.#numbers.capacity)
  }

  /**
   * Whether the key behaves as if never used: nothing in use, and its time does not stand still.
   */
  isIdleAt(nowUs: number): boolean {
    if (this.#state === undefined) return true
    const standsStill = this.#state.isDated && BigInt(nowUs) < this.#state.atUs
    return !standsStill && inUse(this.#state, BigInt(nowUs)) === 0n
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
    if (outcome === 'allowed' && cost > 0) {
      const { units, atUs, numbers } = this.#atCallersPace(nowUs)
      this.#write(nowUs, numbers, units + BigInt(cost) * numbers.periodUs, atUs)
    }
    return outcome
  }

  /** Charges, whether it fits or not. */
  charge(nowUs: number, cost: number): 'allowed' | 'limited' {
    this.touch(nowUs)
    const state = this.#stateAt(nowUs)
    const room = MOST_PERMITS - dividedUp(inUse(state, BigInt(nowUs)), state.numbers.periodUs)
    const landed = smaller(BigInt(cost), room)
    if (landed > 0n) {
      const { units, atUs, numbers } = this.#atCallersPace(nowUs)
      this.#write(nowUs, numbers, smaller(units + landed * numbers.periodUs, MOST_US * numbers.permits), atUs)
    }
    return this.hasRoom(nowUs, 0) ? 'allowed' : 'limited'
  }

  /** What a charge left behind that was just made. */
  get charged(): OracleCharge {
    const { numbers, units, atUs } = this.#state ?? { numbers: this.#numbers, units: 0n, atUs: 0n }
    return { numbers, drainedUs: atUs + dividedUp(units, numbers.permits) }
  }

  /** By so many permits more or less than was charged. Tells whether anything changed. */
  settle(nowUs: number, difference: number, { numbers, drainedUs }: OracleCharge): boolean {
    if (difference === 0) this.touch(nowUs)
    if (difference >= 0) {
      if (difference > 0) this.charge(nowUs, difference)
      return difference > 0
    }
    this.touch(nowUs)
    const state = this.#state
    if (state === undefined) return false
    const atUs = countsAs(state, BigInt(nowUs))
    const isSame = isSamePace(state.numbers, numbers)
    const isLast = isSame && inUse(state, atUs) <= (drainedUs - atUs) * numbers.permits
    const leftUs = larger(0n, drainedUs - atUs - (numbers.permits === 1n || isLast ? 0n : 1n))
    const permits = BigInt(-difference)
    const left = leftUs * numbers.permits
    const units = isSame
      ? smaller(permits * state.numbers.periodUs, left)
      : smaller(permits, left / numbers.periodUs) * state.numbers.periodUs
    return this.#lower(nowUs, units)
  }

  /**
   * `ofUs`: when the cost was taken; -1 if that is not known. Tells whether anything was given
   * back.
   */
  give(nowUs: number, cost: number, ofUs: number): boolean {
    this.touch(nowUs)
    const state = this.#state
    if (state === undefined) return false
    const { capacity, permits, periodUs } = state.numbers
    const most = smaller(BigInt(cost), larger(capacity, this.#numbers.capacity)) * periodUs
    const sinceUs = ofUs < 0 ? 0n : countsAs(state, BigInt(nowUs)) - BigInt(ofUs)
    return this.#lower(nowUs, sinceUs <= 0n ? most : (most / permits - sinceUs) * permits)
  }

  /** Tells whether anything was given back. */
  cancel(nowUs: number, cost: number, ticket: OracleState): boolean {
    this.touch(nowUs)
    if (this.#state === undefined || !isSamePace(this.#state.numbers, ticket.numbers)) return false
    const units = BigInt(cost) * ticket.numbers.periodUs
    const mark = inUse(ticket, countsAs(this.#state, BigInt(nowUs)))
    const turn = this.#kind === 'leakyBucket' ? units : ticket.numbers.full
    if (mark <= turn) return false
    const takenAfter = larger(0n, inUse(this.#state, BigInt(nowUs)) - mark)
    return this.#lower(nowUs, units - takenAfter)
  }

  forget(): void {
    this.#state = undefined
  }

  /** What any contact does first: repair what a clock that stepped back left in the future. */
  touch(nowUs: number): void {
    const state = this.#state
    if (state === undefined) return
    const now = BigInt(nowUs)
    const { numbers, atUs, isDated } = state
    if (isDated) {
      if (atUs - now > numbers.windowUs) this.#write(nowUs, numbers, state.units, now)
    } else if (inUse(state, now) > numbers.full) {
      this.#state = { numbers, units: numbers.full, atUs: now, isDated }
    }
  }

  /** The state, or what a key without one amounts to. */
  #stateAt(nowUs: number): OracleState {
    return this.#state ?? { numbers: this.#numbers, units: 0n, atUs: BigInt(nowUs), isDated: false }
  }

  /**
   * What a charge at this reading would find: the same permits at the caller's pace, dated as the
   * charge would be.
   */
  #atCallersPace(nowUs: number): OracleState {
    const state = this.#stateAt(nowUs)
    const numbers = this.#numbers
    const atUs = countsAs(state, BigInt(nowUs))
    // A level of x / q is at least x q' / q of the units of 1 / q'.
    const units = dividedUp(inUse(state, atUs) * numbers.periodUs, state.numbers.periodUs)
    return { numbers, units, atUs, isDated: true }
  }

  #lower(nowUs: number, units: bigint): boolean {
    const state = this.#state as OracleState
    const level = inUse(state, BigInt(nowUs))
    if (level === 0n || units <= 0n) return false
    this.#write(nowUs, state.numbers, larger(0n, level - units), countsAs(state, BigInt(nowUs)))
    return true
  }

  #write(nowUs: number, numbers: LowestTerms, units: bigint, atUs: bigint): void {
    const isDated = this.#kind !== 'gcra' || units > numbers.full || atUs > BigInt(nowUs)
    this.#state = { numbers, units, atUs, isDated }
  }

  #reduced(numbers: OracleNumbers): LowestTerms {
    let reduced = this.#known.get(numbers)
    if (reduced === undefined) {
      reduced = lowestTerms(numbers)
      this.#known.set(numbers, reduced)
    }
    return reduced
  }
}

/** The reading that a reading counts as: where there is a date, time does not run before it. */
function countsAs({ atUs, isDated }: OracleState, nowUs: bigint): bigint {
  return isDated ? larger(nowUs, atUs) : nowUs
}

/** The level in units of the state's numbers. */
function inUse(state: OracleState, nowUs: bigint): bigint {
  const elapsedUs = countsAs(state, nowUs) - state.atUs
  return larger(0n, state.units - elapsedUs * state.numbers.permits)
}

function hasRoom(state: OracleState, nowUs: bigint, permits: bigint, capacity: bigint): boolean {
  return inUse(state, nowUs) <= (capacity - permits) * state.numbers.periodUs
}

function isSamePace(a: LowestTerms, b: LowestTerms): boolean {
  return a.permits === b.permits && a.periodUs === b.periodUs
}

function lowestTerms(numbers: OracleNumbers): LowestTerms {
  const divisor = commonDivisor(BigInt(numbers.permits), BigInt(numbers.periodUs))
  const capacity = BigInt(numbers.capacity)
  const permits = BigInt(numbers.permits) / divisor
  const periodUs = BigInt(numbers.periodUs) / divisor
  const full = capacity * periodUs
  return { name: `${capacity} ${permits} ${periodUs}`, capacity, permits, periodUs, full, windowUs: dividedUp(full, permits) }
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

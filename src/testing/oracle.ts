/**
 * The oracle: what Sluice means, computed slowly and obviously. It imports nothing, so it shares no
 * formula with what it judges.
 *
 * **The definition.** A limit has a capacity C and a pace of p permits every q microseconds. A key
 * has a *level*: permits in use. Taking n raises it by n; time makes it leak at p / q, never below
 * zero. A key without state is fresh: its level is zero. A cost fits when level + cost <= C.
 * GCRA, token bucket and leaky bucket are this one definition; the leaky bucket differs only in
 * when its callers may act.
 *
 * **Exact.** With p / q in lowest terms a level is always a whole number of units, of which q are
 * one permit, because readings of the clock are whole microseconds. So a level is one `bigint`.
 * There is no closed form here for "when" or "how many": the oracle answers whether something fits,
 * whether there is room, whether a key is idle, at any time one likes to ask about. The tests find
 * out from these whether a claimed `retryUs`, `remaining`, `resetUs` or `delayUs` is the right one,
 * by what it means.
 *
 * **Numbers.** The level belongs to the key, the capacity to the caller. A state leaks at the pace
 * it was written under. A caller with other numbers (`changeNumbers` before the call) compares that
 * same level with its own C. Only a charge writes the caller's numbers into the state: then the
 * level is expressed in the caller's units, rounded up, and leaks at the caller's pace from there
 * on. Questions, refusals and giving back leave the numbers as they are. Numbers of the same pace
 * need no rounding.
 *
 * **Taking.** A cost above C is impossible: with a C of 0, every cost but 0. Cost 0 is always
 * allowed, changes nothing and creates no key. A refusal changes nothing. A reservation may take a
 * cost `aheadUs` early: the caller may act once the cost fits, as the state leaks now, and in a
 * leaky bucket once all that was there before has leaked. It is allowed if that is so after
 * `aheadUs`, and would be so at the caller's pace, too: its charge moves the state to that pace,
 * and the next caller has to wait for no longer than a window and what is booked ahead.
 *
 * **The clock steps back.** A state carries the time at which it was written. An earlier reading
 * counts as that time, as long as the step is at most one window: the whole microseconds in which C
 * permits leak, by the numbers of the state. After a longer step the state is re-dated: it counts
 * as written at the reading, its level kept. Any call that touches the key writes that.
 *
 * **Charging** lands whether it fits or not. It is `limited` if the level is above C then, and
 * `impossible` where that never ends: with a C of 0. No level is above 2^52 units. So no charge
 * lands beyond the whole permits that make up as much, a permit that is partly in use counted
 * whole; what is beyond is dropped, and a charge of which nothing lands writes nothing.
 *
 * **Giving back** happens in the numbers of the state and as of now. It never creates a key, does
 * nothing when nothing is in use, and never leads below zero. At most one call's worth is given
 * back: the larger C of the state's and the caller's.
 *
 * **Settling** up is charging the difference now. Settling down replays the key's life without the
 * calls after the charge: the level that the charge left, leaking from the time that it was written
 * at. A time before that counts as that time. What was in use first leaks first, and what is given
 * back is the last of what was charged: as much as would still be in use of it. Before the time at
 * which its caller may act, it is also no more than its cost less what the key has in use beyond
 * the replayed level: that was booked after it, by callers who have been told their times.
 * Where the state is at another pace by now, before that time nothing comes back, and from then on
 * the share of the charge's time that is left, in whole permits: its time is from when it was
 * written until the first microsecond at which the replayed key would be idle.
 *
 * **A settlement is exact to a microsecond.** A charge is known to a store by that first
 * microsecond, in which p units leak. If the key is busy beyond it, others came after the charge,
 * and up to p - 1 units less may be given back. If what others have in use ends within that
 * microsecond, it cannot be told from the charge, and may be given back with it. So the oracle
 * says from how much to how much may be given back, and goes on from what was. Both are one number
 * where p = 1, or nothing was charged in between.
 *
 * **Cancelling** a reservation is settling it at 0.
 */
export type OracleKind = 'gcra' | 'tokenBucket' | 'leakyBucket'

export interface OracleNumbers {
  readonly capacity: number
  readonly permits: number
  readonly periodUs: number
}

/** A level as it was written: units of its numbers, and the time of writing. */
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
  /** Also how many units are one permit. */
  readonly periodUs: bigint
  /** The capacity in units. */
  readonly full: bigint
  /** The whole microseconds in which the capacity leaks. */
  readonly windowUs: bigint
}

/** A charge that may be settled. */
export interface OracleCharge {
  /** The state that it left. */
  readonly left: OracleState
  /** When its caller may act. */
  readonly dueUs: bigint
  /** How many permits of it were given back already. */
  readonly given: number
}

/** Units of the state. */
export interface GivenBack {
  readonly least: bigint
  readonly most: bigint
}

const MOST_UNITS = 2n ** 52n
const NOTHING: GivenBack = { least: 0n, most: 0n }

export class Oracle {
  readonly #kind: OracleKind
  readonly #known = new Map<OracleNumbers, LowestTerms>()
  #numbers: LowestTerms
  #state: OracleState | undefined

  constructor(kind: OracleKind, numbers: OracleNumbers) {
    this.#kind = kind
    this.#numbers = this.#reduced(numbers)
  }

  /** What a store should hold for the key; undefined for nothing. */
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

  /** The level in units of the numbers of the state. */
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
    if (aheadUs < 0) return this.hasRoom(nowUs, cost)
    const moved = this.#atCallersPace(nowUs)
    return this.mayAct(nowUs, cost, aheadUs) && this.#hasTurn(moved, moved.atUs + BigInt(aheadUs), cost)
  }

  /** Whether a caller that is charged `cost` at that reading may act so long after it. */
  mayAct(nowUs: number, cost: number, afterUs: number): boolean {
    return this.#hasTurn(this.#stateAt(nowUs), BigInt(nowUs + afterUs), cost)
  }

  /**
   * Whether the key behaves as if never used: nothing in use, and its time does not stand still.
   */
  isIdleAt(nowUs: number): boolean {
    if (this.#state === undefined) return true
    return BigInt(nowUs) >= this.#state.atUs && inUse(this.#state, BigInt(nowUs)) === 0n
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
    if (outcome === 'allowed') this.#add(nowUs, BigInt(cost))
    return outcome
  }

  /** What was just taken, for `settle`: its caller may act after `delayUs`. */
  charged(nowUs: number, delayUs: number): OracleCharge {
    return { left: this.#stateAt(nowUs), dueUs: BigInt(nowUs + delayUs), given: 0 }
  }

  /** Charges, whether it fits or not. */
  charge(nowUs: number, cost: number): 'allowed' | 'limited' | 'impossible' {
    this.touch(nowUs)
    this.#land(nowUs, BigInt(cost))
    if (this.hasRoom(nowUs, 0)) return 'allowed'
    return this.#numbers.capacity === 0n ? 'impossible' : 'limited'
  }

  /** Charges what was used beyond what was charged. Tells whether anything landed. */
  settleUp(nowUs: number, more: number): boolean {
    this.touch(nowUs)
    return this.#land(nowUs, BigInt(more))
  }

  /** How much may be given back of a charge that turned out so many permits smaller. */
  settleDown(nowUs: number, permits: number, charge: OracleCharge): GivenBack {
    this.touch(nowUs)
    if (this.#state === undefined) return NOTHING
    const level = this.levelAt(nowUs)
    const { numbers } = this.#state
    const { left, dueUs } = charge
    const thenUs = countsAs(left, countsAs(this.#state, BigInt(nowUs)))
    const isDue = thenUs >= dueUs
    const given = isSamePace(numbers, left.numbers)
      ? ofCharge(charge, thenUs, BigInt(permits), level, isDue)
      : shareOf(left, thenUs, BigInt(permits) * numbers.periodUs, numbers.periodUs, isDue)
    return { least: smaller(level, given.least), most: smaller(level, given.most) }
  }

  /** Gives permits back as of now. Tells whether anything was. */
  give(nowUs: number, cost: number): boolean {
    this.touch(nowUs)
    if (this.#state === undefined) return false
    const { capacity, periodUs } = this.#state.numbers
    return this.lower(nowUs, smaller(BigInt(cost), larger(capacity, this.#numbers.capacity)) * periodUs)
  }

  /** Gives back so many units of the state. Tells whether anything was in use. */
  lower(nowUs: number, units: bigint): boolean {
    const level = this.levelAt(nowUs)
    if (this.#state === undefined || level === 0n || units === 0n) return false
    const { numbers } = this.#state
    this.#state = { numbers, units: larger(0n, level - units), atUs: countsAs(this.#state, BigInt(nowUs)) }
    return true
  }

  forget(): void {
    this.#state = undefined
  }

  /** What any contact does first: re-date what a clock that stepped back left far in the future. */
  touch(nowUs: number): void {
    const state = this.#state
    const now = BigInt(nowUs)
    if (state !== undefined && state.atUs - now > state.numbers.windowUs) this.#state = { ...state, atUs: now }
  }

  /** The state, or what a key without one amounts to. */
  #stateAt(nowUs: number): OracleState {
    return this.#state ?? { numbers: this.#numbers, units: 0n, atUs: BigInt(nowUs) }
  }

  /** The same permits at the caller's pace, as a charge at this reading finds them. */
  #atCallersPace(nowUs: number): OracleState {
    const state = this.#stateAt(nowUs)
    const numbers = this.#numbers
    const atUs = countsAs(state, BigInt(nowUs))
    // A level of x / q is at least x q' / q of the units of which q' are one permit.
    return { numbers, units: dividedUp(inUse(state, atUs) * numbers.periodUs, state.numbers.periodUs), atUs }
  }

  #hasTurn(state: OracleState, atUs: bigint, cost: number): boolean {
    if (this.#kind === 'leakyBucket') return inUse(state, atUs) === 0n
    return hasRoom(state, atUs, BigInt(cost), this.#numbers.capacity)
  }

  /** Adds as much as there may be in use. Tells whether that is anything. */
  #land(nowUs: number, cost: bigint): boolean {
    const { numbers } = this.#stateAt(nowUs)
    const most = MOST_UNITS / this.#numbers.periodUs
    const begun = dividedUp(this.levelAt(nowUs), numbers.periodUs)
    const landed = smaller(cost, most - begun)
    this.#add(nowUs, landed)
    return landed > 0n
  }

  /** Writes the level and so many permits under the caller's numbers. */
  #add(nowUs: number, permits: bigint): void {
    if (permits <= 0n) return
    const { numbers, units, atUs } = this.#atCallersPace(nowUs)
    this.#state = { numbers, units: units + permits * numbers.periodUs, atUs }
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

/** The reading that a reading counts as: time does not run before the date of a state. */
function countsAs({ atUs }: OracleState, nowUs: bigint): bigint {
  return larger(nowUs, atUs)
}

/** The level in units of the state's numbers. */
function inUse(state: OracleState, nowUs: bigint): bigint {
  const elapsedUs = countsAs(state, nowUs) - state.atUs
  return larger(0n, state.units - elapsedUs * state.numbers.permits)
}

function hasRoom(state: OracleState, nowUs: bigint, permits: bigint, capacity: bigint): boolean {
  return inUse(state, nowUs) <= (capacity - permits) * state.numbers.periodUs
}

/**
 * How much of permits of a charge comes back: `left` leaks on as if no call had come after it,
 * while really so much is in use. What was given back of it before, the last of it, is put there
 * again for that.
 */
function ofCharge({ left, given }: OracleCharge, nowUs: bigint, permits: bigint, inUseNow: bigint, isDue: boolean): GivenBack {
  const { permits: inOneUs, periodUs } = left.numbers
  const units = permits * periodUs
  const before = BigInt(given) * periodUs
  const replayed = inUse(left, nowUs)
  const level = inUseNow + before
  const others = larger(0n, level - replayed)
  const still = larger(0n, lastOf(left, units + before, nowUs) - before)
  const exact = isDue ? still : smaller(still, larger(0n, units - others))
  if (others === 0n) return { least: exact, most: exact }
  if (dividedUp(level, inOneUs) === dividedUp(replayed, inOneUs)) return { least: exact, most: exact + others }
  return { least: larger(0n, exact - (inOneUs - 1n)), most: exact }
}

/**
 * What is still in use of the last units that a state was charged: what was in use first leaks
 * first.
 */
function lastOf(left: OracleState, units: bigint, nowUs: bigint): bigint {
  const leaked = left.units - inUse(left, nowUs)
  const before = left.units - units
  return leaked <= before ? units : larger(0n, units - (leaked - before))
}

/**
 * The share of units that is left of the time until the key would have been idle, in whole permits.
 */
function shareOf(left: OracleState, nowUs: bigint, units: bigint, permit: bigint, isDue: boolean): GivenBack {
  if (!isDue || inUse(left, nowUs) === 0n) return NOTHING
  const idleUs = left.atUs + dividedUp(left.units, left.numbers.permits)
  const share = (units * (idleUs - nowUs)) / (idleUs - left.atUs)
  const whole = share - (share % permit)
  return { least: whole, most: whole }
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

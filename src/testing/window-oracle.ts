/**
 * The oracle of the windows: what fixedWindow, slidingWindow and slidingLog mean, computed slowly
 * and obviously. It imports nothing, so it shares no formula with what it judges.
 *
 * **The definition.** A key is a list of admissions: when, and how many permits of it are still
 * held. What is in use at a time is counted over the list:
 *  - fixedWindow: the admissions of the window that is running. Windows lie side by side from an
 *    offset on; or (`'first'`) one begins with the
 *    first admission for which no window is running. A window that holds nothing is no window.
 *  - slidingWindow: slot n is [n x W / S, (n + 1) x W / S). The S latest slots count in full, the
 *    one before them by the share of it that the window
 *    has not left yet.
 *  - slidingLog: the admissions of less than a window ago.
 * A cost fits when used + cost <= limit. There is no closed form here for "when" or "how many": the
 * oracle answers whether something fits or is idle at any time one likes to ask about, and the
 * tests find out from that whether a claimed figure is the right one.
 *
 * **Numbers.** The list belongs to the key, the limit to the caller. What is in use is counted by
 * the numbers that the state was written under. A caller with other numbers (`changeNumbers` before
 * the call) compares that with its own limit. Only a charge writes the caller's numbers:
 *  - fixedWindow: the window that is running ends when the last of the windows ends that its
 *    admissions were charged in, each by the
 *    numbers of its caller. For `'first'` that is a window from the first admission on.
 *  - slidingWindow: with another window or other slots everything in use, rounded up, is one
 *    admission, made with the charge.
 *  - slidingLog: the admissions keep their times. Those that count no longer, by the state's
 *    numbers or by the caller's, are gone. Questions, refusals and giving back leave the numbers as
 *    they are.
 *
 * **The clock steps back.** State carries the time at which it was written, and only writing moves
 * that time. An earlier reading counts as that time, as long as it is earlier by at most one window
 * of the state. Beyond that the state is re-dated: everything that was in use when it was written,
 * rounded up, is one admission now. Any call writes that.
 *
 * **Charging** lands whether it fits or not. It is `limited` if more than the limit is in use then.
 * No more than 1e12 are in use: what is charged beyond that is dropped. A log that more is in use
 * of than the limit gets no more admissions: what is charged is added to the latest one, which
 * counts as of now. If a caller's log has fewer places than there are admissions (a quarter more
 * than its limit, one at least), they become one, made with the charge.
 *
 * **Settling** charges or gives back the difference as of when it was charged, as if that had been
 * charged then; nothing, if what was charged then counts no longer. A charge of nothing began no
 * window and has no admission in a log: the difference begins one then. Where a log has debt, the
 * difference is added to the next admission instead.
 *
 * **Giving back** takes from what still counts, newest first; if it is said when it was taken, only
 * from that window, slot or microsecond. It never creates a key; where there is nothing to give
 * back nothing is written. At most one call's worth is given back: the larger limit of the state's
 * and the caller's.
 */
export type WindowKind = 'fixedWindow' | 'slidingWindow' | 'slidingLog'

export interface WindowNumbers {
  readonly limit: number
  readonly lengthUs: number
  /** fixedWindow: where in an epoch window the windows begin, or with the first admission. */
  readonly anchor: 'first' | number
  /** slidingWindow: into how many slots the window is cut. */
  readonly slots: number
}

export interface Admission {
  readonly atUs: number
  held: number
}

/** What was written: when, under which numbers, and the admissions that counted then. */
export interface WindowState {
  readonly atUs: number
  readonly numbers: WindowNumbers
  readonly admissions: readonly Admission[]
  /** fixedWindow: the window that is running, from its first admission to its end. */
  readonly running: Span
}

export interface Span {
  readonly startUs: number
  readonly endUs: number
}

/** An admission, with the limit that admitted it. */
export interface Admitted extends Admission {
  readonly limit: number
}

/** permits / parts. */
interface Fraction {
  readonly permits: bigint
  readonly parts: bigint
}

/** What one kind of window means. Times are not before the latest admission. */
interface Definition {
  /** The longest step back of the clock that is waited out. */
  windowUs(state: WindowState): number
  used(state: WindowState, atUs: number): Fraction
  /** Whether an admission counts for anything at a time. */
  counts(state: WindowState, admission: Admission, atUs: number): boolean
  /** Whether an admission that counts is of a time: of the same window, slot or microsecond. */
  isOf(state: WindowState, admission: Admission, ofUs: number): boolean
  /** Whether numbers differ in their limit at most. */
  isAlike(a: WindowNumbers, b: WindowNumbers): boolean
  /** What a charge under other numbers keeps of what counts. */
  carried(state: WindowState, to: WindowNumbers, atUs: number): readonly Admission[]
}

const NO_SPAN: Span = { startUs: 0, endUs: 0 }

export class WindowOracle {
  readonly #kind: WindowKind
  readonly #is: Definition
  #numbers: WindowNumbers
  #state: WindowState | undefined
  /**
   * Every admission under like numbers since the state was last gathered into one, whether it still
   * counts or not.
   */
  #history: Admitted[] = []

  constructor(kind: WindowKind, numbers: WindowNumbers) {
    this.#kind = kind
    this.#is = DEFINITIONS[kind]
    this.#numbers = numbers
  }

  /** What a store should hold for the key; undefined for nothing. */
  get state(): WindowState | undefined {
    return this.#state
  }

  /** The numbers of the caller. */
  get numbers(): WindowNumbers {
    return this.#numbers
  }

  get history(): readonly Admitted[] {
    return this.#history
  }

  /** One window of the state. */
  get windowUs(): number {
    return this.#state === undefined ? 0 : this.#is.windowUs(this.#state)
  }

  /** Whether the key's state is counted by another window than the caller's. */
  get isOfAnotherWindow(): boolean {
    return this.#state !== undefined && !this.#is.isAlike(this.#state.numbers, this.#numbers)
  }

  /** Says who calls from now on. Changes nothing by itself. */
  changeNumbers(numbers: WindowNumbers): void {
    this.#numbers = numbers
  }

  // Questions. They are about a key that has been touched, and about times from that contact on.

  /** Whether so many permits could be added without passing the caller's limit. */
  hasRoom(nowUs: number, permits: number): boolean {
    const used = this.#used(nowUs)
    return used.permits + BigInt(permits) * used.parts <= BigInt(this.#numbers.limit) * used.parts
  }

  /**
   * Whether the key behaves as if never used: nothing in use, and its time does not stand still.
   */
  isIdleAt(nowUs: number): boolean {
    if (this.#state === undefined) return true
    return nowUs >= this.#state.atUs && this.#used(nowUs).permits === 0n
  }

  // Verbs. Each touches the key first.

  ask(nowUs: number, cost: number): 'allowed' | 'limited' | 'impossible' {
    this.touch(nowUs)
    if (cost > this.#numbers.limit) return 'impossible'
    return cost === 0 || this.hasRoom(nowUs, cost) ? 'allowed' : 'limited'
  }

  /** Takes, if allowed. */
  take(nowUs: number, cost: number): 'allowed' | 'limited' | 'impossible' {
    const outcome = this.ask(nowUs, cost)
    if (outcome === 'allowed' && cost > 0) this.#admit(this.#countsAs(nowUs), cost)
    return outcome
  }

  /**
   * `ofUs`: when the cost was taken; -1 if that is not known. Tells whether anything was given
   * back.
   */
  give(nowUs: number, cost: number, ofUs: number): boolean {
    this.touch(nowUs)
    const state = this.#state
    if (state === undefined) return false
    const counting = this.#counting(nowUs)
    const meant = ofUs < 0 ? counting : counting.filter((admission) => this.#is.isOf(state, admission, ofUs))
    if (cost === 0 || meant.length === 0) return false
    takeBack(meant, Math.min(cost, Math.max(state.numbers.limit, this.#numbers.limit)))
    this.#state = { ...state, atUs: this.#countsAs(nowUs), admissions: counting.filter(({ held }) => held > 0) }
    return true
  }

  /** Charges, whether it fits or not. */
  charge(nowUs: number, cost: number): 'allowed' | 'limited' {
    this.touch(nowUs)
    const landed = this.#landed(nowUs, cost)
    if (landed > 0) this.#enter(this.#countsAs(nowUs), this.#countsAs(nowUs), landed)
    return this.hasRoom(nowUs, 0) ? 'allowed' : 'limited'
  }

  /** By so many permits more or less than was charged at `ofUs`. Tells whether anything changed. */
  settle(nowUs: number, difference: number, ofUs: number): boolean {
    if (difference < 0) return this.give(nowUs, -difference, ofUs)
    this.touch(nowUs)
    const atUs = this.#countsAs(nowUs)
    const timeUs = Math.min(ofUs, atUs)
    const landed = this.#landed(nowUs, difference)
    if (landed <= 0 || !this.#wouldCount(timeUs, atUs)) return false
    this.#enter(timeUs, atUs, landed)
    return true
  }

  #landed(nowUs: number, cost: number): number {
    return Math.min(cost, MOST_PERMITS - roundedUp(this.#used(nowUs)))
  }

  /** Whether what is charged as of a time, by the caller's numbers, counts at all. */
  #wouldCount(timeUs: number, atUs: number): boolean {
    const numbers = this.#numbers
    if (this.#kind === 'fixedWindow') {
      const isRunning = this.#counting(atUs).length > 0 && timeUs >= (this.#state as WindowState).running.startUs
      return isRunning || atUs < windowStartUs(numbers, timeUs) + numbers.lengthUs
    }
    const alone = { atUs, numbers, admissions: [], running: NO_SPAN }
    return this.#is.counts(alone, { atUs: timeUs, held: 1 }, atUs)
  }

  #enter(timeUs: number, atUs: number, cost: number): void {
    const numbers = this.#numbers
    const counting = this.#counting(atUs)
    const running = this.#runningWith(counting, timeUs, atUs)
    let kept = merged(this.isOfAnotherWindow ? this.#is.carried(this.#state as WindowState, numbers, atUs) : counting)
    const places = numbers.limit + Math.max(1, Math.floor(numbers.limit / 4))
    if (this.#kind === 'slidingLog' && this.#numbers.limit < (this.#state?.numbers.limit ?? 0) && kept.length > places)
      kept = [{ atUs, held: heldBy(kept) }]
    const isDebt = this.#kind === 'slidingLog' && heldBy(kept) > numbers.limit
    this.#history = []
    this.#state = {
      atUs,
      numbers,
      admissions: isDebt ? withDebt(kept, timeUs, cost) : inOrder([...kept, { atUs: timeUs, held: cost }]),
      running,
    }
  }

  #runningWith(before: readonly Admission[], timeUs: number, atUs: number): Span {
    if (this.#kind !== 'fixedWindow') return NO_SPAN
    if (timeUs === atUs) return this.#running(before, atUs)
    const { anchor, lengthUs } = this.#numbers
    const own = { startUs: timeUs, endUs: windowStartUs(this.#numbers, timeUs) + lengthUs }
    if (before.length === 0) return own
    const { startUs, endUs } = (this.#state as WindowState).running
    if (timeUs >= startUs) return { startUs, endUs: Math.max(endUs, anchor === 'first' ? startUs + lengthUs : own.endUs) }
    const isMovedOnly = anchor === 'first' && endUs - startUs === lengthUs
    return { startUs: timeUs, endUs: isMovedOnly ? own.endUs : Math.max(endUs, own.endUs) }
  }

  forget(): void {
    this.#state = undefined
    this.#history = []
  }

  /** What any contact does first: repair what a clock that stepped back left in the future. */
  touch(nowUs: number): void {
    const state = this.#state
    if (state === undefined || state.atUs - nowUs <= this.#is.windowUs(state)) return
    const { numbers } = state
    const held = roundedUp(this.#is.used(state, state.atUs))
    const endUs = windowStartUs(numbers, nowUs) + this.#is.windowUs(state)
    this.#history = held > 0 ? [{ atUs: nowUs, held, limit: Math.max(numbers.limit, held) }] : []
    this.#state = { numbers, atUs: nowUs, admissions: [...this.#history], running: { startUs: nowUs, endUs } }
  }

  #admit(atUs: number, cost: number): void {
    const numbers = this.#numbers
    const before = this.#counting(atUs)
    const kept = this.isOfAnotherWindow ? this.#is.carried(this.#state as WindowState, numbers, atUs) : before
    if (this.isOfAnotherWindow) this.#history = []
    const admission: Admitted = { atUs, held: cost, limit: numbers.limit }
    this.#history.push(admission)
    this.#state = { atUs, numbers, admissions: [...kept, admission], running: this.#running(before, atUs) }
  }

  /**
   * The window that is running once an admission is made: the one that was, if it held anything,
   * for as long as the caller's lasts at least.
   */
  #running(before: readonly Admission[], atUs: number): Span {
    if (this.#kind !== 'fixedWindow') return NO_SPAN
    const { anchor, lengthUs } = this.#numbers
    if (before.length === 0) return { startUs: atUs, endUs: windowStartUs(this.#numbers, atUs) + lengthUs }
    const { startUs, endUs } = (this.#state as WindowState).running
    const callers = anchor === 'first' ? startUs : windowStartUs(this.#numbers, atUs)
    return { startUs, endUs: Math.max(endUs, callers + lengthUs) }
  }

  /** The reading that a reading counts as: time does not run before it was written. */
  #countsAs(nowUs: number): number {
    return this.#state === undefined ? nowUs : Math.max(nowUs, this.#state.atUs)
  }

  #used(nowUs: number): Fraction {
    return this.#state === undefined ? NOTHING : this.#is.used(this.#state, this.#countsAs(nowUs))
  }

  #counting(nowUs: number): readonly Admission[] {
    const state = this.#state
    return state === undefined ? [] : countingOf(this.#is, state, this.#countsAs(nowUs))
  }
}

const NOTHING: Fraction = { permits: 0n, parts: 1n }
const MOST_PERMITS = 1_000_000_000_000

/** Admissions of one microsecond as one. */
function merged(admissions: readonly Admission[]): Admission[] {
  const held = new Map<number, number>()
  for (const admission of admissions) held.set(admission.atUs, (held.get(admission.atUs) ?? 0) + admission.held)
  return [...held].map(([atUs, sum]) => ({ atUs, held: sum }))
}

function inOrder(admissions: Admission[]): Admission[] {
  return admissions.sort((a, b) => a.atUs - b.atUs)
}

/**
 * With so many more on the first admission of a time or a later one, or on the latest, which is of
 * that time then.
 */
function withDebt(admissions: readonly Admission[], timeUs: number, cost: number): Admission[] {
  const at = admissions.findIndex(({ atUs }) => atUs >= timeUs)
  const k = at < 0 ? admissions.length - 1 : at
  return admissions.map((admission, n) => (n === k ? { atUs: Math.max(admission.atUs, timeUs), held: admission.held + cost } : admission))
}

function countingOf(is: Definition, state: WindowState, atUs: number): readonly Admission[] {
  return state.admissions.filter((admission) => is.counts(state, admission, atUs))
}

const fixedWindow: Definition = {
  windowUs: ({ numbers, running }) => Math.max(numbers.lengthUs, running.endUs - running.startUs),
  used: (state, atUs) => whole(heldBy(countingOf(fixedWindow, state, atUs))),
  counts: ({ running }, _admission, atUs) => atUs < running.endUs,
  isOf: ({ running }, _admission, ofUs) => running.startUs <= ofUs && ofUs < running.endUs,
  isAlike: (a, b) => a.lengthUs === b.lengthUs && a.anchor === b.anchor,
  carried: (state, _to, atUs) => countingOf(fixedWindow, state, atUs),
}

/** Where the window that a time lies in begins. */
function windowStartUs({ anchor, lengthUs }: WindowNumbers, atUs: number): number {
  if (anchor === 'first') return atUs
  let sinceStartUs = (atUs - anchor) % lengthUs
  if (sinceStartUs < 0) sinceStartUs += lengthUs
  return atUs - sinceStartUs
}

const slidingWindow: Definition = {
  windowUs: ({ numbers: { lengthUs, slots } }) => Number((BigInt(lengthUs) * BigInt(slots + 1) + BigInt(slots) - 1n) / BigInt(slots)),
  used({ numbers, admissions }, atUs) {
    const slot = slotOf(numbers, atUs)
    const slots = BigInt(numbers.slots)
    const parts = BigInt(numbers.lengthUs)
    // In parts of a slot: how much of the present slot is still to come. So much of the oldest is
    // still in the window.
    const notLeft = (slot + 1n) * parts - BigInt(atUs) * slots
    let permits = 0n
    for (const admission of admissions) {
      const age = slot - slotOf(numbers, admission.atUs)
      if (age < slots) permits += BigInt(admission.held) * parts
      else if (age === slots) permits += BigInt(admission.held) * notLeft
    }
    return { permits, parts }
  },
  counts: ({ numbers }, admission, atUs) => slotOf(numbers, atUs) - slotOf(numbers, admission.atUs) <= BigInt(numbers.slots),
  isOf: ({ numbers }, admission, ofUs) => slotOf(numbers, ofUs) === slotOf(numbers, admission.atUs),
  isAlike: (a, b) => a.lengthUs === b.lengthUs && a.slots === b.slots,
  carried(state, _to, atUs) {
    const held = roundedUp(slidingWindow.used(state, atUs))
    return held > 0 ? [{ atUs, held }] : []
  },
}

/** The number of the slot that a time lies in. */
export function slotOf({ lengthUs, slots }: WindowNumbers, atUs: number): bigint {
  return (BigInt(atUs) * BigInt(slots)) / BigInt(lengthUs)
}

const slidingLog: Definition = {
  windowUs: ({ numbers }) => numbers.lengthUs,
  used: (state, atUs) => whole(heldBy(countingOf(slidingLog, state, atUs))),
  counts: ({ numbers }, admission, atUs) => atUs - admission.atUs < numbers.lengthUs,
  isOf: (_state, admission, ofUs) => admission.atUs === ofUs,
  isAlike: (a, b) => a.lengthUs === b.lengthUs,
  carried: (state, { lengthUs }, atUs) => countingOf(slidingLog, state, atUs).filter((admission) => atUs - admission.atUs < lengthUs),
}

const DEFINITIONS: Readonly<Record<WindowKind, Definition>> = { fixedWindow, slidingWindow, slidingLog }

export function heldBy(admissions: readonly Admission[]): number {
  return admissions.reduce((sum, { held }) => sum + held, 0)
}

/** Newest first. */
function takeBack(admissions: readonly Admission[], cost: number): void {
  let left = cost
  for (const admission of [...admissions].reverse()) {
    const given = Math.min(left, admission.held)
    admission.held -= given
    left -= given
  }
}

function whole(permits: number): Fraction {
  return { permits: BigInt(permits), parts: 1n }
}

function roundedUp({ permits, parts }: Fraction): number {
  return Number((permits + parts - 1n) / parts)
}

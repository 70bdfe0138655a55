/**
 * The oracle of the windows: what fixedWindow, slidingWindow and slidingLog mean, computed slowly
 * and obviously. It imports nothing, so it shares no formula with what it judges.
 *
 * **The definition.** A key is a list of admissions: when, and how many permits of it are still
 * held. What is in use at a time is counted over the list:
 *  - fixedWindow: the admissions of the window that is running. Windows lie side by side from an
 *    offset on; or (`'first'`) one begins with the first admission for which no window is running.
 *    A window that holds nothing is no window.
 *  - slidingWindow: slot n is [n x slot, (n + 1) x slot), and a window has S of them. The S latest
 *    slots count in full, the one before them by the share of it that the window has not left yet.
 *  - slidingLog: the admissions of less than a window ago.
 * A cost fits when used + cost <= limit. There is no closed form here for "when" or "how many": the
 * oracle answers whether something fits or is idle at any time one likes to ask about, and the
 * tests find out from that whether a claimed figure is the right one.
 *
 * **Numbers.** The list belongs to the key, the limit to the caller. What is in use is counted by
 * the numbers that the state was written under. A caller with other numbers (`changeNumbers` before
 * the call) compares that with its own limit. Only what is charged writes the caller's numbers:
 *  - fixedWindow: the window that is running ends when the last of the windows ends that its
 *    admissions were charged in, each by the numbers of its caller. For `'first'` that is a window
 *    from the first admission on.
 *  - slidingWindow: with another window or other slots everything in use, rounded up, is one
 *    admission, made with the charge.
 *  - slidingLog: the admissions keep their times. Those that count no longer, by the state's
 *    numbers or by the caller's, are gone.
 * Questions, refusals and giving back leave the numbers as they are.
 *
 * **The clock steps back.** State carries the time at which it was written, and only writing moves
 * that time. An earlier reading counts as that time, as long as it is earlier by at most one window
 * of the state. Beyond that the state is re-dated: everything that was in use when it was written,
 * rounded up, is one admission now. Any call writes that.
 *
 * **Charging** lands whether it fits or not, up to a bound: no more than 4,294,967,295 are in use,
 * of a log no more than twice the caller's limit, two at least. What is charged beyond that is
 * dropped. A charge is `limited` if more than the limit is in use then, and `impossible` if the
 * limit is 0.
 *
 * **Settling** to more than was charged charges the difference, now. To less, it gives back what of
 * that charge still counts: the admissions of its window, its slot or its microsecond.
 *
 * **Refunding** gives back newest first, and at most one call's worth: the larger limit of the
 * state's and the caller's. Giving back never creates a key; where there is nothing to give back
 * nothing is written.
 */
export type WindowKind = 'fixedWindow' | 'slidingWindow' | 'slidingLog'

export interface WindowNumbers {
  readonly limit: number
  readonly lengthUs: number
  /** fixedWindow: where in an epoch window the windows begin, or with the first admission. */
  readonly anchor: 'first' | number
  /** slidingWindow: into how many slots the window is cut, each of whole microseconds. */
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

/** permits / parts. */
interface Fraction {
  readonly permits: bigint
  readonly parts: bigint
}

/** What one kind of window means. Times are not before the latest admission. */
interface Definition {
  /** The longest step back of the clock that is waited out. */
  windowUs(state: WindowState): number
  /** The most that may be in use after a charge by a caller of these numbers. */
  most(numbers: WindowNumbers): number
  used(state: WindowState, atUs: number): Fraction
  /** Whether an admission counts for anything at a time. */
  counts(state: WindowState, admission: Admission, atUs: number): boolean
  /** Whether an admission that counts is of a time: of the same window, slot or microsecond. */
  isOf(state: WindowState, admission: Admission, ofUs: number): boolean
  /** Whether numbers differ in their limit at most. */
  isAlike(a: WindowNumbers, b: WindowNumbers): boolean
  /** What a charge under another window keeps of what counts. */
  carried(state: WindowState, to: WindowNumbers, atUs: number): readonly Admission[]
}

const NO_SPAN: Span = { startUs: 0, endUs: 0 }

export class WindowOracle {
  readonly #kind: WindowKind
  readonly #is: Definition
  #numbers: WindowNumbers
  #state: WindowState | undefined
  /** Every admission under like numbers since the last change of them, whether it counts or not. */
  #history: Admission[] = []

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

  get history(): readonly Admission[] {
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

  /** Of a charge by the caller, how many permits would land. */
  landed(nowUs: number, cost: number): number {
    return Math.max(0, Math.min(cost, this.#is.most(this.#numbers) - roundedUp(this.#used(nowUs))))
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
    if (outcome === 'allowed') this.#admit(nowUs, cost)
    return outcome
  }

  /** Charges, whether it fits or not. */
  charge(nowUs: number, cost: number): 'allowed' | 'limited' | 'impossible' {
    this.touch(nowUs)
    this.#admit(nowUs, this.landed(nowUs, cost))
    if (this.hasRoom(nowUs, 0)) return 'allowed'
    return this.#numbers.limit === 0 ? 'impossible' : 'limited'
  }

  /**
   * By so many permits more or less than was charged at `ofUs`. Answers how many were charged or
   * given back.
   */
  settle(nowUs: number, difference: number, ofUs: number): number {
    this.touch(nowUs)
    if (difference < 0) return this.#giveBack(nowUs, -difference, (state, admission) => this.#is.isOf(state, admission, ofUs))
    const landed = this.landed(nowUs, difference)
    this.#admit(nowUs, landed)
    return landed
  }

  /** Refunds. Answers how many permits were given back. */
  give(nowUs: number, cost: number): number {
    this.touch(nowUs)
    const most = Math.max(this.#state?.numbers.limit ?? 0, this.#numbers.limit)
    return this.#giveBack(nowUs, Math.min(cost, most), () => true)
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
    const admissions = held > 0 ? [{ atUs: nowUs, held }] : []
    const endUs = windowStartUs(numbers, nowUs) + this.#is.windowUs(state)
    const running = this.#kind === 'fixedWindow' ? { startUs: nowUs, endUs } : NO_SPAN
    this.#history = [...admissions]
    this.#state = { numbers, atUs: nowUs, admissions, running }
  }

  #admit(nowUs: number, cost: number): void {
    if (cost === 0) return
    const atUs = this.#countsAs(nowUs)
    const before = this.#counting(nowUs)
    const isMoved = this.isOfAnotherWindow
    const kept = isMoved ? this.#is.carried(this.#state as WindowState, this.#numbers, atUs) : before
    const admission = { atUs, held: cost }
    this.#history = [...(isMoved ? kept : this.#history), admission]
    this.#state = { atUs, numbers: this.#numbers, admissions: [...kept, admission], running: this.#running(before, atUs) }
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

  /** Takes from what still counts and is meant, newest first. */
  #giveBack(nowUs: number, cost: number, isMeant: (state: WindowState, admission: Admission) => boolean): number {
    const state = this.#state
    if (state === undefined) return 0
    const counting = this.#counting(nowUs)
    const meant = counting.filter((admission) => isMeant(state, admission))
    if (cost === 0 || meant.length === 0) return 0
    const given = takeBack(meant, cost)
    this.#state = { ...state, atUs: this.#countsAs(nowUs), admissions: counting.filter(({ held }) => held > 0) }
    return given
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
const MOST_IN_A_WINDOW = 4_294_967_295

function countingOf(is: Definition, state: WindowState, atUs: number): readonly Admission[] {
  return state.admissions.filter((admission) => is.counts(state, admission, atUs))
}

const fixedWindow: Definition = {
  windowUs: ({ numbers, running }) => Math.max(numbers.lengthUs, running.endUs - running.startUs),
  most: () => MOST_IN_A_WINDOW,
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
  windowUs: ({ numbers }) => numbers.lengthUs + slotUs(numbers),
  most: () => MOST_IN_A_WINDOW,
  used({ numbers, admissions }, atUs) {
    const slot = slotOf(numbers, atUs)
    // How much of the present slot is still to come. So much of the oldest is still in the window.
    const notLeftUs = (slot + 1) * slotUs(numbers) - atUs
    let permits = 0n
    for (const admission of admissions) {
      const age = slot - slotOf(numbers, admission.atUs)
      if (age < numbers.slots) permits += BigInt(admission.held) * BigInt(slotUs(numbers))
      else if (age === numbers.slots) permits += BigInt(admission.held) * BigInt(notLeftUs)
    }
    return { permits, parts: BigInt(slotUs(numbers)) }
  },
  counts: ({ numbers }, admission, atUs) => slotOf(numbers, atUs) - slotOf(numbers, admission.atUs) <= numbers.slots,
  isOf: ({ numbers }, admission, ofUs) => slotOf(numbers, ofUs) === slotOf(numbers, admission.atUs),
  isAlike: (a, b) => a.lengthUs === b.lengthUs && a.slots === b.slots,
  carried(state, _to, atUs) {
    const held = roundedUp(slidingWindow.used(state, atUs))
    return held > 0 ? [{ atUs, held }] : []
  },
}

function slotUs({ lengthUs, slots }: WindowNumbers): number {
  return lengthUs / slots
}

/** The number of the slot that a time lies in. */
export function slotOf(numbers: WindowNumbers, atUs: number): number {
  return (atUs - (atUs % slotUs(numbers))) / slotUs(numbers)
}

const slidingLog: Definition = {
  windowUs: ({ numbers }) => numbers.lengthUs,
  most: ({ limit }) => 2 * Math.max(limit, 1),
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

/** Newest first. Answers how much that was. */
function takeBack(admissions: readonly Admission[], cost: number): number {
  let left = cost
  for (const admission of [...admissions].reverse()) {
    const given = Math.min(left, admission.held)
    admission.held -= given
    left -= given
  }
  return cost - left
}

function whole(permits: number): Fraction {
  return { permits: BigInt(permits), parts: 1n }
}

function roundedUp({ permits, parts }: Fraction): number {
  return Number((permits + parts - 1n) / parts)
}

/**
 * The oracle of the windows: what fixedWindow, slidingWindow and slidingLog mean, computed slowly and obviously. It imports nothing, so it shares no
 * formula with what it judges.
 *
 * **The definition.** A key is a list of admissions: when, and how many permits of it are still held. What is in use at a time is counted over
 * the list:
 *  - fixedWindow: the admissions of the window that the time lies in. Windows lie side by side from an offset on; or (`'first'`) one begins with the
 *    first admission for which no window is running. A window that holds nothing is no window.
 *  - slidingWindow: slot n is [n x W / S, (n + 1) x W / S). The S latest slots count in full, the one before them by the share of it that the window
 *    has not left yet.
 *  - slidingLog: the admissions of less than a window ago.
 * A cost fits when used + cost <= limit. There is no closed form here for "when" or "how many": the oracle answers whether something fits or is
 * idle at any time one likes to ask about, and the tests find out from that whether a claimed figure is the right one.
 *
 * **The clock steps back.** State carries the time at which it was written, and only writing moves that time. An earlier reading counts as that time,
 * as long as it is earlier by at most one window. Beyond that the state is re-dated: everything that was in use when it was written, rounded up, is
 * one admission now. Any call writes that.
 *
 * **Changed numbers.** The first contact under new numbers, by any call, settles under the old ones: re-dated if need be, then everything in use,
 * rounded up and clamped to the new limit, is one admission: of the time that the state was written at, if one of that time counts in full under the
 * new numbers, and otherwise of now. Always written. Then the new window is looked at.
 *
 * **Giving back** takes from what still counts, newest first; if it is said when it was taken, only from that window, slot or microsecond. It
 * never creates a key; where there is nothing to give back nothing is written.
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
}

/** permits / parts. */
interface Fraction {
  readonly permits: bigint
  readonly parts: bigint
}

/** What one kind of window means. Times are not before the latest admission. */
interface Definition {
  /** The longest step back of the clock that is waited out. */
  windowUs(numbers: WindowNumbers): number
  used(numbers: WindowNumbers, admissions: readonly Admission[], atUs: number): Fraction
  /** Whether an admission counts for anything at a time. */
  counts(numbers: WindowNumbers, admissions: readonly Admission[], admission: Admission, atUs: number): boolean
  /** Whether an admission that stands alone counts and does not fade yet. */
  countsInFull(numbers: WindowNumbers, admission: Admission, atUs: number): boolean
  /** Whether an admission that counts is of a time: of the same window, slot or microsecond. */
  isOf(numbers: WindowNumbers, admissions: readonly Admission[], admission: Admission, ofUs: number): boolean
}

export class WindowOracle {
  readonly #is: Definition
  #numbers: WindowNumbers
  #state: WindowState | undefined
  /** Every admission since the state was last gathered into one, whether it still counts or not. */
  #history: Admission[] = []

  constructor(kind: WindowKind, numbers: WindowNumbers) {
    this.#is = DEFINITIONS[kind]
    this.#numbers = numbers
  }

  /** What a store should hold for the key; undefined for nothing. */
  get state(): WindowState | undefined {
    return this.#state
  }

  get numbers(): WindowNumbers {
    return this.#numbers
  }

  get history(): readonly Admission[] {
    return this.#history
  }

  get windowUs(): number {
    return this.#is.windowUs(this.#numbers)
  }

  get isOutdated(): boolean {
    return this.#state !== undefined && !sameNumbers(this.#state.numbers, this.#numbers)
  }

  /** Takes effect at the next contact with the key. */
  changeNumbers(numbers: WindowNumbers): void {
    this.#numbers = numbers
  }

  // Questions. They are about a key that has been touched under the present numbers, and about times from that contact on.

  /** Whether so many permits could be added without passing the limit. */
  hasRoom(nowUs: number, permits: number): boolean {
    const used = this.#used(nowUs)
    return used.permits + BigInt(permits) * used.parts <= BigInt(this.#numbers.limit) * used.parts
  }

  /** Whether the key behaves as if never used: nothing in use, and its time does not stand still. */
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
    if (outcome === 'allowed' && cost > 0) {
      const admission = { atUs: this.#countsAs(nowUs), held: cost }
      this.#write(nowUs, [...this.#counting(nowUs), admission])
      this.#history.push(admission)
    }
    return outcome
  }

  /** `ofUs`: when the cost was taken; -1 if that is not known. */
  give(nowUs: number, cost: number, ofUs: number): void {
    this.touch(nowUs)
    const counting = this.#counting(nowUs)
    const meant = ofUs < 0 ? counting : counting.filter((admission) => this.#is.isOf(this.#numbers, counting, admission, ofUs))
    if (cost === 0 || meant.length === 0) return
    takeBack(meant, cost)
    this.#write(nowUs, counting)
  }

  forget(): void {
    this.#state = undefined
    this.#history = []
  }

  /** What any contact does first: repair the clock, and carry over to the present numbers. */
  touch(nowUs: number): void {
    this.#redate(nowUs)
    if (!this.isOutdated) return
    const { numbers, admissions, atUs } = this.#state as WindowState
    const used = roundedUp(this.#is.used(numbers, admissions, this.#countsAs(nowUs)))
    const stays = this.#is.countsInFull(this.#numbers, { atUs, held: 1 }, this.#countsAs(nowUs))
    this.#gather(this.#numbers, stays ? atUs : nowUs, Math.min(used, this.#numbers.limit))
    this.#redate(nowUs)
  }

  /** Under the numbers that the state was written under. */
  #redate(nowUs: number): void {
    if (this.#state === undefined) return
    const { atUs, numbers, admissions } = this.#state
    if (atUs - nowUs > this.#is.windowUs(numbers)) this.#gather(numbers, nowUs, roundedUp(this.#is.used(numbers, admissions, atUs)))
  }

  #gather(numbers: WindowNumbers, atUs: number, used: number): void {
    this.#history = used > 0 ? [{ atUs, held: used }] : []
    this.#state = { atUs, numbers, admissions: [...this.#history] }
  }

  /** The reading that a reading counts as: time does not run before it was written. */
  #countsAs(nowUs: number): number {
    return this.#state === undefined ? nowUs : Math.max(nowUs, this.#state.atUs)
  }

  #used(nowUs: number): Fraction {
    return this.#is.used(this.#numbers, this.#state?.admissions ?? [], this.#countsAs(nowUs))
  }

  #counting(nowUs: number): readonly Admission[] {
    const admissions = this.#state?.admissions ?? []
    return admissions.filter((admission) => this.#is.counts(this.#numbers, admissions, admission, this.#countsAs(nowUs)))
  }

  #write(nowUs: number, admissions: readonly Admission[]): void {
    this.#state = { atUs: this.#countsAs(nowUs), numbers: this.#numbers, admissions: admissions.filter(({ held }) => held > 0) }
  }
}

const fixedWindow: Definition = {
  windowUs: ({ lengthUs }) => lengthUs,
  used: (numbers, admissions, atUs) =>
    whole(heldBy(admissions.filter((admission) => fixedWindow.counts(numbers, admissions, admission, atUs)))),
  counts: (numbers, admissions, admission, atUs) => fixedWindow.isOf(numbers, admissions, admission, atUs),
  countsInFull: (numbers, admission, atUs) => fixedWindow.counts(numbers, [admission], admission, atUs),
  isOf(numbers, admissions, _admission, ofUs) {
    // All admissions that are kept together are of one window: the one of the oldest.
    const startUs = fixedWindowStartUs(numbers, admissions) as number
    return startUs <= ofUs && ofUs < startUs + numbers.lengthUs
  },
}

/** Where the window of some admissions begins; undefined if there are none. */
export function fixedWindowStartUs({ anchor, lengthUs }: WindowNumbers, [oldest]: readonly Admission[]): number | undefined {
  if (oldest === undefined || anchor === 'first') return oldest?.atUs
  let sinceStartUs = (oldest.atUs - anchor) % lengthUs
  if (sinceStartUs < 0) sinceStartUs += lengthUs
  return oldest.atUs - sinceStartUs
}

const slidingWindow: Definition = {
  windowUs: ({ lengthUs, slots }) => Number((BigInt(lengthUs) * BigInt(slots + 1) + BigInt(slots) - 1n) / BigInt(slots)),
  used(numbers, admissions, atUs) {
    const slot = slotOf(numbers, atUs)
    const slots = BigInt(numbers.slots)
    const parts = BigInt(numbers.lengthUs)
    // In parts of a slot: how much of the present slot is still to come. So much of the oldest is still in the window.
    const notLeft = (slot + 1n) * parts - BigInt(atUs) * slots
    let permits = 0n
    for (const admission of admissions) {
      const age = slot - slotOf(numbers, admission.atUs)
      if (age < slots) permits += BigInt(admission.held) * parts
      else if (age === slots) permits += BigInt(admission.held) * notLeft
    }
    return { permits, parts }
  },
  counts: (numbers, _admissions, admission, atUs) => slotOf(numbers, atUs) - slotOf(numbers, admission.atUs) <= BigInt(numbers.slots),
  countsInFull: (numbers, admission, atUs) => slotOf(numbers, atUs) - slotOf(numbers, admission.atUs) < BigInt(numbers.slots),
  isOf: (numbers, _admissions, admission, ofUs) => slotOf(numbers, ofUs) === slotOf(numbers, admission.atUs),
}

/** The number of the slot that a time lies in. */
export function slotOf({ lengthUs, slots }: WindowNumbers, atUs: number): bigint {
  return (BigInt(atUs) * BigInt(slots)) / BigInt(lengthUs)
}

const slidingLog: Definition = {
  windowUs: ({ lengthUs }) => lengthUs,
  used: (numbers, admissions, atUs) =>
    whole(heldBy(admissions.filter((admission) => slidingLog.counts(numbers, admissions, admission, atUs)))),
  counts: ({ lengthUs }, _admissions, admission, atUs) => admission.atUs > atUs - lengthUs,
  countsInFull: (numbers, admission, atUs) => slidingLog.counts(numbers, [admission], admission, atUs),
  isOf: (_numbers, _admissions, admission, ofUs) => admission.atUs === ofUs,
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

function sameNumbers(a: WindowNumbers, b: WindowNumbers): boolean {
  return a.limit === b.limit && a.lengthUs === b.lengthUs && a.anchor === b.anchor && a.slots === b.slots
}

/**
 * One time for all processes of a machine that share a file.
 *
 * They have two clocks in common. The **steady** one counts on since the machine was started,
 * whatever is done to the time of day; nobody but the machine knows where it began. The **wall**
 * clock knows the date, and is set now and then. So the file has an **anchor**: how the two stood
 * together at one moment. Each process reads the steady clock and adds what is missing by the
 * anchor: two readings, one after the other, in whatever processes, are never in the wrong order.
 *
 * The anchor is written anew, under the lock of the file, when the wall clock has left it: the
 * machine was started again or slept, or the clock was set. Set forward, time leaps with it. Set
 * back by up to `MOST_LEAD_US`, time runs on and the lead over the wall clock is given up little by
 * little, by a sixteenth of what passes: nobody sees time run backwards, nor stand still. Set back
 * by more, time steps back with it, and law 5 is for each state to keep.
 */
import { isNode } from '../shared-memory/clock.ts'

export interface Anchor {
  /** What the steady clock read. */
  readonly steadyUs: number
  /** The time at that moment. */
  readonly timeUs: number
  /** By how much that was ahead of the wall clock. */
  readonly leadUs: number
}

/** The two clocks, in whole microseconds. */
export interface MachineClocks {
  steadyUs(): number
  wallUs(): number
}

/** How far the two clocks may drift apart before there is another anchor. */
const SLACK_US = 20_000
/** A step back of the wall clock by more is followed at once. */
const MOST_LEAD_US = 10_000_000
/** One part in so many of what passes goes to the lead. */
const SLOWING = 16
/** Two readings between which more passes are not of one moment. */
const ONE_MOMENT_US = 1_000

type HrTime = () => [seconds: number, nanoseconds: number]

/**
 * Elsewhere than in Node each process counts from its own start: there the wall clock is all that
 * they have in common.
 */
export const machineClocks: MachineClocks = {
  steadyUs: isNode() ? bySince((globalThis as unknown as { process: { hrtime: HrTime } }).process.hrtime) : wallUs,
  wallUs,
}

function bySince(hrtime: HrTime): () => number {
  return () => {
    const [seconds, nanoseconds] = hrtime()
    return seconds * 1_000_000 + Math.floor(nanoseconds / 1000)
  }
}

function wallUs(): number {
  return Date.now() * 1000
}

export class CommonTime {
  readonly #clocks: MachineClocks
  #anchor: Anchor
  /** What the wall clock read when it last agreed with the anchor. */
  #comparedUs = -1

  constructor(clocks: MachineClocks) {
    this.#clocks = clocks
    this.#anchor = anchorAt(clocks.steadyUs(), clocks.wallUs())
  }

  /** The time by the anchor that was followed last. */
  readonly nowUs = (): number => timeAt(this.#anchor, this.#clocks.steadyUs())

  get anchor(): Anchor {
    return this.#anchor
  }

  /** Goes by this anchor from now on: the one that stands in the file. */
  follow(anchor: Anchor): void {
    this.#anchor = anchor
    this.#comparedUs = -1
  }

  /**
   * The anchor to write where the clocks have left the present one; undefined while they have not.
   */
  corrected(): Anchor | undefined {
    const clocks = this.#clocks
    // Until the wall clock moves, one look is enough.
    if (clocks.wallUs() === this.#comparedUs) return undefined
    const steadyUs = clocks.steadyUs()
    const wallUs = clocks.wallUs()
    if (clocks.steadyUs() - steadyUs > ONE_MOMENT_US) return undefined
    const anchor = correctedAt(this.#anchor, steadyUs, wallUs)
    if (anchor === undefined) this.#comparedUs = wallUs
    return anchor
  }
}

function correctedAt(anchor: Anchor, steadyUs: number, wallUs: number): Anchor | undefined {
  const passedUs = steadyUs - anchor.steadyUs
  const expectedUs = anchor.timeUs - anchor.leadUs + passedUs
  // Less than nothing: the machine was started again.
  if (passedUs >= 0 && Math.abs(expectedUs - wallUs) <= SLACK_US) return undefined
  const timeUs = timeAt(anchor, steadyUs)
  const runsOn = passedUs >= 0 && timeUs > wallUs && timeUs <= wallUs + MOST_LEAD_US
  return runsOn ? { steadyUs, timeUs, leadUs: timeUs - wallUs } : anchorAt(steadyUs, wallUs)
}

function anchorAt(steadyUs: number, timeUs: number): Anchor {
  return { steadyUs, timeUs, leadUs: 0 }
}

function timeAt({ steadyUs, timeUs, leadUs }: Anchor, nowUs: number): number {
  const passedUs = nowUs - steadyUs
  return timeUs + passedUs - Math.min(leadUs, Math.floor(passedUs / SLOWING))
}

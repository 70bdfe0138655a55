/**
 * One time for all processes of a machine that share a file.
 *
 * They have two clocks in common. The **steady** one counts on since the machine was started, whatever is done to the time of day; nobody but the machine knows
 * where it began. The **wall** clock knows the date, and is set now and then. So the file has an **anchor**: how the two stood together at one moment. Each process
 * reads the steady clock and adds what is missing by the anchor: two readings, one after the other, in whatever processes, are never in the wrong order.
 *
 * The anchor is written anew, under the lock of the file, when the wall clock has left it: the machine was started again or slept, or the clock was set. Set
 * forward, time leaps with it. Set back by up to `MOST_LEAD_US`, time runs on and the lead over the wall clock is given up little by little, by a sixteenth of what
 * passes: nobody sees time run backwards, nor stand still. Set back by more, time steps back with it, and law 5 is for each state to keep.
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

/** Elsewhere than in Node each process counts from its own start: there the wall clock is all that they have in common. */
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
  }

  /** The anchor to write where the clocks have left the present one; undefined while they have not. */
  corrected(): Anchor | undefined {
    const { steadyUs, timeUs, leadUs } = this.#anchor
    const nowUs = this.#clocks.steadyUs()
    const wall = this.#clocks.wallUs()
    if (this.#clocks.steadyUs() - nowUs > ONE_MOMENT_US) return undefined
    const passedUs = nowUs - steadyUs
    const withoutLeadUs = timeUs - leadUs + passedUs
    if (passedUs >= 0 && Math.abs(withoutLeadUs - wall) <= SLACK_US) return undefined
    const atUs = timeAt(this.#anchor, nowUs)
    const isAhead = passedUs >= 0 && atUs > wall && atUs <= wall + MOST_LEAD_US
    return isAhead ? { steadyUs: nowUs, timeUs: atUs, leadUs: atUs - wall } : anchorAt(nowUs, wall)
  }
}

function anchorAt(steadyUs: number, timeUs: number): Anchor {
  return { steadyUs, timeUs, leadUs: 0 }
}

function timeAt({ steadyUs, timeUs, leadUs }: Anchor, nowUs: number): number {
  const passedUs = nowUs - steadyUs
  return timeUs + passedUs - Math.min(leadUs, Math.floor(passedUs / SLOWING))
}

/**
 * One call looked at closely: what each limit held before it, what it decided, and what it held
 * after.
 */
import type { Decision, LimitData } from '../sluice.ts'
import type { Shape } from './limits.ts'
import { SteppedLimiter } from './run.ts'
import type { Arrivals } from './traffic.ts'

/** The figures of a decision that are told, in microseconds. */
export interface Figures {
  readonly outcome: Decision['outcome']
  readonly remaining: number
  readonly retryUs: number
  readonly resetUs: number
  readonly delayUs: number
}

/**
 * A sliding window's sum: what the oldest sub-window counts by its overlap, and the others in full.
 */
export interface Overlap {
  readonly oldest: number
  /** How much of the oldest still lies within the window: 0 to 1. */
  readonly share: number
  readonly newer: number
}

export interface Moment {
  readonly type: Shape['type']
  readonly capacity: number
  readonly windowUs: number
  readonly intervalUs: number
  readonly atUs: number
  readonly cost: number
  /** When the call before this one came, and what it left; undefined for the first. */
  readonly previous: { readonly atUs: number; readonly figures: Figures } | undefined
  /** How it stands now, before the call. */
  readonly before: Figures
  readonly after: Figures
  readonly overlap: Overlap | undefined
}

export class Cursor {
  readonly #arrivals: Arrivals
  readonly #limits: readonly LimitData[]
  #stages: SteppedLimiter[] = []
  #previous: (Figures | undefined)[] = []
  #next = 0

  constructor(arrivals: Arrivals, limits: readonly LimitData[]) {
    this.#arrivals = arrivals
    this.#limits = limits
    this.#rewind()
  }

  /** All limits at the given call. Going on is one step; going back plays from the beginning. */
  at(call: number): Moment[] {
    if (call < this.#next) this.#rewind()
    for (; this.#next < call; this.#next++) {
      for (const [k, stage] of this.#stages.entries()) this.#decide(stage, k)
    }
    const moments = this.#stages.map((stage, k) => this.#moment(stage, k))
    this.#next = call + 1
    return moments
  }

  #rewind(): void {
    this.#stages = this.#limits.map((data) => new SteppedLimiter(data))
    this.#previous = this.#limits.map(() => undefined)
    this.#next = 0
  }

  #decide(stage: SteppedLimiter, k: number): Figures {
    const figures = figuresOf(stage.consume(this.#arrivals.atUs[this.#next] as number, this.#arrivals.cost[this.#next] as number))
    this.#previous[k] = figures
    return figures
  }

  #moment(stage: SteppedLimiter, k: number): Moment {
    const { type, capacity, windowUs, intervalUs } = stage.shape
    const atUs = this.#arrivals.atUs[this.#next] as number
    const cost = this.#arrivals.cost[this.#next] as number
    const figures = this.#previous[k]
    const previous = figures === undefined ? undefined : { atUs: this.#arrivals.atUs[this.#next - 1] as number, figures }
    const before = figuresOf(stage.look(atUs))
    const overlap = type === 'slidingWindow' ? overlapOf(stage, atUs) : undefined
    return { type, capacity, windowUs, intervalUs, atUs, cost, previous, before, overlap, after: this.#decide(stage, k) }
  }
}

function figuresOf({ outcome, remaining, retryAfterMs, resetAfterMs, delayMs }: Decision): Figures {
  const us = (ms: number) => Math.round(ms * 1000)
  return { outcome, remaining, retryUs: us(retryAfterMs), resetUs: us(resetAfterMs), delayUs: us(delayMs) }
}

/**
 * From the state as it stands in a store: a count for each sub-window, by its number since the
 * beginning of time.
 */
function overlapOf(stage: SteppedLimiter, atUs: number): Overlap {
  const { windowUs, slots } = stage.shape
  const position = atUs / (windowUs / slots)
  const slot = Math.floor(position)
  const counts = Object.entries(stage.inspect() ?? {}).filter(([name]) => /^\d+$/.test(name))
  const newer = counts.filter(([name]) => Number(name) > slot - slots).reduce((sum, [, count]) => sum + count, 0)
  const oldest = counts.find(([name]) => Number(name) === slot - slots)?.[1] ?? 0
  return { oldest, share: 1 - (position - slot), newer }
}

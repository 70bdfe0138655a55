/** The six limits as the page holds them: plain JSON, as in a configuration file. */
import { type Duration, durationUs, type Limit, type LimitData, limitFrom, paceOf, type Rate, type SluiceError } from '../sluice.ts'

export const TYPES = ['fixedWindow', 'slidingWindow', 'slidingLog', 'tokenBucket', 'gcra', 'leakyBucket'] as const
export type LimitType = (typeof TYPES)[number]

/**
 * The options of each algorithm, in the order in which they are asked for and stand in an address.
 */
export const FIELDS: Readonly<Record<LimitType, readonly string[]>> = {
  fixedWindow: ['limit', 'window', 'anchor'],
  slidingWindow: ['limit', 'window', 'slots'],
  slidingLog: ['limit', 'window'],
  tokenBucket: ['capacity', 'refill'],
  gcra: ['burst', 'rate'],
  leakyBucket: ['capacity', 'leak'],
}

export type Limits = Readonly<Record<LimitType, LimitData>>

/**
 * The same number for all: `permits` in every `per`, and as many at once. With 0 nothing passes,
 * whatever the rate is.
 */
export function equalLimits(permits: number, per: string): Limits {
  const pace = `${permits || 1}/${per.replace(/^1(?=[a-z])/, '')}`
  return {
    fixedWindow: { type: 'fixedWindow', limit: permits, window: per },
    slidingWindow: { type: 'slidingWindow', limit: permits, window: per },
    slidingLog: { type: 'slidingLog', limit: permits, window: per },
    tokenBucket: { type: 'tokenBucket', capacity: permits, refill: pace },
    gcra: { type: 'gcra', rate: pace, burst: permits },
    leakyBucket: { type: 'leakyBucket', capacity: permits, leak: pace },
  }
}

/** A limit with the figures that a picture of it needs. */
export interface Shape {
  readonly type: LimitType
  readonly limit: Limit
  /** What an idle key admits at once. */
  readonly capacity: number
  /** The window, or the time that the pace names: within it, bursts are counted. */
  readonly windowUs: number
  /** Of what drains: how long one permit takes. 0 for windows. */
  readonly intervalUs: number
  readonly slots: number
}

const PACE_OPTION: Readonly<Partial<Record<LimitType, string>>> = { tokenBucket: 'refill', gcra: 'rate', leakyBucket: 'leak' }

/** Throws what the library throws when the data is wrong. */
export function shapeOf(data: LimitData): Shape {
  const limit = limitFrom(data)
  const type = data.type as LimitType
  const capacity = Number(data.limit ?? data.capacity ?? data.burst)
  const { slots = 1 } = limit as { readonly slots?: number }
  const option = PACE_OPTION[type]
  if (option === undefined) return { type, limit, capacity, slots, windowUs: durationUs(data.window as Duration, 'window'), intervalUs: 0 }
  const rate = data[option] as Rate
  const pace = paceOf(rate, option)
  return { type, limit, capacity, slots, windowUs: periodUs(rate), intervalUs: pace.periodUs / pace.permits }
}

export function isWrong(data: LimitData): boolean {
  return mistakeIn(data) !== undefined
}

/** What the library says of it. */
export function mistakeIn(data: LimitData): SluiceError | undefined {
  try {
    shapeOf(data)
    return undefined
  } catch (error) {
    return error as SluiceError
  }
}

/** The time that a rate names: a second of '10/s'. */
function periodUs(rate: Rate): number {
  if (typeof rate !== 'string') return durationUs(rate.per, 'rate: period')
  const per = (rate.split('/')[1] as string).trim()
  return durationUs((/^\d/.test(per) ? per : `1${per}`) as Duration, 'rate: period')
}

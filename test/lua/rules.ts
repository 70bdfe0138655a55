/** Rules to walk under: by the figures, for every algorithm, over the whole domain. */
import type { Algorithm, Charged, Rule } from '../../src/algorithms/algorithm.ts'
import { greatestCommonDivisor } from '../../src/algorithms/arithmetic.ts'
import { concurrencyAlgorithm } from '../../src/algorithms/concurrency/concurrency.ts'
import { fixedWindowAlgorithm } from '../../src/algorithms/fixed-window/fixed-window.ts'
import { gcraAlgorithm } from '../../src/algorithms/gcra/gcra.ts'
import { leakyBucketAlgorithm } from '../../src/algorithms/leaky-bucket/leaky-bucket.ts'
import { slidingLogAlgorithm } from '../../src/algorithms/sliding-log/sliding-log.ts'
import { slidingWindowAlgorithm } from '../../src/algorithms/sliding-window/sliding-window.ts'
import { tokenBucketAlgorithm } from '../../src/algorithms/token-bucket/token-bucket.ts'
import type { Random } from '../model/random.ts'

const DAY_US = 86_400_000_000
const MAX_WINDOW_US = 366 * DAY_US
const MAX_PERMITS = 1_000_000_000
/** A level fits if twice its capacity and what drains in this time are less than 2^52 units. */
const AHEAD_US = 60_000_000
const MOST_SLOTS = 100

export const LATEST_US = 2 ** 52

export const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  gcra: gcraAlgorithm as Algorithm,
  tokenBucket: tokenBucketAlgorithm as Algorithm,
  leakyBucket: leakyBucketAlgorithm as Algorithm,
  fixedWindow: fixedWindowAlgorithm as Algorithm,
  slidingWindow: slidingWindowAlgorithm as Algorithm,
  slidingLog: slidingLogAlgorithm,
  concurrency: concurrencyAlgorithm as unknown as Algorithm,
}

const FIGURES: Readonly<Record<string, (random: Random) => number[][]>> = {
  gcra: levelFigures,
  tokenBucket: levelFigures,
  leakyBucket: levelFigures,
  fixedWindow: (random) => windowFigures(random, MAX_PERMITS, (us) => (random.chance(0.4) ? [1, 0] : [0, random.whole(0, us - 1)])),
  slidingWindow: slotFigures,
  slidingLog: (random) => windowFigures(random, 40, () => []),
  concurrency: (random) => windowFigures(random, 40, () => []),
}

/**
 * Some rules that one key is called under: one, the same with another capacity, and others of about
 * the same pace or window. Now and then a capacity is 0.
 */
export function rulesOf(type: string, random: Random): Rule[] {
  const { ruleOf } = ALGORITHMS[type] as Algorithm
  const figures = FIGURES[type]?.(random) as number[][]
  if (type !== 'concurrency' && random.chance(0.15)) (random.pick(figures) as number[])[0] = 0
  return figures.map((each) => ruleOf(each))
}

function levelFigures(random: Random): number[][] {
  const periodUs = random.magnitude(1, MAX_WINDOW_US)
  const permits = random.magnitude(1, 10 * periodUs)
  const full = random.fraction()
  return [
    level(permits, periodUs, full),
    level(permits, periodUs, random.fraction()),
    level(Math.ceil(permits * 1.5), periodUs, full),
    level(permits, Math.ceil(periodUs / random.whole(1, 3)), full),
  ]
}

/** In lowest terms. `full`: from the least capacity to the largest that fits. */
function level(drawnPermits: number, drawnPeriodUs: number, full: number): number[] {
  const wanted = Math.min(drawnPermits, 10 * drawnPeriodUs, (LATEST_US * 0.9) / AHEAD_US)
  const divisor = greatestCommonDivisor(Math.floor(wanted), drawnPeriodUs)
  const [permits, periodUs] = [Math.floor(wanted) / divisor, drawnPeriodUs / divisor]
  const most = Math.min(MAX_PERMITS, Math.floor((LATEST_US - 1 - AHEAD_US * permits) / (2 * periodUs)))
  return [Math.floor(most ** full), permits, periodUs]
}

function windowFigures(random: Random, mostPermits: number, more: (windowUs: number) => number[]): number[][] {
  const windowUs = random.magnitude(1, MAX_WINDOW_US)
  const limit = random.magnitude(1, mostPermits)
  const windows = [windowUs, windowUs, Math.min(MAX_WINDOW_US, windowUs * 2), Math.ceil(windowUs / 3)]
  return windows.map((us, k) => [k === 1 ? limit + 3 : limit, us, ...more(us)])
}

/** Windows that are cut into whole slots, as many or as long as others. */
function slotFigures(random: Random): number[][] {
  const slots = random.magnitude(1, random.chance(0.1) ? MOST_SLOTS : 12)
  const slotUs = random.magnitude(1, Math.floor(MAX_WINDOW_US / MOST_SLOTS / 2))
  const limit = random.magnitude(1, MAX_PERMITS)
  const other = random.magnitude(1, 12)
  return [
    [limit, slots * slotUs, slots],
    [limit + 3, slots * slotUs, slots],
    [limit, 2 * slots * slotUs, slots],
    [limit, other * slotUs, other],
  ]
}

/**
 * How the clock goes on: mostly a little, sometimes over a window, sometimes back, and sometimes to
 * about one of these times.
 */
export function nextTime(nowUs: number, { windowUs }: Rule, random: Random, times: readonly number[] = []): number {
  // Under a capacity of 0 there is no window.
  const us = Math.max(windowUs, 10)
  const step = random.weighted([
    [3, 0],
    [1, 1],
    [6, random.magnitude(1, Math.ceil(us / 4))],
    [2, random.whole(1, 2 * us)],
    [1, us + random.whole(-1, 1)],
    [1, -random.whole(1, us)],
    [1, -us - random.whole(0, 2)],
    [1, -random.whole(us, 4 * us)],
    [times.length > 0 ? 3 : 0, times.length > 0 ? random.pick(times) + random.whole(-1, 1) - nowUs : 0],
  ])
  return Math.max(0, Math.min(LATEST_US, nowUs + step))
}

/**
 * The times that matter to a charge: when its caller may act, when it would have drained, and
 * between.
 */
export function timesOf(charges: readonly Pick<Charged, 'words'>[]): number[] {
  return charges.slice(-3).flatMap(({ words }) => {
    const [drainedUs, , dueUs] = words as unknown as readonly [number, number, number]
    return [dueUs, drainedUs, Math.floor((dueUs + drainedUs) / 2)]
  })
}

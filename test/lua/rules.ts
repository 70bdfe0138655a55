/** Rules to walk under: by the figures, for every algorithm, over the whole domain. */
import type { Algorithm, Rule } from '../../src/algorithms/algorithm.ts'
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
const MAX_FILL_US = 36_525 * DAY_US
const MAX_PERMITS = 1_000_000_000

export const LATEST_US = 5_000_000_000_000_000

export const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  gcra: gcraAlgorithm as Algorithm,
  tokenBucket: tokenBucketAlgorithm as Algorithm,
  leakyBucket: leakyBucketAlgorithm as Algorithm,
  fixedWindow: fixedWindowAlgorithm as Algorithm,
  slidingWindow: slidingWindowAlgorithm as Algorithm,
  slidingLog: slidingLogAlgorithm,
  concurrency: concurrencyAlgorithm as unknown as Algorithm,
}

/**
 * Some rules that one key is called under: one, the same with another capacity, and others of about
 * the same pace or window.
 */
export function rulesOf(type: string, random: Random): Rule[] {
  const { ruleOf } = ALGORITHMS[type] as Algorithm
  const draw = type.startsWith('sliding') || type === 'fixedWindow' || type === 'concurrency' ? windowFigures : levelFigures
  return draw(type, random).map((figures) => ruleOf(figures))
}

function levelFigures(_type: string, random: Random): number[][] {
  const periodUs = random.magnitude(1, MAX_WINDOW_US)
  const permits = random.magnitude(1, Math.min(MAX_PERMITS, 10 * periodUs))
  const full = random.fraction()
  return [
    level(permits, periodUs, full),
    level(permits, periodUs, random.fraction()),
    level(Math.ceil(permits * 1.5), periodUs, full),
    level(permits, Math.ceil(periodUs / random.whole(1, 3)), full),
  ]
}

/**
 * In lowest terms, and full within a hundred years. `full`: from the least capacity to the largest.
 */
function level(drawnPermits: number, drawnPeriodUs: number, full: number): number[] {
  const wanted = Math.min(drawnPermits, MAX_PERMITS, 10 * drawnPeriodUs)
  const divisor = greatestCommonDivisor(wanted, drawnPeriodUs)
  const [permits, periodUs] = [wanted / divisor, drawnPeriodUs / divisor]
  const most = Math.min(MAX_PERMITS, Number((BigInt(MAX_FILL_US) * BigInt(permits)) / BigInt(periodUs)))
  return [Math.floor(most ** full), permits, periodUs]
}

function windowFigures(type: string, random: Random): number[][] {
  const windowUs = random.magnitude(1, MAX_WINDOW_US)
  const limit = random.magnitude(1, type === 'slidingLog' || type === 'concurrency' ? 40 : MAX_PERMITS)
  const windows = [windowUs, windowUs, Math.min(MAX_WINDOW_US, windowUs * 2), Math.ceil(windowUs / 3)]
  return windows.map((us, k) => [k === 1 ? limit + 3 : limit, us, ...moreFigures(type, us, random)])
}

function moreFigures(type: string, windowUs: number, random: Random): number[] {
  if (type === 'slidingLog' || type === 'concurrency') return []
  if (type === 'slidingWindow') return [Math.min(windowUs, random.magnitude(1, random.chance(0.1) ? 1_000 : 12))]
  return random.chance(0.4) ? [1, 0] : [0, random.whole(0, windowUs - 1)]
}

/** How the clock goes on: mostly a little, sometimes over a window, sometimes back. */
export function nextTime(nowUs: number, { windowUs }: Rule, random: Random): number {
  const step = random.weighted([
    [3, 0],
    [1, 1],
    [6, random.magnitude(1, Math.max(1, Math.ceil(windowUs / 4)))],
    [2, random.whole(1, 2 * windowUs)],
    [1, windowUs + random.whole(-1, 1)],
    [1, -random.whole(1, windowUs)],
    [1, -windowUs - random.whole(0, 2)],
    [1, -random.whole(windowUs, 4 * windowUs)],
  ])
  return Math.max(0, Math.min(LATEST_US, nowUs + step))
}

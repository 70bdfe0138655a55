/**
 * The one list of formats that states have in bytes (codec.ts). A format names an algorithm and
 * what its figures and words mean: a change of either is another format, with the next free number.
 * Numbers are below 128 and are never used again.
 */
import type { Algorithm, Rule } from './algorithm.ts'
import { concurrencyAlgorithm } from './concurrency/concurrency.ts'
import { fixedWindowAlgorithm } from './fixed-window/fixed-window.ts'
import { gcraAlgorithm } from './gcra/gcra.ts'
import { leakyBucketAlgorithm } from './leaky-bucket/leaky-bucket.ts'
import { slidingLogAlgorithm } from './sliding-log/sliding-log.ts'
import { slidingWindowAlgorithm } from './sliding-window/sliding-window.ts'
import { tokenBucketAlgorithm } from './token-bucket/token-bucket.ts'

export interface Format {
  /** The byte. */
  readonly format: number
  readonly algorithm: Algorithm
  /** How many figures its rules have. */
  readonly figures: number
}

export const FORMATS: readonly Format[] = [
  { format: 1, algorithm: any(gcraAlgorithm), figures: 3 },
  { format: 2, algorithm: any(tokenBucketAlgorithm), figures: 3 },
  { format: 3, algorithm: any(leakyBucketAlgorithm), figures: 3 },
  { format: 4, algorithm: any(fixedWindowAlgorithm), figures: 4 },
  // 5 and 6 were these two, with their counts and entries in another order.
  { format: 7, algorithm: any(slidingWindowAlgorithm), figures: 3 },
  { format: 8, algorithm: slidingLogAlgorithm, figures: 2 },
  { format: 9, algorithm: any(concurrencyAlgorithm), figures: 2 },
]

/**
 * An algorithm whose rules have more in them: `ruleOf` makes the ones that its other functions are
 * called with.
 */
function any<R extends Rule>(algorithm: Algorithm<R>): Algorithm {
  return algorithm as unknown as Algorithm
}

/** `1 (gcra), 2 (tokenBucket) ...`, for errors. */
export const KNOWN_FORMATS: string = FORMATS.map(({ format, algorithm }) => `${format} (${algorithm.type})`).join(', ')

const byType: ReadonlyMap<string, number> = new Map(FORMATS.map(({ format, algorithm }) => [algorithm.type, format]))

/** The format that states of a rule are written in. */
export function formatOf(type: string): number {
  return byType.get(type) as number
}

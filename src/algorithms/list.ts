/**
 * The one list of algorithms, for all that works with each of them. Their exports are in all.ts:
 * index.ts makes every name in there public, so this list cannot stand beside them.
 */
import type { About } from './about.ts'
import type { Format } from './algorithm.ts'
import { concurrencyAbout } from './concurrency/concurrency.about.ts'
import { concurrencyFormat } from './concurrency/concurrency.ts'
import { fixedWindowAbout } from './fixed-window/fixed-window.about.ts'
import { fixedWindowFormat } from './fixed-window/fixed-window.ts'
import { gcraAbout } from './gcra/gcra.about.ts'
import { gcraFormat } from './gcra/gcra.ts'
import { leakyBucketAbout } from './leaky-bucket/leaky-bucket.about.ts'
import { leakyBucketFormat } from './leaky-bucket/leaky-bucket.ts'
import { slidingLogAbout } from './sliding-log/sliding-log.about.ts'
import { slidingLogFormat } from './sliding-log/sliding-log.ts'
import { slidingWindowAbout } from './sliding-window/sliding-window.about.ts'
import { slidingWindowFormat } from './sliding-window/sliding-window.ts'
import { tokenBucketAbout } from './token-bucket/token-bucket.about.ts'
import { tokenBucketFormat } from './token-bucket/token-bucket.ts'

/** In the order in which they are shown. */
export const ABOUTS: readonly About[] = [
  fixedWindowAbout,
  slidingWindowAbout,
  slidingLogAbout,
  tokenBucketAbout,
  gcraAbout,
  leakyBucketAbout,
  concurrencyAbout,
]

/** In the order of their numbers. */
export const FORMATS: readonly Format[] = [
  gcraFormat,
  tokenBucketFormat,
  leakyBucketFormat,
  fixedWindowFormat,
  slidingWindowFormat,
  concurrencyFormat,
  slidingLogFormat,
]

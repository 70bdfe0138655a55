/** The descriptions of all algorithms, in the order in which they are shown. */
import type { About } from './about.ts'
import { concurrencyAbout } from './concurrency/concurrency.about.ts'
import { fixedWindowAbout } from './fixed-window/fixed-window.about.ts'
import { gcraAbout } from './gcra/gcra.about.ts'
import { leakyBucketAbout } from './leaky-bucket/leaky-bucket.about.ts'
import { slidingLogAbout } from './sliding-log/sliding-log.about.ts'
import { slidingWindowAbout } from './sliding-window/sliding-window.about.ts'
import { tokenBucketAbout } from './token-bucket/token-bucket.about.ts'

export const ABOUTS: readonly About[] = [
  fixedWindowAbout,
  slidingWindowAbout,
  slidingLogAbout,
  tokenBucketAbout,
  gcraAbout,
  leakyBucketAbout,
  concurrencyAbout,
]

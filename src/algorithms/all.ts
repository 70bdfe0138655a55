/** What algorithms export: index.ts makes all of it public. */
export { type ConcurrencyLimit, type ConcurrencyOptions, concurrency } from './concurrency/concurrency.ts'
export { type FixedWindowLimit, type FixedWindowOptions, fixedWindow } from './fixed-window/fixed-window.ts'
export { type GcraLimit, type GcraOptions, gcra } from './gcra/gcra.ts'
export { type LeakyBucketLimit, type LeakyBucketOptions, leakyBucket } from './leaky-bucket/leaky-bucket.ts'
export { type SlidingLogLimit, type SlidingLogOptions, slidingLog } from './sliding-log/sliding-log.ts'
export { type SlidingWindowLimit, type SlidingWindowOptions, slidingWindow } from './sliding-window/sliding-window.ts'
export { type TokenBucketLimit, type TokenBucketOptions, tokenBucket } from './token-bucket/token-bucket.ts'

/** How the text of each algorithm is read back: for whoever looks into a store. Apart from the algorithms, because deciding needs none of it. */
import type { Algorithm, EncodedState } from './algorithm.ts'
import { decodeFixedWindow, fixedWindowAlgorithm } from './fixed-window/fixed-window.ts'
import { decodeGcra, gcraAlgorithm } from './gcra/gcra.ts'
import { decodeLeakyBucket, leakyBucketAlgorithm } from './leaky-bucket/leaky-bucket.ts'
import { decodeSlidingLog, slidingLogAlgorithm } from './sliding-log/sliding-log.ts'
import { decodeSlidingWindow, slidingWindowAlgorithm } from './sliding-window/sliding-window.ts'
import { decodeTokenBucket, tokenBucketAlgorithm } from './token-bucket/token-bucket.ts'

export interface Decoder {
  readonly algorithm: Algorithm
  /** Writes the words of `encoded` and returns the numbers it was written under. Throws on anything that the algorithm did not write. */
  readonly decode: (encoded: EncodedState, s: Float64Array, i: number) => string
}

const ALL: readonly (readonly [algorithm: object, decode: Decoder['decode']])[] = [
  [gcraAlgorithm, decodeGcra],
  [tokenBucketAlgorithm, decodeTokenBucket],
  [leakyBucketAlgorithm, decodeLeakyBucket],
  [fixedWindowAlgorithm, decodeFixedWindow],
  [slidingWindowAlgorithm, decodeSlidingWindow],
  [slidingLogAlgorithm, decodeSlidingLog],
]

/** By the type of the algorithm. */
export const decoders: ReadonlyMap<string, Decoder> = new Map(
  ALL.map(([algorithm, decode]) => [(algorithm as Algorithm).type, { algorithm: algorithm as Algorithm, decode }]),
)

import type { Algorithm, EncodedState } from '../../src/algorithms/algorithm.ts'
import { decodeFixedWindow } from '../../src/algorithms/fixed-window/fixed-window.ts'
import { decodeGcra } from '../../src/algorithms/gcra/gcra.ts'
import { decodeLeakyBucket } from '../../src/algorithms/leaky-bucket/leaky-bucket.ts'
import { decodeSlidingLog } from '../../src/algorithms/sliding-log/sliding-log.ts'
import { decodeSlidingWindow } from '../../src/algorithms/sliding-window/sliding-window.ts'
import { decodeTokenBucket } from '../../src/algorithms/token-bucket/token-bucket.ts'

const DECODERS: Readonly<Record<string, typeof decodeGcra>> = {
  gcra: decodeGcra,
  tokenBucket: decodeTokenBucket,
  leakyBucket: decodeLeakyBucket,
  fixedWindow: decodeFixedWindow,
  slidingWindow: decodeSlidingWindow,
  slidingLog: decodeSlidingLog,
}

/** Reads what an algorithm encoded: writes its words and returns the numbers it was written under. */
export function decode({ type }: Pick<Algorithm, 'type'>, encoded: EncodedState, s: Float64Array, i: number): string {
  return (DECODERS[type] as typeof decodeGcra)(encoded, s, i)
}

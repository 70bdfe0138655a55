import type { Algorithm, EncodedState } from '../../src/algorithms/algorithm.ts'
import { type Decoder, decoders } from '../../src/algorithms/decoders.ts'

/** Reads what an algorithm encoded: writes its words and returns the numbers it was written under. */
export function decode({ type }: Pick<Algorithm, 'type'>, encoded: EncodedState, s: Float64Array, i: number): string {
  return (decoders.get(type) as Decoder).decode(encoded, s, i)
}

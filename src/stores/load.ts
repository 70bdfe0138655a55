/** For stores that keep states as bytes (codec.ts): a state, as `decide` wants it. */
import type { StateRecord } from '../algorithms/codec.ts'
import type { Part } from './step.ts'

/** Points a part at a copy of its state, with room for one more charge. Undefined: the store holds nothing for it. */
export function load(part: Part, record: StateRecord | undefined): void {
  const { algorithm, words, freshWords } = part.rule
  const own = record?.rule ?? part.rule
  const held = record?.words
  const needed = algorithm.neededWords?.(held ?? new Float64Array(freshWords), 0) ?? words
  const s = new Float64Array(Math.max(needed, own.freshWords, held?.length ?? 0))
  if (held !== undefined) s.set(held)
  part.s = s
  part.i = 0
  part.own = own
  part.isHeld = record !== undefined
}

/** For stores that keep states as bytes (codec.ts): a state, as `decide` wants it. */
import type { StateRecord } from '../algorithms/codec.ts'
import type { Part } from './step.ts'

/** Points a part at a copy of its state, with room for one more charge. Undefined: the store holds nothing for it. */
export function load(part: Part, record: StateRecord | undefined): void {
  const { algorithm, words } = part.rule
  const held = record?.words ?? new Float64Array(part.rule.freshWords)
  part.own = record?.rule ?? part.rule
  part.isHeld = record !== undefined
  part.i = 0
  part.s = new Float64Array(Math.max(held.length, part.own.freshWords))
  part.s.set(held)
  const needed = Math.max(part.s.length, algorithm.neededWords?.(part.s, 0) ?? words)
  if (needed > part.s.length) part.s = widened(part.s, needed)
}

function widened(words: Float64Array, length: number): Float64Array {
  const wide = new Float64Array(length)
  wide.set(words)
  return wide
}

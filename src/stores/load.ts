/** For stores that keep states as bytes (codec.ts): a state, as `decide` wants it. */
import type { Rule } from '../algorithms/algorithm.ts'
import type { StateRecord } from '../algorithms/codec.ts'
import { SluiceError, shown } from '../errors.ts'
import type { Part } from './step.ts'

/**
 * Points a part at a copy of its state, with room for one more charge. Undefined: the store holds
 * nothing for it. Throws where the state is of another algorithm, because one cannot read what
 * another counted, and where no state has such words.
 */
export function load(part: Part, record: StateRecord | undefined): void {
  const { algorithm, words, freshWords } = part.rule
  if (record !== undefined && record.rule.algorithm.type !== algorithm.type) throw ofAnother(part, record.rule.algorithm.type)
  if (record?.rule.algorithm.isState?.(record.rule, record.words, 0) === false) throw outOfRange(part, record.rule)
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

function outOfRange({ limit, key }: Part, { algorithm, numbers }: Rule): SluiceError {
  const what = `limit '${limit}' of key ${shown(key)} holds words that no ${algorithm.type} of ${numbers} has`
  return new SluiceError('STORE', `${what} (reset the key)`, { isolated: true })
}

function ofAnother({ limit, key, rule }: Part, held: string): SluiceError {
  const what = `limit '${limit}' of key ${shown(key)} is a ${held} in this store, it cannot be a ${rule.algorithm.type} too`
  return new SluiceError('STORE', `${what} (reset the key, or give the limit another name)`, { isolated: true })
}

/** States as numbers by name, for people. */
import type { StateFields } from '../algorithms/algorithm.ts'
import { readState } from '../algorithms/codec.ts'
import { SluiceError, shown } from '../errors.ts'

export interface Inspected {
  /** Where it stands: a key of Redis, or the id of a row. */
  readonly key: string
  /** The name of the limit, if it has one, as `policy` of a decision. */
  readonly policy?: string
  /** The algorithm. */
  readonly type: string
  /**
   * What an idle key admits at once, and how long a full charge is felt, under the numbers that the
   * state is written under.
   */
  readonly limit: number
  readonly windowMs: number
  /** Whole permits of that limit that are left now. */
  readonly remaining: number
  readonly resetAfterMs: number
  /** How long until the store forgets the key; -1 if it never does. */
  readonly ttlMs: number
  /** The numbers that the state is written under. */
  readonly numbers: string
  /** The numbers of the state, by name. */
  readonly state: StateFields
}

/** The states in some bytes, at a time: one after the other. */
export function statesIn(key: string, bytes: Uint8Array, nowUs: number, ttlMs: number): Inspected[] {
  const states: Inspected[] = []
  try {
    for (let at = 0; at < bytes.length || at === 0; ) {
      const { name, rule, words, end } = readState(bytes, at)
      const { algorithm, capacity } = rule
      states.push({
        key,
        ...(name === 'default' ? {} : { policy: name }),
        type: algorithm.type,
        limit: capacity,
        windowMs: rule.windowUs / 1000,
        remaining: Math.max(0, capacity - algorithm.used(rule, words, 0, nowUs)),
        resetAfterMs: algorithm.resetUs(rule, words, 0, nowUs) / 1000,
        ttlMs,
        numbers: rule.numbers,
        state: algorithm.fields(rule, words, 0),
      })
      at = end
    }
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    throw new SluiceError('STORE', `the key ${shown(key)} holds what this version of Sluice did not write: ${error.message}`)
  }
  return states
}

/**
 * The short form for one limit, where the key is held and was written under the same numbers: no step, no cells, no objects. Functions that close over
 * what they need, as in chains.ts.
 */
import type { Rule } from '../../algorithms/algorithm.ts'
import { emptyVerdict, takeOne } from '../../algorithms/decide.ts'
import type { Lane } from '../store.ts'
import { ABSENT, type Address, type Chains } from './chains.ts'

/** The longest key that is worth looking for. Longer ones are refused by the limiter. */
const LONGEST_KEY = 1024

/** `onLost` is told how often in a row another thread was faster. */
export function sharedLane(chains: Chains, address: Address, rule: Rule, onLost: (lost: number) => void): Lane {
  const { find, differs, replace, idleAtUs } = chains
  const { algorithm, capacity } = rule
  const { scope } = address
  const figures = Float64Array.from(rule.figures)
  const first = figures.length
  const words = new Float64Array(first + algorithm.words(rule))
  const verdict = emptyVerdict()
  /** The verdict of `take` is wanted. */
  let tells = false

  function attempts(key: unknown, cost: number, nowUs: number): boolean | undefined {
    if (typeof key !== 'string' || key.length > LONGEST_KEY || cost < 1 || cost > capacity) return undefined
    for (let lost = 0; ; lost++) {
      const place = find(key, address, words)
      if (place >= 0) {
        if (!isPresent()) return undefined
        const taken = decide(cost, nowUs)
        // A refusal that changed the state repaired its clock, and that is written.
        if (!taken && !differs(words)) return false
        idleAtUs[0] = nowUs + algorithm.resetUs(rule, words, first, nowUs)
        if (replace(place, scope, words)) return taken
      } else if (place === ABSENT) return undefined
      onLost(lost)
    }
  }

  /** Written under the same numbers. Anything else takes the long way once. */
  function isPresent(): boolean {
    for (let k = 0; k < first; k++) if (words[k] !== figures[k]) return false
    return true
  }

  function decide(cost: number, nowUs: number): boolean {
    if (!tells) return algorithm.tryTake(rule, words, first, nowUs, cost)
    takeOne(rule, words, first, nowUs, cost, verdict)
    return verdict.outcome === 'allowed'
  }

  return {
    tryTake(key, cost, nowUs) {
      tells = false
      return attempts(key, cost, nowUs)
    },
    take(key, cost, nowUs) {
      tells = true
      return attempts(key, cost, nowUs) === undefined ? undefined : verdict
    },
  }
}

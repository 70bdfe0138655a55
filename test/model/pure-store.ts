/**
 * The least that a store can be: a map of states, and `decide`. The oracle is held against it, and
 * every other store too.
 */
import type { Rule } from '../../src/algorithms/algorithm.ts'
import { type Cell, decide, emptyVerdict, type Verdict } from '../../src/algorithms/decide.ts'
import type { Step } from '../../src/stores/store.ts'

/** The words of a state, and the rule that they are written under. */
export interface HeldState {
  readonly own: Rule
  readonly words: Float64Array
}

/** Answers a step by the time that stands in it. The verdicts are the caller's to keep. */
export interface Decider {
  apply(step: Step): readonly Verdict[]
}

export class PureStore implements Decider {
  readonly #states = new Map<string, HeldState>()

  apply({ op, parts, scope, nowUs, aheadUs, ofUs }: Step): readonly Verdict[] {
    const ids = parts.map(({ limit, key }) => idOf(scope.name, limit, key))
    if (op === 'forget') {
      for (const id of ids) this.#states.delete(id)
      return []
    }
    const cells = parts.map(({ rule, cost, ticket }, k) => cellOf(rule, cost, ticket, this.#states.get(ids[k] as string)))
    decide(op, cells, nowUs as number, aheadUs, ofUs, true)
    cells.forEach(({ changed, own, s }, k) => {
      if (changed) this.#states.set(ids[k] as string, { own, words: within(s, own.words) })
    })
    return cells.map(({ verdict }) => verdict)
  }

  held(limiter: string, limit: string, key: string): HeldState | undefined {
    return this.#states.get(idOf(limiter, limit, key))
  }
}

function idOf(limiter: string, limit: string, key: string): string {
  return `${limiter} ${limit} ${key}`
}

/**
 * What is asked and the state it is decided on, with room for a charge. The words stay where they
 * are if they have that already.
 */
export function cellOf(rule: Rule, cost: number, ticket: Cell['ticket'], held: HeldState | undefined): Cell {
  const s = roomy(held?.words, rule.words)
  const own = held?.own ?? rule
  return { rule, cost, ticket, s, i: 0, own, isHeld: held !== undefined, changed: false, verdict: emptyVerdict() }
}

/** A state takes no more doubles than its rule says. */
function within(words: Float64Array, most: number): Float64Array {
  return words.length <= most ? words : words.slice(0, most)
}

function roomy(words: Float64Array | undefined, size: number): Float64Array {
  if (words !== undefined && words.length >= size) return words
  const larger = new Float64Array(size)
  if (words !== undefined) larger.set(words)
  return larger
}

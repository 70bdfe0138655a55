/** A copy of a key's states to try something on, so that the same moment can be lived through more than once. */
import type { EncodedState, Rule } from '../../src/algorithms/algorithm.ts'
import { type Cell, decide, emptyVerdict, type Op, type Verdict } from '../../src/algorithms/decide.ts'

/** A limit, and the words of the state it starts from: undefined for a key that is not held. They are copied. */
export interface ForkedLimit {
  readonly rule: Rule
  readonly state: Float64Array | undefined
}

export class Fork {
  readonly verdicts: readonly Verdict[]
  readonly #cells: readonly Cell[]

  constructor(limits: readonly ForkedLimit[]) {
    this.verdicts = limits.map(() => emptyVerdict())
    this.#cells = limits.map(({ rule, state }) => ({
      rule,
      cost: 0,
      ticket: undefined,
      s: state === undefined ? new Float64Array(rule.algorithm.words(rule)) : Float64Array.from(state),
      i: 0,
      written: state === undefined ? undefined : rule,
      changed: false,
    }))
  }

  /** Decides like any store: tells whether it was granted, leaves the answers in `verdicts`. */
  step(op: Op, nowUs: number, costs: readonly number[], aheadUs = -1, ofUs = -1): boolean {
    this.#cells.forEach((cell, k) => {
      cell.cost = costs[k] as number
    })
    const granted = decide(op, this.#cells, nowUs, aheadUs, ofUs, this.verdicts)
    for (const cell of this.#cells) if (cell.changed) cell.written = cell.rule
    return granted
  }

  /** The states as text; undefined for a key that is still not held. */
  texts(): (EncodedState | undefined)[] {
    return this.#cells.map(({ rule, s, i, written }) => (written === undefined ? undefined : rule.algorithm.encode(rule, s, i)))
  }

  copy(): Fork {
    return new Fork(this.#cells.map(({ rule, s, written }) => ({ rule, state: written === undefined ? undefined : s })))
  }
}

/**
 * A copy of a key's states to try something on, so that the same moment can be lived through more
 * than once.
 */
import type { Rule } from '../../src/algorithms/algorithm.ts'
import { type Cell, decide, type Op, type Verdict } from '../../src/algorithms/decide.ts'
import { cellOf, type HeldState } from './pure-store.ts'

/**
 * The caller's rule, and the state it starts from: undefined for a key that is not held. The words
 * are copied.
 */
export interface ForkedLimit {
  readonly rule: Rule
  readonly held: HeldState | undefined
}

export class Fork {
  readonly verdicts: readonly Verdict[]
  readonly #cells: readonly Cell[]

  constructor(limits: readonly ForkedLimit[]) {
    this.#cells = limits.map(({ rule, held }) => {
      const copy = held && { own: held.own, words: held.words.slice() }
      return cellOf(rule, 0, undefined, copy)
    })
    this.verdicts = this.#cells.map(({ verdict }) => verdict)
  }

  /** Decides like any store: tells whether it was granted, leaves the answers in `verdicts`. */
  step(op: Op, nowUs: number, costs: readonly number[], aheadUs = -1): boolean {
    this.#cells.forEach((cell, k) => {
      cell.cost = costs[k] as number
    })
    const granted = decide(op, this.#cells, nowUs, aheadUs, -1, true)
    for (const cell of this.#cells) if (cell.changed) cell.isHeld = true
    return granted
  }

  /**
   * The states as text, with the numbers they are written under; undefined for a key that is still
   * not held.
   */
  texts(): (string | undefined)[] {
    return this.#cells.map(({ own, s, i, isHeld }) => (isHeld ? textOf({ own, words: s.subarray(i) }) : undefined))
  }

  /** The state of the first limit. */
  get held(): HeldState | undefined {
    const [{ own, s, isHeld }] = this.#cells as [Cell]
    return isHeld ? { own, words: s } : undefined
  }

  copy(): Fork {
    return new Fork(this.#cells.map(({ rule, own, s, isHeld }) => ({ rule, held: isHeld ? { own, words: s } : undefined })))
  }
}

/** A state by its numbers and by name. */
export function textOf({ own, words }: HeldState): string {
  return `${own.numbers}: ${JSON.stringify(own.algorithm.fields(own, words, 0))}`
}

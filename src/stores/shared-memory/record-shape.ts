import type { Rule } from '../../algorithms/algorithm.ts'
import { SluiceError } from '../../errors.ts'
import type { Scope } from '../store.ts'

/** Where each limit of a limiter lies in a record, and a private copy of one record to work on. */
export class RecordShape {
  /** The copy as doubles, and the same memory as the 32-bit halves that go through `Atomics`. */
  readonly words: Float64Array
  readonly halves: Int32Array
  readonly #firstOf = new Map<string, number>()

  constructor(scope: Scope, recordWords: number) {
    let size = 0
    for (const { name, rule } of scope.limits) {
      this.#firstOf.set(name, size)
      size += rule.figures.length + rule.algorithm.words(rule)
    }
    if (size > recordWords) {
      throw new SluiceError('CONFIG', `limiter '${scope.name}' needs recordWords ${size}, the shared memory was made with ${recordWords}`)
    }
    this.words = new Float64Array(size)
    this.halves = new Int32Array(this.words.buffer)
  }

  clear(): void {
    this.words.fill(0)
  }

  /** Where the state of a limit begins in `words`: behind its figures. */
  wordsAt(limit: string, rule: Rule): number {
    return this.#first(limit) + rule.figures.length
  }

  /** The rule that the state of a limit was written under, or undefined if there is no state. */
  writtenRule(limit: string, rule: Rule): Rule | undefined {
    const first = this.#first(limit)
    if (this.words[first] === 0) return undefined
    const figures = this.words.subarray(first, first + rule.figures.length)
    if (rule.figures.every((figure, k) => figure === figures[k])) return rule
    return rule.algorithm.ruleOf([...figures], rule.maxAheadUs)
  }

  /** Notes the rule that the state of a limit is now written under. */
  sign(limit: string, rule: Rule): void {
    this.words.set(rule.figures, this.#first(limit))
  }

  #first(limit: string): number {
    return this.#firstOf.get(limit) as number
  }
}

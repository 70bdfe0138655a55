/**
 * The rules that the rows of a table were written under, by number: a row holds a number instead of
 * a rule. A rule is kept while rows refer to it, and the one that was asked for last, so a limiter
 * whose numbers change all the time keeps no more rules than it has keys. A number is never used
 * again for another rule.
 */
import type { Rule } from '../../algorithms/algorithm.ts'

interface HeldRule {
  /** Of those with these numbers the one that came last. */
  rule: Rule
  readonly number: number
  /** How many rows refer to it. */
  rows: number
}

export class Rules {
  #numbers = 0
  #last: HeldRule
  /** All of them, by number and by name; undefined as long as there is only the last. */
  #all: Map<number | string, HeldRule> | undefined = undefined

  constructor(rule: Rule) {
    this.#last = { rule, number: this.#numbers, rows: 0 }
  }

  /** The rule that a row refers to. */
  of(number: number): Rule {
    const last = this.#last
    return number === last.number ? last.rule : this.#held(number).rule
  }

  /** A row refers to it from now on: answers with its number. */
  add(rule: Rule): number {
    if (rule.numbers !== this.#last.rule.numbers) this.#turnTo(rule)
    this.#last.rule = rule
    this.#last.rows += 1
    return this.#last.number
  }

  /** A row no longer refers to it. */
  drop(number: number): void {
    const held = this.#held(number)
    held.rows -= 1
    if (held.rows === 0) this.#dropIfUnused(held)
  }

  #held(number: number): HeldRule {
    return number === this.#last.number ? this.#last : (this.#all?.get(number) as HeldRule)
  }

  #turnTo(rule: Rule): void {
    const before = this.#last
    this.#last = this.#other(rule)
    this.#dropIfUnused(before)
  }

  #other(rule: Rule): HeldRule {
    this.#all ??= new Map([
      [this.#last.number, this.#last],
      [this.#last.rule.numbers, this.#last],
    ] as [number | string, HeldRule][])
    const known = this.#all.get(rule.numbers)
    if (known !== undefined) return known
    this.#numbers += 1
    const held = { rule, number: this.#numbers, rows: 0 }
    this.#all.set(held.number, held)
    this.#all.set(rule.numbers, held)
    return held
  }

  #dropIfUnused(held: HeldRule): void {
    if (held.rows > 0 || held === this.#last) return
    this.#all?.delete(held.number)
    this.#all?.delete(held.rule.numbers)
  }
}

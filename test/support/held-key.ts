/**
 * One key, straight on the functions of an algorithm: repair, ask, charge. Times in microseconds.
 */

import { type Limit, RULE, type Rule, type StateFields } from '../../src/algorithms/algorithm.ts'

/** Room for the largest state that these tests make. */
const ROOM = 256

export class HeldKey {
  readonly s: Float64Array
  /** The rule of the caller. */
  #rule: Rule
  /** The rule that the state is written under. */
  #own: Rule

  constructor(limit: Limit | Rule) {
    this.#rule = ruleFrom(limit)
    this.#own = this.#rule
    this.s = new Float64Array(this.#rule.words <= 4 ? this.#rule.words : ROOM)
  }

  /** The calls from now on are made under this limit. Nothing is written by that. */
  under(limit: Limit | Rule): this {
    this.#rule = ruleFrom(limit)
    return this
  }

  /** Takes if it fits; otherwise tells how long to wait. */
  take(nowUs: number, cost = 1): number {
    this.repair(nowUs)
    const waitUs = this.waitUs(nowUs, cost)
    if (waitUs === 0) this.#charge(nowUs, cost)
    return waitUs
  }

  give(nowUs: number, cost: number, ofUs = -1): boolean {
    return this.#own.algorithm.giveBack(this.#own, this.s, 0, nowUs, cost, ofUs, undefined) >= 0
  }

  /** Takes even ahead of time. The ticket is the state as this leaves it. */
  reserve(nowUs: number, cost = 1): Float64Array {
    this.#charge(nowUs, cost)
    return this.s.slice()
  }

  /** Cancels a reservation that was made under the caller's limit. */
  cancel(nowUs: number, cost: number, ticket = this.s): boolean {
    return this.#own.algorithm.giveBack(this.#own, this.s, 0, nowUs, cost, -1, { rule: this.#rule, words: ticket }) >= 0
  }

  /** Tells whether it wrote. */
  repair(nowUs: number): boolean {
    return this.#own.algorithm.repair(this.#own, this.s, 0, nowUs)
  }

  waitUs(nowUs: number, cost = 1): number {
    return this.#own.algorithm.untilUs(this.#own, this.s, 0, nowUs, this.#rule.capacity - cost)
  }

  /** How long until a caller that is charged now may act. */
  dueUs(nowUs: number, cost = 1): number | undefined {
    return this.#own.algorithm.dueUs?.(this.#own, this.#rule, this.s, 0, nowUs, cost)
  }

  used(nowUs: number): number {
    return this.#own.algorithm.used(this.#own, this.s, 0, nowUs)
  }

  remaining(nowUs: number): number {
    return Math.max(0, this.#rule.capacity - this.used(nowUs))
  }

  resetUs(nowUs: number): number {
    return this.#own.algorithm.resetUs(this.#own, this.s, 0, nowUs)
  }

  /** The state by name. */
  get state(): StateFields {
    return this.#own.algorithm.fields(this.#own, this.s, 0)
  }

  /** The numbers that the state is written under. */
  get numbers(): string {
    return this.#own.numbers
  }

  #charge(nowUs: number, cost: number): void {
    this.#rule.algorithm.charge(this.#own, this.#rule, this.s, 0, nowUs, cost)
    this.#own = this.#rule
  }
}

function ruleFrom(limit: Limit | Rule): Rule {
  return RULE in limit ? limit[RULE] : limit
}

/**
 * One key, straight on the functions of an algorithm: repair, ask, charge. Times in microseconds.
 */

import { type Charged, type Limit, RULE, type Rule, type StateFields } from '../../src/algorithms/algorithm.ts'

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

  /** As of now, or what was charged at `ofUs`. */
  give(nowUs: number, cost: number, ofUs = -1): boolean {
    return this.#own.algorithm.giveBack(this.#own, this.s, 0, nowUs, cost, ofUs, undefined) >= 0
  }

  /** Charges, whether it fits or not. Tells what a decision knows of the charge. */
  book(nowUs: number, cost = 1): Charged {
    this.repair(nowUs)
    const delayUs = cost > this.#rule.capacity ? 0 : this.dueUs(nowUs, cost)
    const enteredUs = nowUs + this.#charge(nowUs, cost)
    const dueUs = delayUs > 0 ? nowUs + delayUs : enteredUs
    return { rule: this.#rule, words: Float64Array.of(nowUs + this.resetUs(nowUs), enteredUs, dueUs, 0) }
  }

  /** Gives so much back of a charge of a level. Answers how many whole permits came back, or -1. */
  settle(nowUs: number, cost: number, charge: Charged): number {
    this.repair(nowUs)
    return this.#own.algorithm.giveBack(this.#own, this.s, 0, nowUs, cost, -1, charge)
  }

  /** Tells whether it wrote. */
  repair(nowUs: number): boolean {
    return this.#own.algorithm.repair(this.#own, this.s, 0, nowUs)
  }

  waitUs(nowUs: number, cost = 1): number {
    return this.#own.algorithm.untilUs(this.#own, this.s, 0, nowUs, this.#rule.capacity - cost)
  }

  /** How long until a caller that is charged now may act, at the pace of the state. */
  dueUs(nowUs: number, cost = 1): number {
    const room = this.#rule.algorithm.spaced ? 0 : this.#rule.capacity - cost
    return this.#own.algorithm.untilUs(this.#own, this.s, 0, nowUs, room)
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

  /** Answers how much later than now it was entered. */
  #charge(nowUs: number, cost: number): number {
    const own = this.#own
    this.#own = this.#rule
    return this.#rule.algorithm.charge(own, this.#rule, this.s, 0, nowUs, cost)
  }
}

function ruleFrom(limit: Limit | Rule): Rule {
  return RULE in limit ? limit[RULE] : limit
}

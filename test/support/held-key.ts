/** One key and the walk that every decision takes (settle, ask, charge), straight on the functions of an algorithm. Times in microseconds. */

import { COMPILE, type EncodedState, type Limit, type Rule } from '../../src/algorithms/algorithm.ts'
import { decode } from './decode.ts'

/** Room for the largest state that these tests make. */
const ROOM = 256

export class HeldKey {
  readonly s: Float64Array
  #rule: Rule

  constructor(limit: Limit | Rule, nowUs = 0, maxAheadUs = 0) {
    this.#rule = ruleFrom(limit, maxAheadUs)
    this.s = new Float64Array(roomFor(this.#rule))
    this.#rule.algorithm.fresh(this.#rule, this.s, 0, nowUs)
  }

  /** Takes if it fits; otherwise tells how long to wait. */
  take(nowUs: number, cost = 1): number {
    this.settle(nowUs)
    const waitUs = this.waitUs(nowUs, cost)
    if (waitUs === 0) this.#rule.algorithm.take(this.#rule, this.s, 0, nowUs, cost)
    return waitUs
  }

  give(nowUs: number, cost: number, ofUs = -1): boolean {
    return this.#rule.algorithm.give(this.#rule, this.s, 0, nowUs, cost, ofUs)
  }

  /** Takes even ahead of time. The ticket is the state as this leaves it. */
  reserve(nowUs: number, cost = 1): Float64Array {
    this.#rule.algorithm.take(this.#rule, this.s, 0, nowUs, cost)
    return this.s.slice()
  }

  cancel(nowUs: number, cost: number, ticket = this.s): boolean {
    return this.#rule.algorithm.cancel(this.#rule, this.s, 0, nowUs, cost, ticket)
  }

  /** The first contact under another limit; without one, under the same. Tells whether it wrote. */
  settle(nowUs: number, limit: Limit | Rule = this.#rule): boolean {
    const rule = ruleFrom(limit, this.#rule.maxAheadUs)
    const wrote = rule.algorithm.settle(rule, this.#rule, this.s, 0, nowUs)
    this.#rule = rule
    return wrote
  }

  waitUs(nowUs: number, cost = 1): number {
    return this.#rule.algorithm.waitUs(this.#rule, this.s, 0, nowUs, cost)
  }

  delayUs(nowUs: number): number | undefined {
    return this.#rule.algorithm.delayUs?.(this.#rule, this.s, 0, nowUs)
  }

  remaining(nowUs: number): number {
    return this.#rule.algorithm.remaining(this.#rule, this.s, 0, nowUs)
  }

  resetUs(nowUs: number): number {
    return this.#rule.algorithm.resetUs(this.#rule, this.s, 0, nowUs)
  }

  /** The state as it would stand in Redis. */
  get state(): EncodedState {
    return this.#rule.algorithm.encode(this.#rule, this.s, 0)
  }
}

function ruleFrom(limit: Limit | Rule, maxAheadUs: number): Rule {
  return COMPILE in limit ? limit[COMPILE](maxAheadUs) : limit
}

/** States whose size depends on the numbers get room for other numbers too. */
function roomFor(rule: Rule): number {
  const words = rule.algorithm.words(rule)
  return words <= 3 ? words : ROOM
}

/** A state read from what stands in Redis and written again, from a place in the middle of others. */
export function readBack(limit: Limit, state: EncodedState): EncodedState {
  const { algorithm } = limit[COMPILE](0)
  const s = new Float64Array(ROOM).fill(-7)
  const numbers = decode(algorithm, state, s, 5)
  return algorithm.encode(algorithm.ruleOf(numbers.split(' ').map(Number), 0), s, 5)
}

/**
 * A limiter with one limit of calls in flight, as little as `govern` needs of it, for simulations
 * of many windows. permits.test.ts has a real one.
 */
import { type Algorithm, type Limit, RULE, type Rule } from '../../src/algorithms/algorithm.ts'
import type { GovernedLimiter } from '../../src/govern/index.ts'
import type { Release } from '../../src/govern/windows.ts'

/**
 * As much of an algorithm as `scope` and `update` show: figures that begin with the highest number
 * in flight.
 */
const places = {
  type: 'places',
  untilReleased: true,
  ruleOf: (figures: readonly number[]) => ({ algorithm: places, figures, capacity: figures[0] as number }) as Rule,
} as unknown as Algorithm

export class HandMadeLimiter implements GovernedLimiter {
  readonly name = 'hand-made'
  readonly #listeners = new Set<{ onRelease(event: Release): void }>()
  #rules: Readonly<Record<string, Rule>>
  inflight = 0
  updates = 0

  constructor(max: number, others: Readonly<Record<string, Rule>> = {}) {
    this.#rules = { ...others, inflight: places.ruleOf([max, 30_000_000]) }
  }

  get max(): number {
    return (this.#rules.inflight as Rule).capacity
  }

  scope() {
    return { limits: Object.entries(this.#rules).map(([name, rule]) => ({ name, rule })) }
  }

  update(limits: Readonly<Record<string, Limit>>): void {
    this.updates += 1
    this.#rules = Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, limit[RULE]]))
  }

  listen(listener: { onRelease(event: Release): void }): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  tryAcquire(): boolean {
    if (this.inflight >= this.max) return false
    this.inflight += 1
    return true
  }

  release(heldMs: number, outcome: Release['outcome']): void {
    const { inflight } = this
    this.inflight -= 1
    for (const { onRelease } of this.#listeners) onRelease({ heldMs, outcome, inflight })
  }
}

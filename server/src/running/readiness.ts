/**
 * Whether callers should be sent here. A service comes in when all of its limiters can decide, and
 * goes out when none can: a rollout with a wrong address stops at its first copy, and an outage of
 * the store does not take out copies whose failure policy was made for it.
 */
import type { FailurePolicy } from '../sluice.ts'
import type { Limiters } from './limiters.ts'
import type { StoreWatch } from './store-watch.ts'

export class Readiness {
  readonly #limiters: Limiters
  readonly #store: StoreWatch
  #isIn = false
  #isStopping = false

  constructor(limiters: Limiters, store: StoreWatch) {
    this.#limiters = limiters
    this.#store = store
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  stop(): void {
    this.#isStopping = true
  }

  get isReady(): boolean {
    return !this.#isStopping && this.#canDecide()
  }

  /** When the store was asked: it comes in then, whether a probe asks or not. */
  storeWasAsked(): void {
    this.#isIn ||= this.#canDecide()
  }

  #canDecide(): boolean {
    return this.#store.state.state === 'up' || this.#canDecideAlone()
  }

  #canDecideAlone(): boolean {
    const policies = this.#limiters.failurePolicies()
    const isAlone = (policy: FailurePolicy) => policy !== 'throw'
    return this.#isIn && policies.length > 0 ? policies.some(isAlone) : policies.every(isAlone)
  }
}

/**
 * Whether callers should be sent here. A service comes in when all of its limiters can decide, and goes out when none can: a rollout with a wrong
 * address stops at its first copy, and an outage of the store does not take out copies whose failure policy was made for it.
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

  /** Asked for by probes, and whenever something changes. */
  get isReady(): boolean {
    if (this.#isStopping) return false
    const isReady = this.#store.state.state === 'up' || this.#canDecideAlone()
    this.#isIn ||= isReady
    return isReady
  }

  #canDecideAlone(): boolean {
    const policies = this.#limiters.failurePolicies()
    const isAlone = (policy: FailurePolicy) => policy !== 'throw'
    return this.#isIn && policies.length > 0 ? policies.some(isAlone) : policies.every(isAlone)
  }
}

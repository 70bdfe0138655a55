/** A synchronous store as the traces see it: one that is given the time with every step. */
import type { Verdict } from '../../src/algorithms/decide.ts'
import type { OpenStates, Scope, Step, SyncStore } from '../../src/stores/store.ts'
import type { Decider } from './pure-store.ts'

export class Opened implements Decider {
  readonly #store: SyncStore
  readonly #states = new Map<Scope, OpenStates>()
  #nowUs = 0

  constructor(store: SyncStore) {
    this.#store = store
  }

  apply(step: Step): readonly Verdict[] {
    const states = this.#statesFor(step)
    states.apply(step, true)
    return step.op === 'forget' ? [] : step.parts.map((_, k) => ({ ...(states.verdicts[k] as Verdict) }))
  }

  /** Only yes or no. */
  isGranted(step: Step): boolean {
    return this.#statesFor(step).apply(step, false)
  }

  close(): void {
    for (const states of this.#states.values()) states.close()
  }

  #statesFor({ scope, nowUs }: Step): OpenStates {
    this.#nowUs = nowUs as number
    const known = this.#states.get(scope)
    if (known !== undefined) return known
    const states = this.#store.open(scope, () => this.#nowUs)
    this.#states.set(scope, states)
    return states
  }
}

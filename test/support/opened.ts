/**
 * A synchronous store that is given the time with every step: for traces, and behind stores that
 * tests make of it.
 */
import type { Verdict } from '../../src/algorithms/decide.ts'
import type { OpenStates, Scope, Step, SyncStore } from '../../src/stores/store.ts'

export class Opened<S extends SyncStore = SyncStore> {
  readonly store: S
  readonly #states = new Map<Scope, OpenStates>()
  #nowUs = 0

  constructor(store: S) {
    this.store = store
  }

  /** Copies of the verdicts: those of the parts are overwritten by the next step. */
  apply(step: Step, nowUs: number | undefined = step.nowUs): readonly Verdict[] {
    this.#statesFor(step, nowUs).apply(step, true)
    return step.op === 'forget' ? [] : step.parts.map(({ verdict }) => ({ ...verdict }))
  }

  /** Only yes or no. */
  isGranted(step: Step): boolean {
    return this.#statesFor(step, step.nowUs).apply(step, false)
  }

  close(): void {
    for (const states of this.#states.values()) states.close()
  }

  #statesFor({ scope }: Step, nowUs: number | undefined): OpenStates {
    this.#nowUs = nowUs as number
    const known = this.#states.get(scope)
    if (known !== undefined) return known
    const states = this.store.open(scope, () => this.#nowUs)
    this.#states.set(scope, states)
    return states
  }
}

/**
 * The numbers that a limiter decides by: those of its limits, and those of its plans, which have
 * the same limits by other numbers.
 */
import type { Verdict } from '../algorithms/decide.ts'
import { invalid, MAX_PERMITS } from '../algorithms/rate.ts'
import type { OnFull } from '../stores/full.ts'
import { hasLengthOfKey, isKey } from '../stores/key.ts'
import type { GuardedStore } from '../stores/remote/guarded-store.ts'
import { Part, Step } from '../stores/step.ts'
import type { OpenStates, SyncStore } from '../stores/store.ts'
import { type Cost, checkNames, costFor, isCost, type Key, keyFor } from './input.ts'
import { compiled, inPlaceOf, isRecord, type Limits, type NamedRule, type NamedScope } from './options.ts'
import type { Settler } from './settling.ts'

/** One set of numbers. */
export interface Plan<Name extends string> {
  readonly scope: NamedScope<Name>
  /** Whether one of the limits lets callers act only some time after they were charged. */
  readonly spaced: boolean
  /** The states of a synchronous store for it. */
  readonly states: OpenStates | undefined
  /**
   * Whether the store may be asked for a key: one that checks the characters of new keys need not
   * have them read in every call.
   */
  readonly isKey: (key: unknown) => key is string
  /**
   * The steps that are filled in for each call to a synchronous store, so that nothing has to be
   * made. They have the same parts.
   */
  readonly take: Step
  readonly charge: Step
  /** The part of a plan of one limit. */
  readonly only: Part | undefined
  /** The verdicts of the parts. */
  readonly verdicts: readonly Verdict[]
  /** What the decisions made by it are settled through. */
  readonly settler: Settler
}

/** Limits by the name of the plan. */
type PlanLimits = Readonly<Record<string, unknown>>

/** Most limiters have no plans. */
const NO_PLANS: ReadonlyMap<string, Plan<never>> = new Map()

/** What the decisions made by a plan are settled through. */
export type SettlerFor<Name extends string> = (limits: readonly NamedRule<Name>[], plan: string | undefined) => Settler

export class Plans<Name extends string> {
  readonly #limiter: string
  readonly #store: SyncStore | GuardedStore
  readonly #nowUs: () => number
  readonly #aheadUs: number
  readonly #settlerFor: SettlerFor<Name>
  readonly #onFull: OnFull
  /** The numbers of the limits themselves. */
  base: Plan<Name>
  #named: ReadonlyMap<string, Plan<Name>>

  /**
   * `limiter`: its name. `nowUs`: what a synchronous store reads the time by. `aheadUs`: how far
   * ahead the limiter books. `onFull`: told when it has no room.
   */
  constructor(
    limits: Limits,
    plans: PlanLimits,
    limiter: string,
    store: SyncStore | GuardedStore,
    nowUs: () => number,
    aheadUs: number,
    settlerFor: SettlerFor<Name>,
    onFull: OnFull,
  ) {
    this.#limiter = limiter
    this.#store = store
    this.#nowUs = nowUs
    this.#aheadUs = aheadUs
    this.#settlerFor = settlerFor
    this.#onFull = onFull
    const base = compiled<Name>(limits, aheadUs)
    const named = this.#compiled(base, plans)
    ;[this.base, this.#named] = this.#opened(base, named)
  }

  get names(): readonly string[] {
    return [...this.#named.keys()]
  }

  /** Whether there are others than the limits themselves. */
  get areSeveral(): boolean {
    return this.#named.size > 0
  }

  /** By the name that a caller gave. */
  of(name: string | undefined): Plan<Name> {
    if (name === undefined) return this.base
    const plan = this.#named.get(name)
    if (plan !== undefined) return plan
    throw invalid('plan', name, `is not one of the limiter's plans (${this.names.join(', ') || 'none'})`)
  }

  /** The same some time later: the plan may have been dropped since, and then the limits count. */
  still(name: string | undefined): Plan<Name> {
    return (name !== undefined && this.#named.get(name)) || this.base
  }

  /**
   * Checks other numbers, which must have the same limits. The function that it returns puts them
   * in place. Without `plans` those stay.
   */
  changed(limits: Limits, plans: PlanLimits | undefined): () => void {
    const next = inPlaceOf(this.base.scope.limits, compiled<Name>(limits, this.#aheadUs), 'update')
    const [base, named] = this.#opened(next, plans === undefined ? [] : this.#compiled(next, plans))
    return () => {
      const before = [this.base, ...(plans === undefined ? [] : this.#named.values())]
      this.base = base
      if (plans !== undefined) this.#named = named
      this.#release(before)
    }
  }

  close(): void {
    this.#release([this.base, ...this.#named.values()])
  }

  #compiled(base: readonly NamedRule<Name>[], plans: PlanLimits): [name: string, limits: readonly NamedRule<Name>[]][] {
    if (!isRecord(plans)) {
      throw invalid('plans', plans, 'must be an object of limits by the name of the plan')
    }
    return Object.entries(plans).map(([name, limits]) => {
      const next = compiled<Name>(limits as Limits, this.#aheadUs, `plan '${name}': `)
      return [name, inPlaceOf(base, next, `plan '${name}'`)]
    })
  }

  /** All of them, or none if the store refuses one. */
  #opened(
    base: readonly NamedRule<Name>[],
    named: readonly (readonly [string, readonly NamedRule<Name>[]])[],
  ): [Plan<Name>, ReadonlyMap<string, Plan<Name>>] {
    const opened: Plan<Name>[] = []
    try {
      opened.push(this.#open(base, undefined))
      for (const [name, limits] of named) opened.push(this.#open(limits, name))
    } catch (error) {
      this.#release(opened)
      throw error
    }
    const plans = named.length === 0 ? NO_PLANS : new Map(named.map(([name], k) => [name, opened[k + 1] as Plan<Name>]))
    return [opened[0] as Plan<Name>, plans]
  }

  #release(plans: readonly Plan<Name>[]): void {
    const store = this.#store
    for (const { scope, states } of plans) store.mode === 'sync' ? states?.close() : store.release(scope)
  }

  /** Shows limits to the store, which may refuse them. */
  #open(limits: readonly NamedRule<Name>[], plan: string | undefined): Plan<Name> {
    const store = this.#store
    const scope = { name: this.#limiter, limits, aheadUs: this.#aheadUs }
    const states = (store.mode === 'sync' ? store.open(scope, this.#nowUs, this.#onFull) : store.open(scope)) as OpenStates | undefined
    const parts = limits.map(({ name, rule }) => new Part(name, rule, '', 0))
    return {
      scope,
      spaced: limits.some(({ rule }) => rule.algorithm.spaced),
      states,
      isKey: states?.checksKeys ? hasLengthOfKey : isKey,
      take: new Step('take', scope, parts, -1, -1, undefined),
      charge: new Step('charge', scope, parts, -1, -1, undefined),
      only: parts.length > 1 ? undefined : parts[0],
      verdicts: parts.map(({ verdict }) => verdict),
      settler: this.#settlerFor(limits, plan),
    }
  }
}

/** The parts of a step, one for each limit. A cost may be `most` at most. */
export function partsOf<Name extends string>({ scope }: Plan<Name>, key: Key<Name>, cost: Cost<Name>, most = MAX_PERMITS): Part[] {
  const { limits } = scope
  checkNames(key, cost, limits)
  return limits.map(({ name, rule }) => new Part(name, rule, keyFor(key, name), costFor(cost, name, most)))
}

/** The same in one of the plan's own steps. Wrong input ends here and reaches no store. */
export function filled<Name extends string>(plan: Plan<Name>, step: Step, key: Key<Name>, cost: Cost<Name>, most: number): Step {
  const { only } = plan
  if (only === undefined || !isCost(cost, most) || !plan.isKey(key)) return filledByName(step, key, cost, most)
  only.key = key
  only.cost = cost
  return step
}

function filledByName<Name extends string>(step: Step, key: Key<Name>, cost: Cost<Name>, most: number): Step {
  checkNames(key, cost, step.scope.limits as NamedRule<Name>[])
  for (const part of step.parts) {
    part.key = keyFor(key, part.limit as Name)
    part.cost = costFor(cost, part.limit as Name, most)
  }
  return step
}

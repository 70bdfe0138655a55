/** The numbers that a limiter decides by: those of its limits, and those of its plans, which have the same limits by other numbers. */
import type { Verdict } from '../algorithms/decide.ts'
import { refused } from '../algorithms/rate.ts'
import { Part, type Step } from '../stores/step.ts'
import type { OpenStates } from '../stores/store.ts'
import { type Cost, checkNames, costFor, type Key, keyFor } from './input.ts'
import { compiled, inPlaceOf, isRecord, type Limits, type NamedRule, type NamedScope } from './options.ts'
import { type Settler, usedOf } from './settling.ts'

/** One set of numbers. */
export interface Plan<Name extends string> {
  readonly scope: NamedScope<Name>
  /** Whether one of the limits lets callers act only some time after they were charged. */
  readonly spaced: boolean
  /** What a synchronous store holds for it. */
  readonly states: OpenStates | undefined
  /** The step that is filled in for each call to a synchronous store, so that nothing has to be made. */
  readonly step: Step
  /** The verdicts of its parts. */
  readonly verdicts: readonly Verdict[]
  /** What the decisions made by it are settled through. */
  readonly settler: Settler
}

/** Limits by the name of the plan. */
type PlanLimits = Readonly<Record<string, unknown>>

/** Most limiters have no plans. */
const NO_PLANS: ReadonlyMap<string, Plan<never>> = new Map()

/** What the limiter does with a plan. */
export interface PlanDesk<Name extends string> {
  /** Shows limits to the store, which may refuse them. `plan`: the name of the plan that they are. */
  open(limits: readonly NamedRule<Name>[], plan: string | undefined): Plan<Name>
  /** Tells the store that nobody decides by this plan any more. */
  release(plan: Plan<Name>): void
}

export class Plans<Name extends string> {
  readonly #desk: PlanDesk<Name>
  /** The numbers of the limits themselves. */
  base: Plan<Name>
  #named: ReadonlyMap<string, Plan<Name>>

  constructor(limits: Limits, plans: PlanLimits, desk: PlanDesk<Name>) {
    this.#desk = desk
    const base = compiled<Name>(limits)
    const named = this.#compiled(base, plans)
    ;[this.base, this.#named] = this.#opened(base, named)
  }

  get names(): Iterable<string> {
    return this.#named.keys()
  }

  /** By the name that a caller gave. */
  of(name: string | undefined): Plan<Name> {
    if (name === undefined) return this.base
    const plan = this.#named.get(name)
    if (plan !== undefined) return plan
    throw refused('plan', name, `is not one of the limiter's plans (${[...this.names].join(', ') || 'none'})`)
  }

  /** The same some time later: the plan may have been dropped since, and then the limits count. */
  still(name: string | undefined): Plan<Name> {
    return (name !== undefined && this.#named.get(name)) || this.base
  }

  /** Parts that were made some time ago, with the numbers of now. */
  renumbered(parts: readonly Part[], name: string | undefined): Part[] {
    const { limits } = this.still(name).scope
    return parts.map((part, k) => part.with({ rule: (limits[k] as NamedRule).rule }))
  }

  /** Checks other numbers, which must have the same limits. What it returns puts them in place. Without `plans` those stay. */
  changed(limits: Limits, plans: PlanLimits | undefined): () => void {
    const next = inPlaceOf(this.base.scope.limits, compiled<Name>(limits), 'update')
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
      throw refused('plans', plans, 'must be an object of limits by the name of the plan')
    }
    return Object.entries(plans).map(([name, limits]) => {
      const next = compiled<Name>(limits as Limits, `plan '${name}': `)
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
      opened.push(this.#desk.open(base, undefined))
      for (const [name, limits] of named) opened.push(this.#desk.open(limits, name))
    } catch (error) {
      this.#release(opened)
      throw error
    }
    const plans = named.length === 0 ? NO_PLANS : new Map(named.map(([name], k) => [name, opened[k + 1] as Plan<Name>]))
    return [opened[0] as Plan<Name>, plans]
  }

  #release(plans: readonly Plan<Name>[]): void {
    for (const plan of plans) this.#desk.release(plan)
  }
}

/** What a step asks of each limit. */
export function partsOf<Name extends string>({ scope }: Plan<Name>, key: Key<Name>, cost: Cost<Name>): Part[] {
  const { limits } = scope
  checkNames(key, cost, limits)
  return limits.map(({ name, rule }) => new Part(name, rule, keyFor(key, name), costFor(cost, name)))
}

/** The same for what was used, which may be above any capacity. */
export function usedPartsOf<Name extends string>({ scope }: Plan<Name>, key: Key<Name>, used: Cost<Name>): Part[] {
  const { limits } = scope
  checkNames(key, used, limits)
  return limits.map(({ name, rule }) => new Part(name, rule, keyFor(key, name), usedOf(used, name, 'cost')))
}

/** The same in the plan's own step. What is refused here reaches no store. */
export function filled<Name extends string>({ step }: Plan<Name>, key: Key<Name>, cost: Cost<Name>): Step {
  const { parts } = step
  if (typeof key !== 'string' || typeof cost !== 'number' || parts.length > 1) return filledByName(step, key, cost)
  fill(parts[0] as Part, key, cost)
  return step
}

function filledByName<Name extends string>(step: Step, key: Key<Name>, cost: Cost<Name>): Step {
  checkNames(key, cost, step.scope.limits as NamedRule<Name>[])
  for (const part of step.parts) fill(part, key, cost)
  return step
}

function fill<Name extends string>(part: Part, key: Key<Name>, cost: Cost<Name>): void {
  part.key = keyFor(key, part.limit as Name)
  part.cost = costFor(cost, part.limit as Name)
}

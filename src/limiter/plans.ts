/** The numbers that a limiter decides by: those of its limits, and those of its plans, which have the same limits by other numbers. */
import { SluiceError, shown } from '../errors.ts'
import type { Lane, Part } from '../stores/store.ts'
import { AskedPart } from './asked.ts'
import { type Cost, costFor, type Key, keyFor } from './input.ts'
import { compiled, inPlaceOf, isRecord, type Limits, type NamedRule, type NamedScope } from './options.ts'

/** One set of numbers, and the store's short way for them if it has one. */
export interface Plan<Name extends string> {
  readonly scope: NamedScope<Name>
  /** Whether one of the limits lets callers act only some time after they were charged. */
  readonly spaced: boolean
  readonly lane: Lane | undefined
}

/** Limits by the name of the plan. */
type PlanLimits = Readonly<Record<string, unknown>>

export class Plans<Name extends string> {
  readonly #maxAheadUs: number
  readonly #open: (limits: readonly NamedRule<Name>[]) => Plan<Name>
  /** The numbers of the limits themselves. */
  base: Plan<Name>
  #named: ReadonlyMap<string, Plan<Name>>

  /** `open` shows limits to the store, which may refuse them. */
  constructor(limits: Limits, plans: PlanLimits, maxAheadUs: number, open: (limits: readonly NamedRule<Name>[]) => Plan<Name>) {
    this.#maxAheadUs = maxAheadUs
    this.#open = open
    this.base = open(compiled(limits, maxAheadUs))
    this.#named = this.#compiled(this.base, plans)
  }

  get names(): Iterable<string> {
    return this.#named.keys()
  }

  /** By the name that a caller gave. */
  of(name: string | undefined): Plan<Name> {
    if (name === undefined) return this.base
    const plan = this.#named.get(name)
    if (plan !== undefined) return plan
    throw new SluiceError('CONFIG', `plan ${shown(name)} is not one of the limiter's plans (${[...this.names].join(', ') || 'none'})`)
  }

  /** The same some time later: the plan may have been dropped since, and then the limits count. */
  still(name: string | undefined): Plan<Name> {
    return (name !== undefined && this.#named.get(name)) || this.base
  }

  /** Parts that were made some time ago, with the numbers of now. */
  renumbered(parts: readonly Part[], name: string | undefined): Part[] {
    const { limits } = this.still(name).scope
    return parts.map((part, k) => ({ ...part, rule: (limits[k] as NamedRule).rule }))
  }

  /** Checks other numbers, which must have the same limits. What it returns puts them in place. Without `plans` those stay. */
  changed(limits: Limits, plans: PlanLimits | undefined): () => void {
    const base = this.#open(inPlaceOf(this.base.scope.limits, compiled<Name>(limits, this.#maxAheadUs), 'update'))
    const named = plans === undefined ? this.#named : this.#compiled(base, plans)
    return () => {
      this.base = base
      this.#named = named
    }
  }

  #compiled(base: Plan<Name>, plans: PlanLimits): Map<string, Plan<Name>> {
    if (!isRecord(plans)) {
      throw new SluiceError('CONFIG', `plans ${shown(plans)} must be an object of limits by the name of the plan`)
    }
    const entries = Object.entries(plans).map(([name, limits]) => {
      const next = compiled<Name>(limits as Limits, this.#maxAheadUs, `plan '${name}': `)
      return [name, this.#open(inPlaceOf(base.scope.limits, next, `plan '${name}'`))] as const
    })
    return new Map(entries)
  }
}

/** What a step asks of each limit. */
export function partsOf<Name extends string>({ scope }: Plan<Name>, key: Key<Name>, cost: Cost<Name>): Part[] {
  const { limits } = scope
  return limits.map(({ name, rule }) => new AskedPart(name, rule, keyFor(key, name, limits), costFor(cost, name, limits)))
}

/** The real cost of a call: known when it is over, written down then. */
import type { Verdict } from '../algorithms/decide.ts'
import { MAX_COST } from '../algorithms/rate.ts'
import { SluiceError, shown } from '../errors.ts'
import type { Charge } from '../stores/settlement.ts'
import { type Cost, checkNames, costFor, instantUs, type Key, spanUs } from './input.ts'
import type { NamedRule } from './options.ts'

/** The charge of a decision, by its figures. A decision that came through JSON is one, too. */
export interface TakenDecision<Name extends string = string> {
  readonly atMs: number
  readonly parts: Readonly<Record<Name, { readonly resetAfterMs: number; readonly delayMs?: number | undefined }>>
  /** A refusal, or a decision without the store, charged nothing: there is nothing to settle. */
  readonly allowed?: boolean
  readonly degraded?: boolean
}

/** What decisions are settled through: a limiter, by one of its plans. */
export interface Settler {
  chargesOf(decision: TakenDecision): readonly Charge[]
  settle(settled: Settled): unknown
}

/** A decision on its way to be settled. */
export interface Settled<Name extends string = string> {
  readonly charges: readonly Charge[]
  /** Undefined where there is nothing to settle. */
  readonly key: Key<Name> | undefined
  readonly cost: Cost<Name>
  readonly actual: Cost<Name>
  /** Told when the input was not refused. */
  onAccepted?(): void
}

/**
 * The same for a decision whose figures do not say when it was charged: it was entered later than
 * it was made, or waited for.
 */
export class SettlerOf implements Settler {
  readonly #settler: Settler
  readonly #charges: readonly Charge[]

  constructor(settler: Settler, charges: readonly Charge[]) {
    this.#settler = settler
    this.#charges = charges
  }

  chargesOf(): readonly Charge[] {
    return this.#charges
  }

  settle(settled: Settled): unknown {
    return this.#settler.settle(settled)
  }
}

/**
 * What the figures of a decision say: `resetAfterMs` of a limit is when its key is idle, had no
 * call come after it, and `delayMs` when its caller may act.
 */
export function chargesIn<Name extends string>(limits: readonly NamedRule<Name>[], { atMs, parts }: TakenDecision<Name>): Charge[] {
  const enteredUs = instantUs(atMs, 'atMs')
  return limits.map(({ name, rule: { numbers } }) => {
    const { resetAfterMs, delayMs = 0 } = Object(parts)[name] ?? {}
    const drainedUs = enteredUs + spanUs(resetAfterMs, `resetAfterMs of limit '${name}'`)
    return { enteredUs, drainedUs, dueUs: enteredUs + spanUs(delayMs, `delayMs of limit '${name}'`), numbers }
  })
}

/** When a limit was charged. Of what is released `enteredUs` is the token, which may be later. */
export function enteredUs({ rule }: NamedRule, verdict: Verdict): number {
  return rule.algorithm.untilReleased ? verdict.atUs : verdict.enteredUs
}

export function checkDecided(of: TakenDecision | undefined): asserts of is TakenDecision {
  if (typeof of === 'object' && of !== null) return
  throw new SluiceError('CONFIG', `settle needs the decision that it settles, { of: decision }, not { of: ${shown(of)} }`)
}

/** By how much what was used differs from what was charged, limit by limit. */
export function differencesOf<Name extends string>(limits: readonly NamedRule<Name>[], cost: Cost<Name>, actual: Cost<Name>): number[] {
  checkNames('', actual, limits, 'actual')
  return limits.map(({ name, rule }) => {
    const difference = costFor(actual, name, MAX_COST, 'actual') - costFor(cost, name, MAX_COST)
    // Permits that are released later are not settled.
    return rule.algorithm.untilReleased ? 0 : difference
  })
}

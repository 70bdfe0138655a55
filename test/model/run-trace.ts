/** Runs a trace on a store and shows every step with its answer. */
import { type Limit, RULE, type Rule } from '../../src/algorithms/algorithm.ts'
import { gcra, leakyBucket, tokenBucket } from '../../src/algorithms/all.ts'
import type { Verdict } from '../../src/algorithms/decide.ts'
import { type Charge, chargesOf, type Settlement, settlements } from '../../src/stores/settlement.ts'
import { Part, type Scope, Step } from '../../src/stores/step.ts'
import { allAllowed } from '../../src/stores/store.ts'
import type { OracleKind, OracleNumbers } from '../../src/testing/oracle.ts'
import type { PureStore } from './pure-store.ts'
import { CALLS_PER_TRACE, type Call, type OpenCharge, type Seen, type Trace } from './trace.ts'

export interface Taken {
  readonly call: Call
  readonly step: Step
  /** By part of the step: which limit of the trace it is. */
  readonly limits: readonly number[]
  readonly verdicts: readonly Verdict[]
  /** What was charged; for `settle`, what is settled. */
  readonly charges: readonly Charge[] | undefined
}

interface Charged extends OpenCharge {
  readonly charges: readonly Charge[]
  /** How many permits of each were given back already, as the next settlement says. */
  readonly given: readonly number[]
}

/** How many of the latest charges may be settled: with so many, also those of windows ago. */
const MOST_OPEN = 12

/** A limiter as the store sees it, once for each set of numbers in the trace's palette. */
export type TraceScopes = readonly Scope[]

/** The limits of a trace are called a, b, ... in the order of its kinds. */
export const limitName = (index: number) => String.fromCharCode(97 + index)

export function scopesOf(trace: Trace, name: string): TraceScopes {
  return trace.palette.map((numbers) => ({
    name,
    limits: numbers.map((each, k) => ({ name: limitName(k), rule: ruleOf(trace.kinds[k] as OracleKind, each) })),
  }))
}

export function ruleOf(kind: OracleKind, numbers: OracleNumbers): Rule {
  return levelLimit(kind, numbers)[RULE]
}

export function levelLimit(kind: OracleKind, { capacity, permits, periodUs }: OracleNumbers): Limit {
  const rate = { permits, per: `${periodUs}us` } as const
  if (kind === 'gcra') return gcra({ burst: capacity, rate })
  return kind === 'tokenBucket' ? tokenBucket({ capacity, refill: rate }) : leakyBucket({ capacity, leak: rate })
}

/**
 * Before the first call, and after one that is not answered, nothing is known; the next call is
 * then chosen freely.
 */
const NOTHING: Omit<Seen, 'open'> = { limited: false, retryUs: 0, resetUs: 0, delayUs: 0, remaining: [] }

export function runTrace(
  trace: Pick<Trace, 'next'>,
  store: PureStore,
  scopes: TraceScopes,
  key: string,
  onStep: (taken: Taken) => void,
): void {
  const open: Charged[] = []
  let seen: Seen = { ...NOTHING, open }
  for (let n = 0; n < CALLS_PER_TRACE; n++) {
    const call = trace.next(seen)
    const scope = scopes[call.numbers] as Scope
    const { step, limits, charges } = call.op === 'settle' ? settlementOf(call, scope, key, open) : stepOf(call, scope, key)
    const verdicts = answersOf(store, step)
    const answered = step.op === 'forget' ? NOTHING : answerOf(step.op, verdicts)
    const made = step.op === 'take' && allAllowed(verdicts) ? chargesOf(step.parts, verdicts) : undefined
    if (made !== undefined) open.unshift(chargedBy(call, made))
    open.splice(MOST_OPEN)
    // The others are settled again as if they never had been.
    if (call.op === 'settle' && n % 4 > 0) open[call.charge] = lessened(open[call.charge] as Charged, step, limits, verdicts)
    onStep({ call, step, limits, verdicts, charges: charges ?? made })
    seen = { ...answered, open }
  }
}

function chargedBy({ costs }: Call, charges: readonly Charge[]): Charged {
  const enteredUs = Math.max(...charges.map((charge) => charge.enteredUs))
  const dueUs = Math.max(enteredUs, ...charges.map((charge) => charge.dueUs))
  return { costs, charges, given: costs.map(() => 0), enteredUs, dueUs }
}

/** What was given back is no longer charged. */
function lessened(charged: Charged, { parts }: Step, limits: readonly number[], verdicts: readonly Verdict[]): Charged {
  const costs = [...charged.costs]
  const given = [...charged.given]
  limits.forEach((k, p) => {
    const { cost } = parts[p] as Part
    if (cost >= 0 || verdicts[p]?.outcome !== 'allowed') return
    costs[k] = (costs[k] as number) + cost
    given[k] = (given[k] as number) - cost
  })
  return { ...charged, costs, given }
}

/** The answers to a step. What a settlement does not tell is read from the states. */
export function answersOf(store: PureStore, step: Step): readonly Verdict[] {
  const verdicts = store.apply(step)
  if (step.op !== 'settle') return verdicts
  return verdicts.map((verdict, k) => {
    const { rule, limit, key } = step.parts[k] as Part
    const held = store.held(step.scope.name, limit, key)
    const used = held === undefined ? 0 : held.own.algorithm.used(held.own, held.words, 0, step.nowUs as number)
    return { ...verdict, remaining: Math.max(0, rule.capacity - used) }
  })
}

function answerOf(op: Step['op'], verdicts: readonly Verdict[]): Omit<Seen, 'open'> {
  let limited = false
  let retryUs = 0
  let resetUs = 0
  let delayUs = 0
  for (const verdict of verdicts) {
    limited ||= verdict.outcome === 'limited' && verdict.retryUs > 0
    retryUs = Math.max(retryUs, verdict.retryUs)
    resetUs = Math.max(resetUs, verdict.resetUs)
    if (op === 'take') delayUs = Math.max(delayUs, verdict.delayUs)
  }
  // What was written down is not tried again.
  const mayTryAgain = op !== 'charge' && op !== 'settle'
  return {
    limited: mayTryAgain && limited && Number.isFinite(retryUs),
    retryUs,
    resetUs,
    delayUs: allAllowed(verdicts) ? delayUs : 0,
    remaining: verdicts.map(({ remaining }) => remaining),
  }
}

interface Asked {
  readonly step: Step
  readonly limits: readonly number[]
  readonly charges?: readonly Charge[]
}

/** Where limits were entered at different times, those of the first. */
function settlementOf({ costs, nowUs, charge }: Call, scope: Scope, key: string, open: readonly Charged[]): Asked {
  const charged = open[charge] as Charged
  const all = scope.limits.map((_, k) => partOf(scope, k, key, (costs[k] as number) - (charged.costs[k] as number)))
  const told = charged.charges.map((each, k) => ({ ...each, given: charged.given[k] as number }))
  const [{ ofUs, parts }] = settlements(all, told) as [Settlement]
  const limits = parts.map(({ limit }) => scope.limits.findIndex(({ name }) => name === limit))
  return { step: new Step('settle', scope, parts, -1, ofUs, nowUs), limits, charges: limits.map((k) => charged.charges[k] as Charge) }
}

function stepOf({ op, costs, aheadUs, nowUs }: Call, scope: Scope, key: string): Asked {
  const parts = scope.limits.map((_, k) => partOf(scope, k, key, costs[k] as number))
  const isAhead = op === 'take' || op === 'ask'
  return { step: new Step(op, scope, parts, isAhead ? aheadUs : -1, -1, nowUs), limits: parts.map((_, k) => k) }
}

function partOf(scope: Scope, index: number, key: string, cost: number): Part {
  const { name, rule } = scope.limits[index] as Scope['limits'][number]
  return new Part(name, rule, key, cost)
}

/** Runs a trace on a store and shows every step with its answer. */
import { type Limit, RULE, type Rule } from '../../src/algorithms/algorithm.ts'
import { gcra, leakyBucket, tokenBucket } from '../../src/algorithms/all.ts'
import type { Ticket, Verdict } from '../../src/algorithms/decide.ts'
import { type Charge, chargesOf, type Settlement, settlements } from '../../src/stores/settlement.ts'
import { Part, type Scope, Step } from '../../src/stores/step.ts'
import { allAllowed } from '../../src/stores/store.ts'
import type { OracleKind, OracleNumbers } from '../../src/testing/oracle.ts'
import type { PureStore } from './pure-store.ts'
import { CALLS_PER_TRACE, type Call, type Seen, type Trace } from './trace.ts'

export interface Taken {
  readonly call: Call
  readonly step: Step
  /** By part of the step: which limit of the trace it is. */
  readonly limits: readonly number[]
  readonly verdicts: readonly Verdict[]
  /** What was charged; for `settle`, what is settled. */
  readonly charges: readonly Charge[] | undefined
}

interface Reservation {
  readonly costs: readonly number[]
  readonly tickets: readonly (Ticket | undefined)[]
}

interface Charged {
  readonly costs: readonly number[]
  readonly charges: readonly Charge[]
}

/** So many of the latest charges may be settled. */
const MOST_CHARGES = 4

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
const NOTHING: Omit<Seen, 'openReservations' | 'openCharges'> = { limited: false, retryUs: 0, resetUs: 0, delayUs: 0, remaining: [] }

export function runTrace(
  trace: Pick<Trace, 'next'>,
  store: PureStore,
  scopes: TraceScopes,
  key: string,
  onStep: (taken: Taken) => void,
): void {
  const reservations: Reservation[] = []
  const charged: Charged[] = []
  let seen: Seen = { ...NOTHING, openReservations: 0, openCharges: 0 }
  for (let n = 0; n < CALLS_PER_TRACE; n++) {
    const call = trace.next(seen)
    const scope = scopes[call.numbers] as Scope
    const { step, limits, charges } =
      call.op === 'settle' ? settlementOf(call, scope, key, charged) : stepOf(call, scope, key, reservations)
    const verdicts = answersOf(store, step)
    const answered = step.op === 'forget' ? NOTHING : answerOf(step.op, verdicts)
    if (step.aheadUs >= 0 && step.op === 'take') remember(reservations, call, verdicts)
    const isTaken = step.op === 'take' && allAllowed(verdicts)
    const made = isTaken ? chargesOf(step.parts, verdicts) : undefined
    if (made !== undefined) charged.unshift({ costs: call.costs, charges: made })
    charged.splice(MOST_CHARGES)
    onStep({ call, step, limits, verdicts, charges: charges ?? made })
    seen = { ...answered, openReservations: reservations.length, openCharges: charged.length }
  }
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

function answerOf(op: Step['op'], verdicts: readonly Verdict[]): Omit<Seen, 'openReservations' | 'openCharges'> {
  let limited = false
  let retryUs = 0
  let resetUs = 0
  let delayUs = 0
  for (const verdict of verdicts) {
    limited ||= verdict.outcome === 'limited' && verdict.retryUs > 0
    retryUs = Math.max(retryUs, verdict.retryUs)
    resetUs = Math.max(resetUs, verdict.resetUs)
    if (op === 'take' && verdict.ticket !== undefined) delayUs = Math.max(delayUs, verdict.delayUs)
  }
  // What was written down is not tried again.
  const mayTryAgain = op !== 'charge' && op !== 'settle'
  return {
    limited: mayTryAgain && limited && Number.isFinite(retryUs),
    retryUs,
    resetUs,
    delayUs,
    remaining: verdicts.map(({ remaining }) => remaining),
  }
}

function remember(reservations: Reservation[], { costs }: Call, verdicts: readonly Verdict[]): void {
  const tickets = verdicts.map(({ ticket }) => ticket)
  if (tickets.some((ticket) => ticket !== undefined)) reservations.push({ costs, tickets })
}

interface Asked {
  readonly step: Step
  readonly limits: readonly number[]
  readonly charges?: readonly Charge[]
}

/** Where limits were entered at different times, those of the first. */
function settlementOf({ costs, nowUs, charge }: Call, scope: Scope, key: string, charged: readonly Charged[]): Asked {
  const taken = charged[charge] as Charged
  const all = scope.limits.map((_, k) => partOf(scope, k, key, (costs[k] as number) - (taken.costs[k] as number), undefined))
  const [{ ofUs, parts }] = settlements(all, taken.charges) as [Settlement]
  const limits = parts.map(({ limit }) => scope.limits.findIndex(({ name }) => name === limit))
  return { step: new Step('settle', scope, parts, -1, ofUs, nowUs), limits, charges: limits.map((k) => taken.charges[k] as Charge) }
}

function stepOf(call: Call, scope: Scope, key: string, reservations: Reservation[]): Asked {
  const { aheadUs, ofUs, nowUs } = call
  if (call.op === 'cancel') {
    const [{ costs, tickets }] = reservations.splice(call.reservation, 1) as [Reservation]
    // Like the limiter: a limit of which nothing was reserved has no part in the cancelling.
    const limits = tickets.flatMap((ticket, k) => (ticket === undefined ? [] : [k]))
    const parts = limits.map((k) => partOf(scope, k, key, costs[k] as number, tickets[k]))
    return { step: new Step('give', scope, parts, -1, -1, nowUs), limits }
  }
  const parts = scope.limits.map((_, k) => partOf(scope, k, key, call.costs[k] as number, undefined))
  const isAhead = call.op === 'take' || call.op === 'ask'
  return { step: new Step(call.op as Step['op'], scope, parts, isAhead ? aheadUs : -1, ofUs, nowUs), limits: parts.map((_, k) => k) }
}

function partOf(scope: Scope, index: number, key: string, cost: number, ticket: Ticket | undefined): Part {
  const { name, rule } = scope.limits[index] as Scope['limits'][number]
  return new Part(name, rule, key, cost, ticket)
}

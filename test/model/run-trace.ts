/** Runs a trace on a store and shows every step with its answer. */
import { type Limit, RULE, type Rule } from '../../src/algorithms/algorithm.ts'
import { gcra, leakyBucket, tokenBucket } from '../../src/algorithms/all.ts'
import type { Ticket, Verdict } from '../../src/algorithms/decide.ts'
import { Part, type Scope, Step } from '../../src/stores/step.ts'
import type { OracleKind, OracleNumbers } from '../../src/testing/oracle.ts'
import type { Decider } from './pure-store.ts'
import { CALLS_PER_TRACE, type Call, type Seen, type Trace } from './trace.ts'

export interface Taken {
  readonly call: Call
  readonly step: Step
  /** By part of the step: which limit of the trace it is. */
  readonly limits: readonly number[]
  readonly verdicts: readonly Verdict[]
}

interface Reservation {
  readonly costs: readonly number[]
  readonly tickets: readonly (Ticket | undefined)[]
}

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

/** Before the first call, and after one that is not answered, nothing is known; the next call is then chosen freely. */
const NOTHING: Omit<Seen, 'openReservations'> = { limited: false, retryUs: 0, resetUs: 0, delayUs: 0, remaining: [] }

export function runTrace(
  trace: Pick<Trace, 'next'>,
  store: Decider,
  scopes: TraceScopes,
  key: string,
  onStep: (taken: Taken) => void,
): void {
  const reservations: Reservation[] = []
  let seen: Seen = { ...NOTHING, openReservations: 0 }
  for (let n = 0; n < CALLS_PER_TRACE; n++) {
    const call = trace.next(seen)
    const { step, limits } = stepOf(call, scopes[call.numbers] as Scope, key, reservations)
    const verdicts = store.apply(step)
    const answered = step.op === 'forget' ? NOTHING : answerOf(step.op, verdicts)
    if (step.aheadUs >= 0 && step.op === 'take') remember(reservations, call, verdicts)
    onStep({ call, step, limits, verdicts })
    seen = { ...answered, openReservations: reservations.length }
  }
}

function answerOf(op: Step['op'], verdicts: readonly Verdict[]): Omit<Seen, 'openReservations'> {
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
  return { limited: limited && Number.isFinite(retryUs), retryUs, resetUs, delayUs, remaining: verdicts.map(({ remaining }) => remaining) }
}

function remember(reservations: Reservation[], { costs }: Call, verdicts: readonly Verdict[]): void {
  const tickets = verdicts.map(({ ticket }) => ticket)
  if (tickets.some((ticket) => ticket !== undefined)) reservations.push({ costs, tickets })
}

function stepOf(call: Call, scope: Scope, key: string, reservations: Reservation[]): { step: Step; limits: readonly number[] } {
  const { aheadUs, ofUs, nowUs } = call
  if (call.op === 'cancel') {
    const [{ costs, tickets }] = reservations.splice(call.reservation, 1) as [Reservation]
    // Like the limiter: a limit of which nothing was reserved has no part in the cancelling.
    const limits = tickets.flatMap((ticket, k) => (ticket === undefined ? [] : [k]))
    const parts = limits.map((k) => partOf(scope, k, key, costs[k] as number, tickets[k]))
    return { step: new Step('give', scope, parts, -1, -1, nowUs), limits }
  }
  const parts = scope.limits.map((_, k) => partOf(scope, k, key, call.costs[k] as number, undefined))
  return { step: new Step(call.op, scope, parts, call.op === 'give' ? -1 : aheadUs, ofUs, nowUs), limits: parts.map((_, k) => k) }
}

function partOf(scope: Scope, index: number, key: string, cost: number, ticket: Ticket | undefined): Part {
  const { name, rule } = scope.limits[index] as Scope['limits'][number]
  return new Part(name, rule, key, cost, ticket)
}

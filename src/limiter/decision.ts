/** What a caller is told, made from the verdicts of the limits. */
import type { Outcome, Verdict } from '../algorithms/decide.ts'

/** One limit's own figures. */
export interface DecisionPart {
  readonly outcome: Outcome
  /** What an idle key admits at once. */
  readonly limit: number
  /** Whole permits left after this call. */
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
  readonly delayMs: number
}

interface DecisionFigures<Name extends string> {
  /** Of the binding limit: the one with the longest wait when limited, the fewest remaining when allowed. */
  readonly limit: number
  readonly remaining: number
  /** How long until the same call would be allowed: 0 when allowed, Infinity when impossible. Exact to the microsecond. */
  readonly retryAfterMs: number
  /** How long until every limit is idle again. */
  readonly resetAfterMs: number
  /** How long until you may act: above 0 only from a leaky bucket (the water before you) or a reservation. */
  readonly delayMs: number
  /** When the store entered it, by its time: `refund` gives back what was taken by that. */
  readonly atMs: number
  /** The name of the binding limit. */
  readonly policy: Name
  readonly parts: Readonly<Record<Name, DecisionPart>>
  /** Whether the store did not answer and the failure policy decided. */
  readonly degraded: boolean
}

/** `impossible`: the cost can never fit, however long one waits. */
export type Decision<Name extends string = string> =
  | (DecisionFigures<Name> & { readonly outcome: 'allowed'; readonly allowed: true })
  | (DecisionFigures<Name> & { readonly outcome: 'limited' | 'impossible'; readonly allowed: false })

/** Names and capacities of the limits, in the order of the verdicts. */
export interface Asked<Name extends string> {
  readonly name: Name
  readonly rule: { readonly capacity: number }
}

/** The decision of a limiter with one limit: `decisionOf` without looking for the one that binds. */
export function decisionOfOne<Name extends string>({ name, rule }: Asked<Name>, verdict: Verdict, degraded = false): Decision<Name> {
  const { outcome, remaining } = verdict
  const limit = rule.capacity
  const retryAfterMs = verdict.retryUs / 1000
  const resetAfterMs = verdict.resetUs / 1000
  const delayMs = verdict.delayUs / 1000
  const part: DecisionPart = { outcome, limit, remaining, retryAfterMs, resetAfterMs, delayMs }
  return {
    outcome,
    allowed: outcome === 'allowed',
    limit,
    remaining,
    retryAfterMs,
    resetAfterMs,
    delayMs,
    atMs: verdict.enteredUs / 1000,
    policy: name,
    // A limit without a name is called `default`: a name known beforehand, because adding a property by another takes ten times as long.
    parts: name === 'default' ? { default: part } : namedPart(name, part),
    degraded,
  } as Decision<Name>
}

/** By itself, so that the other way stays small enough for the compiler to fit it into its callers. */
function namedPart(name: string, part: DecisionPart): Record<string, DecisionPart> {
  return { [name]: part }
}

export function decisionOf<Name extends string>(asked: readonly Asked<Name>[], verdicts: readonly Verdict[]): Decision<Name> {
  const degraded = verdicts[0]?.degraded === true
  if (asked.length === 1) return decisionOfOne(asked[0] as Asked<Name>, verdicts[0] as Verdict, degraded)
  const outcome = outcomeOf(verdicts)
  const binding = outcome === 'allowed' ? fewestRemaining(verdicts) : longestWait(verdicts)
  let resetUs = 0
  let delayUs = 0
  let enteredUs = 0
  for (const verdict of verdicts) {
    resetUs = Math.max(resetUs, verdict.resetUs)
    delayUs = Math.max(delayUs, verdict.delayUs)
    // Where limits were entered at different times, because the clock had stepped back, those that keep a date have the latest.
    enteredUs = Math.max(enteredUs, verdict.enteredUs)
  }
  return Object.assign(decisionOfOne(asked[binding] as Asked<Name>, verdicts[binding] as Verdict, degraded), {
    outcome,
    allowed: outcome === 'allowed',
    resetAfterMs: resetUs / 1000,
    delayMs: outcome === 'allowed' ? delayUs / 1000 : 0,
    atMs: enteredUs / 1000,
    parts: partsOf(asked, verdicts),
  }) as Decision<Name>
}

/**
 * The decision of a reservation whose time has come, `waitedUs` after it was made: its figures as they are then, if nothing else happened (but
 * `remaining` is what was left when it was made). `isBooked`: what was taken counts from its time; else it was taken when it was decided.
 */
export function atItsTime<Name extends string>(decision: Decision<Name>, waitedUs: number, isBooked: boolean): Decision<Name> {
  if (decision.delayMs === 0) return decision
  const us = Math.max(waitedUs, 0)
  const parts = Object.entries<DecisionPart>(decision.parts).map(([name, part]) => [name, { ...part, ...waited(part, us) }])
  return {
    ...decision,
    ...waited(decision, us),
    atMs: isBooked ? plusUs(decision.atMs, us) : decision.atMs,
    parts: Object.fromEntries(parts),
  }
}

function waited({ resetAfterMs }: { readonly resetAfterMs: number }, us: number): { delayMs: number; resetAfterMs: number } {
  return { delayMs: 0, resetAfterMs: Math.max(0, plusUs(resetAfterMs, -us)) }
}

/** Adding milliseconds would leave a rest behind the microseconds. */
function plusUs(ms: number, us: number): number {
  return (Math.round(ms * 1000) + us) / 1000
}

function partsOf<Name extends string>(asked: readonly Asked<Name>[], verdicts: readonly Verdict[]): Record<Name, DecisionPart> {
  const parts = {} as Record<Name, DecisionPart>
  for (let k = 0; k < asked.length; k++) {
    const { name, rule } = asked[k] as Asked<Name>
    parts[name] = partOf(rule.capacity, verdicts[k] as Verdict)
  }
  return parts
}

function partOf(limit: number, { outcome, remaining, retryUs, resetUs, delayUs }: Verdict): DecisionPart {
  return {
    outcome,
    limit,
    remaining,
    retryAfterMs: retryUs / 1000,
    resetAfterMs: resetUs / 1000,
    delayMs: delayUs / 1000,
  }
}

// Plain loops, because this runs once for every decision.

function outcomeOf(verdicts: readonly Verdict[]): Outcome {
  let worst: Outcome = 'allowed'
  for (const { outcome } of verdicts) {
    if (outcome === 'impossible') return 'impossible'
    if (outcome === 'limited') worst = 'limited'
  }
  return worst
}

function fewestRemaining(verdicts: readonly Verdict[]): number {
  let binding = 0
  for (let k = 1; k < verdicts.length; k++) {
    if ((verdicts[k] as Verdict).remaining < (verdicts[binding] as Verdict).remaining) binding = k
  }
  return binding
}

function longestWait(verdicts: readonly Verdict[]): number {
  let binding = 0
  for (let k = 1; k < verdicts.length; k++) {
    if ((verdicts[k] as Verdict).retryUs > (verdicts[binding] as Verdict).retryUs) binding = k
  }
  return binding
}

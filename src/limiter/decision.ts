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
  /** How long until you may act: above 0 only from a reservation. */
  readonly delayMs: number
  /** The store's time of the decision. */
  readonly atMs: number
  /** The name of the binding limit. */
  readonly policy: Name
  readonly parts: Readonly<Record<Name, DecisionPart>>
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

export function decisionOf<Name extends string>(asked: readonly Asked<Name>[], verdicts: readonly Verdict[]): Decision<Name> {
  const parts = {} as Record<Name, DecisionPart>
  asked.forEach(({ name, rule }, k) => {
    parts[name] = partOf(rule.capacity, verdicts[k] as Verdict)
  })
  const outcome = outcomeOf(verdicts)
  const binding = bindingOf(outcome, verdicts)
  const { name } = asked[binding] as Asked<Name>
  const { limit, remaining, retryAfterMs } = parts[name]
  return {
    outcome,
    allowed: outcome === 'allowed',
    limit,
    remaining,
    retryAfterMs,
    resetAfterMs: most(verdicts, (verdict) => verdict.resetUs) / 1000,
    delayMs: outcome === 'allowed' ? most(verdicts, (verdict) => verdict.delayUs) / 1000 : 0,
    atMs: (verdicts[binding] as Verdict).atUs / 1000,
    policy: name,
    parts,
  } as Decision<Name>
}

function partOf(limit: number, verdict: Verdict): DecisionPart {
  return {
    outcome: verdict.outcome,
    limit,
    remaining: verdict.remaining,
    retryAfterMs: verdict.retryUs / 1000,
    resetAfterMs: verdict.resetUs / 1000,
    delayMs: verdict.delayUs / 1000,
  }
}

function outcomeOf(verdicts: readonly Verdict[]): Outcome {
  if (verdicts.some((verdict) => verdict.outcome === 'impossible')) return 'impossible'
  return verdicts.some((verdict) => verdict.outcome === 'limited') ? 'limited' : 'allowed'
}

/** Which limit speaks for the decision: the first with the longest wait, or, if all agree, the first with the fewest left. */
function bindingOf(outcome: Outcome, verdicts: readonly Verdict[]): number {
  const weight = (verdict: Verdict) => (outcome === 'allowed' ? -verdict.remaining : verdict.retryUs)
  let binding = 0
  for (let k = 1; k < verdicts.length; k++) {
    if (weight(verdicts[k] as Verdict) > weight(verdicts[binding] as Verdict)) binding = k
  }
  return binding
}

function most(verdicts: readonly Verdict[], figure: (verdict: Verdict) => number): number {
  return verdicts.reduce((largest, verdict) => Math.max(largest, figure(verdict)), 0)
}

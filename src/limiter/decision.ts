/** Decisions, made from the verdicts of the limits. */
import type { Outcome, StoreRefusal, Verdict } from '../algorithms/decide.ts'
import { type Charge, chargesOf } from '../stores/settlement.ts'
import type { Cost, Key } from './input.ts'
import type { NamedRule } from './options.ts'
import { enteredUs, type Settler, SettlerOf } from './settling.ts'

/** One limit's own figures. */
export interface DecisionPart {
  readonly outcome: Outcome
  /** The permits that an idle key admits at once. */
  readonly limit: number
  /** Whole permits left after this call. */
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
  readonly delayMs: number
}

interface DecisionFigures<Name extends string> {
  /**
   * Of the binding limit: the one with the longest wait when limited, the fewest remaining when
   * allowed.
   */
  readonly limit: number
  readonly remaining: number
  /**
   * How long until the same call would be allowed: 0 when allowed, Infinity when impossible. Exact
   * to the microsecond.
   */
  readonly retryAfterMs: number
  /** How long until every limit is idle again. */
  readonly resetAfterMs: number
  /**
   * How long until you may act: above 0 only from a leaky bucket (the water before you) or a
   * reservation.
   */
  readonly delayMs: number
  /** When the store entered it, by its time. */
  readonly atMs: number
  /** The name of the binding limit. */
  readonly policy: Name
  readonly parts: Readonly<Record<Name, DecisionPart>>
  /** Whether the store did not answer and the failure policy decided. */
  readonly degraded: boolean
}

/**
 * Why a call was refused: `limit`: the limit that `policy` names; `full`: the store has no room for
 * a new key (`maxKeys`); `store`: it did not answer, and the failure policy refuses.
 */
export type RefusalReason = 'limit' | StoreRefusal

/** `impossible`: the cost can never fit, however long one waits. */
export type Decision<Name extends string = string> =
  | (DecisionFigures<Name> & { readonly outcome: 'allowed'; readonly allowed: true })
  | (DecisionFigures<Name> & { readonly outcome: 'limited' | 'impossible'; readonly allowed: false; readonly reason: RefusalReason })

/**
 * A decision. It has its figures, which are shown, copied and written as JSON, and what it takes to
 * settle it, which is not. A class, because a method of an object's own would be made for each
 * decision.
 */
class Decided {
  declare readonly outcome: Outcome
  declare readonly allowed: boolean
  declare readonly limit: number
  declare readonly remaining: number
  declare readonly retryAfterMs: number
  declare readonly resetAfterMs: number
  declare readonly delayMs: number
  declare readonly atMs: number
  declare readonly policy: string
  declare readonly parts: Readonly<Record<string, DecisionPart>>
  declare readonly degraded: boolean
  /** Only of a refusal. */
  declare readonly reason?: RefusalReason
  readonly #settler: Settler | undefined
  /** Undefined where there is nothing to settle, or no longer. */
  #key: Key<string> | undefined
  readonly #cost: Cost<string>

  constructor(
    figures: DecisionPart,
    atMs: number,
    policy: string,
    parts: Readonly<Record<string, DecisionPart>>,
    degraded: boolean,
    reason: RefusalReason | undefined,
    settler: Settler | undefined,
    key: Key<string> | undefined,
    cost: Cost<string>,
  ) {
    this.outcome = figures.outcome
    this.allowed = figures.outcome === 'allowed'
    this.limit = figures.limit
    this.remaining = figures.remaining
    this.retryAfterMs = figures.retryAfterMs
    this.resetAfterMs = figures.resetAfterMs
    this.delayMs = figures.delayMs
    this.atMs = atMs
    this.policy = policy
    this.parts = parts
    this.degraded = degraded
    this.#settler = settler
    this.#key = this.allowed && !degraded ? key : undefined
    this.#cost = cost
    // Last: what is written behind it would be written to objects of two shapes.
    if (reason !== undefined) this.reason = reason
  }

  settle(actual: Cost<string>): unknown {
    const settler = this.#settler
    if (settler === undefined) return undefined
    const onAccepted = () => {
      this.#key = undefined
    }
    return settler.settle({ charges: settler.chargesOf(this), key: this.#key, cost: this.#cost, actual, onAccepted })
  }

  cancel(): unknown {
    return this.settle(0)
  }

  /**
   * The same some time later, see `atItsTime`. The charges stay, minus those of callers that left
   * before it.
   */
  later(us: number, isBooked: boolean): Decided {
    const { delayMs, atMs, policy, degraded } = this
    const leftUs = Math.max(0, Math.round(delayMs * 1000) - us)
    const sooner = (charge: Charge) => ({ ...charge, drainedUs: charge.drainedUs - leftUs, dueUs: charge.dueUs - leftUs })
    const settler = this.#settler && new SettlerOf(this.#settler, this.#settler.chargesOf(this).map(sooner))
    const after = (part: DecisionPart) => ({ ...part, delayMs: 0, resetAfterMs: Math.max(0, plusUs(part.resetAfterMs, -us)) })
    const parts = Object.entries(this.parts).map(([name, part]) => [name, after(part)])
    const laterMs = isBooked ? plusUs(atMs, us) : atMs
    return new Decided(after(this), laterMs, policy, Object.fromEntries(parts), degraded, undefined, settler, this.#key, this.#cost)
  }
}

/**
 * What the caller is told. `settler`: without it, the decision is none that can be settled.
 *
 * One function, for one limit as for several. At more than 460 bytes of bytecode V8 compiles it by
 * itself, with all that it calls. A smaller one would go into the verbs, where the constructor has
 * no room left, and `new` would be a call.
 */
export function decisionOf<Name extends string>(
  asked: readonly NamedRule<Name>[],
  verdicts: readonly Verdict[],
  settler?: Settler,
  key: Key<string> = '',
  cost: Cost<string> = 0,
): Decision<Name> {
  const first = verdicts[0] as Verdict
  const { atUs } = first
  const one = asked[0] as NamedRule
  const parts = partsWith(one.name, partOf(one.rule.capacity, first))
  let { outcome, resetUs, delayUs } = first
  let latestUs = enteredUs(one, first)
  let isLater = latestUs !== atUs
  for (let k = 1; k < verdicts.length; k++) {
    const other = asked[k] as NamedRule
    const verdict = verdicts[k] as Verdict
    parts[other.name] = partOf(other.rule.capacity, verdict)
    if (verdict.outcome !== 'allowed' && outcome !== 'impossible') outcome = verdict.outcome
    resetUs = Math.max(resetUs, verdict.resetUs)
    delayUs = Math.max(delayUs, verdict.delayUs)
    // Where limits were entered at different times, because the clock had stepped back, those that
    // keep a date have the latest.
    const otherUs = enteredUs(other, verdict)
    latestUs = Math.max(latestUs, otherUs)
    if (otherUs !== atUs) isLater = true
  }
  const binding = bindingOf(verdicts, outcome)
  const { name, rule } = asked[binding] as NamedRule
  const { remaining, retryUs, outcome: bindingOutcome } = verdicts[binding] as Verdict
  const figures = partOf(rule.capacity, { outcome, remaining, retryUs, resetUs, delayUs })
  // A decision has one time. Where limits were entered later, or at different times, its settler
  // has to know theirs.
  const exactly = isLater && settler !== undefined ? new SettlerOf(settler, chargesOf(asked, verdicts)) : settler
  const reason = outcome === 'allowed' ? undefined : reasonOf(bindingOutcome)
  const isDegraded = first.degraded === true
  const decided = new Decided(figures, latestUs / 1000, name, parts, isDegraded, reason, exactly, copied(key), copied(cost))
  return decided as unknown as Decision<Name>
}

/**
 * A limit without a name is called `default`: a name known beforehand, because adding a property by
 * another takes ten times as long.
 */
function partsWith(name: string, part: DecisionPart): Record<string, DecisionPart> {
  return name === 'default' ? { default: part } : { [name]: part }
}

/** The caller may change an object that it passed. */
function copied<T>(given: T): T {
  return typeof given === 'object' ? { ...given } : given
}

/**
 * The decision of a reservation whose time has come, `waitedUs` after it was made: its figures as
 * they are then, if nothing else happened (but `remaining` is what was left when it was made).
 * `isBooked`: what was taken counts from its time; else it was taken when it was decided.
 */
export function atItsTime<Name extends string>(decision: Decision<Name>, waitedUs: number, isBooked: boolean): Decision<Name> {
  if (decision.delayMs === 0) return decision
  return (decision as unknown as Decided).later(Math.max(waitedUs, 0), isBooked) as unknown as Decision<Name>
}

/** Adding milliseconds would leave a rest behind the microseconds. */
function plusUs(ms: number, us: number): number {
  return (Math.round(ms * 1000) + us) / 1000
}

type Figures = Pick<Verdict, 'outcome' | 'remaining' | 'retryUs' | 'resetUs' | 'delayUs'>

function partOf(limit: number, { outcome, remaining, retryUs, resetUs, delayUs }: Figures): DecisionPart {
  return {
    outcome: outcome === 'full' || outcome === 'store' ? 'limited' : outcome,
    limit,
    remaining,
    retryAfterMs: retryUs / 1000,
    resetAfterMs: resetUs / 1000,
    delayMs: outcome === 'allowed' ? delayUs / 1000 : 0,
  }
}

/** The limit with the fewest permits left, if all agreed; else the one with the longest wait. */
function bindingOf(verdicts: readonly Verdict[], outcome: Verdict['outcome']): number {
  let binding = 0
  for (let k = 1; k < verdicts.length; k++) {
    const one = verdicts[k] as Verdict
    const other = verdicts[binding] as Verdict
    if (outcome === 'allowed' ? one.remaining < other.remaining : one.retryUs > other.retryUs) binding = k
  }
  return binding
}

function reasonOf(outcome: Verdict['outcome']): RefusalReason {
  return outcome === 'full' || outcome === 'store' ? outcome : 'limit'
}

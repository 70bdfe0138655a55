/**
 * The denial cache: refusals that still hold. A caller that was refused and told to wait R would be
 * refused again until then, so the store need not be asked: a client that keeps knocking costs it
 * nothing.
 *
 * The question left at s and the answer came at r; the store decided in between. So the call is
 * refused here while now < s + R, which is never later than the store would refuse it, and told to
 * wait until r + R, which is never too early.
 *
 * Only these end a refusal sooner: a refund, a reset, a settlement, or a charge under other
 * numbers, which may let the state drain at another pace.
 * So everything that this process was granted about a key drops its refusal. Calls of other
 * processes are not seen here: hence `maxUs`.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import { systemClock } from '../../clock/clock.ts'
import { anyUntilReleased, hasOneKey, type Part, type Scope, type Step } from '../step.ts'
import { allAllowed } from '../store.ts'

interface Denial {
  readonly parts: readonly Part[]
  readonly verdicts: readonly Verdict[]
  readonly receivedUs: number
  /** Until when it holds. */
  readonly untilUs: number
}

export interface DenialBounds {
  /** How long a refusal is repeated at most. */
  readonly maxUs: number
  /** How many are held for each limiter; the oldest goes first. */
  readonly maxKeys: number
}

/** A batch on its way: its number, and when it left. */
export interface Sent {
  readonly number: number
  readonly atUs: number
}

/** The refusals of all limiters at a store. */
export class DenialCache {
  readonly #bounds: DenialBounds
  /** By the name of the limiter, as long as one of that name is open. */
  readonly #byLimiter = new Map<string, Denials>()
  /** How many batches have left. */
  #sent = 0

  constructor(bounds: DenialBounds) {
    this.#bounds = bounds
  }

  open({ name }: Scope): void {
    const denials = this.#byLimiter.get(name) ?? new Denials(this.#bounds, this.#sent)
    this.#byLimiter.set(name, denials)
    denials.users += 1
  }

  release({ name }: Scope): void {
    const denials = this.#byLimiter.get(name)
    if (denials === undefined) return
    denials.users -= 1
    if (denials.users === 0) this.#byLimiter.delete(name)
  }

  /** The answer to this step, if it is known. */
  known(step: Step): Verdict[] | undefined {
    const denials = this.#byLimiter.get(step.scope.name)
    return denials === undefined || denials.isEmpty ? undefined : denials.answer(step, systemClock.nowUs())
  }

  /** To be called when a step is asked for. */
  asked(step: Step): void {
    this.#byLimiter.get(step.scope.name)?.asked(step)
  }

  /** To be called when a batch leaves, for `answered`. */
  sending(): Sent {
    this.#sent += 1
    return { number: this.#sent, atUs: systemClock.nowUs() }
  }

  answered(step: Step, verdicts: readonly Verdict[], sent: Sent): void {
    const denials = this.#byLimiter.get(step.scope.name)
    if (allAllowed(verdicts) || step.op === 'charge' || step.op === 'settle') denials?.granted(step, this.#sent)
    else denials?.refused(step, verdicts, sent, this.#sent, systemClock.nowUs())
  }

  /** That a step failed does not say that nothing was done. */
  failed(step: Step): void {
    this.#byLimiter.get(step.scope.name)?.granted(step, this.#sent)
  }
}

/** The refusals of one limiter, by key. */
export class Denials {
  /** How many scopes of the limiter are open. */
  users = 0
  readonly #bounds: DenialBounds
  readonly #held = new Map<string, Denial>()
  #oldest = this.#held.keys()
  /**
   * For each place of a key (`placeOf`) how many batches had left at the last grant: what was under
   * way then may hold no longer.
   */
  readonly #lastGrant = new Float64Array(PLACES)

  /**
   * `batches`: how many have left. What those refused may have been given back to a limiter of this
   * name that was closed.
   */
  constructor(bounds: DenialBounds, batches = 0) {
    this.#bounds = bounds
    this.#lastGrant.fill(batches)
  }

  get isEmpty(): boolean {
    return this.#held.size === 0
  }

  answer(step: Step, nowUs: number): Verdict[] | undefined {
    const denial = this.#held.get((step.parts[0] as Part).key)
    if (denial === undefined || nowUs >= denial.untilUs || !isPlainTake(step) || !isAlike(denial.parts, step.parts)) return undefined
    return denial.verdicts.map((verdict) => later(verdict, nowUs - denial.receivedUs))
  }

  /** A call behind it is to see what it gave back, or wrote down. */
  asked({ op, parts }: Step): void {
    if (op !== 'take' && op !== 'ask') for (const { key } of parts) this.#held.delete(key)
  }

  /** `batches`: how many have left. */
  granted({ op, parts }: Step, batches: number): void {
    if (op === 'ask') return
    for (const { key } of parts) {
      this.#lastGrant[placeOf(key)] = batches
      this.#held.delete(key)
    }
  }

  refused(step: Step, verdicts: readonly Verdict[], sent: Sent, batches: number, receivedUs: number): void {
    // Of several keys, some may have been charged for a moment: what was refused meanwhile holds no
    // longer.
    if (!hasOneKey(step)) this.granted(step, batches)
    // A release may come at any moment.
    if (!isPlainTake(step) || anyUntilReleased(step.parts)) return
    const { key } = step.parts[0] as Part
    if ((this.#lastGrant[placeOf(key)] as number) >= sent.number) return
    const waitUs = longestWaitUs(verdicts)
    const untilUs = sent.atUs + Math.min(waitUs, this.#bounds.maxUs)
    if (waitUs === Number.POSITIVE_INFINITY || untilUs <= receivedUs) return
    this.#held.delete(key)
    if (this.#held.size >= this.#bounds.maxKeys) this.#held.delete(this.#oldestKey())
    this.#held.set(key, { parts: step.parts, verdicts, receivedUs, untilUs })
  }

  /**
   * By one iterator that goes on where it was: a new one would walk over everything that was
   * deleted.
   */
  #oldestKey(): string {
    const { value, done } = this.#oldest.next()
    if (!done) return value
    this.#oldest = this.#held.keys()
    return this.#oldest.next().value as string
  }
}

const PLACES = 512

/**
 * By the length and the last characters. That keys share a place only means that a refusal is not
 * kept now and then.
 */
function placeOf(key: string): number {
  const end = key.length
  let place = end
  for (let k = Math.max(0, end - 4); k < end; k++) place = place * 31 + key.charCodeAt(k)
  return place % PLACES
}

/**
 * On one key, by the store's clock: a time of the caller's own is a test's, which wants to see the
 * store's answer.
 */
function isPlainTake(step: Step): boolean {
  return step.op === 'take' && step.aheadUs < 0 && step.nowUs === undefined && hasOneKey(step)
}

/** Whether two steps ask the same of the same limits. */
function isAlike(denied: readonly Part[], asked: readonly Part[]): boolean {
  if (denied.length !== asked.length) return false
  for (let k = 0; k < denied.length; k++) if (!isSame(denied[k] as Part, asked[k] as Part)) return false
  return true
}

function isSame(a: Part, b: Part): boolean {
  if (a.cost !== b.cost || a.limit !== b.limit) return false
  return a.rule === b.rule || (a.rule.algorithm.type === b.rule.algorithm.type && a.rule.numbers === b.rule.numbers)
}

function longestWaitUs(verdicts: readonly Verdict[]): number {
  return verdicts.reduce((longestUs, { retryUs }) => Math.max(longestUs, retryUs), 0)
}

/**
 * The same verdict some time later, if nothing happened. What has come back meanwhile is not
 * counted.
 */
function later(verdict: Verdict, us: number): Verdict {
  const retryUs = Math.max(0, verdict.retryUs - us)
  const atUs = verdict.atUs + us
  const outcome = retryUs > 0 ? 'limited' : 'allowed'
  const resetUs = Math.max(0, verdict.resetUs - us)
  // Field by field: a spread takes several times as long.
  return { outcome, remaining: verdict.remaining, retryUs, resetUs, delayUs: Math.max(0, verdict.delayUs - us), atUs, enteredUs: atUs }
}

/**
 * The denial cache: refusals that still hold. A caller that was refused and told to wait R would be refused again until then, so the store need not be
 * asked: a client that keeps knocking costs it nothing.
 *
 * The question left at s and the answer came at r; the store decided in between. So the call is refused here while now < s + R, which is never later
 * than the store would refuse it, and told to wait until r + R, which is never too early.
 *
 * Only these end a refusal sooner: a refund, a reset, a cancellation, or a charge under other numbers, which may let the state drain at
 * another pace.
 * So everything that this process was granted about a key drops its refusal. Calls of other processes are not seen here: hence `maxUs`.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import { anyUntilReleased, hasOneKey, type Part, type Step } from '../step.ts'

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

/** The refusals of one limiter, by key. */
export class Denials {
  /** How many scopes of the limiter are open. */
  users = 0
  readonly #bounds: DenialBounds
  readonly #held = new Map<string, Denial>()
  #oldest = this.#held.keys()
  /** How many steps were granted, and for each place of a key (`placeOf`) the number of the last one: what was under way then may hold no longer. */
  #grants = 0
  readonly #lastGrant = new Float64Array(PLACES)

  constructor(bounds: DenialBounds) {
    this.#bounds = bounds
  }

  get isEmpty(): boolean {
    return this.#held.size === 0
  }

  /** The answer to this step, if it is known. */
  answer(step: Step, nowUs: number): Verdict[] | undefined {
    const denial = this.#held.get((step.parts[0] as Part).key)
    if (denial === undefined || nowUs >= denial.untilUs || !isPlainTake(step) || !isAlike(denial.parts, step.parts)) return undefined
    return denial.verdicts.map((verdict) => later(verdict, nowUs - denial.receivedUs))
  }

  /** To be called before a step is sent. Answers how many were granted before it, for `refused`. */
  sent({ op, parts }: Step): number {
    // A call behind it is to see what it gave back, or wrote down.
    if (op !== 'take' && op !== 'ask') for (const { key } of parts) this.#held.delete(key)
    return this.#grants
  }

  /** To be called when a step was granted, or failed, which does not say that nothing was done. */
  granted({ op, parts }: Step): void {
    if (op === 'ask') return
    this.#grants += 1
    for (const { key } of parts) {
      this.#lastGrant[placeOf(key)] = this.#grants
      this.#held.delete(key)
    }
  }

  /** To be called when a step was refused. `grants`: what `sent` answered. */
  refused(step: Step, verdicts: readonly Verdict[], grants: number, sentUs: number, receivedUs: number): void {
    // Of several keys, some may have been charged for a moment: what was refused meanwhile holds no longer.
    if (!hasOneKey(step)) this.granted(step)
    // A release may come at any moment.
    if (!isPlainTake(step) || anyUntilReleased(step.parts)) return
    const { key } = step.parts[0] as Part
    if ((this.#lastGrant[placeOf(key)] as number) > grants) return
    const waitUs = longestWaitUs(verdicts)
    const untilUs = sentUs + Math.min(waitUs, this.#bounds.maxUs)
    if (waitUs === Number.POSITIVE_INFINITY || untilUs <= receivedUs) return
    this.#held.delete(key)
    if (this.#held.size >= this.#bounds.maxKeys) this.#held.delete(this.#oldestKey())
    this.#held.set(key, { parts: step.parts, verdicts, receivedUs, untilUs })
  }

  /** By one iterator that goes on where it was: a new one would walk over everything that was deleted. */
  #oldestKey(): string {
    const { value, done } = this.#oldest.next()
    if (!done) return value
    this.#oldest = this.#held.keys()
    return this.#oldest.next().value as string
  }
}

const PLACES = 512

/** By the length and the last characters. That keys share a place only means that a refusal is not kept now and then. */
function placeOf(key: string): number {
  const end = key.length
  let place = end
  for (let k = Math.max(0, end - 4); k < end; k++) place = place * 31 + key.charCodeAt(k)
  return place % PLACES
}

/** On one key, by the store's clock: a time of the caller's own is a test's, which wants to see the store's answer. */
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

/** The same verdict some time later, if nothing happened. What has come back meanwhile is not counted. */
function later(verdict: Verdict, us: number): Verdict {
  const retryUs = Math.max(0, verdict.retryUs - us)
  const atUs = verdict.atUs + us
  const outcome = retryUs > 0 ? 'limited' : 'allowed'
  const resetUs = Math.max(0, verdict.resetUs - us)
  // Field by field: a spread takes several times as long.
  return { outcome, remaining: verdict.remaining, retryUs, resetUs, delayUs: verdict.delayUs, atUs, enteredUs: atUs, ticket: undefined }
}

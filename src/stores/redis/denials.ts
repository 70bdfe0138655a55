/**
 * Refusals that still hold. Whoever was refused and told to wait R would be refused again until then, so Redis need not be asked: a client that
 * keeps knocking costs the server nothing.
 *
 * The question left at s and the answer came at r; Redis decided in between. So the call is refused here while now < s + R, which is never later
 * than Redis would refuse it, and told to wait until r + R, which is never too early. Only a change that somebody else makes meanwhile (a
 * refund, a reset, other numbers) is not seen here: within `maxMs` it is.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import { allAllowed, type Lane, type Part, type Scope, type Step } from '../store.ts'

interface Denial {
  readonly parts: readonly Part[]
  readonly verdicts: readonly Verdict[]
  readonly receivedUs: number
  /** Until when it holds. */
  readonly untilUs: number
}

export interface DenialBounds {
  /** How long a refusal is believed at most. */
  readonly maxUs: number
  /** How many are held for each limiter; the oldest goes first. */
  readonly maxKeys: number
}

/** The refusals of one limiter, by key. */
export class Denials {
  readonly #bounds: DenialBounds
  readonly #held = new Map<string, Denial>()
  /** Which keys were changed by this process, and when: what was asked before and is answered after says nothing any longer. */
  readonly #changed = new Map<string, number>()
  #changes = 0
  /** Those changed up to here are no longer known one by one. */
  #forgotten = 0

  constructor(bounds: DenialBounds) {
    this.#bounds = bounds
  }

  /** To be asked before a step is sent, and given back to `learn`. */
  get changes(): number {
    return this.#changes
  }

  /** What this step would be answered, if that is known. */
  answer(step: Step, nowUs: number): Verdict[] | undefined {
    if (!isPlainTake(step)) return undefined
    const denial = this.#denialOf((step.parts[0] as Part).key, nowUs)
    if (denial === undefined || !isAlike(denial.parts, step.parts)) return undefined
    return denial.verdicts.map((verdict) => later(verdict, { ...verdict }, nowUs - denial.receivedUs))
  }

  /** Keeps a refusal. */
  learn(step: Step, verdicts: readonly Verdict[], sentUs: number, receivedUs: number, changes: number): void {
    if (!isPlainTake(step) || allAllowed(verdicts)) return
    const { key } = step.parts[0] as Part
    if (Math.max(this.#changed.get(key) ?? 0, this.#forgotten) > changes) return
    const waitUs = longestWaitUs(verdicts)
    if (waitUs === Number.POSITIVE_INFINITY) return
    const untilUs = Math.min(sentUs + waitUs, receivedUs + this.#bounds.maxUs)
    if (untilUs <= receivedUs) return
    this.#held.delete(key)
    if (this.#held.size >= this.#bounds.maxKeys) this.#held.delete(this.#held.keys().next().value as string)
    this.#held.set(key, { parts: step.parts, verdicts, receivedUs, untilUs })
  }

  /** A step is about to be sent that may change what was refused: it gives back, forgets, or brings other numbers. */
  notice({ op, parts }: Step): void {
    for (const { key, rule, limit } of parts) {
      const denial = this.#held.get(key)
      const isRenumbered = denial?.parts.some((part) => part.limit === limit && part.rule !== rule)
      if (op === 'give' || op === 'forget' || isRenumbered) this.#drop(key)
    }
  }

  /** The short way for a limiter of one limit. */
  lane({ limits }: Scope): Lane {
    const [{ rule }] = limits as [Scope['limits'][number]]
    const own: Verdict = { outcome: 'limited', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 0, ticket: undefined }
    const take = (key: unknown, cost: number, nowUs: number): Verdict | undefined => {
      const denial = this.#denialOf(key as string, nowUs)
      const part = denial?.parts[0]
      if (denial === undefined || part?.rule !== rule || part.cost !== cost) return undefined
      return later(denial.verdicts[0] as Verdict, own, nowUs - denial.receivedUs)
    }
    return { take, tryTake: (key, cost, nowUs) => (take(key, cost, nowUs) === undefined ? undefined : false) }
  }

  #denialOf(key: string, nowUs: number): Denial | undefined {
    const denial = this.#held.get(key)
    return denial !== undefined && nowUs < denial.untilUs ? denial : undefined
  }

  #drop(key: string): void {
    this.#held.delete(key)
    this.#changes += 1
    if (this.#changed.size >= this.#bounds.maxKeys) {
      this.#changed.clear()
      this.#forgotten = this.#changes
    }
    this.#changed.set(key, this.#changes)
  }
}

/** On one key, by the server's clock: a time of the caller's own is a test's, which wants to see the server's answer. */
function isPlainTake({ op, parts, aheadUs, nowUs }: Step): boolean {
  const [{ key }] = parts as [Part]
  return op === 'take' && aheadUs < 0 && nowUs === undefined && parts.every((part) => part.key === key)
}

function isAlike(denied: readonly Part[], asked: readonly Part[]): boolean {
  return denied.length === asked.length && denied.every(({ rule, cost }, k) => rule === asked[k]?.rule && cost === asked[k]?.cost)
}

function longestWaitUs(verdicts: readonly Verdict[]): number {
  return verdicts.reduce((longestUs, { retryUs }) => Math.max(longestUs, retryUs), 0)
}

/** The same verdict some time later, if nothing happened. What has come back meanwhile is not counted. */
function later(verdict: Verdict, put: Verdict, us: number): Verdict {
  put.retryUs = Math.max(0, verdict.retryUs - us)
  put.outcome = put.retryUs > 0 ? 'limited' : 'allowed'
  put.remaining = verdict.remaining
  put.resetUs = Math.max(0, verdict.resetUs - us)
  put.atUs = verdict.atUs + us
  return put
}

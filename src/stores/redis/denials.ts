/**
 * Refusals that still hold. Whoever was refused and told to wait R would be refused again until then, so Redis need not be asked: a client that
 * keeps knocking costs the server nothing.
 *
 * The question left at s and the answer came at r; Redis decided in between. So the call is refused here while now < s + R, which is never later
 * than Redis would refuse it, and told to wait until r + R, which is never too early. Only a change that somebody else makes meanwhile (a
 * refund, a reset, other numbers) is not seen here: within `maxMs` it is.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import { allAllowed, type Part, type Scope, type Step } from '../store.ts'

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
  /** How many scopes of the limiter are open. */
  users = 0
  readonly #bounds: DenialBounds
  readonly #held = new Map<string, Denial>()
  #oldest = this.#held.keys()
  /** Which keys were changed by this process, and when: what was asked before and is answered after says nothing any longer. */
  readonly #changed = new Map<string, number>()
  #changes = 0
  /** The numbers of the first step, and once there were others those under which each key was met last. */
  #first: string | undefined = undefined
  #isMixed = false
  /** Who brought the first numbers last, as long as there are no others: a look tells. */
  #usual: Scope | undefined = undefined
  readonly #numbers = new Map<string, string>()
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
    const denial = this.#denialOf((step.parts[0] as Part).key, nowUs)
    if (denial === undefined || !isPlainTake(step) || !isAlike(denial.parts, step.parts)) return undefined
    return denial.verdicts.map((verdict) => later(verdict, nowUs - denial.receivedUs))
  }

  /** Keeps a refusal. */
  learn(step: Step, verdicts: readonly Verdict[], sentUs: number, receivedUs: number, changes: number): void {
    if (!isPlainTake(step) || allAllowed(verdicts)) return
    const { key } = step.parts[0] as Part
    if (Math.max(this.#changed.get(key) ?? 0, this.#forgotten) > changes) return
    const waitUs = longestWaitUs(verdicts)
    if (waitUs === Number.POSITIVE_INFINITY) return
    const untilUs = sentUs + Math.min(waitUs, this.#bounds.maxUs)
    if (untilUs <= receivedUs) return
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

  /** A step is about to be sent that may change what was refused: it gives back, forgets, or brings other numbers. */
  notice(step: Step): void {
    const { op, parts } = step
    if (op === 'give' || op === 'forget') for (const { key } of parts) this.#drop(key)
    else this.#noticeNumbers(step)
  }

  /** A charge under other numbers may write the state at another pace. As long as there are no others, nothing need be remembered. */
  #noticeNumbers({ scope, parts }: Step): void {
    if (scope === this.#usual) return
    const numbers = numbersOf(scope)
    this.#first ??= numbers
    this.#isMixed ||= this.#first !== numbers
    this.#usual = this.#isMixed ? undefined : scope
    if (!this.#isMixed) return
    for (const { key } of parts) {
      if ((this.#numbers.get(key) ?? this.#first) !== numbers) this.#drop(key)
      if (this.#numbers.size >= this.#bounds.maxKeys) this.#forgetNumbers()
      this.#numbers.set(key, numbers)
    }
  }

  /** Nobody knows any longer under which numbers a key was met last: whatever is refused or being asked counts for nothing. */
  #forgetNumbers(): void {
    this.#numbers.clear()
    this.#held.clear()
    this.#first = ''
    this.#changes += 1
    this.#forgotten = this.#changes
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
  return (
    denied.length === asked.length &&
    denied.every(({ rule, cost }, k) => rule.numbers === asked[k]?.rule.numbers && cost === asked[k]?.cost)
  )
}

function longestWaitUs(verdicts: readonly Verdict[]): number {
  return verdicts.reduce((longestUs, { retryUs }) => Math.max(longestUs, retryUs), 0)
}

/** The same verdict some time later, if nothing happened. What has come back meanwhile is not counted. */
function later(verdict: Verdict, us: number): Verdict {
  const retryUs = Math.max(0, verdict.retryUs - us)
  const atUs = verdict.atUs + us
  const outcome = retryUs > 0 ? 'limited' : 'allowed'
  return { ...verdict, outcome, retryUs, resetUs: Math.max(0, verdict.resetUs - us), atUs, enteredUs: atUs }
}

const numbersOfScopes = new WeakMap<Scope, string>()

function numbersOf(scope: Scope): string {
  const known = numbersOfScopes.get(scope)
  if (known !== undefined) return known
  const numbers = scope.limits.map(({ rule }) => rule.numbers).join(', ')
  numbersOfScopes.set(scope, numbers)
  return numbers
}

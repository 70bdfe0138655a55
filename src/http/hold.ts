/**
 * The place of a request among those that run at once. It is kept until the response has ended and,
 * where the framework hands out the promise of the handler, until that has settled as well: a
 * handler whose client has left still runs. It is given back once.
 */
import type { ReleaseOutcome } from '../limiter/events.ts'
import type { Permit } from '../limiter/limiter.ts'
import { type HttpOutcome, isPromise, type MaybePromise, SWITCHING_PROTOCOLS } from './request.ts'
import type { HttpDecision } from './settling.ts'
import { explainOnce } from './warnings.ts'

/** How long a handler keeps its place at most after its response has ended. */
export const DEFAULT_MAX_HOLD_MS = 60_000
/** A timer that is set for longer rings at once. */
const LONGEST_TIMER_MS = 2_147_483_647

/** Undefined where nothing is held: the request was refused, or its limits need no release. */
export function holdOf(decision: HttpDecision, maxHoldMs = DEFAULT_MAX_HOLD_MS): Hold | undefined {
  return decision.allowed && decision.release !== undefined ? new Hold(decision as HttpDecision & Permit, maxHoldMs) : undefined
}

export class Hold {
  readonly #permit: Permit
  readonly #maxHoldMs: number
  /** How many handlers are not done: there may be one middleware of ours behind the other. */
  #running = 0
  #outcome: ReleaseOutcome | undefined = undefined
  #timer: ReturnType<typeof setTimeout> | undefined = undefined

  constructor(permit: Permit, maxHoldMs: number) {
    this.#permit = permit
    this.#maxHoldMs = maxHoldMs
  }

  /** The handler has begun. A handler that returns no promise has no known end. */
  handledBy(returned: unknown): void {
    if (!isPromise(returned)) return
    this.#running += 1
    const done = () => {
      this.#running -= 1
      this.#releaseIfOver()
    }
    returned.then(done, done)
  }

  /**
   * The response has ended. Governors are told what that says about the load. Answers when the
   * store was told, unless the handler still runs.
   */
  answered(outcome: HttpOutcome): MaybePromise<unknown> {
    this.#outcome = releaseOutcomeOf(outcome)
    if (this.#running > 0 && this.#maxHoldMs < Number.POSITIVE_INFINITY) return this.#releaseLater()
    return this.#releaseIfOver()
  }

  #releaseLater(): void {
    this.#timer = setTimeout(
      () => {
        explainOnce('SLUICE_HELD_TOO_LONG')
        this.#running = 0
        this.#releaseIfOver()
      },
      Math.min(this.#maxHoldMs, LONGEST_TIMER_MS),
    )
    // In browsers and on Workers a timer is a number, and keeps nothing alive.
    ;(this.#timer as { unref?(): unknown }).unref?.()
  }

  #releaseIfOver(): MaybePromise<unknown> {
    if (this.#running > 0 || this.#outcome === undefined) return undefined
    clearTimeout(this.#timer)
    // It never fails, and a second time it does nothing.
    return this.#permit.release({ outcome: this.#outcome })
  }
}

/**
 * A server that failed, or was too slow for its client, may be overloaded. How long a WebSocket was
 * open says nothing.
 */
function releaseOutcomeOf({ status, aborted }: HttpOutcome): ReleaseOutcome {
  if (status === SWITCHING_PROTOCOLS) return 'ignored'
  return aborted || status >= 500 ? 'dropped' : 'ok'
}

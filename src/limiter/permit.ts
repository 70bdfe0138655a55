/// <reference lib="esnext.disposable" preserve="true" />
/**
 * A decision that is also a permit: what it took is held until it is released, or until its lease
 * has run out.
 */
import { invalid } from '../algorithms/rate.ts'
import { SluiceError, shown } from '../errors.ts'
import type { Decision, DecisionPart, RefusalReason } from './decision.ts'
import type { ReleaseOutcome } from './events.ts'
import type { Abortable, Cost, Key } from './input.ts'

/** The `AbortSignal` of the project's types, if it has them. */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer T } } ? T : Abortable

/** How a permit ends: what the work says about the load, for listeners (`onRelease`). */
export interface ReleaseOptions {
  /**
   * `'ok'` (default), `'dropped'`: it failed because of too much load, `'ignored'`: it says nothing
   * about load.
   */
  readonly outcome?: ReleaseOutcome | undefined
}

/** The loan of one limit: so many permits of a key, under a token. */
export interface Loan {
  readonly limit: string
  readonly key: string
  readonly cost: number
  readonly token: number
  /** Whether the failure policy lent it, and not the store. */
  readonly degraded: boolean
  /** How long it runs; 0 where it never runs out. */
  readonly leaseUs: number
  /** Undefined where it never runs out. */
  lease: Lease | undefined
}

/**
 * Until when a loan is held for certain, unless it is renewed: by the clock of this process, and by
 * the wall clock.
 */
export interface Lease {
  untilUs: number
  wallUntilUs: number
}

/** Where permits come from, and go back to. */
export interface Lender {
  /**
   * By the clock of this process, and by the wall clock, which goes on while a machine is
   * suspended.
   */
  nowUs(): number
  wallUs(): number
  /** Undefined: nothing is held any more. */
  release(permit: HeldDecision | undefined, outcome: ReleaseOutcome): unknown
  lost(permit: HeldDecision): void
}

export const NO_LOANS: readonly Loan[] = []

const OUTCOMES: readonly unknown[] = ['ok', 'dropped', 'ignored'] satisfies ReleaseOutcome[]

export class HeldDecision {
  declare outcome: Decision['outcome']
  declare allowed: boolean
  declare limit: number
  declare remaining: number
  declare retryAfterMs: number
  declare resetAfterMs: number
  declare delayMs: number
  declare atMs: number
  declare policy: string
  declare parts: Readonly<Record<string, DecisionPart>>
  declare degraded: boolean
  /** Of one that was refused. */
  declare reason?: RefusalReason
  /** Of one that was waited for. */
  declare waitedMs?: number
  readonly #lender: Lender
  readonly #key: Key<string>
  readonly #plan: string | undefined
  readonly #askedUs: number
  readonly #askedWallUs: number | undefined
  #state: 'asked' | 'held' | 'released' | 'lost' | 'refused' = 'asked'
  #decision: Decision | undefined = undefined
  /** Nothing where it was refused, or asked for nothing. */
  #loans: readonly Loan[] = NO_LOANS
  #controller: AbortController | undefined = undefined

  /**
   * What is asked for. `askedUs`: when, by the clock of this process; it is held from then on, at
   * the latest. `askedWallUs`: the same by the wall clock, where the answer comes later.
   */
  constructor(lender: Lender, key: Key<string>, plan: string | undefined, askedUs: number, askedWallUs: number | undefined) {
    this.#lender = lender
    this.#key = key
    this.#plan = plan
    this.#askedUs = askedUs
    this.#askedWallUs = askedWallUs
  }

  // What the limiter does with a permit that it lends, and knows of it, and nobody else.

  /** The store has decided. `waitedMs`: -1 where it was not waited for. */
  static decide(permit: HeldDecision, decision: Decision, loans: readonly Loan[], waitedMs: number): void {
    permit.outcome = decision.outcome
    permit.allowed = decision.allowed
    permit.limit = decision.limit
    permit.remaining = decision.remaining
    permit.retryAfterMs = decision.retryAfterMs
    permit.resetAfterMs = decision.resetAfterMs
    permit.delayMs = decision.delayMs
    permit.atMs = decision.atMs
    permit.policy = decision.policy
    permit.parts = decision.parts
    permit.degraded = decision.degraded
    if (!decision.allowed) permit.reason = decision.reason
    if (waitedMs >= 0) permit.waitedMs = waitedMs
    permit.#decision = decision
    permit.#loans = loans
    permit.#state = decision.allowed ? 'held' : 'refused'
  }

  static loans(permit: HeldDecision): readonly Loan[] {
    return permit.#loans
  }

  static key(permit: HeldDecision): Key<string> {
    return permit.#key
  }

  static plan(permit: HeldDecision): string | undefined {
    return permit.#plan
  }

  static askedUs(permit: HeldDecision): number {
    return permit.#askedUs
  }

  static askedWallUs(permit: HeldDecision): number | undefined {
    return permit.#askedWallUs
  }

  get token(): number {
    return this.#loans[0]?.token ?? -1
  }

  get held(): boolean {
    if (this.#state !== 'held') return false
    for (const { lease } of this.#loans) {
      if (lease !== undefined && (this.#lender.nowUs() >= lease.untilUs || this.#lender.wallUs() >= lease.wallUntilUs)) return false
    }
    return true
  }

  get signal(): Signal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#state === 'lost') this.#controller.abort(lostError(this.#key))
    }
    // A holder that stood still is told before its timer rings.
    if (this.#state === 'held' && !this.held) HeldDecision.lose(this)
    return this.#controller.signal as Signal
  }

  release(options?: ReleaseOptions): unknown {
    const outcome = options?.outcome ?? 'ok'
    if (outcome !== 'ok' && !OUTCOMES.includes(outcome)) throw invalid('outcome', outcome, "must be 'ok', 'dropped' or 'ignored'")
    return this.#lender.release(HeldDecision.end(this) ? this : undefined, outcome)
  }

  settle(actual: Cost<string>): unknown {
    return (this.#decision as unknown as { settle(actual: Cost<string>): unknown }).settle(actual)
  }

  /** Nothing ran: the place is free again, and what was charged along with it comes back. */
  cancel(): unknown {
    const released = this.release({ outcome: 'ignored' })
    const settled = this.settle(0)
    return settled instanceof Promise ? Promise.all([released, settled]).then(() => {}) : released
  }

  [Symbol.dispose](): void {
    void this.release()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** It is released. Tells whether it was held until now. */
  static end(permit: HeldDecision): boolean {
    if (permit.#state !== 'held') return false
    permit.#state = 'released'
    return true
  }

  /** It is no longer held: its lease ran out, or the store does not know it. */
  static lose(permit: HeldDecision): void {
    if (permit.#state !== 'held') return
    permit.#state = 'lost'
    permit.#lender.lost(permit)
    permit.#controller?.abort(lostError(permit.#key))
  }
}

/**
 * What a holder in another process needs to renew a permit and to release it, through any limiter
 * of the same name and store.
 */
export interface Entrusted {
  readonly plan: string | undefined
  readonly loans: readonly Pick<Loan, 'limit' | 'key' | 'cost' | 'token' | 'degraded'>[]
}

function lostError(key: Key<string>): SluiceError {
  return new SluiceError(
    'LOST',
    `the permit for key ${shown(key)} is no longer held: its lease ran out before it was renewed, because this process stood still or did not reach the store`,
  )
}

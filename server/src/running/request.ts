/** A question to a limiter, over HTTP or gRPC. */
import type { Cost, Decision, Key, RefusalReason, TakenDecision } from '../sluice.ts'

export type Verb = 'consume' | 'peek' | 'reserve' | 'refund'

export interface DecisionRequest {
  readonly verb: Verb
  readonly key: Key<string>
  readonly cost: Cost<string>
  readonly plan: string | undefined
  /** Of `reserve`: take nothing if acting would have to wait longer. */
  readonly maxWaitMs: number | undefined
}

/** A cost that is written down whether it fits or not. */
export interface ChargeRequest {
  readonly key: Key<string>
  readonly cost: Cost<string>
  readonly plan: string | undefined
}

/** What a call really cost, that was charged `cost` by the decision `of`. */
export interface SettleRequest extends ChargeRequest {
  readonly actual: Cost<string>
  readonly of: TakenDecision
}

export interface AcquireRequest {
  readonly key: Key<string>
  readonly cost: Cost<string>
  readonly plan: string | undefined
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/**
 * `allowed` is what to obey. In shadow it is true whatever the limits said, which is in `outcome`.
 */
export type Answer = Omit<Decision, 'allowed' | 'outcome'> & {
  readonly limiter: string
  readonly allowed: boolean
  readonly outcome: Decision['outcome']
  /** Of a refusal. */
  readonly reason?: RefusalReason
  readonly shadow: boolean
  /** Of limits that are held until they are released: what to release and to renew. */
  readonly permit?: string
  /** Above those of all permits of the key before. */
  readonly token?: number
  /** After how long it is over, unless it is renewed. */
  readonly leaseMs?: number
}

export interface Refunded {
  readonly limiter: string
  readonly refunded: true
}

export interface Settled {
  readonly limiter: string
  readonly settled: true
}

export interface Released {
  readonly limiter: string
  /** Whether it was held. */
  readonly released: boolean
}

export interface Renewed {
  readonly limiter: string
  /** Whether it was held, and is. */
  readonly renewed: boolean
  /** How long from now on. */
  readonly leaseMs: number
}

export type MaybePromise<T> = T | Promise<T>

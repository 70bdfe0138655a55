/** The options of the middleware. */
import { type Limit, RULE } from '../algorithms/algorithm.ts'
import type { Decision } from '../limiter/decision.ts'
import type { Cost, Key } from '../limiter/input.ts'
import type { HoldingLimiter, Limiter } from '../limiter/limiter.ts'
import type { LimiterOptions, LimitName, Limits } from '../limiter/options.ts'
import type { Store, SyncStore } from '../stores/store.ts'
import type { HeaderChoice } from './headers.ts'
import type { KeyFunction } from './keys.ts'
import type { Answer, BodySource, Refusal } from './refusal.ts'
import type { AnyRequest, HttpOutcome, MaybePromise } from './request.ts'

/** One key for all limits, or one for each by name. */
export type KeySource<Native, Name extends string> = KeyFunction<Native, Key<Name>> | Readonly<Record<Name, KeyFunction<Native>>>

/**
 * The limits: the same for all requests or found from each, or a limiter of your own with whatever
 * store, plans and clock.
 */
export type WhatLimits<L extends Limits, S extends Store, P extends string, Native = AnyRequest> =
  | {
      readonly limit: L | ((native: Native) => MaybePromise<L>)
      /**
       * Of the limiter that is made for `limit`: name, store, clock ... Default: the memory of this
       * process.
       */
      readonly limiterOptions?: LimiterOptions<L, S, P>
      readonly limiter?: undefined
    }
  | {
      readonly limiter: Limiter<L, S, P> | HoldingLimiter<L, S, P>
      readonly limit?: undefined
      readonly limiterOptions?: undefined
    }

/** Told of a request and what was decided about it. */
export type Told<Native, Name extends string = string> = (native: Native, decision: Decision<Name>) => void

export interface HttpChoices<Native, Name extends string = string, P extends string = string> {
  /** The key of a request. Default: `byIp()`. */
  readonly key?: KeySource<Native, Name> | undefined
  /** Permits that a request costs: for all, or found from the request. Default 1. */
  readonly cost?: Cost<Name> | ((native: Native) => MaybePromise<Cost<Name>>) | undefined
  /** The plan of its sender; undefined for the limiter's own numbers. */
  readonly plan?: ((native: Native) => MaybePromise<NoInfer<P> | undefined>) | undefined
  /** Requests that are not limited and do not count. */
  readonly skip?: ((native: Native) => MaybePromise<boolean>) | undefined
  /**
   * Whether to give back what an admitted request took, once its response has ended:
   * `({ status }) => status < 400` counts failures only.
   */
  readonly refundWhen?: ((outcome: HttpOutcome, native: Native) => MaybePromise<boolean>) | undefined
  /**
   * The real cost of an admitted request, asked when its response has ended, or the client has
   * left. A charge by `cost` that was too high is given back, one that was too low is increased,
   * beyond the limit as well. Undefined: it stays as it was charged, as it does where the handler
   * has called `rateLimit.settle` itself.
   */
  readonly settle?: ((outcome: HttpOutcome, native: Native) => MaybePromise<Cost<Name> | undefined>) | undefined
  /** Told of every request that is refused, or would be if it were not for `shadow`. */
  readonly onLimited?: Told<Native, Name> | undefined
  /** Told of every request that is admitted and leaves little: see `nearLimit`. */
  readonly onNearLimit?: Told<Native, Name> | undefined
  /**
   * The share of a limit that is in use when its keys are near it. Above 0, at most 1, default 0.8.
   */
  readonly nearLimit?: number | undefined
  /** Which headers tell about the limits. Default `'draft-11'`. */
  readonly headers?: HeaderChoice | undefined
  /**
   * Says in the headers whose quota it is (`pk`), found from the key: a client sees it, so do not
   * put a secret into it. Default: not said.
   */
  readonly partitionKey?: ((key: Key<Name>) => string) | undefined
  /** The status of a refusal. 400 to 599, default 429. When the store failed it is 503. */
  readonly status?: number | undefined
  /**
   * The body of a refusal: a text or an object to become JSON, or a function that makes one.
   * Default: a problem (RFC 9457), text or HTML.
   */
  readonly body?: BodySource<Native> | undefined
  /**
   * Answers a refusal otherwise: with another status (a redirect, too), headers and body, at once
   * or later. `usual` is what would be answered, and holds where nothing else is said. An error
   * that it throws goes to the framework's error handler.
   */
  readonly answer?: ((native: Native, decision: Decision<Name>, usual: Refusal) => MaybePromise<Answer | undefined>) | undefined
  /**
   * Decide and report (`onLimited`, the request's `rateLimit`), but refuse no request and send no
   * headers. Default false.
   */
  readonly shadow?: boolean | undefined
  /**
   * Instead of refusing, hold a request until its turn, up to this many milliseconds. Default 0:
   * refuse at once.
   */
  readonly maxWaitMs?: number | undefined
  /**
   * With `maxWaitMs`: how many may wait for one key; one more is refused at once. Whole, 0 or more.
   * Default: as many as the limits let in within `maxWaitMs`, 10 to 10,000. All keys together:
   * 10,000.
   */
  readonly maxQueue?: number | undefined
  /**
   * Under a limit on what runs at once: how many milliseconds a handler may go on after its
   * response has ended, until its place is given to another. Only where the framework tells when a
   * handler is done (Koa, Hono, fetch, node:http): elsewhere a place is kept until the response has
   * ended. Default 60,000.
   */
  readonly maxHoldMs?: number | undefined
}

export type HttpOptions<Native, L extends Limits = Limits, S extends Store = SyncStore, P extends string = string> = WhatLimits<
  L,
  S,
  P,
  Native
> &
  HttpChoices<Native, LimitName<L>, P>

/**
 * All choices by name, those that were not made too: looking for an option that is not there takes
 * its time, at each request.
 */
const NONE_MADE: Readonly<Record<keyof HttpChoices<never>, undefined>> = {
  key: undefined,
  cost: undefined,
  plan: undefined,
  skip: undefined,
  refundWhen: undefined,
  settle: undefined,
  onLimited: undefined,
  onNearLimit: undefined,
  nearLimit: undefined,
  headers: undefined,
  partitionKey: undefined,
  status: undefined,
  body: undefined,
  answer: undefined,
  shadow: undefined,
  maxWaitMs: undefined,
  maxQueue: undefined,
  maxHoldMs: undefined,
}

export const CHOICE_NAMES = Object.keys(NONE_MADE)
export const LIMIT_NAMES = ['limit', 'limiter', 'limiterOptions']

export function choicesOf<Native>(options: HttpOptions<Native>): HttpChoices<Native> {
  const { limit: _limit, limiter: _limiter, limiterOptions: _limiterOptions, ...choices } = options
  return { ...NONE_MADE, ...choices } as HttpChoices<Native>
}

/** Whether a limiter is to be made for them. */
export function hasLimits(options: object): boolean {
  return (options as Partial<HttpOptions<never>>).limit !== undefined
}

export function hasOwnLimits(options: object): boolean {
  return hasLimits(options) || (options as Partial<HttpOptions<never>>).limiter !== undefined
}

/** One limit, not several by name. */
export type Numbers = Limit

export function isNumbers(limit: unknown): limit is Numbers {
  return typeof limit === 'object' && limit !== null && RULE in limit
}

/** Plans, and keys and costs by the names of limits, mean nothing to other limits. */
export function withoutNames<Native>(choices: HttpChoices<Native>): HttpChoices<Native> {
  const { key, cost } = choices
  return {
    ...choices,
    plan: undefined,
    key: typeof key === 'object' ? undefined : key,
    cost: typeof cost === 'object' ? undefined : cost,
  }
}

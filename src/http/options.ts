/** What the middleware is made from, checked when it is made. */
import { onlyKnown } from '../algorithms/rate.ts'
import { SluiceError, shown } from '../errors.ts'
import type { Decision } from '../limiter/decision.ts'
import type { Cost, Key } from '../limiter/input.ts'
import type { Limiter } from '../limiter/limiter.ts'
import type { LimitName, Limits } from '../limiter/options.ts'
import type { Store, SyncStore } from '../stores/store.ts'
import type { HeaderChoice } from './headers.ts'
import type { KeyFunction } from './keys.ts'
import type { BodySource } from './refusal.ts'
import type { HttpOutcome, MaybePromise } from './request.ts'

/** One key for all limits, or one for each by name; each the same for every request, or found from it. */
export type KeySource<Native, Name extends string> =
  | KeyFunction<Native, Key<Name>>
  | string
  | Readonly<Record<Name, KeyFunction<Native> | string>>

/** What decides: limits, kept in the memory of this process, or a limiter of your own with whatever store, plans and clock. */
export type WhatLimits<L extends Limits, S extends Store, P extends string> =
  | { readonly limit: L; readonly limiter?: undefined }
  | { readonly limiter: Limiter<L, S, P>; readonly limit?: undefined }

export interface HttpChoices<Native, Name extends string = string, P extends string = string> {
  /** Whom a request counts for. Default: `byIp()`. */
  readonly key?: KeySource<Native, Name>
  /** Permits that a request costs: for all, or found from the request. Default 1. */
  readonly cost?: Cost<Name> | ((native: Native) => MaybePromise<Cost<Name>>)
  /** The plan of whoever sent it; undefined for the limiter's own numbers. */
  readonly plan?: (native: Native) => MaybePromise<NoInfer<P> | undefined>
  /** Requests that are not limited and do not count. */
  readonly skip?: (native: Native) => MaybePromise<boolean>
  /** Whether to give back what an admitted request took, once its response has ended: `({ status }) => status < 400` counts failures only. */
  readonly refundWhen?: (outcome: HttpOutcome, native: Native) => MaybePromise<boolean>
  /** Told of every request that is refused, or would be if it were not for `shadow`. */
  readonly onLimited?: (native: Native, decision: Decision<Name>) => void
  /** Which headers tell about the limits. Default `'draft-11'`. */
  readonly headers?: HeaderChoice
  /** Says in the headers whose quota it is (`pk`), found from the key: a client sees it, so do not put a secret into it. Default: not said. */
  readonly partitionKey?: (key: Key<Name>) => string
  /** The status of a refusal. 400 to 599, default 429. When the store failed it is 503. */
  readonly status?: number
  /** The body of a refusal: a text or an object to become JSON, or a function that makes one. Default: a problem (RFC 9457), text or HTML. */
  readonly body?: BodySource<Native>
  /** Decide and tell (`onLimited`, the request's `rateLimit`), but refuse nobody and send no headers. Default false. */
  readonly shadow?: boolean
  /** Instead of refusing, hold a request until its turn, up to this many milliseconds. Default 0: refuse at once. */
  readonly maxWaitMs?: number
  /**
   * With `maxWaitMs`: how many may wait for one key; one more is refused at once. Whole, 0 or more. Default: as many as the limits let in within
   * `maxWaitMs`, 10 to 10,000. All keys together: 10,000.
   */
  readonly maxQueue?: number
}

export type HttpOptions<Native, L extends Limits = Limits, S extends Store = SyncStore, P extends string = string> = WhatLimits<L, S, P> &
  HttpChoices<Native, LimitName<L>, P>

const FUNCTIONS = ['plan', 'skip', 'refundWhen', 'onLimited', 'partitionKey'] as const
const OTHERS = ['limit', 'limiter', 'key', 'cost', 'headers', 'status', 'body', 'shadow', 'maxWaitMs', 'maxQueue']
const OPTION_NAMES = [...OTHERS, ...FUNCTIONS]

/** `more`: options that one adapter has on top. */
export function checkHttpOptions(options: object, more: readonly string[] = []): void {
  onlyKnown(options, [...OPTION_NAMES, ...more], 'rateLimit')
  const { limit, limiter, key, shadow = false, maxWaitMs = 0, maxQueue = 0, ...rest } = options as HttpOptions<unknown>
  if ((limit === undefined) === (limiter === undefined)) {
    throw refused('limit', limit ?? limiter, 'or `limiter`: one of the two must be given, and not both')
  }
  if (limiter !== undefined && typeof (limiter as { consume?: unknown } | null)?.consume !== 'function') {
    throw refused('limiter', limiter, 'must be made by createLimiter')
  }
  for (const name of FUNCTIONS) {
    const given: unknown = (rest as Record<string, unknown>)[name]
    if (given !== undefined && typeof given !== 'function') throw refused(name, given, 'must be a function')
  }
  checkKey(key)
  if (typeof shadow !== 'boolean') throw refused('shadow', shadow, 'must be true or false')
  if (typeof maxWaitMs !== 'number' || !(maxWaitMs >= 0)) throw refused('maxWaitMs', maxWaitMs, 'must be milliseconds, 0 or more')
  if (maxQueue !== Number.POSITIVE_INFINITY && !(Number.isInteger(maxQueue) && maxQueue >= 0)) {
    throw refused('maxQueue', maxQueue, 'must be a whole number, 0 or more, or Infinity')
  }
}

function checkKey(key: unknown): void {
  if (key === undefined || isKeySource(key)) return
  if (typeof key === 'object' && key !== null && Object.values(key).every(isKeySource)) return
  throw refused('key', key, 'must be a function such as byIp(), a text, or one of these for each limit by name')
}

function isKeySource(key: unknown): boolean {
  return typeof key === 'function' || typeof key === 'string'
}

function refused(what: string, value: unknown, rule: string): SluiceError {
  return new SluiceError('CONFIG', `${what} ${shown(value)} ${rule}`)
}

/**
 * A `fetch` that stays within the limits of others: it keeps a pace of its own, and does as it is
 * told.
 */
import { onlyKnown } from '../algorithms/rate.ts'
import { type Clock, systemClock } from '../clock/clock.ts'
import { SluiceError, shown } from '../errors.ts'
import type { Abortable } from '../limiter/input.ts'
import { createLimiter, type Limiter } from '../limiter/limiter.ts'
import type { Limits } from '../limiter/options.ts'
import type { AsyncStore } from '../stores/remote/async-store.ts'
import type { Store } from '../stores/store.ts'
import { Host, type Patience } from './host.ts'
import { type HeadersLike, parseRateLimit, type ToldLimits } from './parse.ts'

/** The parts of a `Response` that are needed. */
export interface ResponseLike {
  readonly status: number
  readonly headers: HeadersLike
  readonly body?: { cancel?(): unknown } | null | undefined
}

// biome-ignore lint/suspicious/noExplicitAny: every runtime has its own types of a fetch, and this one is given back as it came
export type AnyFetch = (input: any, init?: any) => Promise<ResponseLike>

export interface LimitedFetchOptions {
  /** The pace for each host, kept in memory. This or `limiter`. */
  readonly limit?: Limits
  /** A limiter of your own, say one that all your processes share; its key is the host. */
  readonly limiter?: Limiter | Limiter<Limits, AsyncStore> | Limiter<Limits, Store>
  /** The group of calls that share a pace. Default: the host (and port) of the address. */
  readonly key?: (url: string) => string
  /**
   * Milliseconds that a call waits for its turn at most; then it rejects with `TIMEOUT`, at once
   * where that is known. Default: as long as it takes.
   */
  readonly timeoutMs?: number
  /**
   * How often a call that was answered with 429 or 503 is made again, when the host may be called
   * again. Whole, default 0: it is answered so.
   */
  readonly retries?: number
  /**
   * The longest that a host is believed when it asks to be left alone, in milliseconds. Default ten
   * minutes: then one call asks again.
   */
  readonly maxPauseMs?: number
  readonly clock?: Clock
}

const OPTION_NAMES = ['limit', 'limiter', 'key', 'timeoutMs', 'retries', 'maxPauseMs', 'clock']
const TEN_MINUTES_MS = 600_000
/** From so many on, hosts whose pause is over are forgotten. */
const MANY_HOSTS = 1000

export function limitedFetch<F extends AnyFetch>(fetch: F, options: LimitedFetchOptions): F {
  check(fetch, options)
  const {
    limit,
    key = hostOf,
    timeoutMs = Number.POSITIVE_INFINITY,
    retries = 0,
    maxPauseMs = TEN_MINUTES_MS,
    clock = systemClock,
  } = options
  const limiter = (options.limiter ?? createLimiter(limit as Limits, { clock })) as Limiter
  const hosts = new Map<string, Host>()
  let sweepAt = MANY_HOSTS

  const called = async (name: string, input: unknown, init: unknown, patience: Patience): Promise<ResponseLike> => {
    const host = hosts.get(name) ?? new Host(clock, maxPauseMs)
    hosts.set(name, host)
    if (hosts.size > sweepAt) {
      for (const [other, each] of hosts) if (each !== host && each.isOver) hosts.delete(other)
      sweepAt = Math.max(MANY_HOSTS, 2 * hosts.size)
    }
    try {
      const call = await host.enter(
        ({ deadlineUs, signal }) => limiter.acquire(name, waitOptions(deadlineUs - clock.nowUs(), signal)),
        patience,
      )
      let response: ResponseLike
      let told: ToldLimits
      try {
        response = await fetch(input, init)
        told = parseRateLimit(response.headers, clock.nowUs() / 1000)
      } catch (error) {
        // After any error the others of the line must not wait for it.
        host.fail(call)
        throw error
      }
      host.learn(call, told, isRefusal(response))
      return response
    } finally {
      // A crawler meets many hosts: those about which nothing is known any more are forgotten.
      if (host.isIdle) hosts.delete(name)
    }
  }

  return (async (input: unknown, init?: { signal?: Abortable; body?: unknown }) => {
    const name = key(urlOf(input))
    const signal = init?.signal ?? (input as { signal?: Abortable } | undefined)?.signal
    const patience = { deadlineUs: clock.nowUs() + timeoutMs * 1000, signal }
    for (let left = canRepeat(input, init) ? retries : 0; ; left--) {
      const response = await called(name, input, init, patience)
      if (left === 0 || !isRefusal(response)) return response
      await response.body?.cancel?.()
    }
  }) as unknown as F
}

function waitOptions(leftUs: number, signal: Abortable | undefined): object {
  const timeoutMs = leftUs === Number.POSITIVE_INFINITY ? {} : { timeoutMs: Math.max(0, leftUs / 1000) }
  return signal === undefined ? timeoutMs : { ...timeoutMs, signal }
}

function isRefusal({ status }: ResponseLike): boolean {
  return status === 429 || status === 503
}

/** A body that is read as it is sent cannot be sent again. */
function canRepeat(input: unknown, init: { body?: unknown } | undefined): boolean {
  const isStream = (body: unknown) => typeof body === 'object' && body !== null && ('getReader' in body || Symbol.asyncIterator in body)
  const ofRequest = typeof input === 'object' && input !== null && 'body' in input ? input.body : undefined
  return !isStream(init?.body) && !isStream(ofRequest)
}

function urlOf(input: unknown): string {
  return typeof input === 'object' && input !== null && 'url' in input ? String(input.url) : String(input)
}

/** An address without a host is the page's own. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host || 'local' : 'local'
}

function check(fetch: unknown, options: LimitedFetchOptions): void {
  if (typeof fetch !== 'function') throw invalid('fetch', fetch, 'must be a function such as globalThis.fetch')
  onlyKnown(options, OPTION_NAMES, 'limitedFetch')
  const { limit, limiter, key, timeoutMs = 0, retries = 0, maxPauseMs = 0 } = options
  if ((limit === undefined) === (limiter === undefined)) throw invalid('limit', limit, 'or `limiter`: one of the two must be given')
  if (key !== undefined && typeof key !== 'function') throw invalid('key', key, 'must be a function of the address')
  if (!Number.isInteger(retries) || retries < 0) throw invalid('retries', retries, 'must be a whole number, 0 or more')
  for (const [name, ms] of Object.entries({ timeoutMs, maxPauseMs })) {
    if (typeof ms !== 'number' || !(ms >= 0)) throw invalid(name, ms, 'must be milliseconds, 0 or more')
  }
}

function invalid(what: string, value: unknown, rule: string): SluiceError {
  return new SluiceError('CONFIG', `${what} ${shown(value)} ${rule}`)
}

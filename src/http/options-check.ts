/**
 * Options are checked when the middleware is made: a wrong one is told with the value, the rule,
 * and where it can be guessed, the line to write.
 */
import { durationMeant, onlyKnown } from '../algorithms/rate.ts'
import { SluiceError, shown } from '../errors.ts'
import type { FailurePolicy } from '../stores/remote/fallback.ts'
import type { Store } from '../stores/store.ts'
import { byIpInstead } from './address-headers.ts'
import { isHeaderName } from './fields.ts'
import type { AnyLimiter } from './limiters.ts'
import { CHOICE_NAMES, type HttpOptions, LIMIT_NAMES } from './options.ts'

const FUNCTIONS = ['plan', 'skip', 'refundWhen', 'settle', 'onLimited', 'onNearLimit', 'partitionKey', 'answer'] as const

/**
 * `more`: options that one adapter has on top. `needsLimits`: false if there is a limiter already.
 */
export function checkHttpOptions(options: object, more: readonly string[] = [], needsLimits = true): void {
  if (typeof options === 'object' && options !== null) refuseOthersOptions(options as Fields, more)
  onlyKnown(options, [...LIMIT_NAMES, ...CHOICE_NAMES, ...more], 'rateLimit')
  const { key, shadow = false, maxWaitMs = 0, maxQueue = 0, maxHoldMs = 0, nearLimit = 1, ...rest } = options as HttpOptions<unknown>
  if (needsLimits) checkLimits(options as HttpOptions<unknown>)
  for (const name of FUNCTIONS) {
    const given: unknown = (rest as Record<string, unknown>)[name]
    if (given !== undefined && typeof given !== 'function') throw invalid(name, given, 'must be a function')
  }
  checkKey(key)
  if (typeof shadow !== 'boolean') throw invalid('shadow', shadow, 'must be true or false')
  if (typeof maxWaitMs !== 'number' || !(maxWaitMs >= 0)) throw invalid('maxWaitMs', maxWaitMs, 'must be milliseconds, 0 or more')
  if (typeof maxHoldMs !== 'number' || !(maxHoldMs >= 0)) throw invalid('maxHoldMs', maxHoldMs, 'must be milliseconds, 0 or more')
  if (maxQueue !== Number.POSITIVE_INFINITY && !(Number.isInteger(maxQueue) && maxQueue >= 0)) {
    throw invalid('maxQueue', maxQueue, 'must be a whole number, 0 or more, or Infinity')
  }
  if (typeof nearLimit !== 'number' || !(nearLimit > 0 && nearLimit <= 1))
    throw invalid('nearLimit', nearLimit, 'must be above 0 and at most 1')
}

function checkLimits({ limit, limiter, limiterOptions }: HttpOptions<unknown>): void {
  if ((limit === undefined) === (limiter === undefined)) {
    throw invalid('limit', limit ?? limiter, 'or `limiter`: one of the two must be given, and not both')
  }
  if (limiter !== undefined && typeof (limiter as { consume?: unknown } | null)?.consume !== 'function') {
    throw invalid('limiter', limiter, 'must be made by createLimiter')
  }
  if (limiterOptions !== undefined && limit === undefined) {
    throw invalid('limiterOptions', limiterOptions, 'belong to `limit`: a `limiter` has its own')
  }
}

function checkKey(key: unknown): void {
  if (key === undefined || typeof key === 'function') return
  const all = typeof key === 'object' && key !== null ? Object.values(key) : [key]
  const text = all.find((each) => typeof each === 'string')
  if (text !== undefined) throw invalid('key', text, `is a text, one limit over all requests: did you mean ${insteadOfText(text)}?`)
  if (key === null || all.length === 0 || !all.every((each) => typeof each === 'function')) {
    throw invalid('key', key, 'must be a function such as byIp(), or one for each limit by name')
  }
}

function insteadOfText(text: string): string {
  const byAddress = text === 'ip' ? 'byIp()' : byIpInstead(text)
  const byName = byAddress ?? (isHeaderName(text) && text !== 'everyone' ? `byHeader('${text}')` : undefined)
  return byName === undefined ? 'everyone' : `${byName}, or everyone`
}

/** What an outage of the store does to users is not left to chance. `where`: where to say it. */
export function checkPolicy({ store, onStoreError }: { store?: Store; onStoreError?: FailurePolicy | undefined }, where: string): void {
  if (store?.mode !== 'async' || onStoreError !== undefined) return
  throw new SluiceError(
    'CONFIG',
    `rateLimit onStoreError undefined: say in ${where} what happens to requests while the store is away. ${CHOICES}`,
  )
}

const CHOICES =
  "'local': this process decides by itself, with its localShare of the limit. 'allow': all pass. 'deny': all are refused with 503. 'throw': all fail, with the error that your error handler answers."

/**
 * Without `maxWaitMs` a request goes on at once, though the bucket says that it has to wait for
 * `delayMs`.
 */
export function withoutDelays<Limiter extends Pick<AnyLimiter, 'scope'>>(limiter: Limiter): Limiter {
  const delaying = limiter.scope().limits.find(({ rule }) => rule.algorithm.spaced)
  if (delaying === undefined) return limiter
  throw new SluiceError(
    'CONFIG',
    `rateLimit maxWaitMs 0: limit '${delaying.name}' is a leakyBucket, whose requests wait for their turn, and here none would. Say maxWaitMs: 5_000, or take tokenBucket({ capacity, refill }), which admits the same at once`,
  )
}

type Fields = Readonly<Record<string, unknown>>

/**
 * How many, and in what time: by the names that other libraries have for them. `duration` is in
 * seconds, the others in milliseconds.
 */
const OTHERS_LIMITS = ['max', 'points', 'limit']
const OTHERS_WINDOWS = ['windowMs', 'timeWindow', 'ttl', 'duration']
/** Names that other libraries have for our options. */
const OTHERS_NAMES: Readonly<Record<string, string>> = {
  keyGenerator: 'key',
  generateKey: 'key',
  getTracker: 'key',
  skipIf: 'skip',
  allowList: 'skip',
  handler: 'answer',
  errorResponseBuilder: 'answer',
  errorMessage: 'body',
  message: 'body',
  statusCode: 'status',
  standardHeaders: 'headers',
  legacyHeaders: 'headers',
  store: 'limiterOptions: { store }',
  skipSuccessfulRequests: 'refundWhen: ({ status }) => status < 400',
  skipFailedRequests: 'refundWhen: ({ status }) => status >= 400',
  onExceeded: 'onLimited',
  onExceeding: 'onNearLimit',
}

/** Told with the line to write. */
function refuseOthersOptions(options: Fields, more: readonly string[]): void {
  const window = OTHERS_WINDOWS.find((name) => Object.hasOwn(options, name))
  const limit = OTHERS_LIMITS.find((name) => Object.hasOwn(options, name) && typeof options[name] !== 'object')
  if (window !== undefined || (limit !== undefined && limit !== 'limit')) {
    const name = (window ?? limit) as string
    throw invalid(
      'rateLimit',
      name,
      `is not an option: did you mean limit: fixedWindow({ ${countIn(options, limit)}, ${windowIn(options, window)} })?`,
    )
  }
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(OTHERS_NAMES, name) && !more.includes(name)) {
      throw invalid('rateLimit', name, `is not an option: did you mean ${OTHERS_NAMES[name]}?`)
    }
  }
}

function countIn(options: Fields, limit: string | undefined): string {
  const given = limit === undefined ? undefined : options[limit]
  return `limit: ${typeof given === 'number' ? given : 100}`
}

function windowIn(options: Fields, window: string | undefined): string {
  const given = window === undefined ? '' : options[window]
  const unit = window === 'duration' ? 's' : 'ms'
  return `window: '${(typeof given === 'number' ? `${given}${unit}` : durationMeant(String(given))) || '1min'}'`
}

function invalid(what: string, value: unknown, rule: string): SluiceError {
  return new SluiceError('CONFIG', `${what} ${shown(value)} ${rule}`)
}

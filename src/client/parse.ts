/** Reads the limits that a server reports, in any of the common forms. */
import { type Bare, dictionaryOf, type Item, itemsOf } from './structured-fields.ts'

/** The parts of `Headers` that are needed. */
export interface HeadersLike {
  get(name: string): string | null | undefined
}

/** One limit, as far as the server told. */
export interface ToldLimit {
  /** Its name, in the forms that have names. */
  readonly policy: string | undefined
  /** The calls that it admits in a window. */
  readonly limit: number | undefined
  /** The calls left. */
  readonly remaining: number | undefined
  /** How long until there is more, in milliseconds from now. */
  readonly resetAfterMs: number | undefined
  readonly windowMs: number | undefined
}

export interface ToldLimits {
  /** `Retry-After`: how long to stay away, in milliseconds from now. */
  readonly retryAfterMs: number | undefined
  readonly limits: readonly ToldLimit[]
}

/** A time that is further away than a century is ignored. */
const MAX_MS = 100 * 366 * 86_400_000
/**
 * A number below this is a span of seconds, one above a time since 1970: no server asks for a wait
 * of thirty years, and it is long past 2001.
 */
const EPOCH_SECONDS = 1_000_000_000
const EPOCH_MILLISECONDS = 100_000_000_000
/** Longer than any field that was ever meant. */
const MAX_LENGTH = 4096

/**
 * `nowMs`: the time since 1970. A server's own `Date` is used instead where there is one, because
 * only the difference counts.
 */
export function parseRateLimit(headers: HeadersLike, nowMs: number = Date.now()): ToldLimits {
  const field = (name: string) => {
    const text = headers.get(name)
    return typeof text === 'string' && text.length <= MAX_LENGTH ? text.trim() : undefined
  }
  const date = field('date')
  const serverMs = date === undefined ? undefined : dateMs(date)
  const sinceMs = serverMs ?? nowMs
  const retryAfter = field('retry-after')
  return {
    retryAfterMs: retryAfter === undefined ? undefined : retryMs(retryAfter, sinceMs),
    limits: structured(field) ?? dictionary(field) ?? FAMILIES.flatMap((family) => separate(field, family, sinceMs)),
  }
}

type Field = (name: string) => string | undefined

/** Drafts 8 to 11: `"burst";r=50;t=30`, with the policies in a field of their own. */
function structured(field: Field): ToldLimit[] | undefined {
  const items = listed(field('ratelimit'))?.filter(({ parameters }) => typeof parameters.get('r') === 'number')
  if (items === undefined || items.length === 0) return undefined
  const policies = listed(field('ratelimit-policy')) ?? []
  return items.map(({ value, parameters }) => {
    const policy = policies.find((each) => each.value === value)?.parameters
    return {
      policy: String(value),
      limit: amount(policy?.get('q')),
      remaining: amount(parameters.get('r')),
      resetAfterMs: milliseconds(parameters.get('t')),
      windowMs: milliseconds(policy?.get('w')),
    }
  })
}

function listed(text: string | undefined): Item[] | undefined {
  return text === undefined ? undefined : itemsOf(text)
}

/** Draft 7: `limit=100, remaining=50, reset=5`. */
function dictionary(field: Field): ToldLimit[] | undefined {
  const text = field('ratelimit')
  const members = text === undefined ? undefined : dictionaryOf(text)
  if (members === undefined || !members.has('remaining')) return undefined
  const limit = amount(members.get('limit'))
  const policy = listed(field('ratelimit-policy'))?.find(({ value }) => value === limit)
  const resetAfterMs = milliseconds(members.get('reset'))
  return [
    {
      policy: undefined,
      limit,
      remaining: amount(members.get('remaining')),
      resetAfterMs,
      windowMs: milliseconds(policy?.parameters.get('w')),
    },
  ]
}

/** Fields of their own for limit, remaining and reset: draft 6, and what was before any draft. */
type Family = (what: 'limit' | 'remaining' | 'reset') => string

const FAMILIES: readonly Family[] = [
  (what) => `ratelimit-${what}`,
  (what) => `x-ratelimit-${what}`,
  (what) => `x-rate-limit-${what}`,
  (what) => `x-ratelimit-${what}-requests`,
  (what) => `x-ratelimit-${what}-tokens`,
  (what) => `anthropic-ratelimit-requests-${what}`,
  (what) => `anthropic-ratelimit-tokens-${what}`,
]

function separate(field: Field, family: Family, sinceMs: number): ToldLimit[] {
  const remaining = leadingNumber(field(family('remaining')))
  const limit = leadingNumber(field(family('limit')))
  const reset = field(family('reset')) ?? field(`${family('reset')}-after`)
  if (remaining === undefined && limit === undefined) return []
  const resetAfterMs = reset === undefined ? undefined : resetMs(reset, sinceMs)
  return [{ policy: undefined, limit, remaining, resetAfterMs, windowMs: undefined }]
}

/** `100, 100;w=60` of draft 6 begins with what counts. */
function leadingNumber(text: string | undefined): number | undefined {
  const found = text === undefined ? null : /^\d{1,15}(?![\d.])/.exec(text)
  return found === null ? undefined : Number(found[0])
}

/**
 * Sent by two hops, it is joined with a comma. A number too large to be meant still means to stay
 * away.
 */
function retryMs(text: string, sinceMs: number): number | undefined {
  const first = /^(\d+)\s*(?:,|$)/.exec(text)?.[1]
  return first === undefined ? resetMs(text, sinceMs) : (resetMs(first, sinceMs) ?? MAX_MS)
}

/**
 * A time to wait until, however it is written: seconds, a time since 1970, a date, or `6m0s`. In
 * milliseconds from now, never below 0.
 */
function resetMs(text: string, sinceMs: number): number | undefined {
  const seconds = /^\d{1,15}(\.\d{1,9})?$/.test(text) ? Number(text) : undefined
  const ms = seconds === undefined ? (spanMs(text) ?? sinceDate(text, sinceMs)) : ofNumber(seconds, sinceMs)
  return ms === undefined || !(ms <= MAX_MS) ? undefined : Math.max(0, Math.ceil(ms))
}

function ofNumber(value: number, sinceMs: number): number {
  if (value >= EPOCH_MILLISECONDS) return value - sinceMs
  return value >= EPOCH_SECONDS ? value * 1000 - sinceMs : value * 1000
}

const UNITS_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 }

function spanMs(text: string): number | undefined {
  const match = /^(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,9}(?:\.\d{1,9})?)(s|ms))?$/.exec(text)
  if (match === null || text === '') return undefined
  const [, hours = 0, minutes = 0, rest = 0, unit = 's'] = match
  return Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(rest) * (UNITS_MS[unit] as number)
}

function sinceDate(text: string, sinceMs: number): number | undefined {
  const ms = dateMs(text)
  return ms === undefined ? undefined : ms - sinceMs
}

/**
 * An HTTP date or one of ISO 8601. `Date.parse` alone reads far too much as a date, and takes one
 * without a zone for the time of this machine.
 */
function dateMs(text: string): number | undefined {
  if (!/^(?:[A-Z][a-z]{2,8},? \S.{8,40}|\d{4}-\d\d-\d\dT\d\d:\d\d.{0,20})$/.test(text)) return undefined
  const hasZone = /(?:[A-Z]{1,4}|[+-]\d\d:?\d\d)(?: \([^)]*\))?$/i.test(text)
  const ms = Date.parse(hasZone ? text : text.includes('T') && /^\d/.test(text) ? `${text}Z` : `${text} GMT`)
  return Number.isNaN(ms) ? undefined : ms
}

function amount(value: Bare | undefined): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined
}

function milliseconds(seconds: Bare | undefined): number | undefined {
  return typeof seconds === 'number' && seconds >= 0 && seconds * 1000 <= MAX_MS ? seconds * 1000 : undefined
}

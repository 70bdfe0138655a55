/**
 * From what people write ('10/s', '5min') to whole numbers, and the domain: nothing inside it is
 * refused, everything outside is.
 */
import { SluiceError, shown } from '../errors.ts'
import { greatestCommonDivisor } from './arithmetic.ts'

const DAY_US = 86_400_000_000

export const MAX_PERMITS = 1_000_000_000
/** The largest cost of what is charged whether it fits or not. */
export const MAX_COST = 1_000_000_000_000
/** The largest count of a window. */
export const MAX_COUNT = 4_294_967_295
export const MAX_PERIOD_US = 366 * DAY_US
export const MAX_PERMITS_PER_US = 10
export const MAX_FILL_US = 36_525 * DAY_US
/** So many units of a level are in use at most (level.ts). */
export const MOST_UNITS = 4_503_599_627_370_496
/** How far ahead a limiter books, if it is not told otherwise. */
export const DEFAULT_AHEAD_US = 60_000_000
/**
 * The latest time, in the year 2112: with the longest that a level takes to drain on top it stays
 * exact.
 */
export const MAX_NOW_US = 4_503_599_627_370_496

/** A number with a unit, exact to the microsecond: `'500ms' '10s' '5min' '1h' '1d'`. */
export type Duration = `${number}${DurationUnit}`
export type DurationUnit = 'us' | 'ms' | 's' | 'min' | 'h' | 'd'

/** `'10/s'`, `'100/min'`, `'5/10s'`, or the same in two fields. */
export type Rate = `${number}/${DurationUnit}` | `${number}/${number}${DurationUnit}` | { permits: number; per: Duration }

const UNIT_US: Readonly<Record<DurationUnit, number>> = {
  us: 1,
  ms: 1_000,
  s: 1_000_000,
  min: 60_000_000,
  h: 3_600_000_000,
  d: DAY_US,
}

const UNITS = Object.keys(UNIT_US).join(', ')

/** A duration in the units of others. */
const OTHERS_DURATION =
  /^(\d+(?:\.\d+)?) *(?:(?<us>us|µs|usec|microsecond)|(?<ms>ms|msec|millisecond)|(?<s>s|sec|second)|(?<min>m|min|minute)|(?<h>h|hr|hour)|(?<d>d|day)|(?<w>w|week))s?$/i

const DURATION = /^(\d+(?:\.\d+)?) ?([a-z]+)$/

/**
 * Whole microseconds of a duration from 1 microsecond to 366 days. `what` names the option in
 * errors.
 */
export function durationUs(duration: Duration, what: string): number {
  const [, amount, unit = ''] = (typeof duration === 'string' && DURATION.exec(duration)) || []
  if (!isUnit(unit)) throw invalid(what, duration, ruleForSpan(duration))
  return wholeUs(Number(amount), UNIT_US[unit], duration, what, 'must be from 1 microsecond to 366 days')
}

/**
 * 333.334 ms is 333334 us although the product is not: it counts as whole if dividing gives back
 * the number that was written.
 */
function wholeUs(amount: number, unitUs: number, written: unknown, what: string, range: string): number {
  const us = Math.round(amount * unitUs)
  if (us / unitUs !== amount) throw invalid(what, written, 'must be a whole number of microseconds')
  if (us < 1 || us > MAX_PERIOD_US) throw invalid(what, written, range)
  return us
}

/** What is wrong with a span of time that has no unit, or one of others. */
function ruleForSpan(written: unknown): string {
  const text = typeof written === 'object' ? '' : String(written)
  if (/^\d+(\.\d+)?$/.test(text)) {
    const inSeconds = Number(text) * UNIT_US.s > MAX_PERIOD_US ? '' : `'${text}s' or `
    return `of what? write ${inSeconds}'${text}ms'`
  }
  return `must be a number with a unit (${UNITS}), such as '500ms' or '10s'${didYouMean(durationMeant(text))}`
}

/** `1 hour` as `1h`, `2 weeks` as `14d`; empty where there is no guess. */
export function durationMeant(text: string): string {
  const match = OTHERS_DURATION.exec(text)
  const [unit] = Object.entries(match?.groups ?? {}).find(([, word]) => word) ?? ['']
  return unit === 'w' ? `${7 * Number(match?.[1])}d` : unit && `${match?.[1]}${unit}`
}

/** The end of a message. */
function didYouMean(text: string): string {
  return text && `: did you mean '${text}'?`
}

/** Its own units only: every object also inherits a `constructor`. */
function isUnit(text: string): text is DurationUnit {
  return Object.hasOwn(UNIT_US, text)
}

/** Permits per microseconds, in lowest terms. */
export interface Pace {
  readonly permits: number
  readonly periodUs: number
}

/** `capacity`: the option beside the rate by which a limit admits nothing at all. */
export function paceOf(rate: Rate, what: string, capacity?: string): Pace {
  const { permits, per } = typeof rate === 'string' ? splitRate(rate, what) : fieldsOfRate(rate, what)
  if (permits === 0 && capacity !== undefined) {
    throw invalid(what, rate, `must be at least 1 permit: for a limit that admits nothing write ${capacity}: 0`)
  }
  const wholePermits = permitsOf(permits, `${what}: permits`, 1, () => didYouMean(wholeRate(permits, per)))
  const periodUs = durationUs(per, `${what}: period`)
  if (wholePermits > MAX_PERMITS_PER_US * periodUs) throw invalid(what, rate, 'must be at most 10 million permits per second')
  return lowestTerms(wholePermits, periodUs)
}

export function lowestTerms(permits: number, periodUs: number): Pace {
  const divisor = greatestCommonDivisor(permits, periodUs)
  return { permits: permits / divisor, periodUs: periodUs / divisor }
}

function splitRate(rate: string, what: string): { permits: number; per: Duration } {
  const match = /^(\d+(?:\.\d+)?(?:e\d+)?) ?\/ ?(\d+(?:\.\d+)?)? ?([a-z]+)$/.exec(rate)
  if (isUnit(match?.[3] ?? '')) return { permits: Number(match?.[1]), per: `${match?.[2] ?? '1'}${match?.[3]}` as Duration }
  const [, permits, per = ''] = /^(\d+(?:\.\d+)?) *(?:\/|per) *(.+)$/.exec(rate) ?? []
  const meant = didYouMean(wholeRate(Number(permits), durationMeant(per.replace(/^(?=\D)/, '1'))))
  throw invalid(what, rate, `must be permits per time with a unit (${UNITS}), such as '10/s' or '5/10s'${meant}`)
}

/** 0.5 permits in `1s` as `1/2s`; empty where there is none, or no such text. */
function wholeRate(permits: number, per: string): string {
  const [, amount, unit] = (typeof per === 'string' && DURATION.exec(per)) || []
  if (unit === undefined || !Number.isFinite(permits) || permits <= 0 || permits > MAX_PERMITS) return ''
  let scale = 1
  while (Math.round(permits * scale) / scale !== permits) {
    if (scale === MAX_PERMITS) return ''
    scale *= 10
  }
  const whole = lowestTerms(Math.round(permits * scale), scale)
  return `${whole.permits}/${whole.periodUs * Number(amount)}${unit}`.replace(/\/1(?=[a-z])/, '/')
}

function fieldsOfRate(rate: Exclude<Rate, string>, what: string): { permits: number; per: Duration } {
  if (typeof rate !== 'object' || rate === null) {
    throw invalid(what, rate, "must be permits per time, such as '10/s' or { permits: 10, per: '1s' }")
  }
  onlyKnown(rate, ['permits', 'per'], what)
  return rate
}

/** A whole number of permits in the domain. A limit that admits nothing has a capacity of 0. */
export function permitsOf(value: number, what: string, least = 1, hint = () => ''): number {
  if (!Number.isInteger(value) || value < least || value > MAX_PERMITS) {
    throw invalid(what, value, `must be a whole number from ${least} to 1,000,000,000${hint()}`)
  }
  return value
}

/** How far ahead reservations may be booked: 0 (none) to 366 days, in milliseconds at the edge. */
export function aheadUs(ms: number, what: string): number {
  const range = 'must be milliseconds: 0, or from 1 microsecond to 366 days'
  if (!Number.isFinite(ms)) throw invalid(what, ms, range)
  return ms === 0 ? 0 : wholeUs(ms, UNIT_US.ms, ms, what, range)
}

/** The line to write, for options that are those of other libraries. */
export function hintFor(name: string): string {
  return /^(windowMs|max|points|duration|ttl)$/.test(name) ? ". Did you mean fixedWindow({ limit: 100, window: '1min' })?" : ''
}

/** Refuses unknown options, so that a misspelt one is not silently ignored. */
export function onlyKnown(options: object, known: readonly string[], what: string, hint: (name: string) => string = hintFor): void {
  if (typeof options !== 'object' || options === null) throw invalid(what, options, `must be an object with ${known.join(', ')}`)
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw invalid(what, name, `is not an option: it has ${known.join(', ')}${hint(name)}`)
  }
}

/**
 * The options of a factory. They may carry the factory's own name as `type`, so that a limit can be
 * given back to it.
 */
export function onlyOptionsOf(type: string, options: object, known: readonly string[]): void {
  const { type: given = type, ...rest } = (options ?? {}) as { type?: unknown }
  onlyKnown(options === null || typeof options !== 'object' ? options : rest, known, type)
  if (given !== type) throw invalid(type, given, `is another type: leave it out or say '${type}'`)
}

/** `nearest`: the value nearest to the wrong one that works. */
export function invalid(what: string, value: unknown, rule: string, nearest?: number | string): SluiceError {
  return new SluiceError('CONFIG', `${what} ${shown(value)} ${rule}`, { nearest })
}

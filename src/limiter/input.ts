/** Arguments of the verbs, checked before anything is touched. */
import { invalid, MAX_NOW_US } from '../algorithms/rate.ts'
import { SluiceError, shown } from '../errors.ts'
import { checkKey, isKey } from '../stores/key.ts'
import type { Abortable } from '../stores/queue/signals.ts'

export type { Abortable } from '../stores/queue/signals.ts'

/** The options of the verbs. */
export const VERB_OPTIONS = ['plan']
export const RESERVE_OPTIONS = ['plan', 'maxWaitMs']
export const SETTLE_OPTIONS = ['plan', 'of', 'cost']
export const ACQUIRE_OPTIONS = ['cost', 'plan', 'timeoutMs', 'signal']

/** The line to write, where a verb that answers at once is given options of one that waits. */
export function hintToWait(name: string): string {
  return name === 'timeoutMs' || name === 'signal' ? `. To wait, write await limiter.acquire(key, { cost, ${name} })` : ''
}

/** One key for all limits, or one for each by name. */
export type Key<Name extends string> = string | Readonly<Record<Name, string>>

/** One cost for all limits, or one for each by name. */
export type Cost<Name extends string> = number | Readonly<Record<Name, number>>

/** The limits that a key or a cost may be given for. */
type Named<Name extends string> = readonly { readonly name: Name }[]

export function isCost(cost: unknown, most: number): cost is number {
  return Number.isInteger(cost) && (cost as number) >= 0 && (cost as number) <= most
}

export function keyFor<Name extends string>(keys: Key<Name>, name: Name): string {
  return isKey(keys) ? keys : keyNamed(keys, name)
}

function keyNamed<Name extends string>(keys: Key<Name>, name: Name): string {
  const key = typeof keys === 'object' && keys !== null ? keys[name] : keys
  checkKey(key, ofLimit(keys, name))
  return key
}

/**
 * The cost for a limit, `most` at most. What was used may be more than a cost that has to fit: more
 * than any capacity.
 */
export function costFor<Name extends string>(costs: Cost<Name>, name: Name, most: number, what = 'cost'): number {
  const cost = typeof costs === 'object' && costs !== null ? costs[name] : costs
  if (isCost(cost, most)) return cost
  throw new SluiceError(
    'COST',
    `${what} ${shown(cost)}${ofLimit(costs, name)} must be a whole number from 0 to ${most.toLocaleString('en')}`,
  )
}

/** Where one was given for each limit, the message says which is wrong. */
function ofLimit(given: unknown, name: string): string {
  return typeof given === 'object' && given !== null ? ` of limit '${name}'` : ''
}

/** Refuses keys and costs for names that no limit has: a misspelt one must not go unnoticed. */
export function checkNames<Name extends string>(keys: Key<Name>, costs: Cost<Name>, limits: Named<Name>, what = 'cost'): void {
  if (typeof keys === 'object' && keys !== null) checkGiven(keys, limits, 'KEY', 'key')
  if (typeof costs === 'object' && costs !== null) checkGiven(costs, limits, 'COST', what)
}

function checkGiven(given: object, limits: Named<string>, code: 'KEY' | 'COST', what: string): void {
  const names = Object.keys(given)
  // Where every limit is among them and they are no more than those, there is no other.
  if (names.length <= limits.length && limits.every(({ name }) => Object.hasOwn(given, name))) return
  const known = new Set(limits.map(({ name }) => name))
  const unknown = names.find((name) => !known.has(name))
  if (unknown === undefined) return
  throw new SluiceError(code, `${what} for ${shown(unknown)}: there is no such limit, there is ${[...known].join(', ')}`)
}

/**
 * Callers that get promises get wrong input as a rejection too: what an async function would give,
 * without its detours.
 */
export function promised<L, A extends unknown[], T>(verb: (this: L, ...args: A) => Promise<T>, limiter: L, ...args: A): Promise<T> {
  try {
    return verb.apply(limiter, args)
  } catch (error) {
    return Promise.reject(error)
  }
}

/**
 * A span given by a caller, in whole microseconds: rounded down, because it bounds what the caller
 * is willing to do.
 */
export function spanUs(ms: number, what: string): number {
  const us = Math.round(milliseconds(ms, what) * 1000)
  return Math.min(us / 1000 <= ms ? us : us - 1, Number.MAX_SAFE_INTEGER)
}

/** How long a caller is willing to wait: without a time, for ever. */
export function timeoutUs(ms: number | undefined): number {
  return ms === undefined || ms === Number.POSITIVE_INFINITY ? Number.POSITIVE_INFINITY : spanUs(ms, 'timeoutMs')
}

export function checkSignal(signal: Abortable | undefined): void {
  if (signal === undefined || (typeof signal?.addEventListener === 'function' && 'aborted' in signal)) return
  throw invalid('signal', signal, 'must be an AbortSignal')
}

/**
 * A decision's `atMs` given back: it was a whole number of microseconds, and rounding finds it
 * again.
 */
export function instantUs(ms: number, what: string): number {
  const us = Math.round(milliseconds(ms, what) * 1000)
  if (us <= MAX_NOW_US) return us
  throw invalid(what, ms, `must be a time in milliseconds, at most ${MAX_NOW_US / 1000}`)
}

function milliseconds(ms: number, what: string): number {
  if (typeof ms === 'number' && ms >= 0) return ms
  throw invalid(what, ms, 'must be milliseconds, 0 or more')
}

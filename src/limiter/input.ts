/** What callers pass to the verbs, checked before anything is touched. */
import { MAX_PERMITS } from '../algorithms/rate.ts'
import { SluiceError, shown } from '../errors.ts'

export const MAX_KEY_LENGTH = 1024

/** One key for all limits, or one for each by name. */
export type Key<Name extends string> = string | Readonly<Record<Name, string>>

/** One cost for all limits, or one for each by name. */
export type Cost<Name extends string> = number | Readonly<Record<Name, number>>

export function keyFor<Name extends string>(keys: Key<Name>, name: Name, names: readonly Name[]): string {
  const key = perLimit(keys, name, names, 'KEY', 'key')
  if (typeof key === 'string' && key.length > 0 && key.length <= MAX_KEY_LENGTH) return key
  throw new SluiceError('KEY', `key ${shown(key)} must be a string of 1 to ${MAX_KEY_LENGTH} characters`)
}

export function costFor<Name extends string>(costs: Cost<Name>, name: Name, names: readonly Name[]): number {
  const cost = perLimit(costs, name, names, 'COST', 'cost')
  if (Number.isInteger(cost) && cost >= 0 && cost <= MAX_PERMITS) return cost
  throw new SluiceError('COST', `cost ${shown(cost)} must be a whole number from 0 to 1,000,000,000`)
}

function perLimit<Name extends string, Value>(
  given: Value | Readonly<Record<Name, Value>>,
  name: Name,
  names: readonly Name[],
  code: 'KEY' | 'COST',
  what: string,
): Value {
  if (typeof given !== 'object' || given === null) return given as Value
  const byName = given as Readonly<Record<Name, Value>>
  for (const other of Object.keys(byName)) {
    if (!names.includes(other as Name)) {
      throw new SluiceError(code, `${what} for ${shown(other)}: there is no such limit, there is ${names.join(', ')}`)
    }
  }
  return byName[name]
}

/** A span given by a caller, in whole microseconds: rounded down, because it bounds what the caller is willing to do. */
export function spanUs(ms: number, what: string): number {
  return Math.min(Math.floor(milliseconds(ms, what) * 1000), Number.MAX_SAFE_INTEGER)
}

/** A decision's `atMs` given back: it was a whole number of microseconds, and rounding finds it again. */
export function instantUs(ms: number, what: string): number {
  return Math.round(milliseconds(ms, what) * 1000)
}

function milliseconds(ms: number, what: string): number {
  if (typeof ms === 'number' && ms >= 0) return ms
  throw new SluiceError('CONFIG', `${what} ${shown(ms)} must be milliseconds, 0 or more`)
}

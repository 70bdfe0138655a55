/**
 * From what `key` may be (a function, or one for each limit) to one function of a request.
 */
import type { Key } from '../limiter/input.ts'
import { byIp } from './by-ip.ts'
import type { KeyFunction } from './keys.ts'
import type { KeySource } from './options.ts'
import { disregard, isPromise, type MaybePromise, whenKnown } from './request.ts'
import { shortKey, shortKeys } from './short-key.ts'

type AnyKey = Key<string>

export function keyFunction<Native>(source: KeySource<Native, string> | undefined): KeyFunction<Native, AnyKey> {
  if (source === undefined) return byIp()
  if (typeof source === 'function') return shortened(source as KeyFunction<Native, AnyKey>)
  const named = Object.entries(source).map(([name, each]) => [name, shortened(each)] as const)
  return (native, http) => {
    const found: (readonly [string, MaybePromise<AnyKey>])[] = []
    try {
      for (const [name, keyOf] of named) found.push([name, keyOf(native, http)])
    } catch (error) {
      disregard(...found.map(([, key]) => key))
      throw error
    }
    if (!found.some(([, key]) => isPromise(key))) return Object.fromEntries(found) as Record<string, string>
    return Promise.all(found.map(async ([name, key]) => [name, await key] as const)).then(Object.fromEntries)
  }
}

/** The functions among the sources. */
export function functionsIn<Native>(source: KeySource<Native, string> | undefined): object[] {
  if (source === undefined) return []
  return typeof source === 'function' ? [source] : Object.values(source)
}

/**
 * A key found in a request may be of any length and a piece of anything: it must neither be an
 * error of ours nor keep the whole request.
 */
function shortened<Native>(keyOf: KeyFunction<Native, AnyKey>): KeyFunction<Native, AnyKey> {
  if (shortKeys.has(keyOf)) return keyOf
  return (native, http) => whenKnown(keyOf(native, http), shortOf)
}

/** An invalid key stays as it is: the limiter refuses it. */
function shortOf(key: AnyKey): AnyKey {
  if (typeof key === 'string') return key === '' ? key : shortKey(key)
  if (typeof key !== 'object' || key === null) return key
  return Object.fromEntries(Object.entries(key).map(([name, each]) => [name, shortOf(each) as string]))
}

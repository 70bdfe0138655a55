/**
 * Waiting without writing `acquire`: functions that wait their turn, and work that comes at the
 * limiter's pace.
 */
import { onlyKnown } from '../algorithms/rate.ts'
import { SluiceError, shown } from '../errors.ts'
import { type Abortable, ACQUIRE_OPTIONS, type Cost, type Key } from './input.ts'
import type { AcquireOptions, WaitOptions } from './limiter.ts'

/** Acts when it is the turn of a call. `bounds`: undefined where it waits as long as it takes. */
type ActInTurn<Name extends string, P extends string> = (
  key: Key<Name>,
  cost: Cost<Name>,
  bounds: WaitOptions<P> | undefined,
  act: () => unknown,
) => unknown

/** How each call, or each item, waits: as `acquire` does. */
export interface PaceOptions<Name extends string, P extends string, From extends readonly unknown[]> extends WaitOptions<P> {
  /** The cost: one for all, or found from the arguments or the item. Default 1. */
  readonly cost?: Cost<Name> | ((...from: From) => Cost<Name>) | undefined
}

export type AnyFunction = (this: never, ...args: never[]) => unknown

/** The same function, answering with a promise. */
export type Wrapped<Fn extends AnyFunction> = (this: ThisParameterType<Fn>, ...args: Parameters<Fn>) => Promise<Awaited<ReturnType<Fn>>>

export function wrapped<Name extends string, P extends string, Fn extends AnyFunction>(
  inTurn: ActInTurn<Name, P>,
  key: Key<Name> | ((...args: Parameters<Fn>) => Key<Name>),
  fn: Fn,
  options: PaceOptions<Name, P, Parameters<Fn>>,
): Wrapped<Fn> {
  if (typeof fn !== 'function') throw new SluiceError('CONFIG', `what wrap is given, ${shown(fn)}, must be a function`)
  onlyKnown(options, ACQUIRE_OPTIONS, 'the options of wrap')
  const { cost = 1, ...rest } = options
  const bounds = Object.keys(rest).length > 0 ? rest : undefined
  return async function (this: ThisParameterType<Fn>, ...args: Parameters<Fn>): Promise<Awaited<ReturnType<Fn>>> {
    const act = () => fn.apply(this as never, args as never)
    return inTurn(found(key, args), found(cost, args), bounds, act) as Awaited<ReturnType<Fn>>
  }
}

function isIterable(source: unknown): boolean {
  const { [Symbol.iterator]: now, [Symbol.asyncIterator]: later } = Object(source)
  return typeof now === 'function' || typeof later === 'function'
}

/** `acquire` that also ends when `ended` does. */
type AcquireUntil<Name extends string, P extends string> = (
  key: Key<Name>,
  options: AcquireOptions<Name, P>,
  ended: Abortable,
) => Promise<unknown>

/**
 * A generator answers one call after the other: by itself `return()` would stand behind a `next()`
 * that waits for its turn. So ending it ends that wait first, which then takes nothing.
 */
export function paced<Name extends string, P extends string, Item>(
  acquire: AcquireUntil<Name, P>,
  key: Key<Name> | ((item: Item) => Key<Name>),
  source: Iterable<Item> | AsyncIterable<Item>,
  options: PaceOptions<Name, P, [item: Item]>,
): AsyncGenerator<Item, void, undefined> {
  if (!isIterable(source)) throw new SluiceError('CONFIG', `what pace is given, ${shown(source)}, must be an iterable or an async iterable`)
  onlyKnown(options, ACQUIRE_OPTIONS, 'the options of pace')
  const ended = new AbortController()
  const items = pacedItems(acquire, key, source, options, ended.signal)
  const { return: endWith, throw: failWith } = items
  items.return = (value) => {
    ended.abort()
    return endWith.call(items, value)
  }
  items.throw = (error) => {
    ended.abort()
    return failWith.call(items, error)
  }
  return items
}

async function* pacedItems<Name extends string, P extends string, Item>(
  acquire: AcquireUntil<Name, P>,
  key: Key<Name> | ((item: Item) => Key<Name>),
  source: Iterable<Item> | AsyncIterable<Item>,
  { cost = 1, ...options }: PaceOptions<Name, P, [item: Item]>,
  ended: Abortable,
): AsyncGenerator<Item, void, undefined> {
  for await (const item of source) {
    if (ended.aborted) return
    try {
      await acquire(found(key, [item]), { ...options, cost: found(cost, [item]) }, ended)
    } catch (error) {
      if (ended.aborted) return
      throw error
    }
    yield item
  }
}

/** What was given, or what it finds from the arguments. */
export function found<Value, From extends readonly unknown[]>(given: Value | ((...from: From) => Value), from: From): Value {
  return typeof given === 'function' ? (given as (...from: From) => Value)(...from) : given
}

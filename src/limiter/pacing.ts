/** Waiting without writing `acquire`: functions that wait their turn, and work that comes at the limiter's pace. */
import type { Cost, Key } from './input.ts'
import type { WaitOptions } from './limiter.ts'

/** What pacing needs of a limiter. */
interface Acquirer<Name extends string, P extends string> {
  acquire(key: Key<Name>, options: WaitOptions<P> & { readonly cost?: Cost<Name> }): Promise<unknown>
}

/** How each call, or each item, waits: as `acquire` does. */
export interface PaceOptions<Name extends string, P extends string, From extends readonly unknown[]> extends WaitOptions<P> {
  /** What it costs: one cost for all, or found from the arguments or the item. Default 1. */
  readonly cost?: Cost<Name> | ((...from: From) => Cost<Name>)
}

export type AnyFunction = (this: never, ...args: never[]) => unknown

/** The same function, answering with a promise. */
export type Wrapped<Fn extends AnyFunction> = (this: ThisParameterType<Fn>, ...args: Parameters<Fn>) => Promise<Awaited<ReturnType<Fn>>>

/** `takesAtOnce`: takes what is asked for if nobody has to wait, and tells whether it did. */
export function wrapped<Name extends string, P extends string, Fn extends AnyFunction>(
  limiter: Acquirer<Name, P>,
  takesAtOnce: (key: Key<Name>, cost: Cost<Name>) => boolean,
  key: Key<Name> | ((...args: Parameters<Fn>) => Key<Name>),
  fn: Fn,
  { cost = 1, ...options }: PaceOptions<Name, P, Parameters<Fn>>,
): Wrapped<Fn> {
  const isBounded = Object.keys(options).length > 0
  return async function (this: ThisParameterType<Fn>, ...args: Parameters<Fn>): Promise<Awaited<ReturnType<Fn>>> {
    const keyOfCall = found(key, args)
    const costOfCall = found(cost, args)
    if (isBounded || !takesAtOnce(keyOfCall, costOfCall)) await limiter.acquire(keyOfCall, { ...options, cost: costOfCall })
    return fn.apply(this as never, args as never) as Awaited<ReturnType<Fn>>
  }
}

export function isIterable(source: unknown): boolean {
  const { [Symbol.iterator]: now, [Symbol.asyncIterator]: later } = Object(source)
  return typeof now === 'function' || typeof later === 'function'
}

export async function* paced<Name extends string, P extends string, Item>(
  limiter: Acquirer<Name, P>,
  key: Key<Name> | ((item: Item) => Key<Name>),
  source: Iterable<Item> | AsyncIterable<Item>,
  { cost = 1, ...options }: PaceOptions<Name, P, [item: Item]>,
): AsyncGenerator<Item, void, undefined> {
  for await (const item of source) {
    await limiter.acquire(found(key, [item]), { ...options, cost: found(cost, [item]) })
    yield item
  }
}

function found<Value, From extends readonly unknown[]>(given: Value | ((...from: From) => Value), from: From): Value {
  return typeof given === 'function' ? (given as (...from: From) => Value)(...from) : given
}

/**
 * Work that waited for its turn runs in the async context of its own caller, not in that of the
 * caller who made room for it: request ids, tenants and transactions are kept there.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, test } from 'vitest'
import { type Clock, concurrency, createLimiter, gcra, type SyncStore, slidingLog } from '../../src/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { PATIENT, slowStore, told } from './support.ts'

const callers = ['a', 'b', 'c', 'd']
const context = new AsyncLocalStorage<string>()

/** One after the other is served, each by the one before it, or by a timer. */
async function served(clock: FakeClock, settle: () => Promise<void> = told): Promise<void> {
  for (let k = 0; k < 100; k++) {
    await settle()
    clock.advanceMs(100)
  }
}

const LIMITS = { gcra: gcra({ rate: '1/s', burst: 1 }), slidingLog: slidingLog({ limit: 1, window: '1s' }) }

test.each(Object.keys(LIMITS) as (keyof typeof LIMITS)[])('wrap of a %s', async (name) => {
  const clock = fakeClock()
  const limiter = createLimiter(LIMITS[name], { clock })
  const seen = limiter.wrap('k', async () => context.getStore())
  const all = Promise.all(callers.map((caller) => context.run(caller, seen)))
  await served(clock)
  expect(await all).toEqual(callers)
  limiter.close()
})

const STORES: Readonly<Record<string, (clock: Clock) => { store?: SyncStore; settle?: () => Promise<void> }>> = {
  'in memory': () => ({}),
  'at a store that answers later': () => {
    const store = slowStore()
    return { store: store as unknown as SyncStore, settle: () => store.settle() }
  },
}

test.each(Object.keys(STORES))('run, and listeners, %s', async (where) => {
  const clock = fakeClock()
  const { store, settle } = (STORES[where] as (typeof STORES)[string])(clock)
  const limiter = createLimiter(concurrency({ max: 1, lease: '30s' }), { name: 'jobs', clock, ...(store && { store }), ...PATIENT })
  const heard: unknown[] = []
  limiter.listen({ onDecision: ({ decision }) => decision.allowed && heard.push(context.getStore()) })
  const all = Promise.all(callers.map((caller) => context.run(caller, () => limiter.run('k', async () => context.getStore()))))
  await served(clock, settle)
  expect([await all, heard]).toEqual([callers, callers])
  limiter.close()
})

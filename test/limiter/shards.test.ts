/**
 * A store of several parts that fail one by one: each has a circuit breaker of its own. On injected
 * time.
 */

import { expect, test } from 'vitest'
import { createLimiter, gcra, memoryStore, type Scope, type Step } from '../../src/index.ts'
import type { Part } from '../../src/stores/store.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { asStore, type StepDriver } from '../support/as-store.ts'
import { Opened } from '../support/opened.ts'
import { noUnhandledRejections, told } from '../waiting/support.ts'

noUnhandledRejections()

/** The part of a key is its first letter. */
class ShardedStore implements StepDriver {
  readonly shared = true
  readonly dead = new Set<string>()
  /** Keys of steps and, behind a question mark, of probes. */
  readonly asked: string[] = []
  readonly #memory = new Opened(memoryStore())

  shardOf(_scope: Scope, { key }: Part): string {
    return key[0] as string
  }

  apply(step: Step): ReturnType<StepDriver['apply']> {
    this.asked.push(step.parts.map(({ key }) => key).join('+'))
    return this.#isDead(step) ? Promise.reject(new Error('no connection')) : Promise.resolve(this.#memory.apply(step))
  }

  probe(step: Step): Promise<void> {
    this.asked.push(`?${step.parts.map(({ key }) => key).join('+')}`)
    return this.#isDead(step) ? Promise.reject(new Error('no connection')) : Promise.resolve()
  }

  #isDead({ parts }: Step): boolean {
    return parts.some(({ key }) => this.dead.has(key[0] as string))
  }
}

function setUp() {
  const clock = fakeClock()
  const store = asStore(new ShardedStore())
  const events: string[] = []
  const options = {
    name: 'api',
    store,
    clock,
    onStoreError: 'deny',
    onHealth: ({ state }: { state: string }) => events.push(state),
  } as const
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 100 }), options)
  const moveTo = async (ms: number) => {
    clock.setMs(ms)
    await told()
  }
  return { clock, store, limiter, events, moveTo, options }
}

test('only the keys of the part that is down are decided by the policy', async () => {
  const { store, limiter, events } = setUp()
  store.dead.add('a')
  expect(await limiter.consume('a1')).toMatchObject({ degraded: true })
  for (let k = 0; k < 20; k++) {
    expect(await limiter.consume(`a${k}`)).toMatchObject({ degraded: true })
    expect(await limiter.consume(`b${k}`)).toMatchObject({ degraded: false, allowed: true })
  }
  expect(store.asked.filter((key) => key.startsWith('a'))).toEqual(['a1'])
  expect([limiter.health().state, events]).toEqual(['down', ['down']])
})

test('each part is probed by itself; health is down from the first failure until the last part is well', async () => {
  const { store, limiter, events, moveTo } = setUp()
  store.dead.add('a').add('b')
  await limiter.consume('a1')
  await moveTo(50)
  await limiter.consume('b1')
  store.dead.delete('a')
  await moveTo(100)
  expect(await limiter.consume('a1')).toMatchObject({ degraded: false })
  expect(await limiter.consume('b1')).toMatchObject({ degraded: true })
  expect(limiter.health()).toMatchObject({ state: 'down', sinceMs: 0, error: { code: 'STORE' } })
  expect(events).toEqual(['down'])
  store.dead.delete('b')
  await moveTo(150)
  expect(limiter.health()).toEqual({ state: 'up', sinceMs: 150, error: undefined })
  expect(events).toEqual(['down', 'up'])
  expect(store.asked).toEqual(['a1', 'b1', '?a1', 'a1', '?b1'])
})

test('a decision on several parts waits for all of them, and the first probe frees those that are well', async () => {
  const { store, clock, options } = setUp()
  const limiter = createLimiter({ user: gcra({ rate: '1/s', burst: 9 }), tenant: gcra({ rate: '1/s', burst: 9 }) }, { ...options, clock })
  store.dead.add('a')
  const both = { user: 'a1', tenant: 'b1' }
  expect(await limiter.consume(both)).toMatchObject({ degraded: true })
  expect(await limiter.consume({ user: 'b2', tenant: 'b2' })).toMatchObject({ degraded: true })
  clock.setMs(100)
  await told()
  expect(await limiter.consume({ user: 'b2', tenant: 'b2' })).toMatchObject({ degraded: false })
  expect(await limiter.consume(both)).toMatchObject({ degraded: true })
  // It is not sent as long as one of its parts is down, and so takes none of the others down again.
  expect(store.asked).toEqual(['a1+b1', '?a1', '?b1', 'b2+b2'])
  limiter.close()
})

test('closing the limiter ends the probes of all parts', async () => {
  const { store, limiter, clock, moveTo } = setUp()
  store.dead.add('a').add('b')
  await limiter.consume('a1')
  await limiter.consume('b1')
  expect(clock.timers).toBe(2)
  limiter.close()
  await moveTo(60_000)
  expect([clock.timers, store.asked]).toEqual([0, ['a1', 'b1']])
})

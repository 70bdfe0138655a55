/**
 * Permits that a failure policy lends while the store is away: they are kept as long as they are
 * held, and a holder whose place may be another's is told.
 */
import { expect, test } from 'vitest'
import { concurrency, createLimiter, type FailurePolicy, memoryStore } from '../../src/index.ts'
import { asyncStore } from '../../src/stores/index.ts'
import type { Step } from '../../src/stores/step.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

function away(onStoreError: FailurePolicy) {
  const clock = fakeClock(1_700_000_000_000)
  const memory = memoryStore()
  const store = { isAway: true }
  let stalledUs = 0
  const nowUs = () => clock.nowUs() + stalledUs
  const apply = async (steps: readonly Step[]) => {
    if (store.isAway) throw new Error('away')
    for (const step of steps) memory.open(step.scope, nowUs).apply(step, true)
  }
  const limiter = createLimiter(concurrency({ max: 4, lease: '30s' }), {
    name: 'jobs',
    store: asyncStore({ shared: true, apply }),
    clock: { nowUs, setTimer: clock.setTimer },
    onStoreError,
    localShare: 1 / 4,
  })
  /** Time passes, a second at a time. */
  const pass = async (seconds: number) => {
    for (let k = 0; k < seconds; k++) {
      clock.advanceMs(1_000)
      await turn()
    }
  }
  /** The event loop stands still. */
  const stall = (seconds: number) => {
    stalledUs += seconds * 1_000_000
  }
  return { limiter, store, pass, stall }
}

test('a place that this process lent by itself is held for longer than a lease, and nobody else has it', async () => {
  const { limiter, pass } = away('local')
  const permit = await limiter.consume('key')
  expect([permit.degraded, permit.held]).toEqual([true, true])
  for (let k = 0; k < 4; k++) {
    await pass(25)
    expect([permit.held, (await limiter.consume('key')).allowed]).toEqual([true, false])
  }
  await permit.release()
  expect((await limiter.consume('key')).allowed).toBe(true)
  limiter.close()
})

test('a holder that stood still for longer than its lease is told also then', async () => {
  const { limiter, pass, stall } = away('local')
  const permit = await limiter.consume('key')
  const { signal } = permit
  stall(31)
  expect(permit.held).toBe(false)
  await pass(1)
  const next = await limiter.consume('key')
  expect(next.allowed).toBe(true)
  await pass(10)
  expect([signal.reason?.code, limiter.inflight('key')]).toEqual(['LOST', 1])
  await permit.release()
  expect((await limiter.consume('key')).allowed).toBe(false)
  limiter.close()
})

test.each(['local', 'allow'] as const)('under %s a permit is held on when the store is back, which does not know it', async (policy) => {
  const { limiter, store, pass } = away(policy)
  const permit = await limiter.consume('key')
  await pass(45)
  expect(permit.held).toBe(true)
  store.isAway = false
  await pass(45)
  expect([permit.held, permit.signal.aborted, (await limiter.peek('key')).remaining]).toEqual([true, false, 4])
  await permit.release()
  expect([limiter.inflight(), (await limiter.peek('key')).remaining]).toEqual([0, 4])
  limiter.close()
})

test.each(['local', 'allow'] as const)('under %s a second outage takes nothing from a holder of the first', async (policy) => {
  const { limiter, store, pass } = away(policy)
  const permit = await limiter.consume('key')
  await pass(10)
  store.isAway = false
  await pass(60)
  store.isAway = true
  await pass(60)
  expect([permit.held, permit.signal.aborted]).toEqual([true, false])
  expect((await limiter.consume('key')).allowed).toBe(policy === 'allow')
  await permit.release()
  expect((await limiter.consume('key')).allowed).toBe(true)
  limiter.close()
})

test('what was lent during an outage is renewed and given back for its holder also when the store is back', async () => {
  const { limiter, store, pass } = away('local')
  const lender = limiter as unknown as {
    entrust(permit: unknown): object
    renewFor(lent: object): Promise<number>
    giveBack(lent: object): Promise<boolean>
  }
  const lent = lender.entrust(await limiter.consume('key'))
  store.isAway = false
  await pass(20)
  expect(await lender.renewFor(lent)).toBe(30_000)
  await pass(20)
  expect([await lender.giveBack(lent), await lender.giveBack(lent)]).toEqual([true, false])
  store.isAway = true
  expect((await limiter.consume('key')).allowed).toBe(true)
  limiter.close()
})

test('a clock that throws as a permit is lent leaves nothing in flight', async () => {
  for (let readings = 0, hasThrown = true; hasThrown; readings++) {
    const clock = fakeClock(1_700_000_000_000)
    let left = Number.POSITIVE_INFINITY
    const nowUs = () => {
      if (left-- === 0) throw new Error('the clock is broken')
      return clock.nowUs()
    }
    const memory = memoryStore()
    const apply = async (steps: readonly Step[]) => {
      for (const step of steps) memory.open(step.scope, clock.nowUs).apply(step, true)
    }
    const options = { name: 'jobs', store: asyncStore({ shared: true, apply }), clock: { nowUs, setTimer: clock.setTimer } }
    const limiter = createLimiter(concurrency({ max: 1, lease: '30s' }), options)
    left = readings
    const permit = await limiter.consume('key').catch(() => undefined)
    hasThrown = left < 0
    left = Number.POSITIVE_INFINITY
    await permit?.release()
    await turn()
    expect([limiter.inflight(), hasThrown], `reading ${readings}`).toEqual([0, permit === undefined])
    limiter.close()
  }
})

/**
 * Leases of many keys: each is renewed every third of it, a few hundred keys at a time, and one
 * that is not renewed is lost in time.
 */
import { expect, test } from 'vitest'
import { concurrency, createLimiter, memoryStore, type SyncStore } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { Random } from '../model/random.ts'

const LEASE_US = 3_000_000
const THIRD_US = LEASE_US / 3
/** How long a holder trusts a lease. */
const TRUSTED_US = LEASE_US * 0.99
const MOST_IN_TURN = 256

/** A memory that notes when each key was renewed, and that can fail. */
function notingStore(nowUs: () => number) {
  const inner = memoryStore()
  const renewals = new Map<string, number[]>()
  const noted = { renewals, fails: false }
  const open: SyncStore['open'] = (scope, clock) => {
    const states = inner.open(scope, clock)
    return {
      close: () => states.close(),
      apply(step, isTold) {
        if (step.op === 'renew') {
          if (noted.fails) throw new Error('away')
          for (const { key } of step.parts) renewals.set(key, [...(renewals.get(key) ?? []), nowUs()])
        }
        return states.apply(step, isTold)
      },
    }
  }
  return { noted, store: { mode: 'sync', shared: false, open } satisfies SyncStore }
}

function many(keys: number) {
  const clock = fakeClock(1_000_000)
  const { noted, store } = notingStore(clock.nowUs)
  const limiter = createLimiter(concurrency({ max: 10, lease: `${LEASE_US}us` }), { name: 'many', store, clock })
  const random = new Random(24)
  const held = Array.from({ length: keys }, (_, k) => {
    clock.advanceMs(random.whole(0, 2))
    return limiter.consume(`key ${k}`)
  })
  return { clock, noted, limiter, random, held }
}

test('each key is renewed every third, exactly, and no turn has more than a few hundred keys', () => {
  const { clock, noted, limiter, random, held } = many(1_500)
  // Meanwhile others come and go.
  for (let step = 0; step < 6_000; step++) {
    const passing = limiter.consume(`passing ${random.whole(0, 39)}`)
    clock.advanceMs(random.whole(0, 2))
    passing.release()
  }
  expect(held.every((permit) => permit.held)).toBe(true)
  const inTurn = new Map<number, number>()
  for (const [k, { token }] of held.entries()) {
    const times = noted.renewals.get(`key ${k}`) as number[]
    expect((times[0] as number) - token).toBeLessThanOrEqual(THIRD_US)
    for (let n = 1; n < times.length; n++) expect((times[n] as number) - (times[n - 1] as number)).toBe(THIRD_US)
    expect(clock.nowUs() - (times.at(-1) as number)).toBeLessThanOrEqual(THIRD_US)
    for (const us of times) inTurn.set(us, (inTurn.get(us) ?? 0) + 1)
  }
  expect(Math.max(...inTurn.values())).toBeLessThanOrEqual(MOST_IN_TURN)
  for (const permit of held) permit.release()
  noted.renewals.clear()
  clock.advanceMs((10 * LEASE_US) / 1000)
  expect(noted.renewals.size).toBe(0)
  expect(clock.timers).toBe(0)
})

test('when renewals fail, each is lost just when it may have run out, and not before', () => {
  const { clock, noted, held } = many(600)
  clock.advanceMs(LEASE_US / 1000)
  noted.fails = true
  const lostAtUs: number[] = []
  for (const [k, { signal }] of held.entries()) signal.addEventListener('abort', () => (lostAtUs[k] = clock.nowUs()))
  const wanted = held.map((_, k) => (noted.renewals.get(`key ${k}`)?.at(-1) as number) + TRUSTED_US)
  clock.advanceMs((2 * LEASE_US) / 1000)
  expect(lostAtUs).toEqual(wanted)
  expect(held.some((permit) => permit.held)).toBe(false)
})

test.each(['60s', '30s', '10s'] as const)(
  'leases that are shorter than those of %s before them are renewed in their time, in every round',
  (lease) => {
    const clock = fakeClock(1_000_000)
    const plans = { quick: concurrency({ max: 9, lease: '1s' }) }
    const limiter = createLimiter(concurrency({ max: 9, lease }), { name: 'shorter', clock, plans })
    const keys = Array.from({ length: 2 * MOST_IN_TURN + 1 }, (_, k) => `key ${k}`)
    // Three rounds, of which none has a key any more.
    for (const permit of keys.map((key) => limiter.consume(key))) permit.release()
    const held = keys.map((key) => limiter.consume(key, 1, { plan: 'quick' }))
    clock.advanceMs(65_000)
    expect(held.filter((permit) => !permit.held)).toEqual([])
  },
)

test('a permit that another process gave back ends once, whatever its lease says later', async () => {
  const clock = fakeClock(1_000_000)
  const limiter = createLimiter(concurrency({ max: 5, lease: '3s' }), { name: 'entrusted', clock })
  const outcomes: string[] = []
  limiter.listen({ onRelease: ({ outcome }) => outcomes.push(outcome) })
  const permit = limiter.consume('key')
  const lender = limiter as unknown as { entrust(permit: unknown): object; giveBack(lent: object): Promise<boolean> }
  expect(await lender.giveBack(lender.entrust(permit))).toBe(true)
  clock.advanceMs(10_000)
  expect(permit.signal.aborted).toBe(false)
  permit.release()
  expect([limiter.inflight('key'), outcomes]).toEqual([0, ['ok']])
})

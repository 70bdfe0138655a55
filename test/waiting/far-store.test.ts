/**
 * Waiting on a store that others share and that is some milliseconds away: outages, full queues,
 * deadlines and changes while answers are under way.
 */

import { describe, expect, test } from 'vitest'
import { type AsyncStore, createLimiter, fixedWindow, gcra, type Limit, memoryStore, SluiceError } from '../../src/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { asStore, type StepDriver } from '../support/as-store.ts'
import { Opened } from '../support/opened.ts'
import { noUnhandledRejections, PATIENT, told, watched } from './support.ts'

noUnhandledRejections()

const ONE_WAY_US = 2_000

interface FarDriver extends StepDriver {
  isDown: boolean
}

/** It decides half way. Several limiters may be given one memory, as if they were processes. */
function farStore(clock: FakeClock, memory = memoryStore()): FarDriver & AsyncStore {
  const opened = new Opened(memory)
  const store: FarDriver = {
    shared: true,
    isDown: false,
    apply: (step) =>
      new Promise((resolve, reject) => {
        const decide = () => {
          if (store.isDown) {
            clock.setTimer(() => reject(new SluiceError('STORE', 'down')), ONE_WAY_US)
            return
          }
          const verdicts = opened.apply(step, clock.nowUs())
          clock.setTimer(() => resolve(verdicts), ONE_WAY_US)
        }
        clock.setTimer(decide, ONE_WAY_US)
      }),
  }
  return asStore(store)
}

/** With turns of the event loop: some answers of a failure policy wait for one. */
async function runFor(clock: FakeClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed++) {
    clock.advanceMs(1)
    await told()
    if (passed % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

test.each(['allow', 'local'] as const)(
  'a store that fails while callers are booked: all are served by %s, and no timer throws',
  async (onStoreError) => {
    const clock = fakeClock()
    const store = farStore(clock)
    const limiter = createLimiter(gcra({ rate: '100/s', burst: 1 }), { name: 'api', store, clock, onStoreError, ...PATIENT })
    let served = 0
    for (let k = 0; k < 30; k++) void limiter.acquire('k').then(() => served++)
    await runFor(clock, 30)
    store.isDown = true
    await runFor(clock, 1_000)
    expect([served, limiter.waiting()]).toEqual([30, 0])
    limiter.close()
  },
)

describe('callers who come all the time do not keep those in line from their turn', () => {
  test.each<readonly [string, Limit, number, number]>([
    ['fixedWindow, whose queue is full', fixedWindow({ limit: 10, window: '100ms' }), 1, 190],
    ['gcra, whose queue is full', gcra({ rate: '100/s', burst: 1 }), 1, 180],
    ['fixedWindow, and ask for nothing', fixedWindow({ limit: 10, window: '100ms' }), 0, 10],
    ['gcra, and ask for nothing', gcra({ rate: '100/s', burst: 1 }), 0, 10],
  ])('at a %s', async (_, limit, cost, least) => {
    const clock = fakeClock()
    const limiter = createLimiter(limit, { name: 'api', store: farStore(clock), clock, ...(cost > 0 ? { maxQueue: 5 } : {}), ...PATIENT })
    let served = 0
    const come = (asked: number) =>
      limiter.acquire('k', { cost: asked }).then(
        () => {
          served += asked
        },
        () => {},
      )
    for (let k = 0; k < 10; k++) void come(1)
    for (let ms = 0; ms < 2_000; ms++) {
      void come(cost)
      await runFor(clock, 1)
    }
    expect(served).toBeGreaterThanOrEqual(least)
    limiter.close()
    await told()
  })
})

test('a call that may not wait is answered within a round trip, also if the numbers change meanwhile', async () => {
  const clock = fakeClock()
  const limiter = createLimiter(gcra({ rate: '10/s', burst: 1 }), { name: 'api', store: farStore(clock), clock, ...PATIENT })
  for (let k = 0; k < 100; k++) limiter.acquire('k').catch(() => {})
  await runFor(clock, 50)
  const atOnce = watched(limiter.acquire('k', { timeoutMs: 0 }))
  await runFor(clock, 1)
  limiter.update(gcra({ rate: '10/s', burst: 1 }))
  await runFor(clock, 10)
  expect([atOnce.end, atOnce.code]).toEqual(['rejected', 'TIMEOUT'])
  limiter.close()
  await told()
})

test('a call that another process made room for is served by its deadline', async () => {
  const clock = fakeClock()
  const memory = memoryStore()
  const make = () => createLimiter(gcra({ rate: '100/s', burst: 1 }), { name: 'api', store: farStore(clock, memory), clock, ...PATIENT })
  const [limiter, other] = [make(), make()]
  for (let k = 0; k < 9; k++) limiter.acquire('k').catch(() => {})
  await runFor(clock, 20)
  void other.reset('k')
  await runFor(clock, 5)
  const startUs = clock.nowUs()
  let endUs = Number.NaN
  const end = () => {
    endUs = clock.nowUs()
  }
  limiter.acquire('k', { timeoutMs: 12 }).then(end, end)
  await runFor(clock, 100)
  expect(endUs - startUs).toBeLessThanOrEqual(12_000)
  limiter.close()
  other.close()
  await told()
})

test('of more than maxWaiting callers the last is refused, not one whose answer is under way', async () => {
  const clock = fakeClock()
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { name: 'api', store: farStore(clock), clock, maxWaiting: 3, ...PATIENT })
  for (const key of ['a', 'b', 'c']) void limiter.consume(key)
  await runFor(clock, 10)
  const waits = ['a', 'b', 'c', 'c'].map((key) => watched(limiter.acquire(key)))
  await runFor(clock, 20)
  expect(waits.map(({ end, code }) => code ?? end)).toEqual(['waits', 'waits', 'waits', 'QUEUE_FULL'])
  limiter.close()
  await told()
})

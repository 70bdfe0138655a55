/** A store that answers when it is told to, and what can happen in between. */

import { expect, test } from 'vitest'
import { createLimiter, fixedWindow, gcra, type Limits, leakyBucket, memoryStore, type Step, slidingLog } from '../../src/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { asStore, type StepDriver } from '../support/as-store.ts'
import { Opened } from '../support/opened.ts'
import { noUnhandledRejections, PATIENT, told, watched } from './support.ts'

noUnhandledRejections()

/** Decides in memory when a step is sent, and answers later, oldest first. */
class HeldBack implements StepDriver {
  readonly shared = false
  readonly sent: Step[] = []
  readonly #memory = new Opened(memoryStore())
  readonly #answers: (() => void)[] = []

  apply(step: Step): ReturnType<StepDriver['apply']> {
    this.sent.push(step)
    const verdicts = this.#memory.apply(step)
    return new Promise((resolve) => this.#answers.push(() => resolve(verdicts)))
  }

  async answer(count = this.#answers.length): Promise<void> {
    for (const answer of this.#answers.splice(0, count)) answer()
    await told()
  }
}

function onHeldBack<L extends Limits>(limits: L, options: { maxAheadMs?: number } = {}) {
  const store = asStore(new HeldBack())
  const clock = fakeClock()
  return { store, clock, limiter: createLimiter(limits, { name: 'api', store, clock, ...PATIENT, ...options }) }
}

/** Answers everything and lets a minute pass. */
async function letAllEnd(store: HeldBack, clock: FakeClock): Promise<void> {
  for (let ms = clock.nowUs() / 1000; ms < 60_000; ms += 100) {
    await store.answer()
    clock.setMs(ms)
    await told()
  }
}

test('a caller that comes when a late timer has left another overdue is waited for, and found', async () => {
  const clock = fakeClock()
  // Timers that are never on time.
  const late = { nowUs: () => clock.nowUs(), setTimer: () => () => undefined }
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { clock: late })
  limiter.consume('k')
  const first = limiter.acquire('k')
  clock.setMs(1_500)
  const second = limiter.acquire('k')
  expect((await first).waitedMs).toBe(1_500)
  expect(limiter.waiting('k')).toBe(1)
  limiter.close()
  await expect(second).rejects.toMatchObject({ code: 'CLOSED' })
})

test('new numbers while the first outside is asking: it asks once, and everybody is served', async () => {
  const { store, clock, limiter } = onHeldBack(gcra({ rate: '1/s', burst: 1 }), { maxAheadMs: 100 })
  const served: number[] = []
  for (const k of [0, 1, 2]) void limiter.acquire('k').then(() => served.push(k))
  await store.answer()
  clock.setMs(900)
  await told()
  limiter.update(gcra({ rate: '2/s', burst: 1 }))
  await letAllEnd(store, clock)
  expect(served).toEqual([0, 1, 2])
  expect(limiter.waiting()).toBe(0)
})

test('a step asked under old numbers is asked again under the new', async () => {
  const { store, clock, limiter } = onHeldBack(gcra({ rate: '10/s', burst: 1 }))
  const servedMs: number[] = []
  for (let k = 0; k < 4; k++) void limiter.acquire('k').then(() => servedMs.push(clock.nowUs() / 1000))
  limiter.update(gcra({ rate: '1/s', burst: 1 }))
  await letAllEnd(store, clock)
  expect(servedMs).toHaveLength(4)
  for (let k = 1; k < 4; k++) expect((servedMs[k] as number) - (servedMs[k - 1] as number)).toBeGreaterThanOrEqual(900)
})

test('permits that leavers held are given back though a caller is always asking', async () => {
  const { store, limiter } = onHeldBack(gcra({ rate: '1/h', burst: 5 }))
  const gone: Promise<unknown>[] = []
  for (let k = 0; k < 40; k++) {
    const leaving = new AbortController()
    gone.push(limiter.acquire('k', { signal: leaving.signal }).catch(() => undefined))
    leaving.abort()
    await told()
    // One answer late: there is always a question under way.
    if (k > 0) await store.answer(1)
  }
  for (let k = 0; k < 10; k++) await store.answer()
  await Promise.all(gone)
  const left = limiter.peek('k')
  await store.answer()
  expect((await left).remaining).toBe(5)
})

test('with a window, who asks for less does not overtake who asks for more', async () => {
  const { store, clock, limiter } = onHeldBack(fixedWindow({ limit: 3, window: '1s' }))
  const served: string[] = []
  const wait = (name: string, cost: number) => void limiter.acquire('k', { cost }).then(() => served.push(name))
  wait('two', 2)
  await store.answer()
  wait('three', 3)
  wait('one', 1)
  await letAllEnd(store, clock)
  expect(served).toEqual(['two', 'three', 'one'])
})

test('a waiter with a deadline keeps its place before later ones', async () => {
  const { store, clock, limiter } = onHeldBack(fixedWindow({ limit: 1, window: '1s' }))
  const served: number[] = []
  void limiter.acquire('k').then(() => served.push(0))
  void limiter.acquire('k').then(() => served.push(1))
  await store.answer()
  void limiter.acquire('k', { timeoutMs: 30_000 }).then(() => served.push(2))
  void limiter.acquire('k').then(() => served.push(3))
  await letAllEnd(store, clock)
  expect(served).toEqual([0, 1, 2, 3])
})

test('a caller that may not wait is told by the answer, not by the clock', async () => {
  const { store, clock, limiter } = onHeldBack(gcra({ rate: '1/h', burst: 1 }))
  const [first, second] = [1, 2].map(() => watched(limiter.acquire('k', { timeoutMs: 0 })))
  clock.setMs(50)
  await told()
  await store.answer()
  await told()
  expect([first?.end, second?.code]).toEqual(['resolved', 'TIMEOUT'])
})

test('an answer that was long under way makes nobody late who takes over its turn', async () => {
  const { store, clock, limiter } = onHeldBack(gcra({ rate: '1/s', burst: 1 }))
  void limiter.consume('k')
  await store.answer()
  const leaving = new AbortController()
  const first = limiter.acquire('k', { signal: leaving.signal }).catch(() => 'left')
  clock.setMs(900)
  const second = limiter.acquire('k')
  await store.answer()
  leaving.abort()
  await told()
  clock.setMs(1_000)
  expect(await first).toBe('left')
  expect((await second).waitedMs).toBe(100)
})

test('the charge that a log keeps for an acquired decision is found again when it is settled', async () => {
  const clock = fakeClock()
  const limiter = createLimiter(
    { queue: leakyBucket({ capacity: 5, leak: '1/s' }), log: slidingLog({ limit: 10, window: '1h' }) },
    { clock },
  )
  limiter.consume('k')
  const wait = limiter.acquire('k')
  clock.setMs(5_000)
  const decision = await wait
  expect([decision.delayMs, limiter.peek('k', 0).parts.log.remaining]).toEqual([0, 8])
  decision.cancel()
  expect(limiter.peek('k', 0).parts.log.remaining).toBe(9)
})

test('many who wait for one window ask together, not one after the other', async () => {
  const { store, clock, limiter } = onHeldBack(fixedWindow({ limit: 100, window: '1s' }))
  let served = 0
  for (let k = 0; k < 200; k++) void limiter.acquire('k').then(() => served++)
  await store.answer()
  expect(served).toBe(100)
  clock.setMs(1_000)
  let rounds = 0
  for (; served < 200; rounds++) await store.answer()
  expect(rounds).toBeLessThan(10)
})

/**
 * A limiter whose store fails or does not answer: on a store that the test controls, and on
 * injected timers.
 */

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  type AsyncStore,
  createLimiter,
  type FailurePolicy,
  fixedWindow,
  gcra,
  type Health,
  type HealthEvent,
  type Limit,
  type LimiterOptions,
  leakyBucket,
  memoryStore,
  SluiceError,
  type Step,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { asyncStore } from '../../src/stores/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { asStore, type StepDriver } from '../support/as-store.ts'
import { Opened } from '../support/opened.ts'
import { noUnhandledRejections, told, watched } from '../waiting/support.ts'

noUnhandledRejections()
afterEach(() => void vi.useRealTimers())

/** A store in memory that is well, fails every step, or never answers. */
class IllStore implements StepDriver {
  readonly shared = true
  readonly sent: Step[] = []
  readonly #memory = new Opened(memoryStore())
  illness: 'well' | 'silent' | Error = 'well'
  #unanswered: (() => void)[] = []

  apply(step: Step): ReturnType<StepDriver['apply']> {
    this.sent.push(step)
    if (this.illness instanceof Error) return Promise.reject(this.illness)
    const verdicts = this.#memory.apply(step)
    if (this.illness === 'well') return Promise.resolve(verdicts)
    return new Promise((resolve) => this.#unanswered.push(() => resolve(verdicts)))
  }

  /** What was asked while it was silent is answered now. */
  answerLate(): void {
    for (const answer of this.#unanswered.splice(0)) answer()
  }
}

const LIMIT = gcra({ rate: '1/s', burst: 4 })

function setUp(options: LimiterOptions<Limit, AsyncStore> = {}, limit: Limit = LIMIT) {
  const clock = fakeClock()
  const store = asStore(new IllStore())
  const events: HealthEvent[] = []
  const limiter = createLimiter<Limit, AsyncStore>(limit, {
    name: 'api',
    store,
    clock,
    storeTimeoutMs: 50,
    onHealth: (event) => events.push(event),
    ...options,
  })
  const moveTo = async (ms: number) => {
    clock.setMs(ms)
    await told()
  }
  return { clock, store, limiter, events, moveTo }
}

const POLICIES: readonly FailurePolicy[] = ['throw', 'allow', 'deny', 'local']

describe('a store that does not answer', () => {
  test.each(POLICIES)('%s: the decision ends when its time is over, not before, and none waits after it', async (onStoreError) => {
    const { store, limiter, clock, moveTo } = setUp({ onStoreError })
    store.illness = 'silent'
    const first = watched(limiter.consume('k'))
    await moveTo(49.999)
    expect(first.end).toBe('waits')
    await moveTo(50)
    expect(first.end).toBe(onStoreError === 'throw' ? 'rejected' : 'resolved')
    const next = [limiter.consume('k'), limiter.peek('k'), limiter.reserve('k')].map((verb) => watched(verb))
    await told()
    expect(next.map(({ end }) => end)).toEqual(next.map(() => first.end))
    expect([store.sent.length, clock.timers]).toEqual([1, 1])
  })

  test('a call that is under way when it goes down waits no longer than its own time', async () => {
    const { store, limiter, moveTo } = setUp()
    store.illness = 'silent'
    const first = watched(limiter.consume('k'))
    await moveTo(30)
    const second = watched(limiter.consume('k'))
    await moveTo(50)
    expect([first.end, second.end]).toEqual(['rejected', 'waits'])
    await moveTo(80)
    expect(second.end).toBe('rejected')
  })

  test('the error says how long it was waited, and that it may have been charged', async () => {
    const { store, limiter, moveTo } = setUp()
    store.illness = 'silent'
    const decision = watched(limiter.consume('k'))
    await moveTo(50)
    expect(decision.error).toMatchObject({ code: 'STORE', message: expect.stringMatching(/within 50 ms.*may have charged/) })
  })

  test('a late answer changes nothing, and what it charged stays charged', async () => {
    const { store, limiter, moveTo, events } = setUp({ onStoreError: 'allow' })
    store.illness = 'silent'
    const decision = watched(limiter.consume('k', 3))
    await moveTo(50)
    expect(decision.value).toMatchObject({ allowed: true, degraded: true })
    store.answerLate()
    await told()
    expect(limiter.health().state).toBe('down')
    store.illness = 'well'
    await moveTo(150)
    expect(events.map(({ state }) => state)).toEqual(['down', 'up'])
    expect(await limiter.peek('k')).toMatchObject({ degraded: false, remaining: 1 })
  })

  test('without a bound it is waited for as long as it takes', async () => {
    const { store, limiter, moveTo, clock } = setUp({ storeTimeoutMs: Number.POSITIVE_INFINITY })
    store.illness = 'silent'
    const decision = watched(limiter.consume('k'))
    await moveTo(3_600_000)
    expect([decision.end, clock.timers]).toEqual(['waits', 0])
    store.answerLate()
    await told()
    expect(decision.end).toBe('resolved')
  })

  test('a decision that is answered in time leaves no timer behind', async () => {
    const { limiter, clock } = setUp()
    await limiter.consume('k')
    expect(clock.timers).toBe(0)
  })
})

describe('the breaker', () => {
  test('an outage of a thousand calls costs one of them a wait', async () => {
    const { store, limiter, moveTo } = setUp({ onStoreError: 'deny' })
    store.illness = 'silent'
    const first = watched(limiter.consume('k'))
    await moveTo(50)
    for (let k = 0; k < 999; k++) expect((await limiter.consume(`key ${k}`)).allowed).toBe(false)
    expect([first.end, store.sent.length]).toEqual(['resolved', 1])
  })

  test('the store is asked again after 100 ms, then at intervals twice as long each, up to 1 s', async () => {
    const { store, limiter, clock, moveTo } = setUp()
    store.illness = new Error('no connection')
    await watched(limiter.consume('k'))
    await told()
    const askedMs: number[] = []
    for (let ms = 1; ms <= 5_000; ms++) {
      const before = store.sent.length
      await moveTo(ms)
      if (store.sent.length > before) askedMs.push(clock.nowUs() / 1000)
    }
    expect(askedMs).toEqual([100, 300, 700, 1_500, 2_500, 3_500, 4_500])
    expect(new Set(store.sent.slice(1).map(({ op }) => op))).toEqual(new Set(['ask']))
  })

  test('asking again takes nothing, and when it is answered the store decides again', async () => {
    const { store, limiter, moveTo, events } = setUp({ onStoreError: 'local' })
    await limiter.consume('k')
    store.illness = new Error('no connection')
    await limiter.consume('k')
    store.illness = 'well'
    await moveTo(99.999)
    expect(limiter.health()).toMatchObject({ state: 'down', sinceMs: 0, error: { code: 'STORE' } })
    await moveTo(100)
    expect(limiter.health()).toEqual({ state: 'up', sinceMs: 100, error: undefined } satisfies Health)
    expect(events).toMatchObject([
      { limiter: 'api', state: 'down', sinceMs: 0 },
      { limiter: 'api', state: 'up', sinceMs: 100 },
    ])
    expect(await limiter.consume('k')).toMatchObject({ degraded: false, remaining: 2 })
  })

  test('an answer to the probe that comes too late counts for nothing', async () => {
    const { store, limiter, moveTo } = setUp()
    store.illness = 'silent'
    watched(limiter.consume('k'))
    await moveTo(50)
    await moveTo(150)
    await moveTo(200)
    store.answerLate()
    await told()
    expect(limiter.health().state).toBe('down')
  })

  test('an error of a call sent before the store came back does not take it down again', async () => {
    const { store, limiter, moveTo } = setUp({ storeTimeoutMs: 1_000 })
    store.illness = 'silent'
    const lost = watched(limiter.consume('k'))
    store.illness = new Error('no connection')
    watched(limiter.consume('k'))
    await told()
    store.illness = 'well'
    await moveTo(100)
    expect(limiter.health().state).toBe('up')
    await moveTo(1_000)
    expect([lost.code, limiter.health().state]).toEqual(['STORE', 'up'])
  })

  test('an error of one decision is answered by the policy and leaves the store up', async () => {
    const { store, limiter } = setUp({ onStoreError: 'allow' })
    store.illness = new SluiceError('STORE', 'not our key', { isolated: true })
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, degraded: true })
    expect(limiter.health().state).toBe('up')
  })

  test.each(['KEY', 'CONFIG', 'UNSUPPORTED'] as const)('%s is the caller’s: no policy hides it', async (code) => {
    const { store, limiter } = setUp({ onStoreError: 'allow' })
    store.illness = new SluiceError(code, 'wrong')
    await expect(limiter.consume('k')).rejects.toMatchObject({ code })
    expect(limiter.health().state).toBe('up')
  })

  test('closing the limiter ends the asking', async () => {
    const { store, limiter, clock, moveTo } = setUp()
    store.illness = new Error('no connection')
    watched(limiter.consume('k'))
    await told()
    expect(clock.timers).toBe(1)
    limiter.close()
    await moveTo(60_000)
    expect([clock.timers, store.sent.length]).toEqual([0, 1])
  })

  test('closing it while a probe or a decision is under way ends it too', async () => {
    for (const downBefore of [true, false]) {
      const { store, limiter, clock, moveTo, events } = setUp()
      store.illness = downBefore ? new Error('no connection') : 'silent'
      watched(limiter.consume('k'))
      await told()
      store.illness = 'silent'
      if (downBefore) await moveTo(100)
      const sent = store.sent.length
      limiter.close()
      await moveTo(60_000)
      expect([store.sent.length, clock.timers, events.length]).toEqual([sent, 0, downBefore ? 1 : 0])
    }
  })

  test('without a probe of its own a store is asked about a key that nobody uses', async () => {
    const { store, limiter, moveTo } = setUp()
    store.illness = new Error('no connection')
    watched(limiter.consume('k'))
    await told()
    limiter.update(gcra({ rate: '1/s', burst: 100 }))
    await moveTo(100)
    expect(store.sent.map(({ op, parts }) => [op, parts[0]?.key])).toEqual([
      ['take', 'k'],
      ['ask', 'sluice-probe'],
    ])
  })

  test('a store that throws where it should reject is a store that failed', async () => {
    const { store, limiter } = setUp({ onStoreError: 'deny' })
    store.apply = () => {
      throw new TypeError('not a function')
    }
    expect(await limiter.consume('k')).toMatchObject({ outcome: 'limited', degraded: true })
    expect(limiter.health().error).toMatchObject({ code: 'STORE', cause: expect.any(TypeError) })
  })

  test('tools hear of it by the channel sluice:health', async () => {
    const heard: unknown[] = []
    const listener = (message: unknown) => heard.push(message)
    subscribe('sluice:health', listener)
    const { store, limiter } = setUp()
    store.illness = new Error('no connection')
    await limiter.consume('k').catch(() => undefined)
    unsubscribe('sluice:health', listener)
    expect(heard).toMatchObject([{ limiter: 'api', state: 'down' }])
  })

  test('a listener that throws is warned of, and stops nobody', async () => {
    const warnings: Error[] = []
    const listener = (warning: Error) => warnings.push(warning)
    process.on('warning', listener)
    const onHealth = () => {
      throw new Error('no pager')
    }
    const { store, limiter } = setUp({ onStoreError: 'deny', onHealth })
    store.illness = new Error('no connection')
    expect(await limiter.consume('k')).toMatchObject({ outcome: 'limited', degraded: true })
    await new Promise(setImmediate)
    process.off('warning', listener)
    expect(warnings).toMatchObject([{ code: 'SLUICE_LISTENER', message: expect.stringContaining('no pager') }])
  })

  test('a listener that throws keeps neither a failure from its caller nor an event from the others', async () => {
    const { store, limiter } = setUp({})
    const throwing = () => {
      throw new Error('no pager')
    }
    const heard: string[] = []
    limiter.listen({ onFailure: throwing, onHealth: throwing })
    limiter.listen({ onFailure: () => heard.push('failure'), onHealth: ({ state }) => heard.push(state) })
    store.illness = new Error('no connection')
    await expect(limiter.consume('k')).rejects.toMatchObject({ code: 'STORE' })
    expect(heard).toEqual(['down', 'failure'])
  })

  test('memory is always up', () => {
    expect(createLimiter(LIMIT).health()).toEqual({ state: 'up', sinceMs: 0, error: undefined })
  })
})

describe('while the store is down', () => {
  async function down(options: LimiterOptions<Limit, AsyncStore>, limit: Limit = LIMIT) {
    const all = setUp(options, limit)
    all.store.illness = new Error('no connection')
    await all.limiter.peek('other key').catch(() => undefined)
    return all
  }

  test('throw: the verb rejects with what the store said', async () => {
    const { limiter } = await down({ onStoreError: 'throw' })
    await expect(limiter.consume('k')).rejects.toMatchObject({ code: 'STORE', message: expect.stringContaining('no connection') })
  })

  test('allow: as a fresh key would be, again and again', async () => {
    const { limiter } = await down({ onStoreError: 'allow' })
    for (let k = 0; k < 10; k++) {
      const decision = await limiter.consume('k', 3)
      expect(decision).toMatchObject({ outcome: 'allowed', limit: 4, remaining: 1, retryAfterMs: 0, degraded: true })
    }
    expect(await limiter.peek('k')).toMatchObject({ allowed: true, remaining: 4, degraded: true })
  })

  test('deny: until the store is asked again', async () => {
    const { limiter, moveTo } = await down({ onStoreError: 'deny' })
    expect(await limiter.consume('k')).toMatchObject({ outcome: 'limited', remaining: 0, retryAfterMs: 100, degraded: true })
    await moveTo(40)
    expect(await limiter.consume('k')).toMatchObject({ outcome: 'limited', retryAfterMs: 60 })
  })

  test.each(['allow', 'deny', 'local'] as const)('%s: what can never fit is impossible', async (onStoreError) => {
    const { limiter } = await down({ onStoreError })
    expect(await limiter.consume('k', 5)).toMatchObject({ outcome: 'impossible', retryAfterMs: Number.POSITIVE_INFINITY, degraded: true })
  })

  test('local: the memory of this process decides, exactly', async () => {
    const { limiter, moveTo } = await down({ onStoreError: 'local' })
    for (const remaining of [3, 2, 1, 0]) expect(await limiter.consume('k')).toMatchObject({ allowed: true, remaining, degraded: true })
    expect(await limiter.consume('k')).toMatchObject({ outcome: 'limited', retryAfterMs: 1_000, degraded: true })
    await moveTo(1_000)
    expect((await limiter.consume('k')).allowed).toBe(true)
    expect((await limiter.consume('k')).allowed).toBe(false)
  })

  const SHARED: readonly (readonly [string, Limit])[] = [
    ['gcra', gcra({ rate: '10/s', burst: 8 })],
    ['tokenBucket', tokenBucket({ capacity: 8, refill: '10/s' })],
    ['leakyBucket', leakyBucket({ capacity: 8, leak: '10/s' })],
    ['fixedWindow', fixedWindow({ limit: 8, window: '1s' })],
    ['slidingWindow', slidingWindow({ limit: 8, window: '1s' })],
    ['slidingLog', slidingLog({ limit: 8, window: '1s' })],
  ]

  test.each(SHARED)('local, %s: a quarter of the limit at a quarter of the pace', async (type, limit) => {
    const { limiter, moveTo } = await down({ onStoreError: 'local', localShare: 0.25 }, limit)
    const admitted = async () => {
      let count = 0
      while ((await limiter.consume('k')).allowed) count += 1
      return count
    }
    expect(await admitted()).toBe(2)
    await moveTo(400)
    const hasPace = ['gcra', 'tokenBucket', 'leakyBucket'].includes(type)
    expect(await admitted()).toBe(hasPace ? 1 : 0)
    await moveTo(2_000)
    expect(await admitted()).toBe(2)
  })

  test.each(SHARED)('local, %s: the smallest share is one permit, and a larger cost waits for the store', async (_, limit) => {
    const { limiter } = await down({ onStoreError: 'local', localShare: 0.001 }, limit)
    expect([(await limiter.consume('k')).allowed, (await limiter.consume('k')).allowed]).toEqual([true, false])
    expect(await limiter.consume('other', 2)).toMatchObject({ outcome: 'limited', retryAfterMs: 100, degraded: true })
  })

  test('local: the next outage begins where this one ended', async () => {
    const { store, limiter, moveTo } = await down({ onStoreError: 'local' }, gcra({ rate: '1/h', burst: 4 }))
    await limiter.consume('k', 4)
    store.illness = 'well'
    await moveTo(100)
    expect(await limiter.consume('k')).toMatchObject({ remaining: 3, degraded: false })
    store.illness = new Error('no connection')
    expect(await limiter.consume('k')).toMatchObject({ outcome: 'limited', degraded: true })
  })

  test('local: other numbers keep what was used', async () => {
    const { limiter } = await down({ onStoreError: 'local' })
    await limiter.consume('k', 4)
    limiter.update(gcra({ rate: '1/s', burst: 6 }))
    expect(await limiter.consume('k', 3)).toMatchObject({ outcome: 'limited' })
    expect(await limiter.consume('k', 2)).toMatchObject({ outcome: 'allowed', remaining: 0 })
  })

  test('several limits are one decision, in local memory too', async () => {
    const clock = fakeClock()
    const store = asStore(new IllStore())
    store.illness = new Error('no connection')
    const limits = { burst: gcra({ rate: '1/s', burst: 5 }), daily: fixedWindow({ limit: 3, window: '1d' }) }
    const limiter = createLimiter(limits, { name: 'api', store, clock, onStoreError: 'local' })
    for (let k = 0; k < 3; k++) expect((await limiter.consume('k')).allowed).toBe(true)
    const refused = await limiter.consume('k')
    expect(refused).toMatchObject({ outcome: 'limited', policy: 'daily', degraded: true, parts: { burst: { remaining: 2 } } })
  })

  test('reserve books nothing: it may act at once, or not at all', async () => {
    const { limiter } = await down({ onStoreError: 'local' })
    await limiter.consume('k', 4)
    const reservation = await limiter.reserve('k')
    expect(reservation).toMatchObject({ outcome: 'limited', retryAfterMs: 1_000, degraded: true })
    await reservation.cancel()
    expect(await limiter.peek('k')).toMatchObject({ remaining: 0 })
  })

  test('refund: given back to the memory that was charged, dropped where nothing was, thrown under throw', async () => {
    const local = await down({ onStoreError: 'local' })
    await local.limiter.consume('k', 4)
    await local.limiter.refund('k', 2)
    expect(await local.limiter.peek('k')).toMatchObject({ remaining: 2 })
    for (const onStoreError of ['allow', 'deny'] as const) {
      const { limiter } = await down({ onStoreError })
      expect(await limiter.refund('k', 2)).toBeUndefined()
    }
    const { limiter } = await down({ onStoreError: 'throw' })
    await expect(limiter.refund('k', 2)).rejects.toMatchObject({ code: 'STORE' })
  })

  test('cancel: neither what the store was charged before the outage nor what the memory was is given back', async () => {
    const { limiter, store, moveTo } = setUp({ onStoreError: 'local' })
    await moveTo(1_000)
    const ofTheStore = await limiter.consume('k', 4)
    store.illness = new Error('no connection')
    await moveTo(1_010)
    const ofTheMemory = await limiter.consume('k', 4)
    expect([ofTheStore.degraded, ofTheMemory.degraded]).toEqual([false, true])
    await ofTheStore.cancel()
    expect(await limiter.peek('k')).toMatchObject({ remaining: 0 })
    await ofTheMemory.cancel()
    expect(await limiter.peek('k')).toMatchObject({ remaining: 0 })
  })

  test.each(POLICIES)('%s: reset rejects, because nothing was forgotten', async (onStoreError) => {
    const { limiter } = await down({ onStoreError })
    await expect(limiter.reset('k')).rejects.toMatchObject({ code: 'STORE' })
  })

  test('acquire: throw rejects, allow serves', async () => {
    const throwing = await down({ onStoreError: 'throw' })
    await expect(throwing.limiter.acquire('k')).rejects.toMatchObject({ code: 'STORE' })
    const allowing = await down({ onStoreError: 'allow' })
    expect(await allowing.limiter.acquire('k')).toMatchObject({ allowed: true, waitedMs: 0, degraded: true })
  })

  test('acquire, deny: waits for the store, and is served by it', async () => {
    const { store, limiter, moveTo } = await down({ onStoreError: 'deny' })
    const wait = watched(limiter.acquire('k'))
    const impatient = watched(limiter.acquire('k', { timeoutMs: 50 }))
    await told()
    await moveTo(50)
    expect([wait.end, impatient.code]).toEqual(['waits', 'TIMEOUT'])
    store.illness = 'well'
    await moveTo(100)
    await moveTo(200)
    expect(wait.value).toMatchObject({ allowed: true, degraded: false })
  })

  test('acquire, deny: a waiter does not ask again and again while a probe is under way', async () => {
    const { store, limiter, clock, moveTo } = await down({ onStoreError: 'deny' })
    const wait = watched(limiter.acquire('k'))
    await told()
    store.illness = 'silent'
    await moveTo(100)
    expect(await limiter.consume('k')).toMatchObject({ outcome: 'limited', retryAfterMs: 100 })
    // The probe's bound and the waiter's next try, both on a timer.
    expect([wait.end, clock.timers, store.sent.length]).toEqual(['waits', 2, 2])
  })

  test.each(['deny', 'local'] as const)('acquire, %s: a deadline that can be met is waited for', async (onStoreError) => {
    const { store, limiter, moveTo } = await down({ onStoreError })
    await limiter.consume('k', 4)
    const wait = watched(limiter.acquire('k', { timeoutMs: 5_000 }))
    await told()
    expect(wait.end).toBe('waits')
    store.illness = 'well'
    for (let ms = 100; ms <= 2_000; ms += 100) await moveTo(ms)
    expect(wait.value).toMatchObject({ allowed: true })
  })

  test('permits taken from the local memory are not given back to the store', async () => {
    const clock = fakeClock()
    const store = asStore(new IllStore())
    store.illness = new Error('no connection')
    const limits = { drip: leakyBucket({ capacity: 5, leak: '1/s' }), day: fixedWindow({ limit: 100, window: '1d' }) }
    const limiter = createLimiter(limits, { name: 'api', store, clock, onStoreError: 'local', storeTimeoutMs: 50 })
    await limiter.consume('k')
    const leaver = new AbortController()
    const wait = watched(limiter.acquire('k', { signal: leaver.signal }))
    await told()
    store.illness = 'well'
    clock.setMs(100)
    await told()
    expect([limiter.health().state, wait.end]).toEqual(['up', 'waits'])
    leaver.abort(new Error('gone'))
    await told()
    expect(store.sent.filter(({ op }) => op === 'give')).toEqual([])
    limiter.close()
  })

  test.each([
    ['gcra', LIMIT],
    ['leakyBucket', leakyBucket({ capacity: 4, leak: '1/s' })],
  ])('acquire, local, %s: in order, each when the memory has room, and leaving gives nothing of the store’s back', async (_, limit) => {
    const { store, limiter, moveTo } = await down({ onStoreError: 'local', localShare: 0.5 }, limit)
    const order: number[] = []
    const waits = [1, 2, 3, 4, 5].map((id) => watched(limiter.acquire('k').then(() => order.push(id))))
    const leaver = new AbortController()
    const left = watched(limiter.acquire('k', { signal: leaver.signal }))
    await told()
    leaver.abort(new Error('gone'))
    for (let ms = 500; ms <= 60_000; ms += 500) await moveTo(ms)
    expect([order, left.error]).toEqual([[1, 2, 3, 4, 5], new Error('gone')])
    expect(waits.map(({ end }) => end)).toEqual(waits.map(() => 'resolved'))
    expect(store.sent.filter(({ op }) => op === 'give')).toEqual([])
  })
})

describe('options', () => {
  const wrong: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [{ onStoreError: 'ignore' }, /onStoreError "ignore" must be one of throw, allow, deny, local/],
    [{ storeTimeoutMs: 0 }, /storeTimeoutMs 0 must be above 0/],
    [{ storeTimeoutMs: Number.NaN }, /storeTimeoutMs NaN/],
    [{ storeTimeoutMs: '50' }, /storeTimeoutMs "50"/],
    [{ localShare: 0 }, /localShare 0 must be above 0 and at most 1/],
    [{ localShare: 1.5 }, /localShare 1.5/],
    [{ onHealth: true }, /onHealth true must be a function/],
  ]
  test.each(wrong)('%o', (options, message) => {
    expect(() => createLimiter(LIMIT, options as never)).toThrow(message)
  })
})

test('the timer that rests between decisions ends with the limiter', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const limiter = createLimiter<Limit, AsyncStore>(LIMIT, { name: 'api', store: asStore(new IllStore()) })
  await limiter.consume('k')
  expect(vi.getTimerCount()).toBe(1)
  limiter.close()
  expect(vi.getTimerCount()).toBe(0)
})

test.each([undefined, null, {}, { shared: true }, { apply: async () => [] }, { shared: 'yes', apply: async () => [] }])(
  'a driver %j is refused, with what it must have',
  (driver) => {
    const refused = expect.objectContaining({ code: 'CONFIG', message: expect.stringContaining('must be an object with apply(steps)') })
    expect(() => asyncStore(driver as never)).toThrow(refused)
  },
)

/**
 * Limiters on one store share its circuit breaker: what one of them has found out the others need
 * not wait for. On stores that the test controls, and on injected timers.
 */
import { expect, test } from 'vitest'
import {
  type AsyncStore,
  createLimiter,
  type FailurePolicy,
  gcra,
  type HealthEvent,
  type Limit,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  SluiceError,
  type Step,
} from '../../src/index.ts'
import type { Part } from '../../src/stores/store.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { asStore, type StepDriver } from '../support/as-store.ts'
import { Opened } from '../support/opened.ts'
import { noUnhandledRejections, told, watched } from '../waiting/support.ts'

noUnhandledRejections()

type Illness = 'silent' | Error

/** The part of a key is its first letter. What is ill is a part, or a key. */
class IllStore implements StepDriver {
  readonly shared = true
  readonly ill = new Map<string, Illness>()
  /** The limiter and the key of each step, and of each probe behind a question mark. */
  readonly sent: string[] = []
  readonly #memory = new Opened(memoryStore())

  shardOf(_: unknown, { key }: Part): string {
    return key[0] as string
  }

  apply(step: Step): ReturnType<StepDriver['apply']> {
    return this.#answer(step, '', () => this.#memory.apply(step))
  }

  async probe(step: Step): Promise<void> {
    await this.#answer(step, '?', () => [])
  }

  #answer<T>({ scope, parts }: Step, mark: string, answer: () => T): Promise<T> {
    const { key } = parts[0] as Part
    this.sent.push(`${mark}${scope.name} ${key}`)
    const illness = this.ill.get(key) ?? this.ill.get(key[0] as string)
    if (illness === undefined) return Promise.resolve(answer())
    return illness === 'silent' ? new Promise(() => undefined) : Promise.reject(illness)
  }
}

const NO_CONNECTION = new Error('no connection')

function setUp() {
  const store = asStore(new IllStore())
  const clock = fakeClock(1_000)
  const events: string[] = []
  const make = (name: string, options: LimiterOptions<Limit, AsyncStore> = {}): Limiter<Limit, AsyncStore> =>
    createLimiter<Limit, AsyncStore>(gcra({ rate: '1/s', burst: 4 }), {
      name,
      store,
      clock,
      storeTimeoutMs: 50,
      onStoreError: 'deny',
      onHealth: ({ limiter, state }: HealthEvent) => events.push(`${limiter} ${state}`),
      ...options,
    })
  const advance = async (ms: number, of: FakeClock = clock) => {
    of.advanceMs(ms)
    await told()
  }
  return { store, clock, events, make, advance }
}

test('an outage costs one wait, whatever the number of limiters: each other answers at once by its own policy', async () => {
  const { store, events, make, advance } = setUp()
  const policies: readonly FailurePolicy[] = ['throw', 'allow', 'deny', 'local']
  const limiters = policies.map((onStoreError) => make(onStoreError, { onStoreError, storeTimeoutMs: 10_000 }))
  const first = make('first')
  store.ill.set('k', 'silent')
  const slow = watched(first.consume('k'))
  await advance(50)
  expect(slow.value).toMatchObject({ outcome: 'limited', degraded: true })
  const answers = limiters.map((limiter) => watched(limiter.consume('k')))
  await told()
  expect(answers.map(({ end, code }) => code ?? end)).toEqual(['STORE', 'resolved', 'resolved', 'resolved'])
  expect(answers.map(({ value }) => (value as { allowed?: boolean } | undefined)?.allowed)).toEqual([undefined, true, false, true])
  expect(limiters.map((limiter) => limiter.health().state)).toEqual(policies.map(() => 'down'))
  store.ill.clear()
  await advance(100)
  expect(store.sent).toEqual(['first k', '?first k'])
  for (const limiter of limiters) expect(await limiter.consume('k')).toMatchObject({ degraded: false })
  const names = [...policies, 'first']
  expect(events.sort()).toEqual(names.flatMap((name) => [`${name} down`, `${name} up`]).sort())
})

test('each limiter keeps its own time for the calls that are under way', async () => {
  const { store, make, advance } = setUp()
  const patient = make('patient', { storeTimeoutMs: 200 })
  store.ill.set('k', 'silent')
  const under = watched(patient.consume('k'))
  const hasty = watched(make('hasty').consume('k'))
  await advance(50)
  expect([hasty.end, under.end]).toEqual(['resolved', 'waits'])
  expect(await patient.consume('k')).toMatchObject({ degraded: true })
  await advance(149)
  expect(under.end).toBe('waits')
  await advance(1)
  expect(under.value).toMatchObject({ degraded: true })
})

test('a call of another limiter that was sent before the store came back does not take it down again', async () => {
  const { store, make, advance, events } = setUp()
  store.ill.set('k', 'silent')
  const patient = make('patient', { storeTimeoutMs: 500 })
  const lost = watched(patient.consume('k'))
  watched(make('hasty').consume('k'))
  await advance(50)
  store.ill.clear()
  await advance(100)
  const before = [...events]
  await advance(400)
  expect([lost.end, patient.health().state, events]).toEqual(['resolved', 'up', before])
})

test('a limiter that is made during the outage begins with the open breaker, and is told of both ends', async () => {
  const { store, clock, events, make, advance } = setUp()
  store.ill.set('k', NO_CONNECTION)
  await make('old').consume('k')
  await advance(40)
  const late = make('late')
  expect(late.health()).toMatchObject({ state: 'down', sinceMs: 1_000, error: { code: 'STORE' } })
  expect(events).toEqual(['old down'])
  expect(await late.consume('k')).toMatchObject({ degraded: true, retryAfterMs: 60 })
  expect(events).toEqual(['old down', 'late down'])
  store.ill.clear()
  await advance(60)
  expect(late.health()).toEqual({ state: 'up', sinceMs: clock.nowUs() / 1_000, error: undefined })
  expect(events).toEqual(['old down', 'late down', 'old up', 'late up'])
  expect(store.sent).toEqual(['old k', '?old k'])
})

test('clocks of their own: times are told by the clock of each, probes go by that of the limiter that failed', async () => {
  const { store, make, advance } = setUp()
  const otherClock = fakeClock(9_000_000)
  const one = make('one')
  const other = make('other', { clock: otherClock })
  store.ill.set('k', NO_CONNECTION)
  await one.consume('k')
  await advance(30)
  await advance(5, otherClock)
  expect(await other.consume('k')).toMatchObject({ retryAfterMs: 70 })
  expect([one.health().sinceMs, other.health().sinceMs]).toEqual([1_000, 9_000_000])
  store.ill.clear()
  await advance(60_000, otherClock)
  expect(other.health().state).toBe('down')
  await advance(70)
  expect(other.health()).toMatchObject({ state: 'up', sinceMs: 9_060_005 })
})

test('local, with a clock of its own: what the memory lent during the outage is given back to it', async () => {
  const { store, make, advance } = setUp()
  const otherClock = fakeClock(9_000_000)
  const other = make('other', { clock: otherClock, onStoreError: 'local' })
  store.ill.set('k', NO_CONNECTION)
  await make('one').consume('k')
  await advance(500)
  const decision = await other.consume('k', 3)
  expect(decision).toMatchObject({ degraded: true, remaining: 1 })
  await other.refund('k', 3)
  expect(await other.peek('k')).toMatchObject({ degraded: true, remaining: 4 })
})

test('closing the limiter that probes hands the probes to another; closing the last one ends them', async () => {
  for (const isUnderWay of [false, true]) {
    const { store, clock, make, advance } = setUp()
    const otherClock = fakeClock()
    const one = make('one')
    const other = make('other', { clock: otherClock })
    store.ill.set('k', NO_CONNECTION)
    await one.consume('k')
    if (isUnderWay) {
      store.ill.set('k', 'silent')
      await advance(100)
    }
    one.close()
    await advance(60_000)
    expect([clock.timers, otherClock.timers]).toEqual([0, 1])
    store.ill.clear()
    await advance(200, otherClock)
    expect(other.health().state).toBe('up')
    expect(await other.consume('k')).toMatchObject({ degraded: false })
    store.ill.set('k', NO_CONNECTION)
    await other.consume('k')
    const sent = store.sent.length
    other.close()
    await advance(60_000, otherClock)
    expect([otherClock.timers, store.sent.length]).toEqual([0, sent])
    // Nobody has looked after the store since.
    expect(make('new').health().state).toBe('up')
  }
})

test('closing a limiter that does not probe stops nothing', async () => {
  const { store, make, advance } = setUp()
  const [one, other] = [make('one'), make('other')]
  store.ill.set('k', NO_CONNECTION)
  await one.consume('k')
  other.close()
  store.ill.clear()
  await advance(100)
  expect(one.health().state).toBe('up')
})

test('a part that is down stands for its own keys, on every limiter', async () => {
  const { store, make, advance } = setUp()
  const [one, other] = [make('one'), make('other')]
  store.ill.set('a', NO_CONNECTION)
  await one.consume('a1')
  expect(await other.consume('a2')).toMatchObject({ degraded: true })
  for (const limiter of [one, other]) expect(await limiter.consume('b1')).toMatchObject({ degraded: false })
  expect(other.health().state).toBe('down')
  store.ill.clear()
  await advance(100)
  expect(await other.consume('a2')).toMatchObject({ degraded: false })
  expect(store.sent).toEqual(['one a1', 'one b1', 'other b1', '?one a1', 'other a2'])
})

test.each([
  ['of one decision', new SluiceError('STORE', 'not our key', { isolated: true })],
  ['of the caller', new SluiceError('CONFIG', 'wrong')],
])('an error %s is no outage for the others', async (_, error) => {
  const { store, events, make } = setUp()
  const [one, other] = [make('one'), make('other')]
  store.ill.set('key', error)
  await one.consume('key').catch(() => undefined)
  expect(await other.consume('kind')).toMatchObject({ degraded: false })
  expect(events).toEqual([])
})

test('a limiter whose clock or listener throws keeps nothing from the others', async () => {
  const { store, events, make, advance } = setUp()
  const spoilt = fakeClock()
  let isSpoilt = false
  const nowUs = () => (isSpoilt ? Number.NaN : spoilt.nowUs())
  const rejected: unknown[] = []
  const listeners = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', (reason) => rejected.push(reason))
  make('spoilt', { clock: { nowUs, setTimer: spoilt.setTimer } })
  make('loud', {
    onHealth() {
      throw new Error('no pager')
    },
  })
  const [one, other] = [make('one'), make('other')]
  isSpoilt = true
  store.ill.set('k', NO_CONNECTION)
  expect(await one.consume('k')).toMatchObject({ degraded: true })
  expect(other.health().state).toBe('down')
  store.ill.clear()
  await advance(100)
  expect(events).toEqual(['one down', 'other down', 'one up', 'other up'])
  await new Promise((resolve) => setImmediate(resolve))
  process.removeAllListeners('unhandledRejection')
  for (const listener of listeners) process.on('unhandledRejection', listener)
  expect(rejected).toMatchObject([{ code: 'CONFIG' }])
})

/**
 * Limiters on one store share its circuit breaker: what one of them has found out the others need
 * not wait for. On stores that the test controls, and on injected timers.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, test, vi } from 'vitest'
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
  type Scope,
  SluiceError,
  type Step,
  type StoreDriver,
} from '../../src/index.ts'
import { asyncStore } from '../../src/stores/index.ts'
import type { Part } from '../../src/stores/store.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { asStore, type StepDriver } from '../support/as-store.ts'
import { Opened } from '../support/opened.ts'
import { noUnhandledRejections, told, watched } from '../waiting/support.ts'

noUnhandledRejections()

/** A function: it is well, and answers when that resolves. */
type Illness = 'silent' | Error | (() => Promise<void>)

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
    if (typeof illness === 'function') return illness().then(answer)
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
  /** What takes so long on the clock. */
  const takes = (ms: number) => () => new Promise<void>((resolve) => void clock.setTimer(resolve, ms * 1_000))
  return { store, clock, events, make, advance, takes }
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
  const warnings: string[] = []
  const listener = ({ message }: Error) => warnings.push(message)
  process.on('warning', listener)
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
  process.off('warning', listener)
  expect(warnings).toContainEqual(expect.stringMatching(/^the clock of a limiter failed .*the clock read NaN/))
})

test('a limiter with less time than the store takes is down alone, once the store has answered late', async () => {
  const { store, events, make, advance, takes } = setUp()
  const [hasty, patient] = [make('hasty'), make('patient', { storeTimeoutMs: 1_000 })]
  const states = () => [hasty.health().state, patient.health().state]
  const asked = async (limiter: Limiter<Limit, AsyncStore>, ms: number) => {
    const call = watched(limiter.consume('k'))
    await advance(ms)
    return (call.value as { degraded: boolean } | undefined)?.degraded
  }
  store.ill.set('k', takes(80))
  expect(await asked(hasty, 50)).toBe(true)
  expect(states()).toEqual(['down', 'down'])
  await advance(180)
  expect(states()).toEqual(['down', 'up'])
  for (let k = 0; k < 100; k++) {
    expect(await asked(patient, 80)).toBe(false)
    expect(await asked(hasty, 0)).toBe(true)
  }
  expect(store.sent.filter((sent) => sent === 'hasty k')).toEqual(['hasty k'])
  // The store is fast, and slow again: that is nothing new.
  store.ill.clear()
  for (let k = 0; k < 25; k++) await advance(50)
  expect(states()).toEqual(['up', 'up'])
  store.ill.set('k', takes(80))
  expect(await asked(hasty, 50)).toBe(true)
  expect([states(), await asked(patient, 80)]).toEqual([['down', 'up'], false])
  // An outage is one for both.
  store.ill.set('k', 'silent')
  expect(await asked(patient, 1_000)).toBe(true)
  expect([states(), await asked(patient, 0)]).toEqual([['down', 'down'], true])
  store.ill.clear()
  await advance(1_000)
  expect(states()).toEqual(['up', 'up'])
  expect(events.filter((event) => event.startsWith('patient'))).toEqual(['patient down', 'patient up', 'patient down', 'patient up'])
})

test.each([Number.POSITIVE_INFINITY, 60_000])(
  'a probe that is lost is sent again after 1 s, also by a limiter with %d ms',
  async (storeTimeoutMs) => {
    const { store, make, advance } = setUp()
    const [endless, other] = [make('endless', { storeTimeoutMs }), make('other')]
    store.ill.set('k', NO_CONNECTION)
    await endless.consume('k')
    store.ill.set('k', 'silent')
    await advance(100)
    store.ill.clear()
    await advance(1_200)
    expect([endless.health().state, other.health().state]).toEqual(['up', 'up'])
  },
)

test('a probe that is answered within the time of its limiter, but after 1 s, closes the breaker', async () => {
  const { store, make, advance, takes } = setUp()
  const patient = make('patient', { storeTimeoutMs: 60_000 })
  store.ill.set('k', NO_CONNECTION)
  await patient.consume('k')
  store.ill.set('k', takes(5_000))
  await advance(5_100)
  expect(patient.health().state).toBe('up')
})

test('a limiter that was left behind with a clock that stands still keeps no other down', async () => {
  const { store, make, advance } = setUp()
  const left = make('left', { clock: fakeClock() })
  store.ill.set('k', NO_CONNECTION)
  await left.consume('k')
  store.ill.clear()
  const other = make('other')
  for (let ms = 0; ms <= 3_000; ms += 100) {
    expect(await other.consume('k')).toMatchObject({ degraded: true })
    await advance(100)
  }
  await advance(100)
  expect(await other.consume('k')).toMatchObject({ degraded: false })
  expect([left.health().state, store.sent.filter((sent) => sent.startsWith('?'))]).toEqual(['up', ['?left k']])
})

test('limiters that ask meanwhile send no probes of their own', async () => {
  const { store, clock, make, advance } = setUp()
  const limiters = [make('one'), make('other')]
  store.ill.set('k', NO_CONNECTION)
  const probedMs: number[] = []
  for (let ms = 0; ms <= 10_000; ms += 100) {
    for (const limiter of limiters) await limiter.consume('k')
    const before = store.sent.length
    await advance(100)
    if (store.sent.length > before) probedMs.push(clock.nowUs() / 1_000 - 1_000)
  }
  expect(probedMs).toEqual([100, 300, 700, 1_500, 2_500, 3_500, 4_500, 5_500, 6_500, 7_500, 8_500, 9_500])
})

/** It keeps something for each scope that is open, as a store of one's own may. */
class KeepingDriver implements StoreDriver {
  readonly shared = true
  isDown = false
  readonly #scopes = new Set<Scope>()
  readonly #memory = new Opened(memoryStore())

  open(scope: Scope): void {
    this.#scopes.add(scope)
  }

  release(scope: Scope): void {
    this.#scopes.delete(scope)
  }

  async apply(steps: readonly Step[]): Promise<void> {
    if (this.isDown) throw NO_CONNECTION
    for (const step of steps) {
      if (!this.#scopes.has(step.scope)) throw new TypeError(`the scope of ${step.scope.name} is not open`)
      this.#memory.apply(step).forEach((verdict, k) => {
        Object.assign((step.parts[k] as Part).verdict, verdict)
      })
    }
  }
}

test.each(['the limiter that failed is closed', 'the limiter that failed gets other numbers'])(
  '%s: a store without a probe is asked in a scope that is open',
  async (change) => {
    const driver = new KeepingDriver()
    const { make, advance } = setUp()
    const options = { store: asyncStore(driver) }
    const [one, other] = [make('one', options), make('other', options)]
    driver.isDown = true
    await one.consume('k')
    if (change.endsWith('closed')) one.close()
    else one.update(gcra({ rate: '1/s', burst: 8 }))
    driver.isDown = false
    for (let k = 0; k < 10; k++) await advance(100)
    expect(other.health().state).toBe('up')
  },
)

describe('where there are no weak references', () => {
  const Weak = WeakRef
  const sluice = async () => {
    vi.stubGlobal('WeakRef', undefined)
    vi.resetModules()
    const { createLimiter, gcra } = await import('../../src/index.ts')
    const { asyncStore } = await import('../../src/stores/index.ts')
    const driver = new KeepingDriver()
    const store = asyncStore(driver)
    const make = (name: string, options: object = {}) =>
      createLimiter(gcra({ rate: '1/s', burst: 4 }), { name, store, onStoreError: 'deny', ...options } as const)
    return { driver, make }
  }
  afterEach(() => {
    vi.unstubAllGlobals()
    vi.resetModules()
  })

  test('a store holds on to no limiter that was dropped', async () => {
    const { make } = await sluice()
    const dropped = Array.from({ length: 10 }, (_, k) => new Weak(make(`${k}`)))
    setFlagsFromString('--expose-gc')
    await new Promise((resolve) => setImmediate(resolve))
    runInNewContext('gc')()
    expect(dropped.filter((limiter) => limiter.deref() !== undefined)).toEqual([])
    expect(make('kept').health().state).toBe('up')
  })

  test('a limiter is told of an outage when it meets it, and of its end', async () => {
    const clock = fakeClock()
    const events: string[] = []
    const onHealth = ({ limiter, state }: HealthEvent) => events.push(`${limiter} ${state}`)
    const { driver, make } = await sluice()
    driver.isDown = true
    const [one, other] = [make('one', { clock, onHealth }), make('other', { clock, onHealth })]
    await one.consume('k')
    await other.consume('k')
    await other.consume('k')
    expect(events).toEqual(['one down', 'other down'])
    driver.isDown = false
    clock.advanceMs(100)
    await told()
    expect(events.slice(2)).toEqual(['one up', 'other up'])
  })
})

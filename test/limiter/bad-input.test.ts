/**
 * Wrong input is refused before anything is touched: with a code, with the value in the message,
 * and with every state as it was. The tables say what is wrong, what it is shown as, and each goes
 * through every verb.
 */
import { describe, expect, test, vi } from 'vitest'
import {
  acquireSync,
  type Clock,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  type LimiterOptions,
  type MemoryStore,
  memoryStore,
  slidingLog,
  tokenBucket,
} from '../../src/index.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

/** The types refuse what is tried here, so it is tried without them. */
// biome-ignore lint/suspicious/noExplicitAny: see above
type Anything = any

type Row = readonly [what: string, value: unknown, shown: string]

const COSTS: readonly Row[] = [
  ['not a number', Number.NaN, 'cost NaN must be'],
  ['a negative number', -1, 'cost -1 must be'],
  ['a fraction', 1.5, 'cost 1.5 must be'],
  ['a number above 1e9', 1e9 + 1, 'cost 1000000001 must be'],
  ['an endless number', Number.POSITIVE_INFINITY, 'cost Infinity must be'],
  ['a text', '1', 'cost "1" must be'],
  ['null', null, 'cost null must be'],
  ['a truth', true, 'cost true must be'],
  ['a bigint', 1n, 'cost 1n must be'],
  ['a function', () => 1, 'cost a function must be'],
  ['a list', [1], 'cost for "0": there is no such limit'],
  ['an object without the limit', {}, 'cost undefined of limit'],
  ['an object with another limit', { other: 1 }, 'cost for "other": there is no such limit'],
]

const KEYS: readonly Row[] = [
  ['empty', '', 'key "" must be a string of 1 to 1024 characters'],
  ['too long', 'x'.repeat(1025), 'key "xxxxxxxx'],
  ['half a surrogate pair', 'user:\ud83d', 'key "user:\\ud83d" must be a string of 1 to 1024 characters, without lone surrogates'],
  ['a number', 42, 'key 42 must be'],
  ['missing', undefined, 'key undefined must be'],
  ['null', null, 'key null must be'],
  ['a symbol', Symbol('k'), 'key Symbol(k) must be'],
  ['a list', ['k'], 'key for "0": there is no such limit'],
  ['an object without the limit', {}, 'key undefined of limit'],
  ['an object with another limit', { other: 'k' }, 'key for "other": there is no such limit'],
]

const READINGS: readonly Row[] = [
  ['not a number', Number.NaN, 'the clock read NaN:'],
  ['a fraction', 1.5, 'the clock read 1.5:'],
  ['beyond the year 2112', 2 ** 52 + 1, 'the clock read 4503599627370497:'],
  ['endless', Number.POSITIVE_INFINITY, 'the clock read Infinity:'],
  ['a text', '5', 'the clock read "5":'],
  ['missing', undefined, 'the clock read undefined:'],
  ['a bigint', 5n, 'the clock read 5n:'],
]

const SPANS: readonly Row[] = [
  ['not a number', Number.NaN, 'NaN must be'],
  ['negative', -1, '-1 must be'],
  ['a text', '5', '"5" must be'],
  ['null', null, 'null must be'],
]

/** Every verb that takes key, cost and options. */
const VERBS = ['tryAcquire', 'consume', 'peek', 'reserve', 'refund'] as const

const NO_OPTIONS: readonly Row[] = [
  ['null', null, 'the options of a verb null must be an object with plan'],
  ['a text', 'pro', 'the options of a verb "pro" must be an object with plan'],
  ['a number', 5, 'the options of a verb 5 must be an object with plan'],
  ['a truth', true, 'the options of a verb true must be an object with plan'],
  ['a function', () => ({}), 'the options of a verb a function must be an object with plan'],
]

/** All options that a verb has, left open: what a caller passes on from options of its own. */
const OPEN_OPTIONS = {
  tryAcquire: { plan: undefined },
  consume: { plan: undefined },
  peek: { plan: undefined },
  reserve: { plan: undefined, maxWaitMs: undefined },
  refund: { plan: undefined },
}

/**
 * A limiter with a state to lose: `held` is in use, and the clock has moved since, so that any
 * write would show.
 */
function scene(limits: Anything, options: LimiterOptions<Anything, Anything> = {}) {
  const store = memoryStore()
  const clock = fakeClock(1_000)
  const limiter = createLimiter(limits, { name: 'api', store, clock, ...options }) as Limiter<Anything>
  limiter.consume('held', 2)
  clock.advanceMs(100)
  const names = Object.keys(limiter.peek('held', 0).parts)
  return { limiter: limiter as Anything, store, clock, touched: () => stateOf(store, names) }
}

function stateOf(store: MemoryStore, names: readonly string[]): unknown {
  return { size: store.size, held: names.map((name) => store.inspect('api', name, 'held')) }
}

const SCENES: readonly [string, () => ReturnType<typeof scene>][] = [
  ['one limit', () => scene(gcra({ rate: '1/s', burst: 5 }))],
  ['several limits', () => scene({ a: tokenBucket({ capacity: 5, refill: '1/s' }), b: slidingLog({ limit: 5, window: '10s' }) })],
  ['a limit with a listener', () => scene(fixedWindow({ limit: 5, window: '10s' }), { onDecision: () => undefined })],
]

function errorOf(call: () => unknown): { code?: string; message?: string } {
  try {
    call()
  } catch (error) {
    return error as Error
  }
  return {}
}

function expectRefused({ touched }: Pick<ReturnType<typeof scene>, 'touched'>, call: () => unknown, code: string, shown: string): void {
  const before = touched()
  expect(errorOf(call)).toMatchObject({ name: 'SluiceError', code, message: expect.stringContaining(shown) })
  expect(touched()).toEqual(before)
}

test('the scene notices a touch', () => {
  for (const [, set] of SCENES) {
    const { limiter, touched } = set()
    const before = touched()
    limiter.consume('held')
    expect(touched()).not.toEqual(before)
    const then = touched()
    limiter.consume('new')
    expect(touched()).not.toEqual(then)
  }
})

describe.each(SCENES)('%s', (_, set) => {
  describe.each(VERBS)('%s', (verb) => {
    test.each(COSTS)('refuses a cost that is %s', (_what, cost, shown) => {
      const stage = set()
      expectRefused(stage, () => stage.limiter[verb]('held', cost), 'COST', shown)
      expectRefused(stage, () => stage.limiter[verb]('new', cost), 'COST', shown)
    })

    test.each(KEYS)('refuses a key that is %s', (_what, key, shown) => {
      const stage = set()
      expectRefused(stage, () => stage.limiter[verb](key), 'KEY', shown)
      expectRefused(stage, () => stage.limiter[verb](key, 1), 'KEY', shown)
    })

    test('refuses a plan where there are none', () => {
      const stage = set()
      for (const plan of ['pro', 'toString', null]) {
        expectRefused(stage, () => stage.limiter[verb]('held', 1, { plan }), 'CONFIG', "is not one of the limiter's plans (none)")
      }
      expectRefused(stage, () => stage.limiter[verb]('held', 1, { plan: 'pro' }), 'CONFIG', 'plan "pro"')
    })

    test.each(NO_OPTIONS)('refuses options that are %s', (_what, options, shown) => {
      const stage = set()
      expectRefused(stage, () => stage.limiter[verb]('held', 1, options), 'CONFIG', shown)
      expectRefused(stage, () => stage.limiter[verb]('new', 1, options), 'CONFIG', shown)
    })

    test('takes options that are all undefined for none', () => {
      const [open, none] = [set(), set()]
      for (const key of ['held', 'new']) {
        const answers = [open.limiter[verb](key, 1, OPEN_OPTIONS[verb]), none.limiter[verb](key, 1)]
        expect(JSON.stringify(answers[0])).toBe(JSON.stringify(answers[1]))
      }
      expect(open.touched()).toEqual(none.touched())
    })

    test('takes the smallest and the largest of everything', () => {
      const { limiter } = set()
      for (const key of ['k', 'k'.repeat(1024)]) {
        for (const cost of [0, 1, 1e9, undefined]) expect(() => limiter[verb](key, cost)).not.toThrow()
      }
    })
  })

  test.each(NO_OPTIONS)('the verbs that wait refuse options that are %s', async (_what, options) => {
    const { limiter, touched } = set()
    const before = touched()
    await expect(limiter.acquire('held', options)).rejects.toMatchObject({ name: 'SluiceError', code: 'CONFIG' })
    for (const call of [() => limiter.wrap('held', () => 1, options), () => limiter.pace('held', [1], options)]) {
      expect(errorOf(call)).toMatchObject({ name: 'SluiceError', code: 'CONFIG' })
    }
    expect(errorOf(() => acquireSync(limiter, 'held', options as Anything))).toMatchObject({ name: 'SluiceError', code: 'CONFIG' })
    expect(touched()).toEqual(before)
  })

  test('the verbs that wait take options that are all undefined for none', async () => {
    const { limiter } = set()
    const open = { plan: undefined, timeoutMs: undefined, signal: undefined, cost: undefined }
    await expect(limiter.acquire('new', open)).resolves.toMatchObject({ allowed: true })
    await expect(limiter.wrap('new', () => 7, open)()).resolves.toBe(7)
    await expect(limiter.pace('new', [8], open).next()).resolves.toEqual({ done: false, value: 8 })
    const { signal: _, ...withoutSignal } = open
    expect(acquireSync(limiter, 'new', withoutSignal)).toMatchObject({ allowed: true })
    expect(limiter.peek('new').remaining).toBe(1)
  })

  test.each(KEYS)('reset refuses a key that is %s', (_what, key, shown) => {
    const stage = set()
    expectRefused(stage, () => stage.limiter.reset(key), 'KEY', shown)
  })

  test.each(SPANS)('reserve refuses a maxWaitMs that is %s', (_what, maxWaitMs, shown) => {
    const stage = set()
    expectRefused(stage, () => stage.limiter.reserve('held', 1, { maxWaitMs }), 'CONFIG', `maxWaitMs ${shown}`)
  })

  test.each([
    ...SPANS,
    ['endless', Number.POSITIVE_INFINITY, 'Infinity must be'],
    ['beyond the year 2112', 4_503_599_627_371, '4503599627371 must be'],
  ] as readonly Row[])('settle refuses an atMs that is %s', (_what, atMs, shown) => {
    const stage = set()
    const of = { ...stage.limiter.peek('held'), atMs }
    expectRefused(stage, () => stage.limiter.settle('held', 0, { of }), 'CONFIG', `atMs ${shown}`)
  })

  test('every verb of a closed limiter is refused', () => {
    const stage = set()
    const { limiter } = stage
    const booked = limiter.reserve('held', 5, { maxWaitMs: 60_000 })
    limiter.close()
    for (const verb of [...VERBS, 'reset']) expectRefused(stage, () => limiter[verb]('held'), 'CLOSED', "limiter 'api' was closed")
    expectRefused(stage, () => limiter.update(gcra({ rate: '1/s', burst: 5 })), 'CLOSED', "limiter 'api' was closed")
    // What was booked is given back: the store stays open, and others would stand behind it.
    expect(() => booked.cancel()).not.toThrow()
    expect(() => limiter.close()).not.toThrow()
  })
})

test('nobody is told of a decision that was never made', () => {
  const onDecision = vi.fn()
  const { limiter } = scene(gcra({ rate: '1/s', burst: 5 }), { onDecision })
  onDecision.mockClear()
  for (const [, cost] of COSTS) errorOf(() => limiter.consume('held', cost))
  for (const [, key] of KEYS) errorOf(() => limiter.tryAcquire(key))
  expect(onDecision).not.toHaveBeenCalled()
})

describe('several limits', () => {
  const limits = { user: gcra({ rate: '1/s', burst: 5 }), tenant: gcra({ rate: '1/s', burst: 50 }) }

  test.each(VERBS)('%s charges none when one of several costs or keys is wrong', (verb) => {
    const stage = scene(limits)
    const call = (key: unknown, cost: unknown) => () => stage.limiter[verb](key, cost)
    expectRefused(stage, call('held', { user: 1, tenant: -1 }), 'COST', 'cost -1')
    expectRefused(stage, call('held', { user: 1 }), 'COST', "cost undefined of limit 'tenant'")
    expectRefused(
      stage,
      call('held', { user: 1, tenant: 1, team: 1 }),
      'COST',
      'cost for "team": there is no such limit, there is user, tenant',
    )
    expectRefused(stage, call({ user: 'held', tenant: '' }, 1), 'KEY', 'key ""')
    expectRefused(stage, call({ user: 'held' }, 1), 'KEY', "key undefined of limit 'tenant'")
    expectRefused(
      stage,
      call({ user: 'held', tenent: 'held' }, 1),
      'KEY',
      'key for "tenent": there is no such limit, there is user, tenant',
    )
  })
})

describe('a clock that is wrong', () => {
  test.each(READINGS)('a reading that is %s is refused by every verb', (_what, reading, shown) => {
    const stage = scene(gcra({ rate: '1/s', burst: 5 }))
    const wrong: Clock = { ...stage.clock, nowUs: () => reading as number }
    const limiter = createLimiter(gcra({ rate: '1/s', burst: 5 }), { name: 'api', store: stage.store, clock: wrong }) as Anything
    for (const verb of [...VERBS, 'reset']) expectRefused(stage, () => limiter[verb]('held'), 'CONFIG', shown)
    for (const verb of [...VERBS, 'reset']) expectRefused(stage, () => limiter[verb]('new'), 'CONFIG', shown)
  })

  test('the first and the last moment are read', () => {
    for (const us of [0, 2 ** 52]) {
      const limiter = createLimiter(gcra({ rate: '1/s', burst: 5 }), { clock: { ...fakeClock(), nowUs: () => us } })
      expect(limiter.consume('key')).toMatchObject({ allowed: true, atMs: us / 1000 })
    }
  })
})

describe('plans', () => {
  const plans = { pro: gcra({ rate: '10/s', burst: 50 }) }

  test.each(VERBS)('%s refuses a plan that there is not, and says which there are', (verb) => {
    const stage = scene(gcra({ rate: '1/s', burst: 5 }), { plans: plans as Anything })
    const refused = () => stage.limiter[verb]('held', 1, { plan: 'por' })
    expectRefused(stage, refused, 'CONFIG', 'plan "por" is not one of the limiter\'s plans (pro)')
  })
})

describe('update', () => {
  const a = gcra({ rate: '1/s', burst: 5 })
  const b = fixedWindow({ limit: 5, window: '10s' })
  const bucket = tokenBucket({ capacity: 5, refill: '1/s' })

  test.each([
    ['a limit that is missing', { a }, '{ a: gcra } must have the same limits'],
    ['a limit too many', { a, b, c: b }, 'c: fixedWindow } must have the same limits'],
    ['another name', { a, B: b }, 'B: fixedWindow } must have the same limits'],
    ['another algorithm', { a: bucket, b }, '{ a: tokenBucket, b: fixedWindow } must have the same limits'],
    ['one limit for several', a, '{ default: gcra } must have the same limits'],
    ['nothing', undefined, 'limits undefined must be a limit'],
    ['no limits', {}, 'limits {} must be a limit'],
    ['plain data', { a, b: { type: 'fixedWindow', limit: 5, window: '10s' } }, 'limit \'b\' {"type":"fixedWindow"'],
  ])('refuses %s, and goes on with the numbers it had', (_what, limits, shown) => {
    const stage = scene({ a, b }, { plans: { pro: { a, b } } as Anything })
    const before = stage.limiter.peek('held')
    expectRefused(stage, () => stage.limiter.update(limits), 'CONFIG', shown)
    expectRefused(stage, () => stage.limiter.update({ a, b }, { pro: limits }), 'CONFIG', shown)
    expect(stage.limiter.peek('held')).toEqual(before)
    expect(stage.limiter.peek('held', 1, { plan: 'pro' })).toEqual(before)
  })

  test('takes the new numbers of the limits only if those of the plans are right too', () => {
    const { limiter } = scene(a, { plans: { pro: a } as Anything })
    expect(errorOf(() => limiter.update(gcra({ rate: '9/s', burst: 9 }), { pro: bucket })).code).toBe('CONFIG')
    expect(limiter.peek('held').limit).toBe(5)
  })
})

describe('createLimiter refuses', () => {
  const limit = gcra({ rate: '1/s', burst: 5 })
  const bucket = tokenBucket({ capacity: 5, refill: '1/s' })

  test.each([
    ['an option that there is not', { maxAhed: 5 }, 'createLimiter "maxAhed" is not an option: it has name, store'],
    ['options that are null', null, 'createLimiter null must be an object'],
    ['options that are a text', 'api', 'createLimiter "api" must be an object'],
    ['an empty name', { name: '' }, 'the name of a limiter "" must be'],
    ['a name with a space', { name: 'my api' }, 'the name of a limiter "my api" must be'],
    ['a name of 65 characters', { name: 'n'.repeat(65) }, 'the name of a limiter "nnnnn'],
    ['a name that is a number', { name: 42 }, 'the name of a limiter 42 must be'],
    ['a name that is null', { name: null }, 'the name of a limiter null must be'],
    ['a store that is null', { store: null }, 'store null must be a store'],
    ['a store that is a text', { store: 'redis' }, 'store "redis" must be a store'],
    ['a store that is its factory', { store: memoryStore }, 'store a function must be a store'],
    ['a store that cannot decide', { store: { mode: 'sync' } }, 'store {"mode":"sync"} must be a store'],
    ['a store that is neither at once nor later', { store: { apply: () => [] } }, 'store {} must be a store'],
    ['a clock that is null', { clock: null }, 'clock null must have nowUs() and setTimer()'],
    ['a clock that is a function', { clock: Date.now }, 'clock a function must have nowUs() and setTimer()'],
    ['a clock without a time', { clock: { setTimer: () => undefined } }, 'clock {} must have nowUs() and setTimer()'],
    ['a clock without a timer', { clock: { nowUs: () => 0 } }, 'clock {} must have nowUs() and setTimer()'],
    ['a maxAheadMs that is not a number', { maxAheadMs: Number.NaN }, 'maxAheadMs NaN must be'],
    ['a maxAheadMs that is text', { maxAheadMs: '60s' }, 'maxAheadMs "60s" must be milliseconds'],
    ['a negative maxAheadMs', { maxAheadMs: -1 }, 'maxAheadMs -1 must be milliseconds: 0, or from 1 microsecond to 366 days'],
    ['a maxAheadMs beyond 366 days', { maxAheadMs: 31_622_400_001 }, 'maxAheadMs 31622400001 must be milliseconds: 0, or from'],
    ['an onDecision that cannot be called', { onDecision: 'log' }, 'onDecision "log" must be a function'],
    ['plans that are null', { plans: null }, 'plans null must be an object'],
    ['plans that are a number', { plans: 5 }, 'plans 5 must be an object'],
    ['plans that are a list', { plans: [limit] }, 'plans [{"type":"gcra"'],
    ['a plan that is no limit', { plans: { pro: 5 } }, "plan 'pro': limits 5 must be a limit"],
    ['a plan that is null', { plans: { pro: null } }, "plan 'pro': limits null must be a limit"],
    ['a plan with a limit that is none', { plans: { pro: { default: 5 } } }, "plan 'pro': limit 'default' 5 must be made by a factory"],
    ['a plan with another algorithm', { plans: { pro: bucket } }, "plan 'pro' with { default: tokenBucket } must have the same"],
    ['a plan with other limits', { plans: { pro: { a: limit } } }, "plan 'pro' with { a: gcra } must have the same"],
  ])('%s', (_what, options, shown) => {
    expect(errorOf(() => createLimiter(limit, options as Anything))).toMatchObject({
      name: 'SluiceError',
      code: 'CONFIG',
      message: expect.stringContaining(shown),
    })
  })

  test.each([
    ['no limits at all', undefined, 'limits undefined must be a limit'],
    ['null', null, 'limits null must be a limit'],
    ['an empty object', {}, 'limits {} must be a limit'],
    ['a number', 42, 'limits 42 must be a limit'],
    ['a list', [limit, limit], 'or an object of them by name such as { burst: gcra({ ... }) }'],
    ['a text', 'gcra', 'limits "gcra" must be a limit'],
    ['plain data', { type: 'gcra', rate: '1/s', burst: 5 }, 'limit \'type\' "gcra" must be made by a factory'],
    ['one of several that is no limit', { a: limit, b: 5 }, "limit 'b' 5 must be made by a factory"],
    ['an empty name of a limit', { '': limit }, 'the name of a limit "" must be'],
    ['a name of a limit with a colon', { 'a:b': limit }, 'the name of a limit "a:b" must be'],
  ])('limits that are %s', (_what, limits, shown) => {
    expect(errorOf(() => createLimiter(limits as Anything))).toMatchObject({
      name: 'SluiceError',
      code: 'CONFIG',
      message: expect.stringContaining(shown),
    })
  })

  test('a limiter without a name on a store that others may share', () => {
    const refused = errorOf(() => createLimiter(limit, { store: sharedStore({ maxKeys: 1 }) }))
    expect(refused).toMatchObject({ code: 'CONFIG', message: expect.stringContaining("needs a name, such as { name: 'api' }") })
  })

  test('a limit that the store holds under another algorithm, at the latest when the first call comes', () => {
    const stage = scene(limit)
    const call = () => createLimiter(bucket, { name: 'api', store: stage.store, clock: stage.clock }).consume('held')
    expectRefused(stage, call, 'CONFIG', "limit 'default' is a gcra in this store, it cannot be a tokenBucket too")
  })
})

/**
 * The parts that every asynchronous store has above its driver: batches that are cut by weight,
 * groups, the denial cache; and failures that stay with their step.
 */
import { describe, expect, test } from 'vitest'
import {
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  type Limits,
  memoryStore,
  type Part,
  type Scope,
  SluiceError,
  type Step,
  slidingLog,
  slidingWindow,
} from '../../src/index.ts'
import { type AsyncStore, asyncStore, type StoreDriver } from '../../src/stores/index.ts'
import type { AsyncStoreOptions } from '../../src/stores/remote/options.ts'
import { fakeClock, storeCases } from '../../src/testing/index.ts'
import { Opened } from '../support/opened.ts'

/** States in memory, a turn of the event loop away. */
class FarDriver implements StoreDriver {
  readonly shared = true
  /** The keys of each call, and of each step in it. */
  readonly calls: string[][] = []
  readonly #memory = new Opened(memoryStore())

  async apply(steps: readonly Step[]): Promise<unknown[]> {
    this.calls.push(steps.map(({ parts }) => [...new Set(parts.map(({ key }) => key))].join('+')))
    await new Promise(setImmediate)
    return steps.map((step) => this.decided(step))
  }

  /** The failure, or undefined. */
  protected decided(step: Step): unknown {
    this.#memory.apply(step, step.nowUs ?? Date.now() * 1000)
    return undefined
  }
}

/** As a cluster whose slots are the first letters of the keys: one call is about one of them. */
class GroupedDriver extends FarDriver {
  override async apply(steps: readonly Step[]): Promise<unknown[]> {
    const groups = new Set(steps.flatMap(({ parts }) => parts.map(({ key }) => key[0])))
    if (groups.size > 1) throw new Error('CROSSSLOT')
    return super.apply(steps)
  }

  groupOf(_scope: Scope, { key }: Part): string {
    if (key === 'none') throw new SluiceError('KEY', 'no group for it')
    return key[0] as string
  }
}

const HOURLY = gcra({ rate: '5/h', burst: 5 })

function on<L extends Limits>(driver: StoreDriver, limits: L, options: AsyncStoreOptions = {}) {
  return createLimiter(limits, { name: 'api', store: asyncStore(driver, options) as AsyncStore, storeTimeoutMs: 60_000 })
}

async function stepsPerCall<L extends Limits>(
  limits: L,
  count: number,
  options?: AsyncStoreOptions,
  keyOf = (k: number): unknown => `key ${k}`,
) {
  const driver = new FarDriver()
  const limiter = on(driver, limits, options)
  await Promise.all(Array.from({ length: count }, (_, k) => limiter.consume(keyOf(k) as string)))
  return driver.calls.map((steps) => steps.length)
}

const times = (count: number, limit: Limit) => Object.fromEntries(Array.from({ length: count }, (_, k) => [`limit-${k}`, limit]))

describe('a batch', () => {
  test.each<[string, Limits, number[]]>([
    ['one small limit: 64', HOURLY, [64, 64, 64, 8]],
    ['two limits on one key: 3 quarters of that', times(2, HOURLY), [48, 48, 48, 48, 8]],
    ['ten limits', times(10, HOURLY), [...new Array(12).fill(16), 8]],
    ['more limits than fill a batch: each alone', times(200, HOURLY), new Array(200).fill(1)],
    ['a window of 100 slots', slidingWindow({ limit: 5, window: '1h', slots: 100 }), [48, 48, 48, 48, 8]],
    ['a small log', slidingLog({ limit: 5, window: '1h' }), [64, 64, 64, 8]],
    ['a large log, of which a page is read', slidingLog({ limit: 100_000, window: '1h' }), [...new Array(6).fill(32), 8]],
  ])('%s', async (_, limits, expected) => {
    expect(await stepsPerCall(limits, 200)).toEqual(expected)
  })

  test('limits with a key each', async () => {
    const keyOf = (k: number) => ({ 'limit-0': `a ${k}`, 'limit-1': `b ${k}` })
    expect(await stepsPerCall(times(2, HOURLY), 100, {}, keyOf)).toEqual([32, 32, 32, 4])
  })

  test('of heavy and light decisions weighs what they weigh together', async () => {
    const driver = new FarDriver()
    const store = asyncStore(driver, { maxBatch: 10 })
    const light = createLimiter(HOURLY, { name: 'light', store })
    const heavy = createLimiter(times(10, HOURLY), { name: 'heavy', store })
    const calls = [...new Array(5).fill(light), heavy, ...new Array(3).fill(light), heavy, heavy]
    await Promise.all(calls.map((limiter, k) => limiter.consume(`key ${k}`)))
    // Of 30: 5 x 3 + 12 + 3, then 2 x 3 + 2 x 12.
    expect(driver.calls.map((steps) => steps.length)).toEqual([7, 4])
  })

  test('maxBatch bounds it, and 1 sends each at once', async () => {
    expect(await stepsPerCall(HOURLY, 25, { maxBatch: 10 })).toEqual([10, 10, 5])
    expect(await stepsPerCall(HOURLY, 25, { maxBatch: 1_000 })).toEqual([25])
    const driver = new FarDriver()
    const limiter = on(driver, HOURLY, { maxBatch: 1 })
    const answers = ['a', 'b', 'c'].map((key) => limiter.consume(key))
    expect(driver.calls).toEqual([['a'], ['b'], ['c']])
    await Promise.all(answers)
  })

  test('is for each group, and a decision about several is asked and taken in each', async () => {
    const driver = new GroupedDriver()
    const limiter = on(driver, { user: HOURLY, tenant: HOURLY })
    await Promise.all(['a1', 'b1', 'a2', 'b2'].map((key) => limiter.consume(key)))
    expect(driver.calls).toEqual([
      ['a1', 'a2'],
      ['b1', 'b2'],
    ])
    driver.calls.length = 0
    const decision = await limiter.consume({ user: 'a1', tenant: 'b1' }, 2)
    expect(decision).toMatchObject({ allowed: true, parts: { user: { remaining: 2 }, tenant: { remaining: 2 } } })
    expect(driver.calls).toEqual([['a1'], ['b1'], ['a1'], ['b1']])
    // What one of them refuses is charged in none.
    expect((await limiter.consume({ user: 'a1', tenant: 'b3' }, 3)).allowed).toBe(false)
    expect((await limiter.peek('b3')).remaining).toBe(5)
  })
})

describe('a failure', () => {
  class Failing extends FarDriver {
    protected override decided(step: Step): unknown {
      if (step.parts[0]?.key === 'bad') return new SluiceError('STORE', 'a damaged row', { isolated: true })
      return super.decided(step)
    }
  }

  test('of one step stays with it', async () => {
    const limiter = on(new Failing(), HOURLY)
    const answers = await Promise.allSettled(['a', 'bad', 'b'].map((key) => limiter.consume(key)))
    expect(answers).toMatchObject([
      { value: { remaining: 4 } },
      { reason: { code: 'STORE', message: 'a damaged row' } },
      { value: { remaining: 4 } },
    ])
    expect(limiter.health().state).toBe('up')
  })

  test('of a decision about several groups that took too long takes nothing, or gives back what it took', async () => {
    /** Answers each call when it is told to. */
    class Held extends GroupedDriver {
      readonly #held: (() => void)[] = []
      readonly ops: string[] = []
      override async apply(steps: readonly Step[]): Promise<unknown[]> {
        await new Promise<void>((resolve) => this.#held.push(resolve))
        this.ops.push(...steps.map(({ op }) => op))
        return super.apply(steps)
      }
      async answer(): Promise<void> {
        for (const answer of this.#held.splice(0)) answer()
        for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
      }
    }
    const limits = { user: HOURLY, tenant: HOURLY }
    for (const [answersInTime, ops] of [
      [0, ['ask', 'ask']],
      [1, ['ask', 'ask', 'take', 'take', 'settle', 'settle']],
    ] as const) {
      const driver = new Held()
      const clock = fakeClock()
      const options = { name: 'api', store: asyncStore(driver) as AsyncStore, clock, storeTimeoutMs: 100, onStoreError: 'deny' } as const
      const limiter = createLimiter(limits, options)
      const decided = limiter.consume({ user: 'a', tenant: 'b' })
      await new Promise(setImmediate)
      for (let k = 0; k < answersInTime; k++) await driver.answer()
      clock.advanceMs(100)
      expect(await decided).toMatchObject({ outcome: 'limited', degraded: true })
      for (let k = 0; k < 4; k++) await driver.answer()
      expect(driver.ops).toEqual(ops)
      limiter.close()
    }
  })

  test('to tell the shard of a key is taken for an outage of all', async () => {
    const shardOf = () => {
      throw new TypeError('slots are not known yet')
    }
    const apply = () => Promise.reject(new Error('no connection'))
    const limiter = on({ shared: true, apply, shardOf }, HOURLY)
    await expect(limiter.consume('k')).rejects.toMatchObject({ code: 'STORE' })
    expect(limiter.health().state).toBe('down')
    limiter.close()
  })

  test('to find a group is that of the caller', async () => {
    const limiter = on(new GroupedDriver(), HOURLY)
    const answers = await Promise.allSettled(['a', 'none'].map((key) => limiter.consume(key)))
    expect(answers).toMatchObject([{ status: 'fulfilled' }, { reason: { code: 'KEY' } }])
    expect(limiter.health().state).toBe('up')
  })

  test.each<[string, () => Promise<void>]>([
    ['rejects', () => Promise.reject(new Error('no connection'))],
    ['rejects with nothing', () => Promise.reject()],
    [
      'throws',
      () => {
        throw new Error('no connection')
      },
    ],
  ])('of a driver that %s is that of every step, and opens the breaker', async (_, apply) => {
    const limiter = on({ shared: true, apply }, HOURLY)
    const answers = await Promise.allSettled(['a', 'b', 'c'].map((key) => limiter.consume(key)))
    expect(answers).toMatchObject(answers.map(() => ({ status: 'rejected', reason: { code: 'STORE' } })))
    expect(limiter.health().state).toBe('down')
    limiter.close()
  })
})

describe('the denial cache', () => {
  async function callsFor(limiter: { consume(key: string): Promise<{ allowed: boolean }> }, driver: FarDriver): Promise<number> {
    for (let k = 0; k < 6; k++) await limiter.consume('k')
    driver.calls.length = 0
    for (let k = 0; k < 10; k++) expect((await limiter.consume('k')).allowed).toBe(false)
    return driver.calls.length
  }

  test('is on, and can be turned off', async () => {
    const [cached, asked] = [new FarDriver(), new FarDriver()]
    expect(await callsFor(on(cached, HOURLY, { denialCache: { maxMs: 60_000 } }), cached)).toBe(0)
    expect(await callsFor(on(asked, HOURLY, { denialCache: false }), asked)).toBe(10)
  })

  test('is seen through by what this process gives back', async () => {
    const driver = new FarDriver()
    const limiter = on(driver, HOURLY, { denialCache: { maxMs: 60_000 } })
    await callsFor(limiter, driver)
    await limiter.refund('k')
    expect((await limiter.consume('k')).allowed).toBe(true)
    await callsFor(limiter, driver)
    const [, decision] = await Promise.all([limiter.reset('k'), limiter.consume('k')])
    expect(decision.allowed).toBe(true)
  })
})

test.each([
  [{ maxBatch: 0 }, /asyncStore maxBatch 0 must be a whole number from 1 to 1000/],
  [{ denialCache: true }, /asyncStore denialCache true must be false or an object/],
  [{ maxSize: 3 }, /maxSize/],
])('the options %o are refused', (options, message) => {
  expect(() => asyncStore(new FarDriver(), options as never)).toThrow(message)
})

describe.each([
  ['one group', () => new FarDriver()],
  ['many groups', () => new GroupedDriver()],
])('every case of a store, with %s', (_, open) => {
  test.each(storeCases(() => asyncStore(open())))('%s', async (_name, run) => run())
})

test('limits in one decision that is refused say what each has left', async () => {
  const limiter = on(new GroupedDriver(), { user: HOURLY, day: fixedWindow({ limit: 9, window: '1d' }) })
  await limiter.consume('a', 4)
  expect(await limiter.consume('a', 2)).toMatchObject({ outcome: 'limited', parts: { user: { remaining: 1 }, day: { remaining: 5 } } })
})

/**
 * The cases that every store must pass, as pairs `[name, run]` bound to no test runner: a case
 * resolves, or rejects with the fault.
 *
 *   for (const [name, run] of storeCases(() => myStore())) test(name, run)
 *
 * `open` makes a store that holds nothing. The cases tell it the time, so a store with a clock of
 * its own must take `step.nowUs` instead.
 */

import { type Limit, RULE } from '../algorithms/algorithm.ts'
import { fixedWindow } from '../algorithms/fixed-window/fixed-window.ts'
import { ABOUTS } from '../algorithms/list.ts'
import { SluiceError } from '../errors.ts'
import { concurrency } from '../limiter/concurrency.ts'
import { createLimiter, type Limiter } from '../limiter/limiter.ts'
import type { LimiterOptions, Limits } from '../limiter/options.ts'
import type { AsyncStore } from '../stores/remote/async-store.ts'
import type { Store } from '../stores/store.ts'
import { admitted } from './admitted.ts'
import { type FakeClock, fakeClock } from './fake-clock.ts'

export type StoreCase = readonly [name: string, run: () => Promise<void>]

/** A time like today's, where microseconds have sixteen digits. */
const START_MS = 1_700_000_000_000

/** Each algorithm as "three at once", and the same with room for five. */
const THREE = samplesOf(3)
const FIVE = samplesOf(5)
const ONE = fixedWindow({ limit: 1, window: '1s' })

/** Limits that are held until they are released have cases of their own, below. */
function samplesOf(capacity: number): Readonly<Record<string, Limit>> {
  const limits = ABOUTS.map(({ type, sample }) => [type, sample(capacity, { permits: 3, per: '3s' })] as const)
  return Object.fromEntries(limits.filter(([, limit]) => !limit[RULE].algorithm.untilReleased))
}

/**
 * The stage of one case: a store and its clock, and limiters on it as if answers were always
 * promises.
 */
interface StoreStage {
  readonly clock: FakeClock
  limiter<L extends Limits>(limits: L, options?: LimiterOptions<L, AsyncStore>): Limiter<L, AsyncStore>
}

type Scene = (stage: StoreStage, limit: Limit, type: string) => Promise<void>

export function storeCases(open: () => Store | Promise<Store>): StoreCase[] {
  return [
    ...Object.entries(FOR_EACH_ALGORITHM).flatMap(([name, scene]) => forEachAlgorithm(name, scene, open)),
    ...together(open),
    ...permits(open),
  ]
}

/** What is held until it is released. */
function permits(open: () => Store | Promise<Store>): StoreCase[] {
  const stageWith = async () => {
    const store = (await open()) as AsyncStore
    const clock = fakeClock(START_MS)
    return { clock, places: createLimiter(concurrency({ max: 3, lease: '3s' }), { name: 'cases', store, clock }) }
  }
  return [
    [
      'permits: are held until each is released, once',
      async () => {
        const { places } = await stageWith()
        const held = [await places.consume('key'), await places.consume('key', 2)]
        equal((await places.consume('key')).outcome, 'limited', 'the fourth')
        for (let k = 0; k < 2; k++) await held[0]?.release()
        equal((await places.peek('key')).remaining, 1, 'remaining after two releases of one permit')
        await held[1]?.release()
        equal((await places.peek('key')).resetAfterMs <= 0.002, true, 'idle when all are released')
      },
    ],
    [
      'permits: are renewed while they are held, and have tokens that increase',
      async () => {
        const { clock, places } = await stageWith()
        const first = await places.consume('key', 3)
        for (let k = 0; k < 10; k++) {
          clock.advanceMs(1_000)
          // It leaves behind the renewal, so that is answered before it.
          await places.peek('key')
          equal(first.held, true, `held after ${k + 1} s`)
        }
        equal((await places.consume('key')).outcome, 'limited', 'ten seconds later')
        await first.release()
        equal((await places.consume('key')).token > first.token, true, 'a later token is larger')
      },
    ],
  ]
}

function forEachAlgorithm(name: string, scene: Scene, open: () => Store | Promise<Store>): StoreCase[] {
  return Object.entries(THREE).map(([type, limit]) => [`${type}: ${name}`, async () => scene(await stageOn(open), limit, type)])
}

async function stageOn(open: () => Store | Promise<Store>): Promise<StoreStage> {
  const store = (await open()) as AsyncStore
  const clock = fakeClock(START_MS)
  return { clock, limiter: (limits, options = {}) => createLimiter(limits, { name: 'cases', store, clock, ...options }) }
}

const FOR_EACH_ALGORITHM: Readonly<Record<string, Scene>> = {
  async 'admits what it should at once, and no more'({ limiter }, limit) {
    const three = limiter(limit)
    for (const remaining of [2, 1, 0]) equal((await three.consume('key')).remaining, remaining, 'remaining')
    equal((await three.consume('key')).outcome, 'limited', 'the fourth')
    equal((await three.consume('key', 4)).outcome, 'impossible', 'a cost above the limit')
  },

  async 'refuses a key with half a surrogate pair, on every verb'({ limiter }, limit) {
    const three = limiter(limit)
    const verbs = ['consume', 'peek', 'reserve', 'charge', 'refund', 'reset'] as const
    for (const verb of verbs) equal(codeOf(await errorOf(async () => three[verb]('half \ud800'))), 'KEY', verb)
    equal(codeOf(await errorOf(() => admitted(three, 'half \ud800'))), 'KEY', 'tryAcquire')
  },

  async 'is limited one microsecond before retryAfterMs, and allowed at it'({ limiter, clock }, limit) {
    const three = limiter(limit)
    await three.consume('key', 3)
    const { retryAfterMs } = await three.consume('key', 2)
    clock.setUs(clock.nowUs() + Math.round(retryAfterMs * 1000) - 1)
    equal(await admitted(three, 'key', 2), false, 'one microsecond before')
    clock.setUs(clock.nowUs() + 1)
    equal(await admitted(three, 'key', 2), true, 'at its time')
  },

  async 'is as new once resetAfterMs has passed'({ limiter, clock }, limit) {
    const three = limiter(limit)
    const { resetAfterMs } = await three.consume('key', 2)
    clock.advanceMs(resetAfterMs)
    equal((await three.peek('key')).resetAfterMs, 0, 'resetAfterMs')
    equal(await admitted(three, 'key', 3), true, 'all at once again')
  },

  async 'a refusal, a question and a cost of 0 take nothing'({ limiter }, limit) {
    const three = limiter(limit)
    await three.consume('key', 1)
    for (const cost of [0, 3, 4]) {
      await three.consume('key', cost)
      await three.peek('key', cost)
    }
    equal((await three.peek('key')).remaining, 2, 'remaining')
  },

  async 'gives back, but not above idle, and creates nothing by it'({ limiter, clock }, limit) {
    const three = limiter(limit)
    await three.refund('key', 2)
    equal(await admitted(three, 'key', 3), true, 'all at once after a refund of nothing')
    clock.advanceMs(0.001)
    await three.refund('key', 2)
    equal((await three.peek('key')).remaining, 2, 'remaining after a refund')
    await three.refund('key', 9)
    equal((await three.peek('key')).remaining, 3, 'remaining after too large a refund')
  },

  async 'gives back what was taken by the time of its decision, also when the clock had stepped back'({ limiter, clock }, limit) {
    const three = limiter(limit)
    // Where windows and sub-windows begin: a microsecond earlier is another one.
    const borderUs = (START_MS + 1_000) * 1000
    clock.setUs(borderUs)
    await three.consume('key')
    clock.setUs(borderUs - 1)
    const second = await three.consume('key')
    equal(second.allowed, true, 'the second, a microsecond before the first')
    clock.setUs(borderUs)
    await second.settle(0)
    equal((await three.peek('key')).remaining, 2, 'remaining after the second was given back')
  },

  async 'writes down what was used, also beyond the limit, and limits until that has drained'({ limiter, clock }, limit) {
    const three = limiter(limit)
    const fits = await three.charge('key', 2)
    equal(`${fits.outcome} ${fits.remaining} ${fits.retryAfterMs}`, 'allowed 1 0', 'a charge that fits')
    const debt = await three.charge('key', 5)
    equal(`${debt.outcome} ${debt.remaining}`, 'limited 0', 'a charge beyond the limit')
    equal((await three.peek('key')).retryAfterMs, debt.retryAfterMs, 'retryAfterMs of a question')
    clock.setUs(clock.nowUs() + Math.round(debt.retryAfterMs * 1000) - 1)
    equal(await admitted(three, 'key'), false, 'one microsecond before')
    clock.setUs(clock.nowUs() + 1)
    equal(await admitted(three, 'key'), true, 'at its time')
  },

  async 'keeps what was used beyond the limit when the numbers change and when the clock steps back'({ limiter, clock }, limit, type) {
    const changing = limiter(limit as Limits)
    await changing.charge('key', 20)
    clock.advanceMs(-3_600_000)
    equal(await admitted(changing, 'key'), false, 'after a long step back')
    changing.update(FIVE[type] as Limit)
    await changing.charge('key', 1)
    changing.update(limit)
    equal((await changing.peek('key')).remaining, 0, 'remaining after other numbers')
    const { retryAfterMs } = await changing.charge('key', 0)
    equal(retryAfterMs > 0, true, 'in debt')
  },

  async 'settles a decision by what it cost, as if that had been taken then'({ limiter, clock }, limit) {
    const three = limiter(limit)
    const less = await three.consume('key', 3)
    await three.consume('other', 1)
    clock.advanceMs(0.001)
    await less.settle(1)
    await less.settle(3)
    equal((await three.peek('key')).remaining, 2, 'remaining after one of three was used')
    const more = await three.consume('other', 1)
    await more.settle(4)
    equal((await three.peek('other')).remaining, 0, 'remaining after more was used than there is')
    equal((await three.charge('other', 0)).outcome, 'limited', 'in debt')
    const refused = await three.consume('other', 1)
    await refused.settle(0)
    equal((await three.charge('other', 0)).outcome, 'limited', 'still in debt')
  },

  async 'settles a decision that came from elsewhere'({ limiter, clock }, limit) {
    const three = limiter(limit)
    const decision = JSON.parse(JSON.stringify(await three.consume('key', 3)))
    clock.advanceMs(0.001)
    await limiter(limit).settle('key', 2, { of: decision, cost: 3 })
    equal((await three.peek('key')).remaining, 1, 'remaining after two of three were used')
  },

  async 'gives nothing back of what no longer counts'({ limiter, clock }, limit) {
    const three = limiter(limit)
    const old = await three.consume('key', 3)
    clock.advanceMs(old.resetAfterMs)
    await three.consume('key', 3)
    await old.settle(0)
    equal(await admitted(three, 'key'), false, 'after the old one was settled')
  },

  async 'forgets a key when told to, and no other'({ limiter }, limit) {
    const three = limiter(limit)
    await three.consume('key', 3)
    await three.consume('other', 3)
    await three.reset('key')
    equal(await admitted(three, 'key', 3), true, 'the key that was reset')
    equal(await admitted(three, 'other'), false, 'the other key')
  },

  async 'keeps keys and limiters apart, whatever they are called'({ limiter }, limit) {
    const three = limiter(limit)
    const keys = ['a', 'A', 'a ', 'a:b', '{a}', 'a}', '%7B', 'a\nb', 'ä', '你好', '😀', 'x'.repeat(1024)]
    for (const key of keys) equal(await admitted(three, key, 3), true, `key ${JSON.stringify(key).slice(0, 20)}`)
    for (const key of keys) equal(await admitted(three, key), false, `key ${JSON.stringify(key).slice(0, 20)} again`)
    equal(await admitted(limiter(limit, { name: 'others' }), 'a', 3), true, 'another limiter')
  },

  async 'keeps what was used when the numbers change'({ limiter }, limit, type) {
    const changing = limiter(limit as Limits)
    await changing.consume('key', 3)
    changing.update(FIVE[type] as Limit)
    equal((await changing.peek('key')).remaining, 2, 'remaining of five')
    changing.update(limit)
    equal((await changing.peek('key')).remaining, 0, 'remaining of three')
  },

  async 'frees nothing when the clock steps back, and holds nobody for longer than a window'({ limiter, clock }, limit) {
    const three = limiter(limit, { maxAheadMs: 0 })
    const { resetAfterMs } = await three.consume('key', 3)
    clock.advanceMs(-500)
    equal(await admitted(three, 'key'), false, 'after a small step back')
    clock.advanceMs(-3_600_000)
    equal(await admitted(three, 'key'), false, 'after a long step back')
    clock.advanceMs(resetAfterMs + 1_000)
    equal(await admitted(three, 'key', 3), true, 'a window later')
  },

  async 'admits exactly the limit to a crowd'({ limiter }, limit) {
    const three = limiter(limit)
    const answers = await Promise.all(Array.from({ length: 50 }, () => admitted(three, 'key')))
    equal(answers.filter((allowed) => allowed).length, 3, 'admitted')
  },
}

/** Cases about several limits and about booking ahead. */
function together(open: () => Store | Promise<Store>): StoreCase[] {
  const all = { burst: THREE.gcra as Limit, bucket: FIVE.tokenBucket as Limit, window: FIVE.fixedWindow as Limit }
  return [
    [
      'several limits on one key are charged all or none',
      async () => {
        const { limiter } = await stageOn(open)
        const several = limiter(all)
        equal((await several.consume('key', 3)).policy, 'burst', 'the binding limit')
        equal((await several.consume('key', 1)).outcome, 'limited', 'a cost that one of them refuses')
        const { parts } = await several.peek('key', 0)
        equal(JSON.stringify([parts.burst.remaining, parts.bucket.remaining, parts.window.remaining]), '[0,2,2]', 'remaining')
      },
    ],
    [
      'a cost for each limit charges each its own, and 0 none',
      async () => {
        const { limiter } = await stageOn(open)
        const several = limiter(all)
        await several.consume('key', { burst: 1, bucket: 4, window: 0 })
        const { parts } = await several.peek('key', 0)
        equal(JSON.stringify([parts.burst.remaining, parts.bucket.remaining, parts.window.remaining]), '[2,1,5]', 'remaining')
      },
    ],
    [
      'another algorithm under the same name is an error, and takes nothing of what was used',
      async () => {
        const { limiter } = await stageOn(open)
        const three = limiter(THREE.fixedWindow as Limit)
        await three.consume('key', 2)
        // When it is made, or when it is first asked.
        const error = await errorOf(async () => limiter(FIVE.tokenBucket as Limit).consume('key'))
        equal(error instanceof SluiceError, true, 'whether a tokenBucket in the place of a fixedWindow is a SluiceError')
        equal((await three.consume('key')).remaining, 0, 'remaining')
      },
    ],
    [
      'a state that is idle is kept when a step writes it and a new one',
      async () => {
        const { limiter, clock } = await stageOn(open)
        const both = limiter({ old: ONE, fresh: ONE })
        // A store that lets idle states go in passing may come to any of them.
        for (let round = 0; round < 20; round++) {
          const key = `key:${round}`
          await both.consume(key, { old: 1, fresh: 0 })
          clock.advanceMs(60_000)
          equal(await admitted(both, key), true, `the first of round ${round}`)
          equal(await admitted(both, key, { old: 1, fresh: 0 }), false, `the second of round ${round}`)
        }
      },
    ],
    [
      'a store that is shared says how callers wait in line at it',
      async () => {
        const store = await open()
        const needsQueue = store.mode === 'sync' && store.shared
        if (needsQueue) equal(typeof store.queue, 'function', 'queue of a shared store (SharedQueue of sluice/store)')
      },
    ],
    [
      'several limits are settled each by its own cost, in one step',
      async () => {
        const { limiter } = await stageOn(open)
        const several = limiter(all)
        const decision = await several.consume('key', { burst: 1, bucket: 2, window: 2 })
        await decision.settle({ burst: 1, bucket: 0, window: 4 })
        const { parts } = await several.peek('key', 0)
        equal(JSON.stringify([parts.burst.remaining, parts.bucket.remaining, parts.window.remaining]), '[2,5,1]', 'remaining')
      },
    ],
    ...['gcra', 'tokenBucket'].map(
      (type): StoreCase => [
        `${type}: a reservation is booked behind the others, and given back before its time`,
        async () => {
          const { limiter, clock } = await stageOn(open)
          const three = limiter(THREE[type] as Limit)
          await three.consume('key', 3)
          const first = await three.reserve('key')
          const second = await three.reserve('key', 2)
          equal(JSON.stringify([first.delayMs, second.delayMs]), '[1000,3000]', 'delays')
          await first.cancel()
          equal((await three.peek('key')).retryAfterMs, 4_000, 'retryAfterMs with one behind it')
          await second.cancel()
          equal((await three.peek('key')).retryAfterMs, 2_000, 'retryAfterMs after the last one left')
          clock.advanceMs(2_000)
          equal(await admitted(three, 'key'), true, 'at its time')
        },
      ],
    ),
  ]
}

function equal<T>(actual: T, expected: T, what: string): void {
  if (actual !== expected) throw new Error(`${what}: is ${String(actual)}, should be ${String(expected)}`)
}

async function errorOf(call: () => Promise<unknown>): Promise<unknown> {
  return call().then(
    () => undefined,
    (error) => error,
  )
}

function codeOf(error: unknown): unknown {
  return error instanceof SluiceError ? error.code : error
}

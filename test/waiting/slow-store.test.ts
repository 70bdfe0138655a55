/**
 * Waiting on a store that answers later, out of order, or not at all. The store keeps a ledger of
 * what was taken from it and given back, and whatever happens, nobody may act on a permit before
 * the ledger says that its time has come.
 */

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RULE } from '../../src/algorithms/algorithm.ts'
import { createLimiter, fixedWindow, gcra, type Limit, type Limiter, leakyBucket, memoryStore, tokenBucket } from '../../src/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { Coverage } from '../model/against-oracle.ts'
import { SEED, traceCount } from '../model/trace.ts'
import { stepByStep } from '../support/as-store.ts'
import { Opened } from '../support/opened.ts'
import { noUnhandledRejections, PATIENT, type Pending, type SlowStore, slowStore, told, watched } from './support.ts'

noUnhandledRejections()

const KINDS = { acquire: 30, abort: 12, answer: 30, run: 12, fail: 4, wait: 12 } as const
type Kind = keyof typeof KINDS

interface AsyncStep {
  readonly kind: Kind
  readonly a: number
}

interface AsyncSchedule {
  readonly permits: number
  readonly capacity: number
  readonly maxAheadMs: number
  readonly maxQueue: number
  readonly steps: readonly AsyncStep[]
}

const asyncSchedules: fc.Arbitrary<AsyncSchedule> = fc.record({
  permits: fc.integer({ min: 1, max: 9 }),
  capacity: fc.integer({ min: 1, max: 6 }),
  maxAheadMs: fc.constantFrom(0, 300, 1_000, 60_000, 60_000),
  maxQueue: fc.constantFrom(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 3),
  steps: fc.array(
    fc.record({
      kind: fc.oneof(...Object.entries(KINDS).map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind as Kind) }))),
      a: fc.integer({ min: 0, max: 999_983 }),
    }),
    { minLength: 20, maxLength: 80, size: 'max' },
  ),
})

interface Call {
  readonly cost: number
  readonly gone: AbortController
  readonly seen: ReturnType<typeof watched>
}

class AsyncRun {
  readonly #schedule: AsyncSchedule
  readonly #coverage: Coverage
  /**
   * Answers come in the order of the questions and at once: then nothing is lost, whichever caller
   * leaves when.
   */
  readonly #orderly: boolean
  readonly #clock: FakeClock = fakeClock()
  readonly #store: SlowStore = slowStore(this.#clock)
  readonly #limiter: Limiter<Limit, SlowStore>
  readonly #calls: Call[] = []
  readonly #isLeaky: boolean
  readonly #limit: Limit
  /** Permits taken in the store, those given back taken off, and permits acted on. */
  #taken = 0
  #acted = 0
  #lastCost = 0

  constructor(schedule: AsyncSchedule, limit: Limit, orderly: boolean, coverage: Coverage) {
    const { maxAheadMs, maxQueue } = schedule
    this.#schedule = schedule
    this.#coverage = coverage
    this.#orderly = orderly
    this.#limit = limit
    this.#isLeaky = limit.type === 'leakyBucket'
    this.#limiter = createLimiter<Limit, SlowStore>(limit, {
      name: 'api',
      store: this.#store,
      clock: this.#clock,
      maxAheadMs,
      maxQueue,
      ...PATIENT,
    })
  }

  async check(): Promise<void> {
    for (const { kind, a } of this.#schedule.steps) {
      this.#coverage.steps += 1
      this.#do(kind, a)
      await told()
      this.#checkLedger()
    }
    await this.#letAllEnd()
    const unused = this.#taken - this.#acted
    if (unused < -1e-6) throw new Error(`${this.#acted} acted on, ${this.#taken} taken`)
    if (this.#orderly && Math.abs(unused) > 1e-6) throw new Error(`${unused} permits were lost`)
    if (unused > 1e-6) this.#coverage.add('permits were lost')
  }

  #do(kind: Kind, a: number): void {
    const { pending } = this.#store
    const some = pending[this.#orderly ? 0 : a % Math.max(1, pending.length)]
    if (kind === 'acquire') this.#acquire(a)
    else if (kind === 'abort') this.#abort(a)
    else if (kind === 'wait') this.#wait(a)
    else if (some !== undefined) this.#deliver(kind, some, a)
  }

  /**
   * A permit that is on its way back when its time comes is lost: an orderly world waits for it.
   */
  #wait(a: number): void {
    if (!this.#orderly || this.#store.pending.length === 0) this.#clock.advanceMs(a % 500)
  }

  #acquire(a: number): void {
    const cost = 1 + (a % this.#schedule.capacity)
    const gone = new AbortController()
    const timeoutMs = a % 5 === 0 ? (a % 2_000) + 100 : Number.POSITIVE_INFINITY
    const options = { cost, signal: gone.signal, timeoutMs }
    const seen = watched(this.#limiter.acquire('k', options), () => this.#ended(call))
    const call: Call = { cost, gone, seen }
    this.#calls.push(call)
  }

  #ended({ seen, cost, gone }: Call): void {
    if (seen.end === 'resolved') {
      this.#acted += cost
      this.#lastCost = cost
      this.#coverage.add('served')
      if (gone.signal.aborted) throw new Error('served although it had left')
    } else {
      this.#coverage.add(gone.signal.aborted ? 'aborted' : seen.code === 'STORE' ? 'failed' : (seen.code ?? 'other'))
    }
  }

  #abort(a: number): void {
    const waiting = this.#calls.filter(({ seen }) => seen.end === 'waits')
    const call = waiting[a % Math.max(1, waiting.length)]
    if (call === undefined) return
    if (this.#store.pending.length > 0) this.#coverage.add('left while something was asked')
    call.gone.abort(new Error('gone'))
  }

  #deliver(kind: 'answer' | 'run' | 'fail', pending: Pending, a: number): void {
    if (pending !== this.#store.pending[0]) this.#coverage.add('out of order')
    if (kind !== 'fail' || a % 2 === 0) this.#entered(pending)
    if (kind === 'answer') pending.answer()
    else if (kind === 'fail' && !this.#orderly) pending.fail()
  }

  /** The store does it now, and the ledger notes by how much the level changed. */
  #entered(pending: Pending): void {
    const before = this.#level()
    pending.run()
    this.#taken += this.#level() - before
  }

  /** Permits in use now, as a fraction. */
  #level(): number {
    const held = this.#store.memory.inspect('api', 'default', 'k')
    if (held === undefined) return 0
    const [capacity, permits, periodUs] = this.#limit[RULE].figures as readonly [number, number, number]
    const nowUs = this.#clock.nowUs()
    const { tatUs = 0, tokens = 0, water = 0, part = 0, atUs = 0 } = held
    if (this.#limit.type === 'gcra') return Math.max(0, ((tatUs - nowUs) * permits + part) / periodUs)
    const written = this.#isLeaky ? water + part / periodUs : capacity - tokens - part / periodUs
    return Math.max(0, written - ((nowUs - atUs) * permits) / periodUs)
  }

  /**
   * What was acted on may not be more than what is not booked ahead any longer; in a leaky bucket,
   * than what has leaked, but for the last.
   */
  #checkLedger(): void {
    const level = this.#level()
    const { capacity } = this.#schedule
    const ahead = this.#isLeaky ? level : Math.max(0, level - capacity)
    // Who is told last need not be the last: its answer may have come late. Then no more is known
    // of the last than that it fits.
    const last = this.#orderly ? this.#lastCost : capacity
    const acted = this.#isLeaky && level > 0 ? this.#acted - last : this.#acted
    if (acted > this.#taken - ahead + 1e-6) throw new Error(`${acted} acted on, ${this.#taken} taken, ${ahead} of it still ahead`)
  }

  async #letAllEnd(): Promise<void> {
    for (let k = 0; k < 2_000 && (this.#limiter.waiting() > 0 || this.#store.pending.length > 0); k++) {
      for (const pending of [...this.#store.pending]) {
        this.#entered(pending)
        pending.answer()
        await told()
        this.#checkLedger()
      }
      if (this.#store.pending.length === 0) this.#clock.advanceMs(50)
      await told()
      this.#checkLedger()
    }
    if (this.#calls.some(({ seen }) => seen.end === 'waits')) throw new Error('a caller waits for ever')
    if (this.#clock.timers > 0) throw new Error('a timer is left')
  }
}

const LIMITS: Readonly<Record<string, (schedule: AsyncSchedule) => Limit>> = {
  gcra: ({ permits, capacity }) => gcra({ burst: capacity, rate: { permits, per: '1s' } }),
  tokenBucket: ({ permits, capacity }) => tokenBucket({ capacity, refill: { permits, per: '1s' } }),
  leakyBucket: ({ permits, capacity }) => leakyBucket({ capacity, leak: { permits, per: '1s' } }),
}

describe.each(Object.entries(LIMITS))('%s', (name, limitOf) => {
  test.each([
    ['in order, with callers leaving at any time: nothing is lost', true],
    ['out of order, failing, with callers leaving at any time: nobody acts early, nobody waits for ever', false],
  ])('300 schedules of answers %s', async (_, orderly) => {
    const coverage = new Coverage()
    const property = fc.asyncProperty(asyncSchedules, (schedule) => new AsyncRun(schedule, limitOf(schedule), orderly, coverage).check())
    await fc.assert(property, { seed: SEED, numRuns: traceCount(300) })
    console.log(coverage.table(`a slow store with a ${name}, ${orderly ? 'in order' : 'out of order'}`))
    const hard = orderly
      ? ['served', 'aborted']
      : ['served', 'aborted', 'failed', 'TIMEOUT', 'out of order', 'left while something was asked']
    for (const what of hard) expect(coverage.share(what), what).toBeGreaterThanOrEqual(0.01)
  })

  test('answers out of order: served in the order in which the store saw them, each in its time', async () => {
    const property = fc.asyncProperty(fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 6 }), permutation(), async (seen, answered) => {
      const clock = fakeClock()
      const store = slowStore(clock)
      const limit = limitOf({ permits: 1, capacity: 1, maxAheadMs: 0, maxQueue: 0, steps: [] })
      const limiter = createLimiter<Limit, SlowStore>(limit, { name: 'api', store, clock, ...PATIENT })
      const used = limiter.consume('k')
      await told()
      await store.settle()
      await used
      const order: string[] = []
      // Each may wait exactly as long as the store will say: nobody may be put before one who was
      // booked earlier.
      const waits = [0, 1, 2, 3, 4, 5].map((k) => limiter.acquire('k', { timeoutMs: 1_000 * (seen.indexOf(k) + 1) }))
      waits.forEach((wait, k) => {
        wait.then(
          ({ waitedMs }) => order.push(`${k} at ${waitedMs}`),
          (error) => order.push(`${k} ${error.code}`),
        )
      })
      await told()
      const asked = [...store.pending]
      for (const k of seen) asked[k]?.run()
      for (const k of answered) {
        asked[k]?.answer()
        await told()
      }
      for (let ms = 1_000; ms <= 6_000; ms += 1_000) {
        clock.setMs(ms)
        await told()
      }
      expect(order).toEqual(seen.map((k, place) => `${k} at ${1_000 * (place + 1)}`))
    })
    await fc.assert(property, { seed: SEED, numRuns: traceCount(150) })
  })
})

function permutation(): fc.Arbitrary<number[]> {
  return fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 6 })
}

describe('waiters that leave while others are asking', () => {
  async function usedUp() {
    const clock = fakeClock()
    const store = slowStore(clock)
    const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { name: 'api', store, clock, maxAheadMs: 2_000_000, ...PATIENT })
    const used = limiter.consume('k')
    await told()
    await store.settle()
    await used
    return { clock, store, limiter, before: store.memory.inspect('api', 'default', 'k') }
  }

  test('a thousand who all leave before the store has answered leave nothing behind', async () => {
    const { store, limiter, before, clock } = await usedUp()
    const gone = new AbortController()
    const waits = Array.from({ length: 1_000 }, () => watched(limiter.acquire('k', { signal: gone.signal })))
    await told()
    gone.abort()
    await told()
    await store.settle()
    expect(waits.every(({ end }) => end === 'rejected')).toBe(true)
    expect(store.memory.inspect('api', 'default', 'k')).toEqual(before)
    expect([limiter.waiting(), clock.timers]).toEqual([0, 0])
  })

  test('an answer for a waiter that has left does not disturb later ones', async () => {
    const { store, limiter, clock } = await usedUp()
    const first = watched(limiter.acquire('k'))
    await told()
    await store.settle()
    const gone = new AbortController()
    watched(limiter.acquire('k', { signal: gone.signal, timeoutMs: 60_000 }))
    await told()
    const late = store.pending[0]
    gone.abort()
    clock.setMs(1_000)
    await told()
    expect(first.end).toBe('resolved')
    const next = watched(limiter.acquire('k'))
    await told()
    store.pending[1]?.answer()
    late?.answer()
    await told()
    expect(limiter.waiting('k')).toBe(1)
    await store.settle()
    for (let ms = 1_000; ms <= 4_000; ms += 500) {
      clock.setMs(ms)
      await told()
      await store.settle()
    }
    expect([next.end, limiter.waiting(), clock.timers]).toEqual(['resolved', 0, 0])
  })

  test('one who leaves hands its turn to the one whose question is on its way', async () => {
    const { store, limiter, clock } = await usedUp()
    const gone = new AbortController()
    const first = watched(limiter.acquire('k', { signal: gone.signal }))
    await told()
    await store.settle()
    const second = watched(limiter.acquire('k'))
    await told()
    store.pending[0]?.run()
    gone.abort()
    await told()
    await store.settle()
    expect(first.end).toBe('rejected')
    clock.setMs(1_000)
    await told()
    expect(second.end).toBe('resolved')
    const next = limiter.peek('k')
    await store.settle()
    expect(await next).toMatchObject({ retryAfterMs: 1_000 })
  })
})

test('permits that cannot be booked are given back by a leaver, also while another asks for more', async () => {
  const clock = fakeClock()
  const store = slowStore(clock)
  Object.assign(store.driver, { shared: true })
  const limits = { spaced: leakyBucket({ capacity: 10, leak: '1/s' }), window: fixedWindow({ limit: 100, window: '1h' }) }
  const limiter = createLimiter(limits, { name: 'api', store, clock, ...PATIENT })
  const gone = new AbortController()
  for (const options of [{}, { signal: gone.signal }, { cost: 2 }]) {
    watched(limiter.acquire('k', options))
    await told()
    await store.settle()
  }
  watched(limiter.acquire('k'))
  await told()
  expect(store.pending.length).toBe(1)
  gone.abort()
  await told()
  await store.settle()
  const answer = limiter.peek('k', 0)
  await told()
  await store.settle()
  expect((await answer).parts.window.remaining).toBe(100 - 1 - 2 - 1)
  limiter.close()
})

test('a store that answers in the next microtask is waited for like any other', async () => {
  const clock = fakeClock()
  const memory = new Opened(memoryStore())
  const store = stepByStep({ shared: false, apply: async (step) => structuredClone(memory.apply(step)) })
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { name: 'api', store, clock })
  // Verdicts are copied: a ticket is plain data to a store.
  const order: number[] = []
  for (const k of [1, 2, 3]) void limiter.acquire('k').then(() => order.push(k))
  await told()
  expect(order).toEqual([1])
  clock.setMs(1_000)
  await told()
  clock.setMs(2_000)
  await told()
  expect(order).toEqual([1, 2, 3])
})

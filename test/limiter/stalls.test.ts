/**
 * A process whose event loop stands still, and callers that keep it from turning: neither may look
 * like an outage, or hide the end of one. On injected time, where a standstill is exactly as long
 * as the test says.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type Clock, createLimiter, type FailurePolicy, gcra, memoryStore, type Step } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { Random } from '../model/random.ts'
import { asStore, type StepDriver } from '../support/as-store.ts'
import { Opened } from '../support/opened.ts'
import { noUnhandledRejections, told, watched } from '../waiting/support.ts'

noUnhandledRejections()

const LIMIT = gcra({ rate: '1/s', burst: 4 })
const TIMEOUT_MS = 100
/** A fourth of the time: what a standstill may cost a question, and what it may be given more. */
const SLICE_MS = 25

interface Timer {
  readonly atUs: number
  readonly fn: () => void
}

/** A clock whose timers can be kept from firing, as those of a process that computes. */
class StallingClock implements Clock {
  #nowUs = 0
  #timers: Timer[] = []

  nowUs(): number {
    return this.#nowUs
  }

  setTimer(fn: () => void, us: number): () => void {
    const timer = { atUs: this.#nowUs + us, fn }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }

  get nowMs(): number {
    return this.#nowUs / 1000
  }

  /** Each timer fires at its time. */
  async run(ms: number): Promise<void> {
    const endUs = this.#nowUs + ms * 1000
    for (let next = this.#due(endUs); next !== undefined; next = this.#due(endUs)) {
      this.#nowUs = Math.max(this.#nowUs, next.atUs)
      this.#fire(next)
      await told()
    }
    this.#nowUs = endUs
  }

  /** Nothing happens, and then everything that was due, before anything else. */
  async stall(ms: number): Promise<void> {
    this.#nowUs += ms * 1000
    const endUs = this.#nowUs
    for (let next = this.#due(endUs); next !== undefined; next = this.#due(endUs)) this.#fire(next)
    await told()
  }

  #due(byUs: number): Timer | undefined {
    return this.#timers.filter(({ atUs }) => atUs <= byUs).sort((a, b) => a.atUs - b.atUs)[0]
  }

  #fire(timer: Timer): void {
    this.#timers = this.#timers.filter((other) => other !== timer)
    timer.fn()
  }
}

/** Answers when told to. */
class SilentStore implements StepDriver {
  readonly shared = true
  readonly #memory = new Opened(memoryStore())
  #unanswered: (() => void)[] = []

  apply(step: Step): ReturnType<StepDriver['apply']> {
    const verdicts = this.#memory.apply(step)
    return new Promise((resolve) => this.#unanswered.push(() => resolve(verdicts)))
  }

  /** The oldest, so many of them. */
  async answer(count = this.#unanswered.length): Promise<void> {
    for (const answer of this.#unanswered.splice(0, count)) answer()
    await told()
  }
}

function setUp() {
  const clock = new StallingClock()
  const store = asStore(new SilentStore())
  const limiter = createLimiter(LIMIT, { name: 'api', store, clock, storeTimeoutMs: TIMEOUT_MS, onStoreError: 'deny' })
  return { clock, store, limiter }
}

test('three times the timeout of synchronous work before the answer could be read is no outage', async () => {
  for (let round = 0; round < 20; round++) {
    const { clock, store, limiter } = setUp()
    const decision = watched(limiter.consume('k'))
    await clock.stall(3 * TIMEOUT_MS)
    await clock.run(8)
    await store.answer()
    expect(decision.value).toMatchObject({ allowed: true, degraded: false })
    expect(limiter.health().state).toBe('up')
  }
})

test('an answer that arrived during a standstill in the last moment is read before anybody gives up', async () => {
  const { clock, store, limiter } = setUp()
  const decision = watched(limiter.consume('k'))
  await clock.run(TIMEOUT_MS - 1)
  await clock.stall(300)
  expect(decision.end).toBe('waits')
  await store.answer()
  expect(decision.value).toMatchObject({ degraded: false })
})

test('an outage that begins during a standstill is noticed within the timeout of running time', async () => {
  const { clock, limiter } = setUp()
  const decision = watched(limiter.consume('k'))
  await clock.stall(300)
  await clock.run(TIMEOUT_MS - SLICE_MS - 1)
  expect(decision.end).toBe('waits')
  await clock.run(1 + SLICE_MS)
  expect(decision.value).toMatchObject({ allowed: false, degraded: true })
  expect(limiter.health().state).toBe('down')
})

test('without a standstill the time is over when it is over', async () => {
  const { clock, limiter } = setUp()
  const decision = watched(limiter.consume('k'))
  await clock.run(TIMEOUT_MS - 0.001)
  expect(decision.end).toBe('waits')
  await clock.run(0.001)
  expect(decision.value).toMatchObject({ degraded: true })
})

test('a loop that is late each time does not put the end off for ever', async () => {
  const { clock, limiter } = setUp()
  const decision = watched(limiter.consume('k'))
  for (let turn = 0; turn < 50 && decision.end === 'waits'; turn++) await clock.stall(40)
  expect(decision.value).toMatchObject({ degraded: true })
  expect(clock.nowMs).toBeLessThanOrEqual(5 * 40)
})

test('with any standstills, a store that answers is believed, and one that does not is given up within timeout, standstills and a slice', async () => {
  const random = new Random(7)
  for (let round = 0; round < 300; round++) {
    const answersAfterMs = round % 2 === 0 ? random.whole(0, TIMEOUT_MS / 2) : Number.POSITIVE_INFINITY
    const { clock, store, limiter } = setUp()
    const decision = watched(limiter.consume('k'))
    let [ranMs, stalledMs] = [0, 0]
    for (let stalls = 0; decision.end === 'waits' && ranMs < 10 * TIMEOUT_MS; ) {
      const ms = Math.min(random.whole(1, 20), Math.max(0, answersAfterMs - ranMs))
      await clock.run(ms)
      ranMs += ms
      if (ranMs >= answersAfterMs) await store.answer()
      else if (stalls < 2 && random.chance(0.4)) {
        const stallMs = random.whole(11, 400)
        await clock.stall(stallMs)
        stalls += 1
        stalledMs += stallMs
      }
    }
    expect(decision.value).toMatchObject({ degraded: answersAfterMs === Number.POSITIVE_INFINITY })
    expect(clock.nowMs).toBeLessThanOrEqual(TIMEOUT_MS + stalledMs + SLICE_MS + 20)
    limiter.close()
  }
})

test('of many questions each has its own time: none is given up before it ran out, or later than standstills and a slice put off', async () => {
  const random = new Random(11)
  for (let round = 0; round < 60; round++) {
    const { clock, store, limiter } = setUp()
    /** The running time, of which a standstill is at most a slice. */
    let [ranMs, stalledMs] = [0, 0]
    const asked: { decision: ReturnType<typeof watched>; atMs: number; ranMs: number; stalledMs: number }[] = []
    const isOver = () => limiter.health().state === 'down'
    for (let turn = 0; turn < 200 && !isOver(); turn++) {
      if (turn < 40) asked.push({ decision: watched(limiter.consume(`k${turn}`)), atMs: clock.nowMs, ranMs, stalledMs })
      if (random.chance(0.1)) {
        const stallMs = random.whole(11, 300)
        await clock.stall(stallMs)
        stalledMs += stallMs
        ranMs += Math.min(stallMs, SLICE_MS)
      } else {
        const ms = random.whole(1, 9)
        await clock.run(ms)
        ranMs += ms
      }
      // Now and then some are answered: the oldest that is left was asked in the middle of a slice.
      if (round % 3 > 0 && turn < 35 && !isOver() && random.chance(0.3)) {
        const answered = random.whole(1, asked.length)
        await store.answer(answered)
        asked.splice(0, answered)
      }
    }
    const [oldest] = asked as [(typeof asked)[number]]
    expect(oldest.decision.value).toMatchObject({ degraded: true })
    expect(ranMs - oldest.ranMs).toBeGreaterThanOrEqual(TIMEOUT_MS)
    expect(clock.nowMs - oldest.atMs).toBeLessThanOrEqual(TIMEOUT_MS + (stalledMs - oldest.stalledMs) + SLICE_MS + 9)
    limiter.close()
  }
})

/** Calls until the event loop has turned, and no more than so often. */
async function callsUntilTheLoopTurns(call: () => Promise<unknown>, most: number): Promise<number> {
  let hasTurned = false
  setImmediate(() => {
    hasTurned = true
  })
  let calls = 0
  for (; !hasTurned && calls < most; calls++) await call()
  return calls
}

const MOST_CALLS = 100_000

test.each<FailurePolicy>(['throw', 'allow', 'deny', 'local'])(
  'a loop that lives on answers of %s lets the event loop turn',
  async (onStoreError) => {
    const gone = asStore({ shared: true, apply: () => Promise.reject(new Error('no connection')) })
    const limiter = createLimiter(LIMIT, { name: 'api', store: gone, clock: fakeClock(), onStoreError })
    const verbs: (() => Promise<unknown>)[] = [
      () => limiter.consume('k'),
      () => limiter.peek('k'),
      () => limiter.reserve('k'),
      () => limiter.acquire('k', { timeoutMs: 0 }),
      () => limiter.charge('k', 1),
      () => limiter.refund('k'),
    ]
    for (const verb of verbs) expect(await callsUntilTheLoopTurns(() => verb().catch(() => undefined), MOST_CALLS)).toBeLessThan(1_000)
    limiter.close()
  },
)

test('a loop that lives on a cost that never fits lets the event loop turn', async () => {
  const limiter = createLimiter(LIMIT, { name: 'api', store: asStore(new SilentStore()) })
  expect(await callsUntilTheLoopTurns(() => limiter.consume('k', 5), MOST_CALLS)).toBeLessThan(1_000)
  limiter.close()
})

test('answers that need no store come at once as long as they are few', async () => {
  const gone = asStore({ shared: true, apply: () => Promise.reject(new Error('no connection')) })
  const limiter = createLimiter(LIMIT, { name: 'api', store: gone, clock: fakeClock(), onStoreError: 'allow' })
  await limiter.consume('k')
  await nextTurn()
  expect(await callsUntilTheLoopTurns(() => limiter.consume('k'), 100)).toBe(100)
  limiter.close()
})

/** Asks a store that never answers, on a clock that a test can spoil. */
function setUpSpoilt() {
  const timers = fakeClock(1_000_000)
  const spoilt = { offsetUs: 0, failures: 0 }
  const clock: Clock = { nowUs: () => timers.nowUs() + spoilt.offsetUs, setTimer: timers.setTimer }
  const store = asStore({ shared: true, apply: () => new Promise<never>(() => {}) })
  const limiter = createLimiter(LIMIT, { name: 'spoilt', store, clock, storeTimeoutMs: TIMEOUT_MS })
  const advance = async (ms: number) => {
    for (let k = 0; k < ms; k++) {
      try {
        timers.advanceMs(1)
      } catch {
        spoilt.failures += 1
      }
      await told()
    }
  }
  return { spoilt, limiter, advance }
}

test('a clock that steps back ends no time limit', async () => {
  const { spoilt, limiter, advance } = setUpSpoilt()
  const before = watched(limiter.consume('before'))
  await advance(5)
  spoilt.offsetUs = -900_000_000
  await advance(20)
  const after = watched(limiter.consume('after'))
  await advance(TIMEOUT_MS + 2 * SLICE_MS)
  expect([before.end, after.end]).toEqual(['rejected', 'rejected'])
  expect(limiter.health().state).toBe('down')
})

test('a clock that fails for a while ends no time limit', async () => {
  const { spoilt, limiter, advance } = setUpSpoilt()
  const before = watched(limiter.consume('before'))
  spoilt.offsetUs = Number.NaN
  await advance(2 * SLICE_MS)
  expect(spoilt.failures).toBeGreaterThan(0)
  spoilt.offsetUs = 0
  const after = watched(limiter.consume('after'))
  await advance(TIMEOUT_MS + 2 * SLICE_MS)
  expect([before.end, after.end]).toEqual(['rejected', 'rejected'])
})

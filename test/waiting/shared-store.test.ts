/**
 * Several limiters, as of several processes, wait for one key of one store. Each books only a
 * little ahead, so that callers who leave cost nobody permits; nobody acts too early; each process
 * serves its callers in order; and nobody is overtaken by more than what others book within the
 * horizon.
 */

import { describe, expect, test } from 'vitest'
import type { Verdict } from '../../src/algorithms/decide.ts'
import { createLimiter, gcra, type Limiter, memoryStore, type Step, type Store, tokenBucket } from '../../src/index.ts'
import { HORIZON_US } from '../../src/stores/queue/horizon.ts'
import { SharedQueue } from '../../src/stores/queue/shared-queue.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { Random } from '../model/random.ts'
import { SEED } from '../model/trace.ts'
import { stepByStep } from '../support/as-store.ts'
import { Opened } from '../support/opened.ts'
import { mostEarly, noUnhandledRejections, PATIENT, told } from './support.ts'

noUnhandledRejections()

const INTERVAL_US = 10_000
const ROUND_TRIP_US = 4_000

type Verdicts = readonly Verdict[]

/** One memory for all, at hand. */
function near(): () => Store {
  const memory = memoryStore()
  return () => ({ mode: 'sync', shared: true, queue: SharedQueue, open: (scope, nowUs) => memory.open(scope, nowUs) })
}

/**
 * One memory for all, a few milliseconds away: it decides half way, in the order in which the
 * questions came.
 */
function far(clock: FakeClock, random: Random): () => Store {
  const memory = new Opened(memoryStore())
  return () => {
    // One connection for each process: what was asked first is there first.
    const there = random.whole(100, ROUND_TRIP_US / 2)
    const apply = (step: Step) =>
      new Promise<Verdicts>((resolve) => {
        clock.setTimer(() => {
          const verdicts = memory.apply(step, clock.nowUs())
          clock.setTimer(() => resolve(verdicts), ROUND_TRIP_US / 2)
        }, there)
      })
    return stepByStep({ shared: true, apply })
  }
}

const STORES = [
  ['at hand', () => near()],
  ['far away', far],
] as const

async function runFor(clock: FakeClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed++) {
    clock.advanceMs(1)
    await told()
  }
}

interface Act {
  readonly process: number
  readonly number: number
  readonly atUs: number
}

/**
 * Callers of some processes that come again and again and leave before their turn, so many of 100.
 */
class Crowd {
  readonly acts: Act[] = []
  readonly #clock: FakeClock
  readonly #random: Random
  readonly #gone = new Set<AbortController>()
  #number = 0
  #isOver = false

  constructor(clock: FakeClock, random: Random) {
    this.#clock = clock
    this.#random = random
  }

  async caller(process: number, limiter: Limiter<never, Store>, leaving: number): Promise<void> {
    while (!this.#isOver) {
      const number = this.#number++
      const leaves = new AbortController()
      this.#gone.add(leaves)
      if (this.#random.whole(0, 99) < leaving) this.#clock.setTimer(() => leaves.abort(), this.#random.whole(1, 200_000))
      await (limiter as unknown as Limiter).acquire('k', { signal: leaves.signal }).then(
        () => this.acts.push({ process, number, atUs: this.#clock.nowUs() }),
        () => {},
      )
      this.#gone.delete(leaves)
    }
  }

  end(): void {
    this.#isOver = true
    for (const leaves of this.#gone) leaves.abort()
  }
}

describe.each(STORES)('on a store %s', (_, storesOf) => {
  test.each([
    [1, 0],
    [1, 99],
    [3, 0],
    [3, 50],
    [3, 90],
    [3, 99],
    [8, 90],
    [8, 99],
  ])('%d processes, %d of 100 callers leave: every permit is used, in order, and none too early', async (processes, leaving) => {
    const clock = fakeClock()
    const random = new Random(SEED)
    const storeOf = storesOf(clock, random)
    const crowd = new Crowd(clock, random)
    const limiters = Array.from({ length: processes }, () =>
      createLimiter(gcra({ rate: '100/s', burst: 1 }), { name: 'api', store: storeOf(), clock, ...PATIENT }),
    )
    const callers = limiters.flatMap((limiter, process) => [1, 2, 3].map(() => crowd.caller(process, limiter as never, leaving)))
    await runFor(clock, 3_000)
    crowd.end()
    await runFor(clock, 2 * (ROUND_TRIP_US / 1000))
    await Promise.all(callers)
    const { acts } = crowd
    expect(acts.filter(({ atUs }) => atUs > 500_000 && atUs <= 2_500_000).length).toBeGreaterThanOrEqual(195)
    // An answer is under way for a while, and its caller leaves no earlier than it is there.
    const slackUs = ROUND_TRIP_US
    expect(
      mostEarly(
        acts.map(({ atUs }) => atUs),
        INTERVAL_US,
      ),
    ).toBeLessThanOrEqual(slackUs)
    for (let process = 0; process < processes; process++) {
      const own = acts.filter((act) => act.process === process).map(({ number }) => number)
      expect(own).toEqual(own.toSorted((a, b) => a - b))
    }
    // Nobody waits any longer: what is still booked is no more than the horizon, and drains.
    expect(limiters.map((limiter) => limiter.waiting())).toEqual(limiters.map(() => 0))
    await runFor(clock, HORIZON_US / 1000 + processes * (INTERVAL_US / 1000))
    const answer = limiters[0]?.peek('k')
    await runFor(clock, 10)
    expect((await answer)?.allowed).toBe(true)
  })

  test('a caller who is the first of its process is overtaken by no more than what others may book within the horizon', async () => {
    const clock = fakeClock()
    const random = new Random(SEED)
    const storeOf = storesOf(clock, random)
    const crowd = new Crowd(clock, random)
    const make = () => createLimiter(tokenBucket({ capacity: 1, refill: '100/s' }), { name: 'api', store: storeOf(), clock, ...PATIENT })
    const callers = [0, 1, 2].flatMap((process) => {
      const limiter = make()
      return Array.from({ length: 50 }, () => crowd.caller(process, limiter as never, 0))
    })
    await runFor(clock, 1_000)
    const before = crowd.acts.length
    let servedAfter = Number.NaN
    void (make() as unknown as Limiter).acquire('k').then(() => {
      servedAfter = crowd.acts.length - before
    })
    await runFor(clock, 500)
    const most = HORIZON_US / INTERVAL_US + 3
    expect(servedAfter).toBeLessThanOrEqual(most)
    crowd.end()
    await runFor(clock, 20)
    await Promise.all(callers)
  })

  test.each([0, 1, 3, 50])('numbers that change %d ms after 200 callers came: all are served at the new pace', async (ms) => {
    const clock = fakeClock()
    const store = storesOf(clock, new Random(SEED))()
    const limiter = createLimiter(gcra({ rate: '100/s', burst: 1 }), { name: 'api', store, clock, ...PATIENT })
    let served = 0
    for (let k = 0; k < 200; k++) void limiter.acquire('k').then(() => served++)
    await runFor(clock, ms)
    limiter.update(gcra({ rate: '200/s', burst: 1 }))
    await runFor(clock, 1_000 + 2 * (HORIZON_US / 1000))
    expect(served).toBe(200)
  })
})

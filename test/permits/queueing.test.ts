/**
 * A queueing system on a fake clock: what is held must be what theory says, to the microsecond
 * where it is exact.
 */
import { expect, test } from 'vitest'
import { concurrency, createLimiter, type Permit } from '../../src/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/fake-clock.ts'
import { Random } from '../model/random.ts'

const START_US = 1_700_000_000_000_000

/**
 * Plays calls at their times, which come in order. `fakeClock` sorts its timers at each look, so
 * there is one for the next event only.
 */
class Events {
  readonly #heap: { atUs: number; act: () => void }[] = []

  at(atUs: number, act: () => void): void {
    const heap = this.#heap
    let k = heap.push({ atUs, act }) - 1
    for (let up = (k - 1) >> 1; k > 0 && (heap[up] as { atUs: number }).atUs > atUs; k = up, up = (k - 1) >> 1) this.#swap(k, up)
  }

  async play(clock: FakeClock, isPatient: boolean): Promise<void> {
    for (let next = this.#pop(); next !== undefined; next = this.#pop()) {
      clock.setUs(next.atUs)
      next.act()
      // Lets those go on whose turn has come.
      if (isPatient) for (let k = 0; k < 8; k++) await undefined
    }
  }

  #pop() {
    const heap = this.#heap
    const [first] = heap
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    heap[0] = last
    for (let k = 0; ; ) {
      const [left, right] = [2 * k + 1, 2 * k + 2]
      const child = (heap[right]?.atUs ?? Number.POSITIVE_INFINITY) < (heap[left]?.atUs ?? Number.POSITIVE_INFINITY) ? right : left
      if ((heap[child]?.atUs ?? Number.POSITIVE_INFINITY) >= last.atUs) return first
      this.#swap(k, child)
      k = child
    }
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap as { atUs: number; act: () => void }[]
    ;[heap[a], heap[b]] = [heap[b] as (typeof heap)[0], heap[a] as (typeof heap)[0]]
  }
}

const exponentialUs = (random: Random, meanUs: number) => Math.max(1, Math.round(-Math.log(1 - random.fraction()) * meanUs))

/** Integrates how many are in flight over time. */
class InFlight {
  areaUs = 0
  #sinceUs = START_US
  readonly #clock: FakeClock
  readonly #count: () => number

  constructor(clock: FakeClock, count: () => number) {
    this.#clock = clock
    this.#count = count
  }

  /** To be called before the number changes. */
  note(): void {
    const nowUs = this.#clock.nowUs()
    this.areaUs += (nowUs - this.#sinceUs) * this.#count()
    this.#sinceUs = nowUs
  }
}

test.each([
  { places: 10, load: 8, refused: 0.12166, service: 'exponential' },
  { places: 10, load: 8, refused: 0.12166, service: 'constant' },
  { places: 10, load: 20, refused: 0.53796, service: 'exponential' },
] as const)(
  '$places places at load $load refuse what Erlang B says, whatever the service times ($service), and Little holds',
  async ({ places, load, refused, service }) => {
    const random = new Random(7)
    const clock = fakeClock(START_US / 1000)
    const limiter = createLimiter(concurrency({ max: places }), { clock })
    const events = new Events()
    const inFlight = new InFlight(clock, () => limiter.inflight('key'))
    const serviceUs = 1_000_000
    let arrivals = 0
    let turnedAway = 0
    let staysUs = 0
    const arrive = () => {
      arrivals += 1
      inFlight.note()
      const permit = limiter.consume('key')
      if (permit.allowed) {
        const stayUs = service === 'constant' ? serviceUs : exponentialUs(random, serviceUs)
        staysUs += stayUs
        events.at(clock.nowUs() + stayUs, () => {
          inFlight.note()
          permit.release()
        })
      } else turnedAway += 1
      if (arrivals < 150_000) events.at(clock.nowUs() + exponentialUs(random, serviceUs / load), arrive)
    }
    events.at(START_US, arrive)
    await events.play(clock, false)
    inFlight.note()
    // Exact: the time in flight is the sum of all stays.
    expect(inFlight.areaUs).toBe(staysUs)
    expect(limiter.inflight()).toBe(0)
    // By chance, from a fixed seed: the standard deviation of the share is below 0.002.
    expect(Math.abs(turnedAway / arrivals - refused)).toBeLessThan(0.006)
  },
)

test("waiters at 10 places under load 8 wait as long as Erlang C says, in order, and Little's law holds", async () => {
  const random = new Random(11)
  const clock = fakeClock(START_US / 1000)
  const limiter = createLimiter(concurrency({ max: 10 }), { clock, maxQueue: Number.POSITIVE_INFINITY })
  const events = new Events()
  const inFlight = new InFlight(clock, () => limiter.inflight('key'))
  const serviceUs = 1_000_000
  const served: number[] = []
  let arrivals = 0
  let staysUs = 0
  let waitedMs = 0
  const arrive = () => {
    const number = arrivals++
    const stayUs = exponentialUs(random, serviceUs)
    inFlight.note()
    void limiter.acquire('key').then((permit: Permit & { waitedMs: number }) => {
      served.push(number)
      staysUs += stayUs
      waitedMs += permit.waitedMs
      events.at(clock.nowUs() + stayUs, () => {
        inFlight.note()
        permit.release()
      })
    })
    if (arrivals < 40_000) events.at(clock.nowUs() + exponentialUs(random, serviceUs / 8), arrive)
  }
  events.at(START_US, arrive)
  await events.play(clock, true)
  inFlight.note()
  expect(inFlight.areaUs).toBe(staysUs)
  expect(served).toEqual([...served].sort((a, b) => a - b))
  expect(served).toHaveLength(40_000)
  // 0.20459 service times; the seed's error is within a tenth of that.
  expect(Math.abs(waitedMs / arrivals / 1000 - 0.20459)).toBeLessThan(0.03)
})

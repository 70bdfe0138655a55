/**
 * Waiters beside other callers, who consume, reserve and cancel on the same key. That leaves holes
 * that the model of a single line does not know, but one thing must hold: all departures together,
 * each at its time, keep the limit.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Limit } from '../../src/index.ts'
import { Oracle, type OracleKind, type OracleNumbers } from '../../src/testing/index.ts'
import { Coverage } from '../model/against-oracle.ts'
import { levelLimit } from '../model/run-trace.ts'
import { SEED, traceCount } from '../model/trace.ts'
import { noUnhandledRejections, setUp, told } from './support.ts'

noUnhandledRejections()

const KINDS = { acquire: 30, abort: 14, consume: 10, reserve: 12, cancel: 8, wait: 20 } as const
type Kind = keyof typeof KINDS

interface Mixed {
  readonly numbers: OracleNumbers
  readonly maxAhead: number
  readonly steps: readonly { readonly kind: Kind; readonly a: number }[]
}

const mixed: fc.Arbitrary<Mixed> = fc.record({
  numbers: fc.record({
    capacity: fc.integer({ min: 1, max: 9 }),
    permits: fc.integer({ min: 1, max: 9 }),
    periodUs: fc.integer({ min: 3, max: 1_000_003 }),
  }),
  maxAhead: fc.constantFrom(0, 2, 20, 1_000),
  steps: fc.array(
    fc.record({
      kind: fc.oneof(...Object.entries(KINDS).map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind as Kind) }))),
      a: fc.nat(999_983),
    }),
    { minLength: 20, maxLength: 80, size: 'max' },
  ),
})

/** Permits that are acted on. */
interface Departure {
  readonly atUs: number
  readonly cost: number
}

class MixedRun {
  readonly #numbers: OracleNumbers
  readonly #steps: Mixed['steps']
  readonly #coverage: Coverage
  readonly #isLeaky: boolean
  readonly #all: ReturnType<typeof setUp<Limit>>
  readonly #departures: Departure[] = []
  readonly #served: number[] = []
  readonly #waiting = new Map<number, AbortController>()
  readonly #reservations: { departure: Departure; cancel: () => void }[] = []
  #calls = 0

  constructor(kind: OracleKind, { numbers, maxAhead, steps }: Mixed, coverage: Coverage) {
    this.#numbers = numbers
    this.#steps = steps
    this.#coverage = coverage
    this.#isLeaky = kind === 'leakyBucket'
    this.#all = setUp<Limit>(levelLimit(kind, numbers), { maxAheadMs: (maxAhead * numbers.periodUs) / 1000 })
  }

  async check(): Promise<void> {
    for (const { kind, a } of this.#steps) {
      this.#coverage.steps += 1
      this.#do(kind, a)
      await told()
    }
    const { clock, limiter } = this.#all
    clock.setUs(clock.nowUs() + 100_000 * this.#numbers.periodUs)
    await told()
    if (limiter.waiting() > 0 || clock.timers > 0 || this.#waiting.size > 0) throw new Error('a caller waits for ever')
    this.#checkOrder()
    // A leaky bucket's reservation is spaced by what was before it, not metered: behind one that
    // left, it departs later than its water leaks.
    if (!this.#isLeaky) this.#checkDepartures()
  }

  #do(kind: Kind, a: number): void {
    const { limiter, clock } = this.#all
    const cost = 1 + (a % this.#numbers.capacity)
    // In half of the runs all who wait ask for the same: then a leaving caller leaves its place
    // whole to the next, also across a reservation.
    const same = 1 + (this.#numbers.periodUs % this.#numbers.capacity)
    if (kind === 'acquire') this.#acquire(this.#numbers.periodUs % 2 === 0 ? same : cost)
    else if (kind === 'abort') this.#abort(a)
    else if (kind === 'reserve') this.#reserve(cost)
    else if (kind === 'cancel') this.#cancel(a)
    else if (kind === 'wait') clock.setUs(clock.nowUs() + (a % (2 * this.#numbers.periodUs)))
    else if (limiter.consume('k', cost).allowed) this.#depart('consumed', { atUs: clock.nowUs(), cost })
  }

  #depart(what: string, departure: Departure): void {
    this.#departures.push(departure)
    this.#coverage.add(what)
  }

  #acquire(cost: number): void {
    const id = this.#calls++
    const gone = new AbortController()
    const sinceUs = this.#all.clock.nowUs()
    this.#waiting.set(id, gone)
    this.#all.limiter.acquire('k', { cost, signal: gone.signal }).then(
      ({ waitedMs }) => {
        this.#waiting.delete(id)
        this.#served.push(id)
        this.#depart(waitedMs > 0 ? 'served after a wait' : 'served at once', { atUs: sinceUs + Math.round(waitedMs * 1000), cost })
      },
      () => this.#coverage.add('left'),
    )
  }

  #abort(a: number): void {
    const ids = [...this.#waiting.keys()]
    const id = ids[a % Math.max(1, ids.length)]
    if (id === undefined) return
    this.#waiting.get(id)?.abort()
    this.#waiting.delete(id)
  }

  #reserve(cost: number): void {
    const reserved = this.#all.limiter.reserve('k', cost)
    const { allowed, delayMs, atMs } = reserved
    if (!allowed) return
    const departure = { atUs: Math.round((atMs + delayMs) * 1000), cost }
    this.#depart(delayMs > 0 ? 'reserved' : 'reserved for now', departure)
    if (delayMs > 0) this.#reservations.push({ departure, cancel: () => reserved.cancel() })
  }

  #cancel(a: number): void {
    const [reservation] = this.#reservations.splice(a % Math.max(1, this.#reservations.length), 1)
    if (reservation === undefined || reservation.departure.atUs <= this.#all.clock.nowUs()) return
    reservation.cancel()
    this.#departures.splice(this.#departures.indexOf(reservation.departure), 1)
    this.#coverage.add('cancelled')
  }

  /** First come, first served. */
  #checkOrder(): void {
    const sorted = [...this.#served].sort((a, b) => a - b)
    if (sorted.join() !== this.#served.join()) throw new Error(`served in the order ${this.#served}`)
  }

  /**
   * An ordinary meter sees every departure at its time, and each must fit. Times are rounded up to
   * the microsecond, so two of them may be nearer to each other by less than one.
   */
  #checkDepartures(): void {
    const meter = new Oracle('tokenBucket', this.#numbers)
    for (const { atUs, cost } of this.#departures.sort((a, b) => a.atUs - b.atUs)) {
      const outcome = meter.take(atUs, cost, 1)
      if (outcome !== 'allowed') throw new Error(`the departure of ${cost} at ${atUs} is ${outcome}`)
    }
  }
}

describe.each<OracleKind>(['gcra', 'tokenBucket', 'leakyBucket'])('at a %s', (kind) => {
  test('all departures together keep the limit, and waiters are served in order, in 400 schedules', async () => {
    const coverage = new Coverage()
    const property = fc.asyncProperty(mixed, (each) => new MixedRun(kind, each, coverage).check())
    await fc.assert(property, { seed: SEED, numRuns: traceCount(400) })
    console.log(coverage.table(`waiting among others at a ${kind}`))
    for (const what of ['served after a wait', 'served at once', 'left', 'consumed', 'reserved']) {
      expect(coverage.share(what), what).toBeGreaterThanOrEqual(0.005)
    }
  })
})

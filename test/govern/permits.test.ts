/**
 * A governor and a real limiter with permits: the closed loop of 20 workers of 50 ms under endless
 * demand, on a fake clock.
 */
import { expect, test } from 'vitest'
import { govern, knee } from '../../src/govern/index.ts'
import { concurrency, createLimiter, gcra } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

const WORKERS = 20
const SERVICE_MS = 50

/** Serves what holds a permit: so many at a time, first come, first served. */
class Server {
  readonly #clock: ReturnType<typeof fakeClock>
  readonly #queue: (() => void)[] = []
  #busy = 0

  constructor(clock: ReturnType<typeof fakeClock>) {
    this.#clock = clock
  }

  serve(): Promise<void> {
    return new Promise((resolve) => {
      this.#queue.push(resolve)
      this.#start()
    })
  }

  #start(): void {
    while (this.#busy < WORKERS && this.#queue.length > 0) {
      const done = this.#queue.shift() as () => void
      this.#busy += 1
      this.#clock.setTimer(() => {
        this.#busy -= 1
        done()
        this.#start()
      }, SERVICE_MS * 1_000)
    }
  }
}

test('knee finds the capacity of a server through the permits of a limiter, keeps its other limits, and evicts nobody', async () => {
  const clock = fakeClock()
  const limiter = createLimiter(
    { rate: gcra({ rate: '100000/s', burst: 100_000 }), inflight: concurrency({ max: 200 }) },
    { clock, maxQueue: 100_000 },
  )
  const changes: string[] = []
  const governed = govern(limiter, {
    limit: 'inflight',
    by: knee({ min: 2, max: 200 }),
    clock,
    onChange: ({ reason }) => changes.push(reason),
  })
  const server = new Server(clock)
  let ended = 0
  const demand = async () => {
    for (;;) {
      await limiter.run('all', () => server.serve())
      ended += 1
    }
  }
  for (let caller = 0; caller < 300; caller++) void demand().catch(() => undefined)
  const limits: number[] = []
  for (let half = 0; half < 240; half++) {
    for (let step = 0; step < 50; step++) {
      clock.advanceMs(10)
      await new Promise((resolve) => setImmediate(resolve))
    }
    if (half >= 120) limits.push(governed.limit)
  }
  expect(Math.min(...limits)).toBeGreaterThanOrEqual(15)
  expect(Math.max(...limits)).toBeLessThanOrEqual(30)
  // 120 s at 400 a second, but for the dips by which the governor measures.
  expect(ended).toBeGreaterThan(0.9 * 120 * (WORKERS / SERVICE_MS) * 1_000)
  expect(limiter.scope().limits.map(({ name, rule }) => [name, rule.capacity])).toEqual([
    ['rate', 100_000],
    ['inflight', governed.limit],
  ])
  expect(changes.length).toBeGreaterThan(3)
  governed.close()
  limiter.close()
})

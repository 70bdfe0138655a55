/**
 * A log in which most calls turn out to have cost nothing, and some far more than was estimated:
 * it is full of entries that count nothing, and in debt up to its bound. Every store answers each
 * call as the memory does, which stands beside the oracles.
 */
import { describe, expect, test } from 'vitest'
import { type AsyncStore, createLimiter, memoryStore, slidingLog } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { storeCases } from '../support/stores.ts'
import { Random } from './random.ts'
import { SEED, traceCount } from './trace.ts'

const START_US = 1_700_000_000_000_000
const STEPS = 250
const WINDOW_US = 60_000_000

/** One life of a key. Equal seeds are equal lives, whatever the store answers. */
async function live(store: AsyncStore, seed: number): Promise<string[]> {
  const random = new Random(seed)
  const clock = fakeClock(START_US / 1000)
  const limit = random.whole(2, 40)
  const limiter = createLimiter(slidingLog({ limit, window: `${WINDOW_US}us` }), { name: 'settled', store, clock })
  const open: { settle(actual: number): unknown }[] = []
  const told: string[] = []
  const oneOf = () => open.splice(random.whole(0, open.length - 1), 1)[0]
  for (let k = 0; k < STEPS; k++) {
    clock.setUs(clock.nowUs() + random.whole(1, random.chance(0.01) ? WINDOW_US : 1_000))
    // Up to twice its limit there is room in a log.
    const more = random.whole(1, 3 * limit)
    const act = random.weighted([
      [60, 'consume'],
      [30, 'settle at nothing'],
      [3, 'settle at more'],
      [2, 'charge'],
      [5, 'refund'],
    ])
    let answer: unknown
    if (act === 'consume') {
      const decision = await limiter.consume('key')
      if (decision.allowed) open.push(decision)
      answer = decision
    } else if (act === 'charge') answer = await limiter.charge('key', more)
    else if (act === 'refund') answer = await limiter.refund('key', 1)
    else answer = await oneOf()?.settle(act === 'settle at more' ? more : 0)
    told.push(`${k} ${act} ${JSON.stringify(answer)} ${JSON.stringify(await limiter.peek('key'))}`)
  }
  limiter.close()
  return told
}

describe.each(storeCases.filter(({ name }) => name !== 'memory'))('$name', ({ open }) => {
  test('answers as memory does', async () => {
    for (let k = 0; k < traceCount(10); k++) {
      const expected = await live(memoryStore() as unknown as AsyncStore, SEED + k)
      const { store, close } = await open()
      try {
        expect(await live(store as AsyncStore, SEED + k)).toEqual(expected)
      } finally {
        close()
      }
    }
  })
})

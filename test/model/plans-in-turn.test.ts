/**
 * Law 8 through what a user holds: plans side by side, and two versions of a program during a
 * deploy, on every store.
 */
import { describe, expect, test } from 'vitest'
import type { AsyncStore } from '../../src/index.ts'
import { createLimiter, fixedWindow, gcra, type Limit, leakyBucket, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { admitted } from '../../src/testing/admitted.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { storeCases } from '../support/stores.ts'

/** So many a day, by every algorithm. */
const PER_DAY: Readonly<Record<string, (permits: number) => Limit>> = {
  gcra: (permits) => gcra({ rate: { permits, per: '1d' }, burst: permits }),
  tokenBucket: (permits) => tokenBucket({ refill: { permits, per: '1d' }, capacity: permits }),
  leakyBucket: (permits) => leakyBucket({ leak: { permits, per: '1d' }, capacity: permits }),
  fixedWindow: (permits) => fixedWindow({ limit: permits, window: '1d' }),
  slidingWindow: (permits) => slidingWindow({ limit: permits, window: '1d' }),
  slidingLog: (permits) => slidingLog({ limit: permits, window: '1d' }),
}

describe.each(storeCases)('on $name', ({ open }) => {
  test.each(Object.entries(PER_DAY))('%s: a question under smaller numbers refills nothing', async (_, perDay) => {
    const { store, close } = await open()
    const options = { name: 'status', store: store as AsyncStore, clock: fakeClock(1_700_000_000_000), plans: { pro: perDay(100) } }
    const limiter = createLimiter(perDay(10), options)
    await limiter.consume('paul', 90, { plan: 'pro' })
    const base = await limiter.peek('paul')
    expect([base.outcome, base.remaining]).toEqual(['limited', 0])
    expect((await limiter.consume('paul')).outcome).toBe('limited')
    expect((await limiter.peek('paul', 0, { plan: 'pro' })).remaining).toBe(10)
    await limiter.refund('paul', 1)
    expect((await limiter.peek('paul', 0, { plan: 'pro' })).remaining).toBe(11)
    let count = 0
    for (let k = 0; k < 50; k++) {
      if (await admitted(limiter, 'paul', 1, { plan: 'pro' })) count += 1
      if (k % 9 === 0) await limiter.peek('paul')
    }
    expect(count).toBe(11)
    close()
  })

  test.each(Object.entries(PER_DAY))('%s: a rolling deploy from 100/d to 10/d admits no more than 100', async (_, perDay) => {
    const { store, close } = await open()
    const options = { name: 'deployed', store: store as AsyncStore, clock: fakeClock(1_700_000_000_000) }
    const [before, after] = [createLimiter(perDay(100), options), createLimiter(perDay(10), options)]
    const counts = [0, 0]
    // One call in ten goes to the new process.
    for (let k = 0; k < 300; k++) {
      const isNew = k % 10 === 0
      if (await admitted(isNew ? after : before, 'key')) counts[isNew ? 1 : 0] = (counts[isNew ? 1 : 0] as number) + 1
    }
    // The new one was admitted its first call, until as much as its own limit was in use.
    expect(counts).toEqual([99, 1])
    close()
  })
})

/**
 * Callers of one process who wait for one key of a real server: first come, first served, also
 * where nothing can be booked ahead.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'redis'
import { expect, inject, test } from 'vitest'
import { createLimiter, fixedWindow, gcra, type Limits, slidingLog, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'

const CALLERS = 300

const LIMITS: readonly (readonly [string, Limits, number])[] = [
  ['gcra', gcra({ rate: '500/s', burst: 10 }), 60_000],
  ['gcra, booked 50 ms ahead', gcra({ rate: '500/s', burst: 10 }), 50],
  ['gcra, booked not at all', gcra({ rate: '500/s', burst: 10 }), 0],
  ['fixedWindow', fixedWindow({ limit: 50, window: '100ms' }), 60_000],
  ['slidingWindow', slidingWindow({ limit: 50, window: '100ms' }), 60_000],
  ['slidingLog', slidingLog({ limit: 50, window: '100ms' }), 60_000],
  ['gcra and fixedWindow', { pace: gcra({ rate: '500/s', burst: 10 }), window: fixedWindow({ limit: 50, window: '100ms' }) }, 60_000],
]
const ARRIVALS = ['all at once', 'one after the other'] as const

test.each(LIMITS.flatMap(([name, ...rest]) => ARRIVALS.map((arrivals) => [name, arrivals, ...rest] as const)))(
  '%s, %s: nobody is overtaken',
  async (_name, arrivals, limits, maxAheadMs) => {
    const client = createClient({ socket: { host: '127.0.0.1', port: inject('redisPort') } })
    await client.connect()
    const store = redisStore(client, { prefix: `order-${randomUUID()}` })
    const limiter = createLimiter(limits, { name: 'order', store, maxAheadMs, storeTimeoutMs: 10_000 })
    // Where calls are under way when a server first hears of the script, it may decide a later one
    // before an earlier one.
    await limiter.peek('k')
    const served: number[] = []
    const waits: Promise<unknown>[] = []
    for (let k = 0; k < CALLERS; k++) {
      waits.push(limiter.acquire('k').then(() => served.push(k)))
      if (arrivals === 'one after the other') await sleep(1)
    }
    await Promise.all(waits)
    client.destroy()
    expect(served).toEqual(waits.map((_, k) => k))
  },
)

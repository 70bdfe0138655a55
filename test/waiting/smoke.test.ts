import { expect, test } from 'vitest'
import { createLimiter, fixedWindow, gcra, leakyBucket } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

const ticks = async () => {
  for (let k = 0; k < 10; k++) await Promise.resolve()
}
test('gcra', async () => {
  const clock = fakeClock()
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { clock })
  const log: unknown[] = []
  for (const n of [1, 2, 3, 4]) limiter.acquire('a').then((d) => log.push([n, clock.nowUs(), d.waitedMs, d.atMs, d.resetAfterMs]))
  const gone = new AbortController()
  limiter.acquire('a', { signal: gone.signal }).catch((e) => log.push(e.name))
  limiter.acquire('a', { timeoutMs: 4_999 }).catch((e) => log.push(e.message))
  await ticks()
  expect(limiter.waiting('a')).toBe(4)
  expect(clock.timers).toBe(1)
  gone.abort()
  clock.setMs(1500)
  await ticks()
  clock.setMs(10_000)
  await ticks()
  console.log(log)
  expect(clock.timers).toBe(0)
})
test('window and leaky', async () => {
  const clock = fakeClock()
  const log: unknown[] = []
  const window = createLimiter(fixedWindow({ limit: 2, window: '1s' }), { clock })
  for (const n of [1, 2, 3, 4, 5]) window.acquire('a').then((d) => log.push([n, clock.nowUs(), d.waitedMs, d.remaining]))
  const leaky = createLimiter(leakyBucket({ capacity: 2, leak: '2/s' }), { clock })
  for (const n of [1, 2, 3, 4, 5]) leaky.acquire('a').then((d) => log.push(['leak', n, clock.nowUs(), d.waitedMs, d.remaining]))
  await ticks()
  for (let k = 0; k < 50; k++) {
    clock.advanceMs(100)
    await ticks()
  }
  console.log(log)
})

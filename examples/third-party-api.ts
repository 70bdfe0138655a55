// Calling an API that has a quota of its own: five a second and a thousand a day. Wait for your
// turn instead of being told off.
import { createLimiter, fixedWindow, gcra, WaitError } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock() // in production: leave the clock out
const quota = createLimiter(
  { pace: gcra({ rate: '5/s', burst: 1 }), daily: fixedWindow({ limit: 1_000, window: '1d' }) },
  { clock, maxQueue: 5 },
)

async function callApi(what: string): Promise<void> {
  try {
    const { waitedMs } = await quota.acquire('partner', { timeoutMs: 2_000 })
    console.log(`${what}: called after ${waitedMs} ms`)
  } catch (error) {
    if (!(error instanceof WaitError)) throw error
    console.log(`${what}: not now (${error.code})`)
  }
}

const orders = [1, 2, 3, 4, 5, 6, 7].map((k) => callApi(`order ${k}`))
clock.setMs(2_000)
await Promise.all(orders)
console.log(`${quota.peek('partner', 0).parts.daily.remaining} of 1000 left today`)

// prints:
// order 1: called after 0 ms
// order 7: not now (QUEUE_FULL)
// order 2: called after 200 ms
// order 3: called after 400 ms
// order 4: called after 600 ms
// order 5: called after 800 ms
// order 6: called after 1000 ms
// 994 of 1000 left today

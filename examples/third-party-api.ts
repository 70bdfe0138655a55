// Calling an API that has a quota of its own: five a second and a thousand a day. Stay below it instead of being told off.
import { createLimiter, fixedWindow, gcra } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock()
const quota = createLimiter(
  { pace: gcra({ rate: '5/s', burst: 1 }), daily: fixedWindow({ limit: 1_000, window: '1d' }) },
  { clock, maxAheadMs: 1_000 },
)

/** Books the next free moment at most a second ahead, and calls then. */
function callApi(what: string): void {
  const turn = quota.reserve('partner')
  if (!turn.allowed) {
    console.log(`${what}: not now, ask again in ${turn.retryAfterMs} ms (${turn.policy})`)
    return
  }
  clock.setTimer(() => console.log(`${what}: called at ${clock.nowUs() / 1000} ms`), turn.delayMs * 1000)
}

for (let k = 1; k <= 7; k++) callApi(`order ${k}`)
clock.setMs(2_000)
console.log(`${quota.peek('partner', 0).parts.daily.remaining} of 1000 left today`)

// prints:
// order 7: not now, ask again in 200 ms (pace)
// order 1: called at 0 ms
// order 2: called at 200 ms
// order 3: called at 400 ms
// order 4: called at 600 ms
// order 5: called at 800 ms
// order 6: called at 1000 ms
// 994 of 1000 left today

// Fixed window: a hundred in each second of the clock. Cheap, easy to check by hand, and open at
// the boundary.
import { createLimiter, fixedWindow } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock()
const limiter = createLimiter(fixedWindow({ limit: 100, window: '1s' }), { clock })

for (const atMs of [990, 1_010]) {
  clock.setMs(atMs)
  const burst = Array.from({ length: 101 }, () => limiter.consume('api'))
  const admitted = burst.filter(({ allowed }) => allowed).length
  console.log(`${atMs} ms: ${admitted} of 101 admitted, the last may retry in ${burst[100]?.retryAfterMs} ms`)
}

// Days as people in UTC+8 count them: the window begins eight hours before midnight UTC.
const daily = createLimiter(fixedWindow({ limit: 3, window: '1d', anchor: -8 * 3_600_000 }), { clock })
clock.setMs(Date.parse('2026-01-09T23:30:00+08:00'))
const { remaining, resetAfterMs } = daily.consume('user:42')
console.log(`${remaining} left today, a new day in ${resetAfterMs / 60_000} minutes`)

// prints:
// 990 ms: 100 of 101 admitted, the last may retry in 10 ms
// 1010 ms: 100 of 101 admitted, the last may retry in 990 ms
// 2 left today, a new day in 30 minutes

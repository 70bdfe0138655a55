// The real cost of a call is known when it is over: tokens of an answer, bytes of a download. It is
// estimated before, and settled after.
import { createLimiter, tokenBucket } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock()
const tokens = createLimiter(tokenBucket({ capacity: 10_000, refill: '10000/min' }), { clock })

/**
 * Stands for a model that streams: each piece comes a second after the last, and costs 600 tokens.
 */
async function* stream(pieces: number): AsyncGenerator<number> {
  for (let k = 0; k < pieces; k++) {
    clock.advanceMs(1_000)
    yield 600
  }
}

async function answer(user: string, estimate: number, pieces: number, abortAfter = pieces): Promise<string> {
  const decision = tokens.consume(user, estimate)
  if (!decision.allowed) return `wait ${decision.retryAfterMs / 1000} s`
  let used = 0
  try {
    for await (const cost of stream(Math.min(pieces, abortAfter))) used += cost
  } finally {
    // Also when the stream broke off: what it has used it has used.
    decision.settle(used)
  }
  return `used ${used} of ${estimate}, ${tokens.peek(user, 0).remaining} left`
}

console.log(await answer('ann', 4_000, 3)) // less than estimated: the rest is given back
console.log(await answer('ann', 8_000, 4, 2)) // broken off
console.log(await answer('ann', 2_000, 30)) // more than estimated, and more than there was: debt
console.log(await answer('ann', 1, 1))

// Without a question before, the cost is written down afterwards: a download of three gigabytes,
// where one an hour is allowed.
const bytes = createLimiter(tokenBucket({ capacity: 1_000_000_000, refill: '1000000000/h' }), { clock })
const { outcome, remaining, retryAfterMs } = bytes.charge('ann', 3_000_000_000)
console.log(`${outcome}, ${remaining} bytes left, the next in ${Math.round(retryAfterMs / 3_600_000)} h`)

// prints:
// used 1800 of 4000, 8700 left
// used 1200 of 8000, 7833 left
// used 18000 of 2000, 0 left
// wait 36.006 s
// limited, 0 bytes left, the next in 2 h

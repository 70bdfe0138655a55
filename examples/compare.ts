// Six algorithms, all set to ten a second, on the same calls: ten at 0.99 s, ten at 1.01 s, then
// one every 50 ms.
import { createLimiter, fixedWindow, gcra, type Limit, leakyBucket, slidingLog, slidingWindow, tokenBucket } from 'sluice'
import { fakeClock } from 'sluice/testing'

const limits: Record<string, Limit> = {
  gcra: gcra({ rate: '10/s', burst: 10 }),
  tokenBucket: tokenBucket({ capacity: 10, refill: '10/s' }),
  leakyBucket: leakyBucket({ capacity: 10, leak: '10/s' }),
  fixedWindow: fixedWindow({ limit: 10, window: '1s' }),
  slidingWindow: slidingWindow({ limit: 10, window: '1s' }),
  slidingLog: slidingLog({ limit: 10, window: '1s' }),
}

const steps = Array.from({ length: 50 }, (_, k) => 1_050 + k * 50)
const calls = [...Array<number>(10).fill(990), ...Array<number>(10).fill(1_010), ...steps]

/** When those that were admitted may act. */
function actingAt(limit: Limit, honourDelay: boolean): number[] {
  const clock = fakeClock()
  const limiter = createLimiter(limit, { clock })
  return calls.flatMap((ms) => {
    clock.setMs(ms)
    const { allowed, delayMs } = limiter.consume('key')
    return allowed ? [ms + (honourDelay ? delayMs : 0)] : []
  })
}

function row(name: string, times: readonly number[]): string {
  const between = (fromMs: number, toMs: number) => times.filter((ms) => fromMs <= ms && ms < toMs).length
  const then = steps.map((ms) => (between(ms, ms + 50) === 0 ? '.' : '#')).join('')
  return `${name.padEnd(15)}${`${between(990, 1_010)}`.padStart(4)}${`${between(1_010, 1_050)}`.padStart(5)}   ${then}`
}

console.log('               0.99 1.01   1.05 s             2 s                 3 s')
for (const [name, limit] of Object.entries(limits)) {
  console.log(row(name, actingAt(limit, false)))
  if (name === 'leakyBucket') console.log(row('  by delayMs', actingAt(limit, true)))
}

// prints:
//                0.99 1.01   1.05 s             2 s                 3 s
// gcra             10    0   .#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#
// tokenBucket      10    0   .#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#
// leakyBucket      10    0   .#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#
//   by delayMs      1    0   #.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.
// fixedWindow      10   10   ...................##########..........##########.
// slidingWindow    10    0   ..................##########...........#########.#
// slidingLog       10    0   ...................##########..........##########.

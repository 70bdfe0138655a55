// A pool of three database connections for all handlers: the others wait their turn, and give up
// after a while.
import { concurrency, createLimiter } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock()
const pool = createLimiter(concurrency({ max: 3 }), { clock, maxQueue: 3 })
let open = 0
let most = 0

/** A query takes 40 ms. */
async function query(): Promise<void> {
  open += 1
  most = Math.max(most, open)
  await new Promise<void>((resolve) => clock.setTimer(resolve, 40_000))
  open -= 1
}

const answers = Array.from({ length: 8 }, (_, k) =>
  pool.run('db', query, { timeoutMs: 60 }).then(
    () => `query ${k}: done at ${clock.nowUs() / 1000} ms`,
    (error) => `query ${k}: ${error.code}`,
  ),
)
for (let ms = 0; ms <= 120; ms += 10) {
  clock.setMs(ms)
  await new Promise((resolve) => setImmediate(resolve))
}
for (const answer of await Promise.all(answers)) console.log(answer)
console.log(`at most ${most} connections were open`)

// prints:
// query 0: done at 40 ms
// query 1: done at 40 ms
// query 2: done at 40 ms
// query 3: done at 80 ms
// query 4: done at 80 ms
// query 5: done at 80 ms
// query 6: QUEUE_FULL
// query 7: QUEUE_FULL
// at most 3 connections were open

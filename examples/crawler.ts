// A crawler and a reader on the same site, limited by address: thirty pages in any minute, or close
// to it.
import { createLimiter, slidingWindow } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock()
const limiter = createLimiter(slidingWindow({ limit: 30, window: '1min', slots: 12 }), { clock })

const seen = { reader: { served: 0, refused: 0 }, crawler: { served: 0, refused: 0 } }
function visit(who: 'reader' | 'crawler'): void {
  if (limiter.tryAcquire(who)) seen[who].served += 1
  else seen[who].refused += 1
}

// Three minutes: the crawler asks for ten pages a second, the reader for one every four seconds.
for (let ms = 0; ms < 180_000; ms += 100) {
  clock.setMs(ms)
  visit('crawler')
  if (ms % 4_000 === 0) visit('reader')
}

for (const [who, { served, refused }] of Object.entries(seen)) console.log(`${who}: ${served} pages served, ${refused} refused`)
const { retryAfterMs } = limiter.peek('crawler')
console.log(`the crawler may go on in ${Math.ceil(retryAfterMs)} ms: knocking has not made it longer`)

// prints:
// reader: 45 pages served, 0 refused
// crawler: 90 pages served, 1710 refused
// the crawler may go on in 279 ms: knocking has not made it longer

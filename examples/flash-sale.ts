// A flash sale: the whole crowd in one second. The shop lets in what it can serve, and each buyer
// counts once in a while.
import { createLimiter, slidingLog, tokenBucket } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock()
const limiter = createLimiter(
  { shop: tokenBucket({ capacity: 100, refill: '50/s' }), buyer: slidingLog({ limit: 1, window: '10s' }) },
  { clock },
)

let served = 0
const refused = { shop: 0, buyer: 0 }
function click(buyer: string): void {
  const decision = limiter.consume({ shop: 'sale', buyer })
  if (decision.allowed) served += 1
  else refused[decision.policy] += 1
}

for (let k = 0; k < 1_000; k++) {
  clock.setMs(k) // a thousand buyers in the first second
  click(`buyer-${k}`)
  if (k < 50) click('robot') // and one who clicks every millisecond
}

console.log(`${served} served in the first second: 100 at once, then 50 a second`)
console.log(`${refused.shop} refused because the shop was full, ${refused.buyer} because that buyer had just been in`)

// prints:
// 149 served in the first second: 100 at once, then 50 a second
// 852 refused because the shop was full, 49 because that buyer had just been in

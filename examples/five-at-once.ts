// An API of others that allows five calls at once and a hundred a second: one limiter says when the
// next may go.
import { concurrency, createLimiter, gcra } from 'sluice'

const partner = createLimiter({
  inflight: concurrency({ max: 5 }),
  rate: gcra({ rate: '100/s', burst: 100 }),
})
let now = 0
let most = 0

const order = partner.wrap('partner', async (id: number) => {
  now += 1
  most = Math.max(most, now)
  await new Promise((resolve) => setImmediate(resolve))
  now -= 1
  if (id === 7) throw new Error('order 7 is gone')
  return id
})

const settled = await Promise.allSettled(Array.from({ length: 20 }, (_, id) => order(id)))
console.log(`${settled.filter(({ status }) => status === 'fulfilled').length} orders, at most ${most} at once`)
for (const each of settled) if (each.status === 'rejected') console.log(each.reason.message)
console.log(`${partner.inflight('partner')} places are taken`)

// prints:
// 19 orders, at most 5 at once
// order 7 is gone
// 0 places are taken

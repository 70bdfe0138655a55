// A gateway: what one user may do, what one tenant may do, and what the backend can bear, decided
// as one, all or nothing.
import { createLimiter, gcra, slidingWindow } from 'sluice'
import { fakeClock } from 'sluice/testing'

const refusals = new Map<string, number>()
const limiter = createLimiter(
  {
    user: gcra({ rate: '5/s', burst: 5 }),
    tenant: slidingWindow({ limit: 8, window: '1s' }),
    backend: gcra({ rate: '100/s', burst: 100 }),
  },
  {
    clock: fakeClock(),
    onDecision({ decision }) {
      if (!decision.allowed) refusals.set(decision.policy, (refusals.get(decision.policy) ?? 0) + 1)
    },
  },
)

const call = (user: string, tenant: string) => limiter.consume({ user, tenant, backend: 'all' })

for (let k = 0; k < 7; k++) call('ann', 'acme') // 5 pass, 2 are refused by the limit of the user
for (let k = 0; k < 4; k++) call('bob', 'acme') // 3 pass, then the tenant has used its 8
const { allowed, parts } = call('eve', 'other')

console.log(`refused by: ${[...refusals].map(([limit, count]) => `${limit} ${count}`).join(', ')}`)
console.log(`eve of another tenant: ${allowed}`)
console.log(`the backend took ${100 - parts.backend.remaining}: refused calls cost it nothing`)

// prints:
// refused by: user 2, tenant 1
// eve of another tenant: true
// the backend took 9: refused calls cost it nothing

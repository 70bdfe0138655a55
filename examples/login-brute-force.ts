// Guessing passwords: five wrong ones in fifteen minutes for an account, twenty for an address. A
// right one is given back.
import { createLimiter, slidingLog } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock()
const attempts = createLimiter(
  { account: slidingLog({ limit: 5, window: '15min' }), address: slidingLog({ limit: 20, window: '15min' }) },
  { clock },
)

function login(account: string, address: string, password: string): string {
  const keys = { account, address }
  // Taken before the password is looked at, so that parallel guesses count too.
  const decision = attempts.consume(keys)
  if (!decision.allowed) return `wait ${decision.retryAfterMs / 60_000} min (${decision.policy})`
  if (password !== 'secret') return 'wrong password'
  decision.settle(0)
  return 'welcome'
}

for (let minute = 0; minute < 7; minute++) {
  clock.setMs(minute * 60_000)
  console.log(`minute ${minute}: robot gets '${login('ann', '203.0.113.9', `guess ${minute}`)}'`)
}
console.log(`ann herself: '${login('ann', '198.51.100.7', 'secret')}'`)
clock.setMs(15 * 60_000)
console.log(`minute 15: ann: '${login('ann', '198.51.100.7', 'secret')}'`)

// prints:
// minute 0: robot gets 'wrong password'
// minute 1: robot gets 'wrong password'
// minute 2: robot gets 'wrong password'
// minute 3: robot gets 'wrong password'
// minute 4: robot gets 'wrong password'
// minute 5: robot gets 'wait 10 min (account)'
// minute 6: robot gets 'wait 9 min (account)'
// ann herself: 'wait 9 min (account)'
// minute 15: ann: 'welcome'

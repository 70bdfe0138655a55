// When Redis goes away: what callers are told under each failure policy, and how it comes back. A
// store that fails on purpose stands in for Redis.
import { type AsyncStore, type Clock, createLimiter, type FailurePolicy, gcra, memoryStore } from 'sluice'
import { asyncStore } from 'sluice/store'
import { fakeClock } from 'sluice/testing'

/** A store that answers later, as a server does, until its server is gone. */
function remoteStore(server: { isThere: boolean }, clock: Clock): AsyncStore {
  const memory = memoryStore()
  return asyncStore({
    shared: true,
    async apply(steps) {
      if (!server.isThere) throw new Error('connection refused')
      for (const step of steps) {
        const states = memory.open(step.scope, clock.nowUs)
        states.apply(step, true)
        states.close()
      }
    },
  })
}

async function outageUnder(onStoreError: FailurePolicy): Promise<void> {
  const clock = fakeClock() // in production: leave the clock out
  const server = { isThere: true }
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 8 }), {
    name: 'api',
    store: remoteStore(server, clock), // in production: redisStore(client)
    clock,
    onStoreError,
    localShare: 1 / 4, // there are four processes
    onHealth: ({ state, sinceMs }) => console.log(`  the store is ${state} since ${sinceMs} ms`),
  })
  const call = async () => {
    const { allowed, remaining, retryAfterMs, degraded } = await limiter.consume('user:42')
    const answer = allowed ? `yes, ${remaining} left` : `no, wait ${retryAfterMs} ms`
    console.log(`  ${answer} (${degraded ? 'the policy' : 'the store'})`)
  }

  console.log(`${onStoreError}:`)
  await call()
  server.isThere = false
  for (let k = 0; k < 3; k++) await call()
  server.isThere = true
  clock.setMs(100) // the limiter looks after the store: it is there again
  await new Promise(setImmediate)
  await call()
}

for (const policy of ['allow', 'deny', 'local'] as const) await outageUnder(policy)

// prints:
// allow:
//   yes, 7 left (the store)
//   the store is down since 0 ms
//   yes, 7 left (the policy)
//   yes, 7 left (the policy)
//   yes, 7 left (the policy)
//   the store is up since 100 ms
//   yes, 6 left (the store)
// deny:
//   yes, 7 left (the store)
//   the store is down since 0 ms
//   no, wait 100 ms (the policy)
//   no, wait 100 ms (the policy)
//   no, wait 100 ms (the policy)
//   the store is up since 100 ms
//   yes, 6 left (the store)
// local:
//   yes, 7 left (the store)
//   the store is down since 0 ms
//   yes, 1 left (the policy)
//   yes, 0 left (the policy)
//   no, wait 4000 ms (the policy)
//   the store is up since 100 ms
//   yes, 6 left (the store)

// One process of the races: takes from the keys of all races as fast as it can, and reports every
// decision. Takes part in each race in its turn, all at once.
import { limitsFrom } from '../../dist/config/index.js'
import { createLimiter } from '../../dist/index.js'
import { sqliteStore } from '../../dist/stores/sqlite/index.js'

const { path, races, calls, costs, seed } = JSON.parse(process.argv[2])
const store = sqliteStore(path, { busyTimeoutMs: 20_000 })
const limiters = races.map((limits, k) => createLimiter(limitsFrom(limits), { name: `race-${k}`, store, maxAheadMs: 0 }))
process.send('ready')
await new Promise((resolve) => process.once('message', resolve))
const decisions = limiters.map((limiter) => {
  const decided = []
  for (let call = 0; call < calls; call++) {
    const cost = costs[(seed + call) % costs.length]
    const { atMs, allowed } = limiter.consume('hot', cost)
    decided.push([Math.round(atMs * 1000), cost, allowed])
  }
  return decided
})
process.send({ decisions, collisions: store.collisions }, () => process.disconnect())

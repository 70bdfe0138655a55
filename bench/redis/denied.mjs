// One hot key that is refused, each call awaited before the next: Redis with its denial cache
// beside the memory store.
import { createLimiter } from '../../dist/index.js'
import { redisStore } from '../../dist/stores/redis/index.js'
import { sluiceLimit } from '../contestants.mjs'
import { loopOf } from '../loop.mjs'
import { interleaved } from '../rounds.mjs'
import { SCENARIOS, trafficOf } from '../scenarios.mjs'
import { connect } from './clients.mjs'
import { costWatch } from './costs.mjs'

export const STORES = { memory: 'memory store', redis: 'Redis' }

const { key, limits, ...shape } = SCENARIOS['hot-denied']

/** For each store: what rounds.mjs measures, and the costs of each round. */
export default async function denied({ client: clientName, port, rounds, roundMs }) {
  const { client } = await connect(clientName, port)
  const watch = await costWatch(port)
  const limiters = {
    [STORES.memory]: createLimiter(sluiceLimit('gcra', limits)),
    [STORES.redis]: createLimiter(sluiceLimit('gcra', limits), { name: 'denied', store: redisStore(client) }),
  }
  const runners = Object.entries(limiters).map(([store, limiter]) => runnerOf(store, limiter, watch))
  const speeds = await interleaved(
    runners.map(({ name, watched }) => [name, watched]),
    rounds,
    roundMs,
  )
  return Object.fromEntries(runners.map(({ name, costs }) => [name, { ...speeds[name], costs: costs.slice(-rounds) }]))
}

function runnerOf(name, limiter, watch) {
  const ask = (each) => limiter.consume(each)
  const isAllowed = ({ allowed }) => allowed
  return { name, ...watch(loopOf({ name, ask, isAllowed, isAwaited: true }, trafficOf(shape), key)) }
}

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

const READ = { consume: ({ allowed }) => allowed, tryAcquire: (allowed) => allowed }
export const VERBS = Object.keys(READ)

const { key, limits, ...shape } = SCENARIOS['hot-denied']

/**
 * For each store and verb, such as 'Redis consume': what rounds.mjs measures, and the costs of each
 * round.
 */
export default async function denied({ client: clientName, port, rounds, roundMs }) {
  const { client } = await connect(clientName, port)
  const watch = await costWatch(port)
  const limiters = {
    [STORES.memory]: createLimiter(sluiceLimit('gcra', limits)),
    [STORES.redis]: createLimiter(sluiceLimit('gcra', limits), { name: 'denied', store: redisStore(client) }),
  }
  const runners = Object.entries(limiters).flatMap(([store, limiter]) =>
    VERBS.map((verb) => runnerOf(`${store} ${verb}`, limiter, verb, watch)),
  )
  const speeds = await interleaved(
    runners.map(({ name, watched }) => [name, watched]),
    rounds,
    roundMs,
  )
  return Object.fromEntries(runners.map(({ name, costs }) => [name, { ...speeds[name], costs: costs.slice(-rounds) }]))
}

function runnerOf(name, limiter, verb, watch) {
  const ask = verb === 'consume' ? (each) => limiter.consume(each) : (each) => limiter.tryAcquire(each)
  return { name, ...watch(loopOf({ name, ask, isAllowed: READ[verb], isAwaited: true }, trafficOf(shape), key)) }
}

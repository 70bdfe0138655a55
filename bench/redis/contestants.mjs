// A contestant is { ask, isAllowed }: `ask(key)` is the call that its users write, awaited; `isAllowed(answer)` is how they read it.
import { createLimiter } from '../../dist/index.js'
import { redisStore } from '../../dist/stores/redis/index.js'
import { sluiceLimit } from '../contestants.mjs'
import { connect } from './clients.mjs'
import { FLOORS } from './floors.mjs'
import { PEERS } from './peers.mjs'

export const HEADLINE = 'gcra'
/** Two limits on one key, decided as one. */
export const TWO_LIMITS = ['gcra + gcra', 'gcra + fixedWindow']

/** By name: a floor, a peer, or algorithms of Sluice such as 'gcra + fixedWindow'. Each has a connection of its own. */
export async function contestant(name, { client, port, database }, limits) {
  const connection = await connect(client, port, database)
  const make = FLOORS[name] ?? PEERS[name]
  return make === undefined ? sluice(name, connection, limits) : make(connection, limits, client)
}

/** By `consume`, which tells as much as the peers do, and as users make it: no option but the name that every limiter needs. */
function sluice(name, { client }, limits) {
  const limiter = createLimiter(sluiceLimits(name, limits), { name: name.replace(' + ', '-'), store: redisStore(client) })
  return { ask: (key) => limiter.consume(key), isAllowed: ({ allowed }) => allowed }
}

/** One limit by itself, or an object of two. */
function sluiceLimits(name, limits) {
  const algorithms = name.split(' + ').map((algorithm) => sluiceLimit(algorithm, limits))
  return algorithms.length === 1 ? algorithms[0] : { first: algorithms[0], second: algorithms[1] }
}

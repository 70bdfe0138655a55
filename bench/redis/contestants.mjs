// A contestant is { ask, isAllowed, hold }: `ask(key)` is the call that its users write, awaited;
// `isAllowed(answer)` is how they read it; `hold()`, where there is one, makes its template
// (held.mjs).
import { createLimiter } from '../../dist/index.js'
import { redisStore } from '../../dist/stores/redis/index.js'
import { connect } from './clients.mjs'
import { BATCHED, FLOORS, INCR } from './floors.mjs'
import { callAt, TEMPLATE, timesHeld } from './held.mjs'
import { admitting, refusing, sluiceLimits } from './limits.mjs'
import { PEERS, peersOf } from './peers.mjs'
import { plainScript, WRITE_PLAIN } from './plain.mjs'

/** In the bench of each algorithm. */
export const PLAIN = 'plain script'
export const OWN = 'Sluice'
/** The same with every key used up, and without its denial cache, which would answer for Redis. */
export const REFUSED = 'Sluice, refused'
/**
 * Beside `consume`: what is written down whether it fits or not, and an estimate of two that is
 * settled as one.
 */
export const CHARGED = 'Sluice, charge'
export const SETTLED = 'Sluice, consume and settle'
/** Two limits on one key, decided as one. */
export const TWO_LIMITS = ['gcra + gcra', 'gcra + fixedWindow']

/** The contestants at every number in flight. */
export function contestantsOf(algorithm, client) {
  return [PLAIN, OWN, ...peersOf(algorithm, client)]
}

/** More contestants with 256 in flight. */
export function othersOf(algorithm) {
  return [REFUSED, CHARGED, SETTLED, ...(algorithm === 'gcra' ? [...TWO_LIMITS, BATCHED, INCR] : [])]
}

/** Each has a connection of its own. */
export async function contestant(name, algorithm, { client, port, database }) {
  const connection = await connect(client, port, database)
  const limits = admitting(algorithm)
  const make = FLOORS[name] ?? PEERS[name]
  if (make !== undefined) return { ...(await make(connection, limits, client)), send: connection.send }
  if (name === PLAIN) return plain(algorithm, connection, limits)
  if (name === REFUSED) return sluice(algorithm, connection, refusing(algorithm), { denialCache: false })
  if (name === CHARGED) return sluice(algorithm, connection, limits, undefined, (limiter, key) => limiter.charge(key))
  if (name === SETTLED) return sluice(algorithm, connection, limits, undefined, consumeAndSettle)
  return sluice(name === OWN ? algorithm : name, connection, limits)
}

async function plain(algorithm, { send }, limits) {
  const ask = await plainScript(algorithm, send, limits)
  const timesMs = timesHeld(algorithm, limits)
  const hold = timesMs && (() => WRITE_PLAIN[algorithm](send, `plain:${TEMPLATE}`, limits, timesMs))
  return { ask: (key) => ask(`plain:${key}`), isAllowed: ([allowed]) => allowed === 1, hold, send }
}

/**
 * By `consume`, which tells as much as the peers do, and as users make it: no option but the name
 * that every limiter needs.
 */
function sluice(name, { client, send }, limits, storeOptions, ask = (limiter, key) => limiter.consume(key)) {
  const own = sluiceLimits(name, limits)
  const options = { name: name.replace(' + ', '-'), store: redisStore(client, storeOptions) }
  const limiter = createLimiter(own, options)
  const timesMs = timesHeld(name, limits)
  const hold = timesMs && (() => callAt(timesMs, TEMPLATE, own, options))
  return { ask: (key) => ask(limiter, key), isAllowed: ({ allowed }) => allowed, hold, send }
}

async function consumeAndSettle(limiter, key) {
  const decision = await limiter.consume(key, 2)
  await decision.settle(1)
  return decision
}

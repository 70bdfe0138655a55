// Bytes of a key in Redis, as MEMORY USAGE counts them, beside those of the plain script under the
// same key in Redis.
import { redisStore } from '../../dist/stores/redis/index.js'
import { sluiceLimit } from '../contestants.mjs'
import { connect } from './clients.mjs'
import { callAt } from './held.mjs'
import { ALGORITHMS } from './limits.mjs'
import { plainScript, WRITE_PLAIN } from './plain.mjs'

const MINUTE_MS = 60_000
const RATE = { permits: 100, perMs: MINUTE_MS }
const WINDOW = { limit: 100, ms: MINUTE_MS }
/** 100 a minute, at most; a log that many entries fit into has room for them. */
const LIMITS = { rate: RATE, burst: 100, window: WINDOW, log: WINDOW }
const LONG_LOG = { ...LIMITS, log: { limit: 1000, ms: MINUTE_MS } }
/** Its interval is no whole number of microseconds. */
const UNEVEN = { ...LIMITS, rate: { permits: 7, perMs: 1000 } }

/**
 * What is measured: an algorithm, its limits, and after how many decisions, evenly over a minute.
 * The last of them decides on a goal.
 */
export const MEASURED = {
  ...Object.fromEntries(ALGORITHMS.map((algorithm) => [algorithm, { algorithm, limits: LIMITS, fills: [1, 100] }])),
  'gcra, 7/s': { algorithm: 'gcra', limits: UNEVEN, fills: [1, 100] },
  'slidingLog, 1,000 entries': { algorithm: 'slidingLog', limits: LONG_LOG, fills: [1000] },
}

/** Common keys. Redis allots memory in steps, so the length of a key makes a difference. */
export const KEYS = {
  user: 'user:123456',
  IPv4: '203.0.113.195',
  UUID: '3f2b9c1e-8d47-4a6b-9e05-1c7d2f84ab60',
  IPv6: '2001:db8:85a3:8d3:1319:8a2e:370:7348',
}

/**
 * For each of these and each key: how it stands in Redis, its bytes after so many decisions, and
 * those of the plain script.
 */
export default async function bytes({ client: clientName, port }) {
  const connection = await connect(clientName, port)
  const measured = {}
  for (const [name, subject] of Object.entries(MEASURED)) {
    measured[name] = {}
    for (const [kind, key] of Object.entries(KEYS)) measured[name][kind] = await bytesOf(subject, key, connection)
  }
  return measured
}

async function bytesOf(subject, key, { client, send }) {
  const [own, plain] = [{}, {}]
  let found
  for (const decisions of subject.fills) {
    const endMs = Date.now()
    const timesMs = Array.from({ length: decisions }, (_, k) => endMs - ((decisions - 1 - k) * MINUTE_MS) / decisions)
    found = await keysAfter(subject, key, timesMs, client, send)
    own[decisions] = await usage(found, send)
    plain[decisions] = await plainUsage(subject, found, timesMs, send)
  }
  return { ...found, own, plain }
}

/**
 * Returns what stands in Redis then: the names of the Redis keys, and the type and encoding of
 * each.
 */
async function keysAfter({ algorithm, limits }, key, timesMs, client, send) {
  await send('FLUSHDB')
  await callAt(timesMs, key, sluiceLimit(algorithm, limits), { name: 'api', store: redisStore(client) })
  const redisKeys = (await send('KEYS', '*')).sort()
  const stands = []
  for (const each of redisKeys) stands.push(`${await send('TYPE', each)}, ${await send('OBJECT', 'ENCODING', each)}`)
  return { redisKeys, stands: stands.join(' and ') }
}

async function usage({ redisKeys }, send) {
  let bytes = 0
  for (const each of redisKeys) bytes += await send('MEMORY', 'USAGE', each, 'SAMPLES', '0')
  return bytes
}

/**
 * On the server's clock, unless where the times make a difference, as they do for what is kept of
 * each slot or admission.
 */
async function plainUsage({ algorithm, limits }, { redisKeys: [redisKey] }, timesMs, send) {
  await send('FLUSHDB')
  if (WRITE_PLAIN[algorithm] !== undefined) await WRITE_PLAIN[algorithm](send, redisKey, limits, timesMs)
  else {
    const ask = await plainScript(algorithm, send, limits)
    for (const _ of timesMs) await ask(redisKey)
  }
  return usage({ redisKeys: [redisKey] }, send)
}

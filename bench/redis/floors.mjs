// The floors: the least that a decision in Redis can cost.
import { readFileSync } from 'node:fs'

/** One EVALSHA for each decision. */
export const MINIMAL = 'minimal.lua'
/** The same for many keys in one EVALSHA, with nothing around it. No goal: it shows how far batching can go. */
export const BATCHED = 'minimal.lua, batched'
/** Counts and decides nothing. */
export const INCR = 'INCR'

/** As contestants. What has an `askAll` is sent for many keys at once where many are in flight. */
export const FLOORS = {
  [MINIMAL]: async ({ send }, limits) => {
    const ask = await minimal(send, intervalUs(limits), limits.burst)
    return { ask: (key) => ask(`minimal:${key}`), isAllowed }
  },

  [BATCHED]: async ({ send }, limits) => {
    const evalsha = await loaded(send, './minimal-batched.lua')
    const keysOf = (keys) => keys.map((key) => `batched:${key}`)
    const askAll = async (keys) => {
      const figures = await evalsha(keysOf(keys), intervalUs(limits), limits.burst)
      return keys.map((_, k) => figures[2 * k])
    }
    return { askAll, isAllowed: (remaining) => remaining >= 0 }
  },

  [INCR]: async ({ send, incrAll }, { window }) => {
    const askAll = (keys) => incrAll(keys.map((key) => `incr:${key}`))
    return { ask: (key) => send('INCR', `incr:${key}`), askAll, isAllowed: (count) => count <= window.limit }
  },
}

/** minimal.lua as a function of the key as it stands in Redis. */
export async function minimal(send, interval, burst) {
  const evalsha = await loaded(send, '../minimal.lua')
  return (redisKey) => evalsha([redisKey], interval, burst)
}

async function loaded(send, file) {
  const sha1 = await send('SCRIPT', 'LOAD', readFileSync(new URL(file, import.meta.url), 'utf8'))
  return (keys, ...args) => send('EVALSHA', sha1, `${keys.length}`, ...keys, ...args.map(String))
}

function intervalUs({ rate }) {
  return (rate.perMs * 1000) / rate.permits
}

function isAllowed([allowed]) {
  return allowed === 1
}

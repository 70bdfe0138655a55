// The plain scripts: what a good engineer would write for each algorithm, one EVALSHA for each
// decision, on the server's clock.
import { readFileSync } from 'node:fs'
import { SLOTS } from './limits.mjs'

/** For each algorithm its script, and what that is told of its limits. */
const SCRIPTS = {
  gcra: { file: '../minimal.lua', args: ({ rate, burst }) => [intervalUs(rate), burst] },
  fixedWindow: { file: './plain/fixed-window.lua', args: ({ window }) => [window.limit, window.ms] },
  tokenBucket: { file: './plain/token-bucket.lua', args: ({ rate, burst }) => [burst, intervalUs(rate)] },
  leakyBucket: { file: './plain/leaky-bucket.lua', args: ({ rate, burst }) => [burst, intervalUs(rate)] },
  slidingWindow: { file: './plain/sliding-window.lua', args: ({ window }) => [window.limit, window.ms * 1000, SLOTS] },
  slidingLog: { file: './plain/sliding-log.lua', args: ({ log }) => [log.limit, log.ms * 1000] },
}

export function intervalUs({ permits, perMs }) {
  return (perMs * 1000) / permits
}

/** The plain script as a function of the key as it stands in Redis. */
export async function plainScript(algorithm, send, limits) {
  const { file, args } = SCRIPTS[algorithm]
  const evalsha = await loaded(send, file)
  const figures = args(limits)
  return (redisKey) => evalsha([redisKey], ...figures)
}

export async function loaded(send, file) {
  const sha1 = await send('SCRIPT', 'LOAD', readFileSync(new URL(file, import.meta.url), 'utf8'))
  return (keys, ...args) => send('EVALSHA', sha1, `${keys.length}`, ...keys, ...args.map(String))
}

/**
 * Writes what the plain scripts of windows of many parts would have written at these times. The
 * others hold the same whenever they were called.
 */
export const WRITE_PLAIN = {
  slidingWindow: async (send, redisKey, { window }, timesMs) => {
    for (const ms of timesMs) await send('HINCRBY', redisKey, `${Math.floor((ms * SLOTS) / window.ms)}`, '1')
    await send('PEXPIRE', redisKey, `${window.ms}`)
  },

  slidingLog: async (send, redisKey, { log }, timesMs) => {
    const us = timesMs.map((ms) => Math.round(ms * 1000))
    for (const [count, each] of us.entries()) await send('ZADD', redisKey, `${each}`, `${each}:${count}`)
    await send('PEXPIRE', redisKey, `${log.ms}`)
  },
}

// The floors: how far batching can go, and a command that decides nothing.
import { intervalUs, loaded } from './plain.mjs'

/**
 * What minimal.lua decides for many keys in one EVALSHA, with nothing around it. No goal: it shows
 * how far batching can go.
 */
export const BATCHED = 'minimal.lua, batched'
/** Counts and decides nothing. */
export const INCR = 'INCR'

/** As contestants. What has an `askAll` is sent for many keys at once where many are in flight. */
export const FLOORS = {
  [BATCHED]: async ({ send }, { rate, burst }) => {
    const evalsha = await loaded(send, './minimal-batched.lua')
    const keysOf = (keys) => keys.map((key) => `batched:${key}`)
    const askAll = async (keys) => {
      const figures = await evalsha(keysOf(keys), intervalUs(rate), burst)
      return keys.map((_, k) => figures[2 * k])
    }
    return { askAll, isAllowed: (remaining) => remaining >= 0 }
  },

  [INCR]: async ({ send, incrAll }, { window }) => {
    const askAll = (keys) => incrAll(keys.map((key) => `incr:${key}`))
    return { ask: (key) => send('INCR', `incr:${key}`), askAll, isAllowed: (count) => count <= window.limit }
  },
}

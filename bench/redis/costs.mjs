// The cost of a round for the server, by its own account: INFO before and after.
import { connect } from './clients.mjs'

/**
 * Makes of a loop (see rounds.mjs in the folder above) one that also notes, in `costs`, what each
 * of its rounds cost.
 */
export async function costWatch(port) {
  // A connection of its own, so that it waits for no other command.
  const { send } = await connect('node-redis', port)
  return (loop) => {
    const costs = []
    const watched = async (from, calls) => {
      const before = readingOf(await send('INFO', 'all'))
      const allowed = await loop(from, calls)
      const after = readingOf(await send('INFO', 'all'))
      costs.push({
        redisUs: (after.cpuUs - before.cpuUs) / calls,
        scriptCalls: (after.scriptCalls - before.scriptCalls) / calls,
        scriptUs: (after.scriptUs - before.scriptUs) / calls,
      })
      return allowed
    }
    return { watched, costs }
  }
}

/**
 * The processor time that the server has used, how often a client had a script run, and how long
 * the scripts took.
 */
export function readingOf(info) {
  const figure = (pattern) => Number(pattern.exec(info)?.[1] ?? 0)
  return {
    cpuUs: (figure(/^used_cpu_user:(.*)/m) + figure(/^used_cpu_sys:(.*)/m)) * 1e6,
    scriptCalls: figure(/^cmdstat_eval:calls=(\d+)/m) + figure(/^cmdstat_evalsha:calls=(\d+)/m),
    scriptUs: figure(/^cmdstat_eval:calls=\d+,usec=(\d+)/m) + figure(/^cmdstat_evalsha:calls=\d+,usec=(\d+)/m),
  }
}

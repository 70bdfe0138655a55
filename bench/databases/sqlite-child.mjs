// One process of the SQLite bench. `speed`: all contestants in turn, round by round. `together`:
// one contestant beside others of its kind, for some time.
import { join } from 'node:path'
import { CONTESTANTS } from './sqlite-contestants.mjs'

const { part, folder, scenario, contestant, rounds, calls, forMs, keys: count } = JSON.parse(process.argv[2])
const keys = Array.from({ length: count }, (_, k) => `user:${k}`)

process.send(part === 'speed' ? await speed() : await together(), () => process.disconnect())

async function speed() {
  const limiters = {}
  for (const [name, make] of Object.entries(CONTESTANTS)) {
    limiters[name] = await make(join(folder, `${scenario}-${name}.db`.replaceAll(/[ ,]+/g, '-')))
    // With the settings of SQLite each call waits for the disk.
    const some = name.includes('settings') ? keys.slice(0, 40) : keys
    for (const [k, key] of some.entries())
      await (scenario === 'half refused' && k % 2 === 0 ? limiters[name].fill(key) : limiters[name].call(key))
  }
  const ns = Object.fromEntries(Object.keys(CONTESTANTS).map((name) => [name, []]))
  for (let round = 0; round < rounds + 1; round++) {
    for (const [name, { call }] of Object.entries(limiters)) {
      const isSlow = name.includes('settings')
      const each = await nsOf(call, isSlow ? Math.max(10, calls / 200) : calls, isSlow ? 40 : count)
      if (round > 0) ns[name].push(each)
    }
  }
  return ns
}

async function nsOf(call, times, of) {
  const start = process.hrtime.bigint()
  for (let k = 0, at = 0; k < times; k++) {
    at = (at + 7) % of
    const answer = call(keys[at])
    if (typeof answer !== 'boolean') await answer
  }
  return Number(process.hrtime.bigint() - start) / times
}

async function together() {
  const { call } = await CONTESTANTS[contestant](join(folder, 'together.db'))
  for (const key of keys) await call(key)
  process.send('ready')
  await new Promise((resolve) => process.once('message', resolve))
  const took = []
  const end = performance.now() + forMs
  for (let at = process.pid, now = performance.now(); now < end; ) {
    at = (at + 7) % count
    await call(keys[at])
    const then = performance.now()
    took.push(then - now)
    now = then
  }
  took.sort((a, b) => a - b)
  const quantile = (share) => took[Math.floor((took.length - 1) * share)]
  return { calls: took.length, p50: quantile(0.5), p99: quantile(0.99), p999: quantile(0.999), most: took.at(-1) }
}

// Growth: how long a decision takes, and how long its script, by how much a key holds or how many
// limits a limiter has.
import { inTurn } from '../rounds.mjs'
import { spreadOf } from '../statistics.mjs'
import { connect } from './clients.mjs'
import { readingOf } from './costs.mjs'
import { CASES, casesOf, GROWTHS } from './growth-cases.mjs'

/**
 * Calls of a turn, after which it is another size's turn; and turns that count. Of a batch each
 * call is one of many decisions.
 */
const TURN_CALLS = 20
const TURNS = { decision: 50, half: 10, refund: 50, batch: 2 }
const QUICK_TURNS = { decision: 3, half: 1, refund: 3, batch: 1 }
const WARM_UP_TURNS = 2

/**
 * For each case and size, turn by turn: the median of how long a call took, in nanoseconds, how
 * long the script took of a call on average, and how many script calls it was. A size that took too
 * long to fill has none.
 */
export default async function growth({ growth, client, port, quick }) {
  const turns = quick ? QUICK_TURNS : TURNS
  const sizes = quick ? GROWTHS[growth].quickSizes : GROWTHS[growth].sizes
  const calls = Object.fromEntries(Object.keys(CASES).map((name) => [name, (WARM_UP_TURNS + turns[name]) * TURN_CALLS]))
  const { send } = await connect('node-redis', port)
  const subjects = []
  for (const [database, size] of sizes.entries()) {
    const cases = await casesOf(growth, size, { client, port, database, calls })
    if (cases !== undefined) subjects.push({ size, cases })
  }
  const measured = {}
  for (const name of Object.keys(CASES)) {
    if (subjects[0].cases[name] === undefined) continue
    measured[name] = Object.fromEntries(subjects.map(({ size }) => [size, []]))
    for (let turn = 0; turn < WARM_UP_TURNS + turns[name]; turn++) {
      await inTurn(subjects, turn, async ({ size, cases }) => measured[name][size].push(await turnOf(cases[name], turn, send)))
    }
    for (const each of Object.values(measured[name])) each.splice(0, WARM_UP_TURNS)
  }
  return { sizes, measured }
}

async function turnOf(call, turn, send) {
  const before = readingOf(await send('INFO', 'all'))
  const ns = []
  for (let k = turn * TURN_CALLS; k < (turn + 1) * TURN_CALLS; k++) {
    const startMs = performance.now()
    await call(k)
    ns.push((performance.now() - startMs) * 1e6)
  }
  const after = readingOf(await send('INFO', 'all'))
  const scripts = after.scriptCalls - before.scriptCalls
  return { ns: spreadOf(ns).median, scriptUs: (after.scriptUs - before.scriptUs) / scripts, scriptCalls: scripts / TURN_CALLS }
}

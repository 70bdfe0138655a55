// Writes RESULTS.md from the kept results.
import { writeFileSync } from 'node:fs'
import { GOALS, PHASES, worstOf } from './goals.mjs'
import { CHARGE, CHARGE_PROCESSES, CONSUME, FLOOR_CONSUME, HEADLINE, SIZES, TRY_ACQUIRE } from './jobs.mjs'
import { PEER_NAMES } from './peers.mjs'
import { keptResults } from './results.mjs'
import { SCENARIOS } from './scenarios.mjs'
import { millionPerSecond, spreadOf, timesAsFast } from './statistics.mjs'
import { plain, spread, table } from './tables.mjs'
import { waitingTables } from './waiting-report.mjs'

/**
 * Writes RESULTS.md if all jobs have been run, quick ones aside, and returns the report in any
 * case.
 */
export function reportOf(jobs, quick) {
  const results = keptResults(quick)
  const parts = [
    heading(results),
    goals(results),
    method(results),
    ...Object.keys(SCENARIOS).map((scenario) => speedTable(results, scenario)),
    warmedTable(results),
    turnClockTable(results),
    memoryTable(results),
    pauseTable(results),
    scavengeTable(results),
    ...waitingTables(results),
    sizeTable(results),
  ]
  const report = `${parts.filter((part) => part !== '').join('\n\n')}\n`
  if (!quick && jobs.every(results.has)) writeFileSync(new URL('./RESULTS.md', import.meta.url), report)
  return report
}

function heading({ machine, quick }) {
  const warning = quick ? '\n\n**Some of this comes from a `--quick` run: too few and too short rounds to rely on.**' : ''
  const { node, cpu, cores } = machine ?? {}
  return `# Results of \`npm run bench\`\n\nWritten by the bench, not by hand. Node ${node}, ${cpu}, ${cores} cores.${warning}`
}

function goals(results) {
  const rows = GOALS.map((goal) => {
    const worst = worstOf(goal, results)
    if (worst === undefined) return [goal.title, goal.target, 'not measured', '', '']
    const [figure, where] = worst
    return [goal.title, goal.target, plain(figure), where, goal.reached(figure) ? 'reached' : '**not reached**']
  })
  return `## Goals\n\n${table(['goal', 'target', 'at worst', 'where', ''], rows, '---')}`
}

function method({ everySpeed }) {
  const shortestMs = Math.min(...everySpeed.map((speed) => speed.shortestMs))
  const rounds = Math.min(...everySpeed.map((speed) => speed.ns.length))
  return `## How it was measured

- Each row is a process of its own, so that code is compiled for that use only. In it the floor (\`floor.mjs\`, the least that a keyed limiter
  can do) and the contestant run in interleaved rounds, another one first in every round, after a warm-up. A round is a fixed number of calls
  per contestant: ${rounds} rounds, the shortest ${plain(shortestMs)} ms. Peers run beside the floor and \`${HEADLINE}\`. \`charge\` runs
  beside the floor and \`consume\`, in ${CHARGE_PROCESSES} processes whose rounds count together: the same code is up to a tenth faster or slower in
  another process, which is more than the two differ by.
- Figures are medians of the rounds with their quartiles in parentheses. Ratios are taken within each round, then their median: above 1 is
  faster than the floor, or than the peer.
- All keys have been called once before the first round. Peers without keys stand behind a Map. rate-limiter-flexible, express-rate-limit and
  @nestjs/throttler answer with promises and are awaited, which is what their users pay; the others are called synchronously, below the
  middleware that would await them.
- \`floor.consume\` is the floor with the full decision told (\`floor-decision.mjs\`): the least that \`consume\` can cost.
- Limits are equal in effect. Denied: 1 per hour. One key allowed: 10 million per second and a billion at once, windows 1e9 per 100 s. Many keys:
  10 per minute and 1e7 at once, windows 1e7 per hour. A sliding log holds 100,000 per key at most: 100,000 per 10 ms (one key) or per 100 ms
  (many). @nestjs/throttler walks over all hits of its window at every call: where nothing is denied its window is 1 ms, in its favour.`
}

function speedTable(results, scenario) {
  const own = [...TRY_ACQUIRE, ...CONSUME, ...CHARGE, FLOOR_CONSUME].map((name) => ownRow(results.of('speed', scenario, name), name))
  const peers = PEER_NAMES.map((name) => peerRow(results.of('speed', scenario, name), name))
  const rows = [floorRow(results.of('speed', scenario, HEADLINE)), ...own, ...peers].filter((row) => row !== undefined)
  if (rows.length === 0) return ''
  const columns = ['', 'million calls/s', 'to the floor', `${HEADLINE} to it`, 'allowed']
  return `## Speed: ${SCENARIOS[scenario].title}\n\n${table(columns, rows)}`
}

function floorRow(speeds) {
  return speeds && ['floor', spread(millionPerSecond(speeds.floor)), '1', '', share(speeds.floor)]
}

function ownRow(speeds, name) {
  return speeds && [name, spread(millionPerSecond(speeds[name])), spread(timesAsFast(speeds[name], speeds.floor)), '', share(speeds[name])]
}

function peerRow(speeds, name) {
  const row = ownRow(speeds, name)
  return row?.with(3, spread(timesAsFast(speeds[HEADLINE], speeds[name])))
}

function warmedTable(results) {
  const scenarios = Object.keys(SCENARIOS)
  const rows = TRY_ACQUIRE.flatMap((name) => {
    const ratios = scenarios.map((scenario) => {
      const speeds = results.of('speed-warmed', scenario, name)
      return speeds && spread(timesAsFast(speeds[name], speeds.floor))
    })
    return ratios.some((ratio) => ratio !== undefined) ? [[name, ...ratios.map((ratio) => ratio ?? '')]] : []
  })
  return rows.length === 0
    ? ''
    : `## Speed: all six algorithms warmed up in the process, to the floor

Limiters of all six algorithms are called in turns first, by \`tryAcquire\`, half a million calls each: the code that they share is compiled for all of them.

${table(['', ...scenarios], rows)}`
}

function turnClockTable(results) {
  const measured = results.of('turn-clock', 'hot-allowed', HEADLINE)
  if (measured === undefined) return ''
  const { speeds, witness } = measured
  const rows = [floorRow(speeds), ownRow(speeds, HEADLINE)].map((row) => row.toSpliced(3, 1))
  return `## Speed: one hot key, allowed, with \`turnClock()\`

The event loop turns after every 1,000 calls, for the floor too. That the clock moves: ${witness.readings} different readings in
${witness.turns} turns, over ${plain(witness.spanUs / 1000)} ms.

${table(['', 'million calls/s', 'to the floor', 'allowed'], rows)}`
}

function memoryTable(results) {
  const rows = [...TRY_ACQUIRE, ...PEER_NAMES].flatMap((name) => {
    const bytes = results.of('memory', 'keys', name)
    if (bytes === undefined) return []
    const figures = SIZES.map((size) => bytes[size])
    return [[name.split('.')[0], ...figures.map((figure) => figure.toFixed(0)), Math.max(...figures).toFixed(0)]]
  })
  if (rows.length === 0) return ''
  const columns = ['bytes per live key', ...SIZES.map((size) => size.toLocaleString('en')), 'at worst']
  return `## Memory

All in, the key's string of about 11 characters too: heap and external memory (which includes array buffers) after a forced collection, less
what was there before. At 524,289 keys a Map has just doubled.

${table(columns, rows)}`
}

function pauseTable(results) {
  const own = results.all('pauses', HEADLINE)
  const sweep = results.all('pauses', 'floor sweep')
  if (own.length === 0 || sweep.length === 0) return ''
  const rows = Object.entries(PHASES).map(([phase, title]) => {
    const ours = spreadOf(own.map((run) => run[phase]))
    const floors = spreadOf(sweep.map((run) => run[phase]))
    return [`while ${title}`, spread(ours), spread(floors), plain(ours.median - floors.median)]
  })
  const { heldBefore, heldAfter } = own[0]
  return `## Pauses

The longest turn of the event loop in milliseconds, 1,000 calls to a turn; medians of the processes run (${own.length} each). "Expire": the clock leaps by a day and a
million new keys arrive. Sluice held ${heldBefore.toLocaleString('en')} keys before and ${heldAfter.toLocaleString('en')} after.

${table(['', 'gcra', "the floor's sweep", 'difference'], rows)}`
}

function scavengeTable(results) {
  const rows = ['floor', ...TRY_ACQUIRE].flatMap((name) => {
    const [alone, warmed] = ['scavenges', 'scavenges-warmed'].map((part) => results.of(part, 'keys-10k', name))
    return (alone ?? warmed) ? [[name, `${alone?.scavenges ?? ''}`, `${warmed?.scavenges ?? ''}`]] : []
  })
  return rows.length === 0
    ? ''
    : `## Scavenges\n\nIn 10 million calls on 10,000 keys, after a million to warm up; the median of three times. The young generation is held at 1 MB, so that the number tells what was\nallocated.\n\n${table(['', 'scavenges', 'all six algorithms warmed up'], rows)}`
}

function sizeTable(results) {
  const measured = results.of('size', 'bundle', 'all')
  if (measured === undefined) return ''
  if (measured.skipped) return `## Size\n\nNot measured: ${measured.skipped}.`
  const rows = Object.entries(measured.bytes).map(([algorithm, bytes]) => [`createLimiter and ${algorithm}`, bytes.toLocaleString('en')])
  return `## Size\n\n${table(['minified and gzipped', 'bytes'], rows)}`
}

function share({ allowedShare }) {
  return `${(allowedShare * 100).toFixed(allowedShare > 0 && allowedShare < 1 ? 1 : 0)} %`
}

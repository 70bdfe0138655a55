// Limiters on a SQLite file: Sluice beside rate-limiter-flexible and a bare counting statement, and
// several processes on one file.
//   node bench/databases/sqlite.mjs [--quick]
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { spreadOf } from '../statistics.mjs'

const PEER = 'rate-limiter-flexible'
const KEYS = 10_000

/**
 * Everything that is measured, as sections of a report in Markdown and goals:
 * `{ lines, goals: [{ title, target, value, isReached }] }`.
 */
export async function sqliteReport(quick) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  try {
    const size = quick
      ? { rounds: 3, calls: 2_000, crowdRounds: 1, forMs: 300 }
      : { rounds: 15, calls: 20_000, crowdRounds: 7, forMs: 2_000 }
    const speed = {}
    for (const scenario of ['all admitted', 'half refused']) {
      ;[speed[scenario]] = await run([{ part: 'speed', folder, scenario, keys: KEYS, ...size }])
    }
    const crowds = {}
    for (let round = 0; round < size.crowdRounds; round++) {
      for (const contestant of ['sluice', PEER]) {
        for (const processes of [1, 4]) {
          const place = mkdtempSync(join(folder, 'x'))
          const task = { part: 'together', folder: place, contestant, keys: KEYS, ...size }
          const reports = await run(Array.from({ length: processes }, () => task))
          const name = `${contestant} ${processes}`
          crowds[name] = [...(crowds[name] ?? []), reports]
        }
      }
    }
    return { lines: [...speedLines(speed), '', ...crowdLines(crowds, size), '', FAIR], goals: goalsOf(speed, crowds) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Processes that begin at once, where there are several. */
async function run(tasks) {
  const script = fileURLToPath(new URL('./sqlite-child.mjs', import.meta.url))
  const children = tasks.map((task) => fork(script, [JSON.stringify(task)]))
  const next = () => Promise.all(children.map((child) => messageOf(child)))
  if (tasks[0].part === 'speed') return next()
  await next()
  const reports = next()
  for (const child of children) child.send('go')
  return reports
}

function messageOf(child) {
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => code !== 0 && reject(new Error(`a process of the bench ended with ${code}`)))
  })
}

/** How many times as many decisions, round by round. */
function times(ns, other) {
  return spreadOf(ns.sluice.map((each, round) => ns[other][round] / each))
}

function speedLines(speed) {
  const rows = Object.entries(speed).flatMap(([scenario, ns]) =>
    Object.keys(ns).map((name) => {
      const { median } = spreadOf(ns[name])
      const ratio =
        name === 'sluice'
          ? ''
          : `${times(ns, name).median.toFixed(2)} (${times(ns, name).low.toFixed(2)} to ${times(ns, name).high.toFixed(2)})`
      return `| ${scenario} | ${name} | ${(median / 1000).toFixed(1)} | ${ratio} |`
    }),
  )
  return ['| 10,000 keys | limiter | µs a decision, median | Sluice makes so many times as many |', '| --- | --- | --- | --- |', ...rows]
}

function crowdLines(crowds, { forMs, crowdRounds }) {
  const rows = Object.entries(crowds).map(([name, rounds]) => {
    const { median } = spreadOf(rounds.map((reports) => together(reports) / (forMs / 1000)))
    // Of the process that fared worst, in the round in the middle.
    const worst = (of) => spreadOf(rounds.map((reports) => Math.max(...reports.map((report) => report[of])))).median.toFixed(3)
    return `| ${name} | ${Math.round(median)} | ${worst('p50')} | ${worst('p99')} | ${worst('p999')} | ${worst('most')} |`
  })
  const head = `| limiter, processes on one file, ${crowdRounds} rounds | decisions/s together | p50 ms | p99 | p99.9 | most |`
  return [head, '| --- | --- | --- | --- | --- | --- |', ...rows]
}

const FAIR = `All have better-sqlite3 and the same settings of the file, which are those that Sluice chooses: a write-ahead log, pages of 1,024 bytes,
\`synchronous = NORMAL\`, and the log copied into the file every 4,000 pages. So each decision that is admitted makes the same eight calls to the system: six
for locks, two that write a page. "floor" is one prepared statement that counts. ${PEER} prepares its statement at each call. The row with
the settings of SQLite is ${PEER} as its documentation sets it up: each decision waits for the disk. Processes on one file ask
without a pause; the times are those that the event loop stands still, of the process that fared worst.`

function together(reports) {
  return reports.reduce((sum, { calls }) => sum + calls, 0)
}

/** Round by round. */
function togetherToOne(crowds) {
  return crowds['sluice 4'].map((reports, round) => together(reports) / together(crowds['sluice 1'][round]))
}

function goalsOf(speed, crowds) {
  const atLeast = (title, target, value) => ({ title, target: `at least ${target}`, value, isReached: value >= target })
  return [
    ...Object.entries(speed).map(([scenario, ns]) =>
      atLeast(`SQLite, ${scenario}, to ${PEER} on the same settings`, 3, times(ns, PEER).median),
    ),
    atLeast(`SQLite, to ${PEER} as its documentation sets it up`, 3, times(speed['all admitted'], `${PEER}, settings of SQLite`).median),
    atLeast('SQLite, 4 processes together to one', 0.8, spreadOf(togetherToOne(crowds)).median),
  ]
}

/** What was measured, as rows of the goals, and as text. */
export async function sqliteResults(isQuick) {
  const { lines, goals } = await sqliteReport(isQuick)
  const rows = goals.map(({ title, target, value, isReached }) => [
    title,
    target,
    `${Number(value.toPrecision(3))}`,
    isReached ? 'reached' : '**not reached**',
  ])
  return { goals: rows, text: lines.join('\n') }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
  const { lines, goals } = await sqliteReport(values.quick)
  console.log(lines.join('\n'))
  for (const { title, target, value, isReached } of goals) {
    console.log(`${isReached ? 'reached    ' : 'NOT REACHED'} ${title}: ${target}, is ${Number(value.toPrecision(3))}`)
  }
}

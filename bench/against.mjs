// `npm run bench:against -- <commit>`: this working tree beside an older commit of itself, in
// turns, in one run. Writes RESULTS-against.md.
//   --quick           few short rounds: to see that it works. RESULTS-against.md stays as it is.
//   --only <words>    only the rows whose name has all these words, such as 'memory gcra'
// Both packages are loaded into each process and take turns of a few milliseconds, so that a
// machine that changes its speed changes both.
import { fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { builtFrom, git } from './older.mjs'
import { spreadOf } from './statistics.mjs'

const root = fileURLToPath(new URL('../', import.meta.url))
const { values, positionals } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } },
  allowPositionals: true,
})
const [commit] = positionals
if (commit === undefined) fail('npm run bench:against -- <commit>: which commit is it to be held against?')

/** An even number: in half of them the older version is called first. */
const PROCESSES = values.quick ? 2 : 4
const LEVELS = ['gcra', 'tokenBucket', 'leakyBucket']
const WINDOWS = ['fixedWindow', 'slidingWindow', 'slidingLog']
const SCENARIOS = ['one-key', 'keys-10k']
const VERBS = ['tryAcquire', 'consume']
const WAITING_VERBS = ['acquire', 'wrap']
/** The share of the older version's speed that this one has to reach. */
const LEAST = { memory: 0.95, shared: 0.85, 'two threads': 0.85 }

function* allRows() {
  for (const factory of [...LEVELS, ...WINDOWS]) {
    for (const scenario of SCENARIOS) for (const verb of VERBS) yield { store: 'memory', factory, scenario, verb }
    yield { store: 'memory', factory, scenario: 'new-keys', verb: 'tryAcquire' }
  }
  for (const factory of ['gcra', 'fixedWindow'])
    for (const scenario of SCENARIOS) for (const verb of WAITING_VERBS) yield { store: 'memory', factory, scenario, verb }
  for (const factory of ['gcra', 'tokenBucket', 'fixedWindow'])
    for (const scenario of SCENARIOS) for (const verb of VERBS) yield { store: 'shared', factory, scenario, verb }
  for (const scenario of ['one-key', 'keys-100']) yield { store: 'two threads', factory: 'gcra', scenario, verb: 'tryAcquire' }
}

const old = builtFrom(commit)
const lines = []
for (const row of allRows()) {
  const name = Object.values(row).join(' ')
  if (values.only !== undefined && !values.only.split(' ').every((word) => name.includes(word))) continue
  const ratios = []
  for (let k = 0; k < PROCESSES; k++)
    ratios.push(await ratioOf({ ...row, old, now: `${root}dist`, oldFirst: k % 2 === 0, quick: values.quick }))
  const { low, median, high } = spreadOf(ratios)
  const verdict = median >= LEAST[row.store] ? 'reached' : '**not reached**'
  console.log(`${median.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})  ${name}  ${verdict}`)
  lines.push(
    `| ${Object.values(row).join(' | ')} | ${median.toFixed(2)} | ${low.toFixed(2)} to ${high.toFixed(2)} | at least ${LEAST[row.store]} | ${verdict} |`,
  )
}
if (!values.quick && values.only === undefined) writeFileSync(`${root}bench/RESULTS-against.md`, report())

function report() {
  const full = git('rev-parse', '--short', commit)
  return `# This version beside an older one

\`npm run bench:against -- ${full}\`, Node ${process.version}, ${cpus()[0].model}, ${availableParallelism()} cores. Decisions a second of this version, to those of
the older one: above 1 is faster. Median and quartiles of ${PROCESSES} processes, in each of which both take turns.

| store | limit | keys | verb | ratio | quartiles | goal |  |
| --- | --- | --- | --- | --- | --- | --- | --- |
${lines.join('\n')}
`
}

function ratioOf(task) {
  const child = fork(new URL('./against-child.mjs', import.meta.url), [JSON.stringify(task)], { execArgv: ['--expose-gc'] })
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`${JSON.stringify(task)} ended with code ${code}`)))
  })
}

function fail(message) {
  console.error(message)
  process.exit(1)
}

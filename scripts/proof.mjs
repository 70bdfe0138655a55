// `npm run proof`: changes one operator or constant of the algorithms at a time and sees whether
// the tests notice.
// A change that no test notices needs a proof that no test can notice it (proof/proofs.mjs). Writes
// proof/REPORT.md. Then the soak: faults of servers and networks, mixed, on the real Redis
// (test/faults/soak.mjs). Writes proof/SOAK.md. Then the deadlock soak: processes that decide by
// several limits on rows of one PostgreSQL, in any order (test/postgres/deadlocks.test.ts). Then
// the storm: a thousand threads terminated within a minute on one shared store
// (test/concurrency/storm.mjs). Writes proof/STORM.md.
//   --soak          only the soak
//   --deadlocks     only the deadlock soak
//   --storm         only the storm
//   --soak-minutes <n>  how long it lasts; 5 unless told
//   --only <text>   the files whose path contains it; writes no report
//   --quick         without the long tests, and without the mutants that have a proof: shows sooner what may survive; writes no report
//   --minutes <n>   ends after so long; what was not judged until then is in the report as such, and the next run goes on there
//   --workers <n>   how many judge at the same time, each with a Redis of its own; 2 unless told
//   --list          shows the mutants and judges none
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { falseClaims, proofOf } from '../proof/equivalent.mjs'
import { runGrouped } from '../proof/group.mjs'
import { reportOf } from '../proof/report.mjs'
import { mutantsIn, sourceFiles } from '../proof/sources.mjs'
import { testsFor } from '../proof/suites.mjs'
import { Verdicts } from '../proof/verdicts.mjs'
import { Worker } from '../proof/worker.mjs'
import { ensurePostgres, ensureRedis } from './packages.mjs'
import { installPackages, root, run, step } from './run.mjs'

/** The code as it is, where all tests must pass. */
const UNCHANGED = { id: 'the code as it is' }

/** What a test may compute before it counts as endless. */
const limitMsOf = (usualMs) => 2_000 + 5 * usualMs

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    quick: { type: 'boolean', default: false },
    minutes: { type: 'string', default: 'Infinity' },
    workers: { type: 'string', default: '2' },
    list: { type: 'boolean', default: false },
    soak: { type: 'boolean', default: false },
    deadlocks: { type: 'boolean', default: false },
    storm: { type: 'boolean', default: false },
    'soak-minutes': { type: 'string', default: '5' },
  },
})

// Whatever ends this process, what it has started ends with it (proof/group.mjs).
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
installPackages()
if (options.soak || options.deadlocks || options.storm) {
  if (options.soak) await soak()
  if (options.deadlocks) await deadlocks()
  if (options.storm) await storm()
  process.exit()
}
// A copy, so that the run is of one piece even if files are edited meanwhile.
const copy = mkdtempSync(join(tmpdir(), 'sluice-proof-'))
for (const folder of ['src', 'test', 'scripts/lua', 'docs']) {
  cpSync(join(root, folder), join(copy, folder), { recursive: true, filter: (path) => !path.includes('node_modules') })
}

process.once('exit', () => rmSync(copy, { recursive: true, force: true }))

const files = sourceFiles(copy)
const mutants = files.filter((path) => path.includes(options.only)).flatMap((file) => mutantsIn(copy, file))
const verdicts = new Verdicts(join(root, 'node_modules/.cache/sluice-proof/verdicts.jsonl'), copy, files)
const endMs = performance.now() + Number(options.minutes) * 60_000
if (options.list) for (const { id } of mutants) console.log(id)
else {
  process.exitCode = (await proved()) ? 0 : 1
  if (options.only === '' && !options.quick) {
    await soak()
    await deadlocks()
    await storm()
  }
}

/** Ends the run with an error if anything was not as promised. */
async function soak() {
  ensureRedis()
  step(`the soak, ${options['soak-minutes']} minutes`)
  await runToEnd(process.execPath, ['test/faults/soak.mjs', '--minutes', options['soak-minutes']])
}

/**
 * Some 400,000 decisions. Ends the run with an error if any was a deadlock, or if a permit is not
 * accounted for.
 */
async function deadlocks() {
  ensurePostgres()
  step('the deadlock soak')
  run('npm', ['run', '--silent', 'build'])
  const env = { ...process.env, SLUICE_TRACES: '8000' }
  await runToEnd('npx', ['--no-install', 'vitest', 'run', 'test/postgres/deadlocks.test.ts'], { env })
}

/**
 * Ends the run with an error if a call failed that must not, or if the machine was too busy to
 * terminate so many threads within a minute.
 */
async function storm() {
  step('the storm')
  run('npm', ['run', '--silent', 'build'])
  await runToEnd(process.execPath, ['test/concurrency/storm.mjs'])
}

/** As `run`, but with all that it starts: a signal ends the servers of its tests too. */
async function runToEnd(command, args, options = {}) {
  const code = await runGrouped(command, args, { cwd: root, ...options })
  if (code !== 0) process.exit(code)
}

/** Judges every mutant; tells whether each survivor has a proof and each proof a survivor. */
async function proved() {
  ensureRedis()
  const tests = testsByFile()
  step(`${mutants.length} mutants, the quick tests`)
  const quickTestsOf = ({ file }) => tests[file].filter(({ quick }) => quick)
  let results = await judgedAll(
    mutants.filter((mutant) => !hasProof(mutant)),
    quickTestsOf,
  )
  if (!options.quick) {
    step('those that survived them, the long tests; those that have a proof, the quick tests')
    results = await judgedAll(mutants, (mutant) => (hasProof(mutant) ? quickTestsOf(mutant) : tests[mutant.file]))
  }
  return told(results)
}

function told(results) {
  const notJudged = results.filter(({ status }) => status === 'not judged')
  const unproved = results.filter((result) => result.status === 'survived' && !hasProof(result))
  const untrue = options.quick ? [] : falseClaims(results, new Set(mutants.map(({ file }) => file)))
  for (const { id } of unproved) console.log(`survived without a proof: ${id}`)
  for (const { name } of untrue) console.log(`proved to be equivalent, but was killed or is no mutant: ${name}`)
  if (notJudged.length > 0) console.log(`not judged: ${notJudged.length}`)
  if (options.only === '' && !options.quick) writeFileSync(join(root, 'proof/REPORT.md'), reportOf(results))
  return unproved.length + untrue.length + notJudged.length === 0
}

/** By file: its tests, each with how many mutants of the file it has killed. */
function testsByFile() {
  const testsOf = (file) => testsFor(copy, file).map((test) => ({ ...test, kills: 0 }))
  return Object.fromEntries([...new Set(mutants.map(({ file }) => file))].map((file) => [file, testsOf(file)]))
}

/** How long a test takes on the code as it is, where it must pass. */
async function usualMs(worker, test) {
  const knownMs = verdicts.passedInMs(UNCHANGED, test)
  if (knownMs !== undefined) return knownMs
  const { path, only, traces } = test
  const { status, message, ms } = await worker.judge({ path, only, traces }, 600_000)
  if (status !== 'passed') throw new Error(`${path} on the code as it is: ${status}: ${message}`)
  verdicts.keepPass(UNCHANGED, test, ms)
  return ms
}

/** The results of these mutants in their order. Those without a proof are judged first. */
async function judgedAll(mutants, testsOf) {
  const queue = mutants.map((mutant, index) => ({ mutant, index }))
  const rank = ({ mutant }) => Number(hasProof(mutant))
  queue.sort((a, b) => rank(a) - rank(b) || a.index - b.index)
  const results = mutants.map(({ text, ...mutant }) => ({ ...mutant, status: 'not judged' }))
  let done = 0
  const work = async () => {
    const worker = new Worker(copy)
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const { mutant, index } = next
      const verdict = await judged(worker, mutant, testsOf(mutant))
      Object.assign(results[index], verdict)
      if (++done % 100 === 0) console.log(`... ${done} of ${mutants.length}`)
    }
    await worker.stop()
  }
  await Promise.all(Array.from({ length: Number(options.workers) }, work))
  return results
}

function hasProof(mutant) {
  return proofOf(mutant) !== undefined
}

/** How a mutant ends: { status, by, message }. */
async function judged(worker, mutant, tests) {
  const known = verdicts.endOf(mutant)
  if (known !== undefined) return known
  for (const test of likeliestFirst(tests).filter((test) => !verdicts.hasPassed(mutant, test))) {
    if (performance.now() > endMs) return { status: 'not judged' }
    const { status, message, test: by, ms } = await answerOf(worker, mutant, test)
    if (status !== 'passed') {
      test.kills += 1
      return ended(mutant, { status, by: `${test.path}: ${by}`, message })
    }
    verdicts.keepPass(mutant, test, ms)
  }
  console.log(`${hasProof(mutant) ? 'equivalent' : 'SURVIVED'} ${mutant.line} ${mutant.id}`)
  return { status: 'survived' }
}

/**
 * The test that has killed the most for its time comes first: it is likely to kill the next of the
 * same file too.
 */
function likeliestFirst(tests) {
  const worth = (test) => (test.kills + 0.1) / (10 + (verdicts.passedInMs(UNCHANGED, test) ?? 1_000))
  return tests.toSorted((a, b) => b.quick - a.quick || worth(b) - worth(a))
}

async function answerOf(worker, { file, text }, test) {
  const { path, only, traces } = test
  const job = { path, only, traces, file, text }
  const limitMs = limitMsOf(await usualMs(worker, test))
  return worker.judge(job, limitMs)
}

function ended(mutant, verdict) {
  const { status } = verdict
  if (status === 'timed out' || status === 'crashed') console.log(`${status} ${mutant.id}`)
  verdicts.keepEnd(mutant, verdict)
  return verdict
}

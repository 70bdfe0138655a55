// `npm run bench:shared`: one limit for all threads, beside the memory store, a message to the main
// thread, and rate-limiter-flexible's cluster limiter. One run measures everything and writes
// RESULTS-shared.md.
//   --quick   few short rounds: to see that it works; writes nothing
import { fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { SHARED_GOALS } from './shared-goals.mjs'
import { sharedReport } from './shared-report.mjs'

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
const size = values.quick ? { rounds: 3, roundMs: 30 } : { rounds: 15, roundMs: 200 }

/**
 * Each in a process of its own, one at a time: code is compiled for that use only, and two would
 * share the machine.
 */
const JOBS = [
  ...['keys-10k', 'hot-allowed', 'hot-denied'].flatMap((scenario) => [
    { part: 'shared-speed', scenario, subject: 'memory' },
    { part: 'shared-speed', scenario, subject: 'shared' },
  ]),
  { part: 'shared-threads', scenario: 'keys-10k' },
  { part: 'shared-threads', scenario: 'hot-allowed' },
  { part: 'shared-threads', scenario: 'hot-denied' },
  { part: 'shared-threads', scenario: 'hot-allowed', subject: 'bare' },
  { part: 'shared-messages', scenario: 'hot-allowed' },
  { part: 'shared-memory', scenario: 'keys' },
]

const load = loadavg()[0].toFixed(1)
const results = {}
for (const job of JOBS) {
  const name = [job.part, job.scenario, job.subject].filter(Boolean).join(' ')
  results[name] = await resultOf({ ...job, ...size })
  console.log(name)
}
for (const { title, target, figure, reached } of SHARED_GOALS) {
  const value = figure(results)
  console.log(`${reached(value) ? 'reached    ' : 'NOT REACHED'} ${title}: ${target}, is ${Number(value.toPrecision(3))}`)
}
const machine = { node: process.version, cpu: cpus()[0].model, cores: availableParallelism(), load }
if (!values.quick) writeFileSync(fileURLToPath(new URL('./RESULTS-shared.md', import.meta.url)), sharedReport(results, machine, size))

function resultOf(job) {
  const child = fork(new URL('./child.mjs', import.meta.url), [JSON.stringify(job)], { execArgv: ['--expose-gc'] })
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`${job.part} ended with code ${code}`)))
  })
}

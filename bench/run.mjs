// `npm run bench`: speed and memory of Sluice in process, beside its peers and the floor. Writes
// RESULTS.md.
//   --quick           few short rounds: to see that it works. RESULTS.md stays as it is.
//   --sample          only the first job of each part
//   --only <words>    only the jobs whose name has all these words, such as 'memory', 'keys-10k', 'speed gcra'; may be given more than once.
//                     The report takes the rest from the last runs; where something has never been run, RESULTS.md stays as it is.
//                     `--only report` measures nothing.
import { fork } from 'node:child_process'
import { availableParallelism, cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { chosenJobs, JOB_OPTIONS } from './chosen.mjs'
import { allJobs } from './jobs.mjs'
import { reportOf } from './report.mjs'
import { keep } from './results.mjs'

const { values } = parseArgs({ options: JOB_OPTIONS })
const machine = { node: process.version, cpu: cpus()[0].model, cores: availableParallelism() }

const jobs = allJobs(values.quick)

await runAll(chosenJobs(jobs, values, 'report'))
console.log(reportOf(jobs, values.quick).split('\n\n## How')[0])

/** One at a time: two would share the machine. */
async function runAll(jobs) {
  const startMs = performance.now()
  for (const [k, job] of jobs.entries()) {
    keep({ ...job, quick: values.quick, machine }, await resultOf(job))
    console.log(`${seconds(startMs)} s  ${k + 1}/${jobs.length}  ${job.name}`)
  }
}

function seconds(startMs) {
  return Math.round((performance.now() - startMs) / 1000)
    .toString()
    .padStart(4)
}

/** With `processes`, the rounds of so many of them, one after the other. */
async function resultOf(job) {
  const results = []
  for (let k = 0; k < (job.processes ?? 1); k++) results.push(await resultOfProcess(job))
  return results.length === 1 ? results[0] : inOne(results)
}

function inOne(results) {
  return Object.fromEntries(Object.keys(results[0]).map((name) => [name, speedInAll(results.map((each) => each[name]))]))
}

function speedInAll(speeds) {
  const [{ allowedShare }] = speeds
  return { ns: speeds.flatMap(({ ns }) => ns), shortestMs: Math.min(...speeds.map(({ shortestMs }) => shortestMs)), allowedShare }
}

function resultOfProcess(job) {
  const execArgv = ['--expose-gc', '--max-old-space-size=8192', ...(job.flags ?? [])]
  const child = fork(new URL('./child.mjs', import.meta.url), [JSON.stringify(job)], { execArgv })
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`${job.name} ended with code ${code}`)))
  })
}

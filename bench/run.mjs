// `npm run bench`: speed and memory of Sluice in process, beside its peers and the floor. Writes RESULTS.md.
//   --quick           few short rounds: to see that it works
//   --only <words>    only the jobs whose name has all these words, such as 'memory', 'keys-10k', 'speed gcra'; may be given more than once.
//                     The report takes the rest from the last runs. `--only report` measures nothing.
import { fork } from 'node:child_process'
import { availableParallelism, cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { allJobs } from './jobs.mjs'
import { printGoals, writeReport } from './report.mjs'
import { keep } from './results.mjs'

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false }, only: { type: 'string', multiple: true } } })
const machine = { node: process.version, cpu: cpus()[0].model, cores: availableParallelism() }

await runAll(chosen(allJobs(values.quick), values.only))
writeReport()
printGoals()

function chosen(jobs, only) {
  if (only === undefined) return jobs
  const found = jobs.filter(({ name }) => only.some((words) => words.split(' ').every((word) => name.includes(word))))
  if (found.length > 0 || only.includes('report')) return found
  console.error(`--only ${only.join(' ')}: no such job. They are:\n${jobs.map(({ name }) => name).join('\n')}`)
  process.exit(1)
}

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

function resultOf(job) {
  const execArgv = ['--expose-gc', '--max-old-space-size=8192', ...(job.flags ?? [])]
  const child = fork(new URL('./child.mjs', import.meta.url), [JSON.stringify(job)], { execArgv })
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`${job.name} ended with code ${code}`)))
  })
}

// `npm run bench:redis`: Sluice with Redis beside plain scripts and its peers, on a server of its
// own. Writes RESULTS-redis.md and its charts.
//   --quick          few short rounds: to see that it works. It is printed, and nothing is written.
//   --sample         only the first job of each part. It is printed, and nothing is written.
//   --only <words>   only the jobs whose name has all these words, such as 'bytes', 'growth entries', 'throughput gcra ioredis'; may be given more
//                    than once. It is printed, and nothing is written.
import { fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { chosenJobs, JOB_OPTIONS } from '../chosen.mjs'
import { connect } from './clients.mjs'
import { growthCharts } from './growth-report.mjs'
import { allJobs } from './jobs.mjs'
import { reportOf } from './report.mjs'
import { startServer } from './server.mjs'
import { versionsOf } from './versions.mjs'

const { values } = parseArgs({ options: JOB_OPTIONS })
const all = allJobs(values.quick).map((job) => ({ ...job, name: nameOf(job) }))
const jobs = chosenJobs(all, values)
const server = await startServer()
const { send } = await connect('node-redis', server.port)
const results = await runAll(jobs, server.port)
const report = reportOf(results, { quick: values.quick, versions: await versionsOf(send) })
server.stop()
const isWhole = jobs.length === all.length && !values.quick
if (isWhole) {
  writeFileSync(new URL('../RESULTS-redis.md', import.meta.url), report)
  for (const [file, svg] of growthCharts(results)) writeFileSync(new URL(`../${file}`, import.meta.url), svg)
}
console.log(isWhole ? report.split('\n\n## How')[0] : report)
process.exit()

function nameOf({ part, algorithm, growth, client }) {
  return [part, algorithm, growth, client].filter((word) => word !== undefined).join(' ')
}

/**
 * One at a time: two would share the server. Each finds it empty. Returns what was measured;
 * `of(which)` is one result, or undefined.
 */
async function runAll(jobs, port) {
  const startMs = performance.now()
  const done = []
  for (const job of jobs) {
    await send('FLUSHALL')
    done.push({ ...job, result: await resultOf({ ...job, port }) })
    console.log(`${`${Math.round((performance.now() - startMs) / 1000)}`.padStart(4)} s  ${done.length}/${jobs.length}  ${job.name}`)
  }
  const of = (which) => done.find((job) => Object.entries(which).every(([name, value]) => job[name] === value))?.result
  return { done, of }
}

function resultOf(job) {
  const argument = JSON.stringify({ ...job, part: `redis/${job.part}` })
  const child = fork(new URL('../child.mjs', import.meta.url), [argument], { execArgv: ['--expose-gc'] })
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`${job.name} ended with code ${code}`)))
  })
}

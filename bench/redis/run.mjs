// `npm run bench:redis`: Sluice with Redis beside its peers and the floors, on a server of its own. Writes RESULTS-redis.md.
//   --quick         few short rounds: to see that it works
//   --only <part>   only this part: throughput, latency, denied or bytes. It is printed, and RESULTS-redis.md stays as it is.
import { fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { connect } from './clients.mjs'
import { allJobs } from './jobs.mjs'
import { reportOf } from './report.mjs'
import { startServer } from './server.mjs'
import { versionsOf } from './versions.mjs'

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } } })
const jobs = chosen(allJobs(values.quick), values.only)
const server = await startServer()
const { send } = await connect('node-redis', server.port)
const report = reportOf(await runAll(jobs, server.port), { quick: values.quick, versions: await versionsOf(send) })
server.stop()
if (values.only === undefined) writeFileSync(new URL('../RESULTS-redis.md', import.meta.url), report)
console.log(values.only === undefined ? report.split('\n\n## How')[0] : report)
process.exit()

function chosen(jobs, only) {
  const found = only === undefined ? jobs : jobs.filter(({ part }) => part === only)
  if (found.length > 0) return found
  console.error(`--only ${only}: no such part. They are: ${[...new Set(jobs.map(({ part }) => part))].join(', ')}`)
  process.exit(1)
}

/** One at a time: two would share the server. Each finds it empty. Returns what was measured; `of(part, client)` is one result, or undefined. */
async function runAll(jobs, port) {
  const startMs = performance.now()
  const done = []
  for (const job of jobs) {
    await send('FLUSHALL')
    done.push({ ...job, result: await resultOf({ ...job, port }) })
    console.log(`${`${Math.round((performance.now() - startMs) / 1000)}`.padStart(4)} s  ${done.length}/${jobs.length}  ${nameOf(job)}`)
  }
  return { done, of: (part, client) => done.find((job) => job.part === part && (client === undefined || job.client === client))?.result }
}

function resultOf(job) {
  const argument = JSON.stringify({ ...job, part: `redis/${job.part}` })
  const child = fork(new URL('../child.mjs', import.meta.url), [argument], { execArgv: ['--expose-gc'] })
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`${nameOf(job)} ended with code ${code}`)))
  })
}

function nameOf({ part, client }) {
  return `${part} on ${client}`
}

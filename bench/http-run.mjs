// `npm run bench:http`: what a limiter adds to a request, ours beside the framework's usual one.
// Writes RESULTS-http.md.
//   --quick           few short rounds: to see that it works. RESULTS-http.md stays as it is.
//   --only <words>    only the jobs whose name has all these words, such as 'express', 'hono sockets', 'refused'
//   --against <commit> instead: the package of an older commit beside this one. RESULTS-http.md
//   stays as it is.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { availableParallelism, cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { CONTESTANTS, FRAMEWORKS, SCENARIOS, VERSIONS } from './http-apps.mjs'
import { goalLines, ratioLine, writeHttpReport } from './http-report.mjs'
import { builtFrom } from './older.mjs'

const MODES = ['in process', 'sockets']
const SOCKETS = 16
/**
 * Processes differ, by where the compiler's code and the data come to lie: each job is measured in
 * several, each with another contestant first. In process the limiters are closest together, and a
 * round is short.
 */
const PROCESSES = { 'in process': 8, sockets: 4 }
const ROUNDS = { 'in process': 120, sockets: 30 }
/**
 * Room for the garbage of a round, which is swept before the next: otherwise it falls on the
 * contestant that happens to run.
 */
const CHILD_FLAGS = ['--expose-gc', '--min-semi-space-size=32', '--max-semi-space-size=32']

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string' }, against: { type: 'string' } },
})
const versions = values.against === undefined ? { contestants: CONTESTANTS } : { contestants: VERSIONS, older: builtFrom(values.against) }
const length = values.quick ? { calls: 300, warmUpCalls: 2_000 } : { calls: 300, warmUpCalls: 15_000 }

const jobs = Object.keys(FRAMEWORKS).flatMap((framework) =>
  MODES.flatMap((mode) =>
    Object.keys(SCENARIOS).map((scenario) => {
      const name = `${framework} ${mode} ${scenario}`
      return {
        name,
        framework,
        mode,
        scenario,
        processes: values.quick ? 1 : PROCESSES[mode],
        rounds: values.quick ? 5 : ROUNDS[mode],
        ...length,
        ...versions,
      }
    }),
  ),
)
const chosen = jobs.filter(({ name }) => (values.only ?? '').split(' ').every((word) => name.includes(word)))

const results = []
for (const job of chosen) {
  results.push({ ...job, measured: await measuredBy(job) })
  console.log(values.against === undefined ? goalLines([results.at(-1)]).join('\n') : ratioLine(results.at(-1)))
}
const machine = { node: process.version, cpu: cpus()[0].model, cores: availableParallelism() }
if (values.only === undefined && values.against === undefined && !values.quick) writeHttpReport(results, machine, SOCKETS)
process.exit()

/**
 * Process by process, for each contestant, the microseconds of processor time that one request
 * took, round by round.
 */
async function measuredBy(job) {
  const measured = []
  for (let first = 0; first < job.processes; first++) measured.push(await measuredInOneProcess({ ...job, first }))
  return measured
}

async function measuredInOneProcess(job) {
  const child = fork(new URL('./http-child.mjs', import.meta.url), [JSON.stringify(job)], { execArgv: CHILD_FLAGS })
  const [message] = await once(child, 'message')
  if (job.mode === 'in process') return message.measured
  const clients = await Promise.all(message.ports.map((port) => clientOf(port)))
  const cpuUs = async (text) => {
    child.send(text)
    const [{ cpuUs }] = await once(child, 'message')
    return cpuUs
  }
  for (let turn = 0; turn < clients.length; turn++) await clients[(job.first + turn) % clients.length](job.warmUpCalls)
  const measured = clients.map(() => [])
  for (let round = 0; round < job.rounds; round++) {
    for (let turn = 0; turn < clients.length; turn++) {
      const at = (round + turn) % clients.length
      const before = await cpuUs('sweep')
      await clients[at](job.calls)
      measured[at].push(((await cpuUs('now')) - before) / job.calls)
    }
  }
  child.kill()
  return measured
}

/**
 * So many requests over a few connections that stay open, one at a time on each. It only counts
 * answers: its own time is not counted.
 */
async function clientOf(port) {
  const request = `GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`
  const sockets = await Promise.all(
    Array.from({ length: SOCKETS }, async () => {
      const socket = connect(port, '127.0.0.1')
      socket.setNoDelay(true).setEncoding('latin1')
      await once(socket, 'connect')
      return socket
    }),
  )
  return (calls) =>
    new Promise((resolve) => {
      let asked = 0
      let answered = 0
      const ask = (socket) => {
        if (asked++ < calls) socket.write(request)
      }
      for (const socket of sockets) {
        socket.removeAllListeners('data')
        socket.on('data', (text) => {
          for (let at = text.indexOf('HTTP/1.1 '); at >= 0; at = text.indexOf('HTTP/1.1 ', at + 9)) {
            if (++answered === calls) resolve()
            ask(socket)
          }
        })
        ask(socket)
      }
    })
}

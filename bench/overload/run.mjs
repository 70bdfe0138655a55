// A real HTTP server at five times its capacity, with clients that give up after a second: without
// a limit, with knee, and with what others have.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { table } from '../tables.mjs'
import { closed, open } from './client.mjs'

const isQuick = process.argv.includes('--quick')
const [WARM_MS, FOR_MS, CAPACITY_MS] = isQuick ? [2_000, 2_000, 500] : [10_000, 20_000, 2_000]
const TIMES = 5
/** What either bottleneck can do at most, a second. */
const NOMINAL = 100
const GOAL = 0.8
const BOTTLENECKS = { pool: 'five connections of 50 ms', cpu: '10 ms of work on the one thread' }
const PROTECTIONS = ['none', 'knee', 'vegas', '@fastify/under-pressure', 'overload-protection']
const file = fileURLToPath(new URL('./server.mjs', import.meta.url))

async function withServer(bottleneck, protection, use) {
  const child = spawn(process.execPath, [file, bottleneck, protection], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [line] = await once(createInterface({ input: child.stdout }), 'line')
    return await use(JSON.parse(line).port)
  } finally {
    child.kill('SIGKILL')
  }
}

async function measured(bottleneck) {
  const rows = []
  const capacities = []
  for (const protection of PROTECTIONS) {
    // Before each of them, because a machine with other work has less to give at times.
    capacities.push(await withServer(bottleneck, 'none', (port) => closed(port, 10, CAPACITY_MS)))
    const result = await withServer(bottleneck, protection, (port) => open(port, TIMES * NOMINAL, WARM_MS, FOR_MS))
    rows.push({ protection, ...result })
    console.log(`${bottleneck} ${protection}: ${result.goodput.toFixed(1)} a second, of ${capacities.at(-1)?.toFixed(1)}`)
  }
  const capacity = Math.max(...capacities)
  return rows.map((row) => ({ ...row, share: row.goodput / capacity }))
}

const percent = (share) => `${Math.round(100 * share)} %`

function section(bottleneck, rows) {
  const lines = rows.map(({ protection, share, p99Ms, refused, gone }) => [
    protection,
    share.toFixed(2),
    Number.isNaN(p99Ms) ? '' : `${Math.round(p99Ms)} ms`,
    percent(refused),
    percent(gone),
  ])
  return `## ${BOTTLENECKS[bottleneck]}\n\n${table(['protection', 'goodput by capacity', 'p99 of those', 'refused', 'gave up'], lines)}\n`
}

const sections = []
let isGood = true
for (const bottleneck of Object.keys(BOTTLENECKS)) {
  const rows = await measured(bottleneck)
  sections.push(section(bottleneck, rows))
  isGood &&= rows.find(({ protection }) => protection === 'knee').share >= GOAL
}

const text = `# A server at ${TIMES} times its capacity

\`npm run bench:overload\`: ${TIMES * NOMINAL} requests a second to a server that can do ${NOMINAL} at most, from clients that give up after a second, after ${WARM_MS / 1000} s for ${FOR_MS / 1000} s. Goodput
is what was answered in time, by the most that ten patient clients were answered. knee and vegas move a limit of \`concurrency\`, with the middleware of \`sluice/node\` before the handler. The goal, ${GOAL} of capacity with knee, was ${isGood ? 'met' : 'missed'}.
${cpus()[0]?.model ?? 'unknown'}, ${availableParallelism()} cores, Node ${process.version}, ${new Date().toISOString().slice(0, 10)}.

${sections.join('\n')}`
console.log(`\n${text}`)
if (!isQuick) writeFileSync(new URL('../RESULTS-overload.md', import.meta.url), text)

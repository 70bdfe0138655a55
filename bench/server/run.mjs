// The service beside bare node:http, in interleaved rounds, and how long it takes to start.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { spreadOf } from '../statistics.mjs'
import { spread, table } from '../tables.mjs'
import { answersPerSecond } from './client.mjs'

const GOALS = { single: 0.6, batch: 15, startMs: 1000 }
const BATCH = 100
const isQuick = process.argv.includes('--quick')
const ROUNDS = isQuick ? 3 : 15
const ROUND_MS = isQuick ? 300 : 1000
const STARTS = isQuick ? 3 : 9

const main = fileURLToPath(new URL('../../server/dist/server/src/main.js', import.meta.url))
const bareServer = fileURLToPath(new URL('./bare.mjs', import.meta.url))
const SERVE = [main, 'serve', '--port', '0', '--grpc-port', '0']

const question = { limiter: 'api', key: 'user:42' }
const questions = { decisions: Array(BATCH).fill(question) }

/** Resolves with the port when the process says it. */
async function started(args) {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  return { port: JSON.parse(line).httpPort, stop: () => child.kill('SIGKILL') }
}

async function startMs() {
  const fromMs = performance.now()
  const { port, stop } = await started(SERVE)
  await (await fetch(`http://127.0.0.1:${port}/healthz`)).text()
  const ms = performance.now() - fromMs
  stop()
  return ms
}

async function measured() {
  const [bare, service] = [await started([bareServer]), await started(SERVE)]
  const rounds = []
  try {
    // The first round is not counted: by its end the code is compiled for its use.
    for (let k = 0; k <= ROUNDS; k++) {
      const bareRate = await answersPerSecond(bare.port, '/', question, ROUND_MS)
      const single = await answersPerSecond(service.port, '/v1/decide', question, ROUND_MS)
      const batch = BATCH * (await answersPerSecond(service.port, '/v1/decide', questions, ROUND_MS))
      if (k > 0) rounds.push({ bare: bareRate, single, batch })
    }
  } finally {
    bare.stop()
    service.stop()
  }
  return rounds
}

const rounds = await measured()
const starts = []
for (let k = 0; k < STARTS; k++) starts.push(await startMs())
const ratios = {
  single: spreadOf(rounds.map(({ single, bare }) => single / bare)),
  batch: spreadOf(rounds.map(({ batch, single }) => batch / single)),
  start: spreadOf(starts),
}

function goal(title, target, figures, isReached) {
  return [title, target, spread(figures), isReached(figures.median) ? 'reached' : '**not reached**']
}

const goals = [
  goal('single decisions/s, to bare node:http', `at least ${GOALS.single}`, ratios.single, (ratio) => ratio >= GOALS.single),
  goal(`decisions/s in batches of ${BATCH}, to single ones`, `at least ${GOALS.batch}`, ratios.batch, (ratio) => ratio >= GOALS.batch),
  goal('milliseconds from start to the first answer, built', `below ${GOALS.startMs}`, ratios.start, (ms) => ms < GOALS.startMs),
]
const speeds = [
  ['bare node:http, answers', ({ bare }) => bare],
  ['single decisions', ({ single }) => single],
  [`decisions in batches of ${BATCH}`, ({ batch }) => batch],
].map(([what, rateOf]) => [what, spread(spreadOf(rounds.map((round) => rateOf(round) / 1000)))])

const report = `# Results of \`npm run bench:server\`

Written by the bench, not by hand. Node ${process.version}, ${cpus()[0].model}, ${availableParallelism()} cores. Medians of ${ROUNDS} rounds of ${ROUND_MS} ms that take turns, and of
${STARTS} starts; quartiles in parentheses. Ratios are taken within each round.

## Goals

${table(['goal', 'target', 'is', ''], goals, '---')}

## Speed

${table(['', 'thousand/s'], speeds)}

The service is built, in memory, with its sample configuration, in a process of its own; so is the bare server, which parses the same JSON and
echoes it (\`server/bare.mjs\`). Questions come over connections that stay open, from this process (\`server/client.mjs\`).
`
console.log(report)
if (!isQuick) writeFileSync(new URL('../RESULTS-server.md', import.meta.url), report)

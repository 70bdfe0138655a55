// The service beside bare node:http, in interleaved rounds, and how long it takes to start.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { spreadOf } from '../statistics.mjs'
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

function line(what, { median, low, high }, digits, goal) {
  return `${what.padEnd(48)} ${median.toFixed(digits).padStart(9)}  (${low.toFixed(digits)} to ${high.toFixed(digits)})${goal ?? ''}`
}

const reached = (isReached, goal) => `  goal ${goal}: ${isReached ? 'reached' : 'MISSED'}`

const rounds = await measured()
const starts = []
for (let k = 0; k < STARTS; k++) starts.push(await startMs())
const single = spreadOf(rounds.map((round) => round.single / round.bare))
const batch = spreadOf(rounds.map((round) => round.batch / round.single))
const start = spreadOf(starts)
console.log(`median (quartiles) of ${ROUNDS} interleaved rounds, Node ${process.version}`)
console.log(line('bare node:http, answers/s', spreadOf(rounds.map((round) => round.bare)), 0))
console.log(line('single decisions/s', spreadOf(rounds.map((round) => round.single)), 0))
console.log(line(`decisions/s in batches of ${BATCH}`, spreadOf(rounds.map((round) => round.batch)), 0))
console.log(line('single against bare', single, 2, reached(single.median >= GOALS.single, `at least ${GOALS.single}`)))
console.log(line('batch against single', batch, 1, reached(batch.median >= GOALS.batch, `at least ${GOALS.batch}`)))
console.log(line('start to first answer, ms', start, 0, reached(start.median < GOALS.startMs, `below ${GOALS.startMs}`)))

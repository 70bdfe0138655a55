// One judge with a Redis of its own. Both are killed and started anew when a mutant never ends,
// with all that the tests have started.
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { grouped, IN_ITS_OWN_GROUP } from './group.mjs'

const JUDGE = fileURLToPath(new URL('judge.mjs', import.meta.url))
const MEMORY_MB = 1_024
const POLL_MS = 100
/** The unit of /proc. */
const TICK_MS = 10
/**
 * A job that does not compute so much within so long waits for something that never comes: no test
 * waits for as long.
 */
const ACTIVE_MS = 50
const MOST_IDLE_MS = 8_000

export class Worker {
  #root
  /** The folder of both, for what the tests leave behind too. */
  #folder
  #redis
  #judge

  /** `root` is the copy of the project whose tests are run. */
  constructor(root) {
    this.#root = root
    process.once('exit', () => {
      this.#judge?.kill()
      this.#redis?.kill()
      this.#clear()
    })
  }

  /**
   * Runs a job (see judge.mjs) and answers { status, test, message, ms }: how long it has computed.
   */
  async judge(job, limitMs) {
    if (this.#judge === undefined) await this.#start()
    const answer = await answerOf(this.#judge.leader, this.#redis.leader, job, limitMs)
    if (answer.status === 'timed out' || answer.status === 'crashed') await this.stop()
    return answer
  }

  async #start() {
    this.#folder = mkdtempSync(join(tmpdir(), 'sluice-proof-judge-'))
    const port = await freePort()
    this.#redis = grouped(startRedis(port, this.#folder))
    await untilReady(this.#redis.leader)
    const judge = fork(JUDGE, [this.#root, `${port}`], {
      ...IN_ITS_OWN_GROUP,
      execArgv: [`--max-old-space-size=${MEMORY_MB}`],
      stdio: 'ignore',
      env: { ...process.env, TMPDIR: this.#folder },
    })
    this.#judge = grouped(judge, this.#folder)
    const [first] = await Promise.race([once(judge, 'message'), once(judge, 'exit')])
    if (!first?.ready) throw new Error(`the judge could not be started: it ended with ${first}`)
  }

  /** Both are known until they have ended: this process may have to end meanwhile. */
  async stop() {
    await this.#judge?.end()
    await this.#redis?.end()
    this.#clear()
    this.#judge = undefined
    this.#redis = undefined
  }

  #clear() {
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
    this.#folder = undefined
  }
}

/**
 * Others may use the machine too, so that the time that judge and Redis have computed is what
 * counts. One that computes nothing any more waits for ever.
 */
function answerOf(judge, redis, job, limitMs) {
  const computedMs = () => processMs(judge.pid) + processMs(redis.pid) || performance.now()
  const beforeMs = computedMs()
  let active = { atMs: performance.now(), computedMs: beforeMs }
  const isOver = () => {
    const now = { atMs: performance.now(), computedMs: computedMs() }
    if (now.computedMs - active.computedMs >= ACTIVE_MS) active = now
    return now.computedMs - beforeMs > limitMs || now.atMs - active.atMs > MOST_IDLE_MS
  }
  return new Promise((resolve) => {
    const done = (answer) => {
      clearInterval(timer)
      judge.removeAllListeners()
      resolve({ ...answer, ms: computedMs() - beforeMs })
    }
    const timer = setInterval(() => isOver() && done({ status: 'timed out' }), POLL_MS)
    judge.once('message', done)
    judge.once('exit', () => done({ status: 'crashed' }))
    judge.send(job)
  })
}

/** How long a process has computed so far; 0 where the system does not tell. */
function processMs(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS
  } catch {
    return 0
  }
}

function startRedis(port, folder) {
  const options = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder]
  const server = spawn('redis-server', options, IN_ITS_OWN_GROUP)
  server.once('error', () => {
    throw new Error('redis-server could not be started: `npm test` installs it')
  })
  return server
}

async function untilReady(server) {
  for await (const chunk of server.stdout) {
    if (`${chunk}`.includes('Ready to accept connections')) break
  }
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  return port
}

// One judge with a Redis of its own. Both are killed and started anew when a mutant never ends.
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

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
  #redis
  #judge

  /** `root` is the copy of the project whose tests are run. */
  constructor(root) {
    this.#root = root
    // Neither an endless loop nor a Redis ends by itself when this process does.
    process.once('exit', () => {
      this.#judge?.kill('SIGKILL')
      this.#redis?.server.kill('SIGKILL')
      if (this.#redis !== undefined) rmSync(this.#redis.folder, { recursive: true, force: true })
    })
  }

  /**
   * Runs a job (see judge.mjs) and answers { status, test, message, ms }: how long it has computed.
   */
  async judge(job, limitMs) {
    this.#judge ??= await this.#start()
    const answer = await answerOf(this.#judge, this.#redis.server, job, limitMs)
    if (answer.status === 'timed out' || answer.status === 'crashed') await this.stop()
    return answer
  }

  async #start() {
    this.#redis = await startRedis()
    const judge = fork(JUDGE, [this.#root, `${this.#redis.port}`], { execArgv: [`--max-old-space-size=${MEMORY_MB}`], stdio: 'ignore' })
    const [first] = await Promise.race([once(judge, 'message'), once(judge, 'exit')])
    if (!first?.ready) throw new Error(`the judge could not be started: it ended with ${first}`)
    return judge
  }

  /** Both are known until they have ended: this process may have to end meanwhile. */
  async stop() {
    await killed(this.#judge)
    await killed(this.#redis?.server)
    if (this.#redis !== undefined) rmSync(this.#redis.folder, { recursive: true, force: true })
    this.#judge = undefined
    this.#redis = undefined
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

/** A Redis in an endless script listens to nothing else. */
async function killed(child) {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

async function startRedis() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-proof-redis-'))
  const port = await freePort()
  const server = spawn('redis-server', ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder])
  server.once('error', () => {
    throw new Error('redis-server could not be started: `npm test` installs it')
  })
  for await (const chunk of server.stdout) {
    if (`${chunk}`.includes('Ready to accept connections')) break
  }
  return { folder, port, server }
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  return port
}

// One judge with a Redis of its own. Both are killed and started anew when a mutant never ends.
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const JUDGE = fileURLToPath(new URL('judge.mjs', import.meta.url))
const MEMORY_MB = 1_024

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

  /** Runs a job (see judge.mjs) and answers { status, test, message, ms }. */
  async judge(job, limitMs) {
    this.#judge ??= await this.#start()
    const startedMs = performance.now()
    const answer = await answerOf(this.#judge, job, limitMs)
    if (answer.status === 'timed out' || answer.status === 'crashed') await this.stop()
    return { ...answer, ms: performance.now() - startedMs }
  }

  async #start() {
    this.#redis = await startRedis()
    const judge = fork(JUDGE, [this.#root, `${this.#redis.port}`], { execArgv: [`--max-old-space-size=${MEMORY_MB}`], stdio: 'ignore' })
    const [first] = await Promise.race([once(judge, 'message'), once(judge, 'exit')])
    if (!first?.ready) throw new Error(`the judge could not be started: it ended with ${first}`)
    return judge
  }

  async stop() {
    const [judge, redis] = [this.#judge, this.#redis]
    this.#judge = undefined
    this.#redis = undefined
    await killed(judge)
    await killed(redis?.server)
    if (redis !== undefined) rmSync(redis.folder, { recursive: true, force: true })
  }
}

function answerOf(judge, job, limitMs) {
  return new Promise((resolve) => {
    const done = (answer) => {
      clearTimeout(timer)
      judge.removeAllListeners()
      resolve(answer)
    }
    const timer = setTimeout(() => done({ status: 'timed out' }), limitMs)
    judge.once('message', done)
    judge.once('exit', () => done({ status: 'crashed' }))
    judge.send(job)
  })
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

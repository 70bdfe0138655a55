/**
 * Processes that are killed and stopped while they hold permits: by the server's time never more
 * are held than there are places. (Of redis-semaphore one caller whose clock is a lease ahead
 * throws out every holder.)
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { expect, inject, test } from 'vitest'
import { concurrency, createLimiter } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { isScript, startProxy } from '../support/fault-proxy.ts'
import { connectRedis } from '../support/redis-client.ts'
import { until } from '../support/redis-servers.ts'
import { holdsOf, mostHeld } from './swept.ts'

const MAX = 3
const LEASE_MS = 400
const PROCESSES = 8
/** The first of those whose replies are lost at times. */
const SHAKY_FROM = 6
/** Few: what was taken unanswered is free after a lease, and a place in line after a second. */
const LOST_REPLIES = 6
const JOBS = 25
const HOUR_MS = 3_600_000

test('eight processes with wall clocks an hour apart, some killed, some stopped for three leases, some that lose replies, never hold more than three', async () => {
  const port = inject('redisPort')
  const prefix = `permits-${randomUUID()}`
  const redis = await connectRedis(port)
  // The server has done it, and nobody is told.
  const proxy = await startProxy(port)
  let scripts = 0
  const isStruck = (command: readonly string[]) => isScript(command) && ++scripts % 60 === 0 && scripts <= 60 * LOST_REPLIES
  proxy.strike((command) => (isStruck(command) ? { cut: 'reply', afterBytes: 0 } : undefined))
  const task = { port, prefix, max: MAX, leaseMs: LEASE_MS, jobs: JOBS }
  const children = Array.from({ length: PROCESSES }, (_, k) =>
    fork(new URL('./holder.process.mjs', import.meta.url), [
      JSON.stringify({ ...task, storePort: k < SHAKY_FROM ? port : proxy.port, skewMs: (k - 4) * HOUR_MS }),
    ]),
  )
  const ended = children.map((child) => new Promise<void>((resolve) => child.once('exit', () => resolve())))
  const noted = async () =>
    ((await redis.send(['LRANGE', `${prefix}:held`, '0', '-1'])) as string[]).map((line) => line.split(' ').map(Number))
  const serverUs = async () => {
    const [seconds, micros] = (await redis.send(['TIME'])) as [string, string]
    return Number(seconds) * 1_000_000 + Number(micros)
  }
  try {
    await Promise.all(children.map((child) => new Promise((resolve) => child.once('message', resolve))))
    for (const child of children) child.send('go')
    const [killed, alsoKilled, stopped, alsoStopped] = children as [ChildProcess, ChildProcess, ChildProcess, ChildProcess]
    await until(async () => (await noted()).length > 20)
    killed.kill('SIGKILL')
    stopped.kill('SIGSTOP')
    const atStop = (await noted()).length
    await until(async () => (await noted()).length > atStop + 40)
    alsoKilled.kill('SIGKILL')
    alsoStopped.kill('SIGSTOP')
    // Others go on meanwhile: a dead or stopped holder keeps its place for one lease at most.
    const stoppedUs = await serverUs()
    await until(async () => (await serverUs()) > stoppedUs + 3 * LEASE_MS * 1000)
    stopped.kill('SIGCONT')
    alsoStopped.kill('SIGCONT')
    await Promise.all(ended)
    const times = await noted()
    // Each permit was held for certain from its token, which is a time, to the last note of it.
    const holds = holdsOf(times as [number, number][])
    const most = mostHeld(holds)
    expect(most).toBeLessThanOrEqual(MAX)
    // Those that were neither killed nor stopped did all they had to.
    expect(holds.size).toBeGreaterThanOrEqual(2 * JOBS)
    console.log(`${holds.size} permits, ${proxy.struck} replies lost, up to ${most} at once`)
    expect(proxy.struck).toBe(LOST_REPLIES)
    // All that there are come back, whatever became of their holders, and can be held at once.
    const heir = createLimiter(concurrency({ max: MAX, lease: '60s' }), {
      name: 'jobs',
      store: redisStore(redis, { prefix }),
      storeTimeoutMs: Number.POSITIVE_INFINITY,
    })
    const all = await Promise.all(Array.from({ length: MAX }, () => heir.acquire('key')))
    expect((await heir.consume('key')).allowed).toBe(false)
    await Promise.all(all.map((permit) => permit.release()))
    heir.close()
  } finally {
    for (const child of children) child.kill('SIGKILL')
    redis.close()
    await proxy.close()
  }
}, 120_000)

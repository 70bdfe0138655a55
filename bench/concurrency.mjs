// What runs at once: Sluice beside p-limit, p-queue, cockatiel, bottleneck and async-sema, each in
// a process of its own, and beside redis-semaphore on a Redis of its own. CPU time, because it is
// disturbed least, in rounds that the contestants take in turn. Writes RESULTS-concurrency.md.
import { fork, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { Semaphore } from 'redis-semaphore'
import { concurrency, createLimiter } from '../dist/index.js'
import { redisStore } from '../dist/stores/redis/index.js'
import { cpuNs, NAMES } from './concurrency-peers.mjs'
import { spreadOf } from './statistics.mjs'
import { spread } from './tables.mjs'

const isQuick = process.argv.includes('--quick')
const ROUNDS = isQuick ? 2 : 9
/** Rounds that are not counted: by then the code is compiled. */
const WARM_UP = isQuick ? 1 : 8
const JOBS = isQuick ? 1_000 : 20_000
const lines = []

/** A contestant in a process of its own, which answers with the CPU time of each round. */
async function started(name) {
  const child = fork(new URL('./concurrency-peers.mjs', import.meta.url), [name], { execArgv: ['--expose-gc'] })
  const answer = () =>
    new Promise((resolve, reject) => {
      child.once('message', resolve)
      child.once('exit', (code) => reject(new Error(`${name} ended with code ${code}`)))
    })
  await answer()
  return {
    round: (kind, jobs) => {
      child.send({ kind, jobs })
      return answer()
    },
    stop: () => {
      child.removeAllListeners('exit')
      child.kill()
    },
  }
}

/** What each took in every round: the contestants take turns. The first rounds warm up. */
async function inProcesses(names, kind, jobsOf) {
  const children = new Map(await Promise.all(names.map(async (name) => [name, await started(name)])))
  const took = new Map(names.map((name) => [name, []]))
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    for (const [name, child] of children) {
      const ns = await child.round(kind, jobsOf(name))
      if (round >= 0) took.get(name).push(ns)
    }
  }
  for (const child of children.values()) child.stop()
  return took
}

/** Median with quartiles; the ratios are taken within each round. */
function table(title, took, unit) {
  const ours = took.get('sluice')
  lines.push(`## ${title}`, '', `| who | ${unit} | to Sluice's |`, '| --- | --- | --- |')
  for (const [name, each] of took) {
    lines.push(`| ${name} | ${spread(spreadOf(each))} | ${spread(spreadOf(each.map((value, round) => value / ours[round])))} |`)
  }
  lines.push('')
}

/** Enough for a round of 100 ms. Bottleneck takes some hundred times as long. */
const jobsAlone = (name) => (name === 'bottleneck' ? JOBS / 20 : 10 * JOBS)

async function nobodyWaits() {
  table('run, nobody waits', await inProcesses(NAMES, 'alone', jobsAlone), 'CPU ns a job')
}

async function tenAtOnce() {
  const names = NAMES.filter((name) => name !== 'bottleneck')
  const took = await inProcesses(names, 'together', () => JOBS)
  table(`run, 10 at once, ${JOBS.toLocaleString('en')} jobs that all wait`, took, 'CPU ns a job')
}

async function aborted() {
  const least = new Map()
  for (const waiters of isQuick ? [1_000] : [10_000, 100_000]) {
    let ns = Number.POSITIVE_INFINITY
    for (let round = 0; round < 3; round++) {
      const limiter = createLimiter(concurrency({ max: 1 }), { maxQueue: waiters, maxWaiting: waiters })
      const held = limiter.consume('key')
      const controller = new AbortController()
      const waits = Array.from({ length: waiters }, () => limiter.acquire('key', { signal: controller.signal }).catch(() => undefined))
      await new Promise((resolve) => setImmediate(resolve))
      ns = Math.min(
        ns,
        await cpuNs(waiters, () => {
          controller.abort()
        }),
      )
      await Promise.all(waits)
      held.release()
    }
    least.set(`${waiters.toLocaleString('en')} waiters`, ns)
  }
  lines.push('## Waiters on one signal that aborts', '', '| how many | CPU ns each |', '| --- | --- |')
  for (const [name, ns] of least) lines.push(`| ${name} | ${ns.toFixed(0)} |`)
  lines.push('')
}

// On a Redis of its own.

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function serverFigures(redis) {
  const text = await redis.info()
  const number = (name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1])
  const calls = [...(await redis.info('commandstats')).matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce(
    (sum, [, each]) => sum + Number(each),
    0,
  )
  return { cpuUs: (number('used_cpu_user') + number('used_cpu_sys')) * 1_000_000, scripts: calls }
}

/** Keeps so many pairs of take and release under way. */
async function pairs(count, inFlight, takeAndRelease) {
  let next = 0
  const worker = async () => {
    while (next < count) await takeAndRelease(`key ${next++ % 10_000}`)
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
}

async function onRedis(port) {
  const [redis, other] = [new Redis(port), await createClient({ socket: { host: '127.0.0.1', port } }).connect()]
  const limiter = createLimiter(concurrency({ max: 5, lease: '30s' }), { name: 'bench', store: redisStore(other) })
  const contestants = {
    sluice: async (key) => (await limiter.consume(key)).release(),
    'redis-semaphore': async (key) => {
      const semaphore = new Semaphore(redis, key, 5, { lockTimeout: 30_000 })
      await semaphore.acquire()
      await semaphore.release()
    },
  }
  const count = isQuick ? 500 : 20_000
  const names = Object.keys(contestants)
  const [wall, server] = [new Map(names.map((name) => [name, []])), new Map(names.map((name) => [name, []]))]
  for (let round = -1; round < ROUNDS; round++) {
    for (const name of names) {
      const before = await serverFigures(redis)
      const startMs = performance.now()
      await pairs(count, 256, contestants[name])
      const us = (performance.now() - startMs) * 1000
      const { cpuUs } = await serverFigures(redis)
      if (round < 0) continue
      wall.get(name).push(us / count)
      server.get(name).push((cpuUs - before.cpuUs) / count)
    }
  }
  table('Redis, take and release, 256 in flight, 10,000 keys: time', wall, 'µs a pair')
  table('Redis, take and release, 256 in flight, 10,000 keys: CPU of the server', server, 'µs a pair')
  await waiters(redis, port)
  await renewals(redis, other)
  redis.disconnect()
  other.destroy()
}

/** 25 waiters of each of four connections for one place, which each holds for 20 ms. */
async function waiters(redis, port) {
  const clients = await Promise.all(Array.from({ length: 4 }, () => createClient({ socket: { host: '127.0.0.1', port } }).connect()))
  const limiters = clients.map((client) =>
    createLimiter(concurrency({ max: 1, lease: '30s' }), { name: 'line', store: redisStore(client) }),
  )
  const before = await serverFigures(redis)
  const startMs = performance.now()
  const each = isQuick ? 3 : 25
  const work = () => new Promise((resolve) => setTimeout(resolve, 20))
  await Promise.all(limiters.flatMap((limiter) => Array.from({ length: each }, () => limiter.run('one', work))))
  const seconds = (performance.now() - startMs) / 1000
  const scripts = (await serverFigures(redis)).scripts - before.scripts
  lines.push(
    '## Redis, 100 waiters on one place, 4 processes',
    '',
    `${(scripts / seconds).toFixed(0)} scripts a second; ${((seconds * 1000) / (4 * each) - 20).toFixed(1)} ms from one holder to the next. By its source redis-semaphore polls every 10 ms for each waiter: 10,000 a second.`,
    '',
  )
  for (const client of clients) client.destroy()
}

/** Leases of 3 s, so that one round is a second apart; of 30 s the share is a tenth. */
async function renewals(redis, client) {
  const count = isQuick ? 500 : 10_000
  for (const keys of [100, count]) {
    const limiter = createLimiter(concurrency({ max: 1_000, lease: '3s' }), { name: `renewed-${keys}`, store: redisStore(client) })
    const held = await Promise.all(Array.from({ length: count }, (_, k) => limiter.consume(`key ${k % keys}`)))
    const [before, cpu, startMs] = [await serverFigures(redis), process.cpuUsage(), performance.now()]
    await new Promise((resolve) => setTimeout(resolve, isQuick ? 1_000 : 6_000))
    const us = (performance.now() - startMs) * 1000
    const { user, system } = process.cpuUsage(cpu)
    const server = (await serverFigures(redis)).cpuUs - before.cpuUs
    const lost = held.filter((permit) => !permit.held).length
    const share = (cpuUs) => `${((cpuUs / us) * 10).toFixed(2)} %`
    if (keys === 100)
      lines.push(
        `## Redis, ${count.toLocaleString('en')} held leases of 30 s`,
        '',
        '| on keys | CPU of this process | CPU of the server | lost |',
        '| --- | --- | --- | --- |',
      )
    lines.push(`| ${keys.toLocaleString('en')} | ${share(user + system)} of a core | ${share(server)} of a core | ${lost} |`)
    await Promise.all(held.map((permit) => permit.release()))
  }
  lines.push('')
}

await nobodyWaits()
await tenAtOnce()
await aborted()
const port = await freePort()
const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
const server = spawn('redis-server', ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--dir', folder], { stdio: 'ignore' })
try {
  await onRedis(port)
} finally {
  server.kill()
  rmSync(folder, { recursive: true, force: true })
}

const head = [
  '# What runs at once',
  '',
  `\`npm run bench:concurrency\`, Node ${process.version}, ${cpus().length} cores, ${new Date().toISOString().slice(0, 10)}. ${ROUNDS} rounds, the contestants in turn, in memory each in a process of its own: medians with their quartiles, ratios taken within each round. Ratios above 1 are slower than Sluice.`,
  '',
]
const text = [...head, ...lines].join('\n')
console.log(text)
if (!isQuick) writeFileSync(new URL('./RESULTS-concurrency.md', import.meta.url), `${text.trim()}\n`)
process.exit(0)

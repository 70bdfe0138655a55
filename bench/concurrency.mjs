// What runs at once: Sluice beside p-limit, p-queue, cockatiel, bottleneck and async-sema in one
// process, and beside redis-semaphore on a Redis of its own. CPU time, because it is disturbed
// least: each figure is the least of some rounds that the contestants take in turn. Writes
// RESULTS-concurrency.md.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sema } from 'async-sema'
import Bottleneck from 'bottleneck'
import { bulkhead } from 'cockatiel'
import { Redis } from 'ioredis'
import pLimit from 'p-limit'
import PQueue from 'p-queue'
import { createClient } from 'redis'
import { Semaphore } from 'redis-semaphore'
import { concurrency, createLimiter } from '../dist/index.js'
import { redisStore } from '../dist/stores/redis/index.js'

const isQuick = process.argv.includes('--quick')
const ROUNDS = isQuick ? 2 : 9
const JOBS = isQuick ? 1_000 : 20_000
const lines = []

/** `run(job)` of each contestant, with so many places. */
const CONTESTANTS = {
  sluice: (max) => {
    const limiter = createLimiter(concurrency({ max }), { maxQueue: Number.POSITIVE_INFINITY })
    return (job) => limiter.run('key', job)
  },
  'p-limit': (max) => pLimit(max),
  'p-queue': (max) => {
    const queue = new PQueue({ concurrency: max })
    return (job) => queue.add(job)
  },
  'async-sema': (max) => {
    const sema = new Sema(max)
    return async (job) => {
      await sema.acquire()
      try {
        return await job()
      } finally {
        sema.release()
      }
    }
  },
  cockatiel: (max) => {
    const policy = bulkhead(max, 1_000_000)
    return (job) => policy.execute(job)
  },
  bottleneck: (max) => {
    const limiter = new Bottleneck({ maxConcurrent: max })
    return (job) => limiter.schedule(job)
  },
}

/** CPU nanoseconds of what it does, for each of so many. */
async function cpuNs(count, act) {
  const before = process.cpuUsage()
  await act()
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1000) / count
}

/** The least of some rounds of each, in turn. */
async function inTurn(names, measure) {
  const least = new Map(names.map((name) => [name, Number.POSITIVE_INFINITY]))
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of names) {
      globalThis.gc?.()
      least.set(name, Math.min(least.get(name), await measure(name)))
    }
  }
  return least
}

function table(title, least, unit, digits = 0) {
  const ours = least.get('sluice')
  lines.push(`## ${title}`, '', `| who | ${unit} | to Sluice's |`, '| --- | --- | --- |')
  for (const [name, value] of least) lines.push(`| ${name} | ${value.toFixed(digits)} | ${(value / ours).toFixed(2)} |`)
  lines.push('')
}

const job = async () => 1

async function nobodyWaits() {
  const names = Object.keys(CONTESTANTS)
  const few = { bottleneck: JOBS / 20 }
  const least = await inTurn(names, async (name) => {
    const run = CONTESTANTS[name](10)
    const jobs = few[name] ?? JOBS
    return cpuNs(jobs, async () => {
      for (let k = 0; k < jobs; k++) await run(job)
    })
  })
  table('run, nobody waits', least, 'CPU ns a job')
}

async function tenAtOnce() {
  const least = await inTurn(['sluice', 'p-limit', 'p-queue', 'async-sema', 'cockatiel'], async (name) => {
    const run = CONTESTANTS[name](10)
    return cpuNs(JOBS, () => Promise.all(Array.from({ length: JOBS }, () => run(job))))
  })
  table(`run, 10 at once, ${JOBS.toLocaleString('en')} jobs that all wait`, least, 'CPU ns a job')
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
  const wall = new Map(Object.keys(contestants).map((name) => [name, Number.POSITIVE_INFINITY]))
  const server = await inTurn(Object.keys(contestants), async (name) => {
    const before = await serverFigures(redis)
    const startMs = performance.now()
    await pairs(count, 256, contestants[name])
    wall.set(name, Math.min(wall.get(name), ((performance.now() - startMs) * 1000) / count))
    return ((await serverFigures(redis)).cpuUs - before.cpuUs) / count
  })
  table('Redis, take and release, 256 in flight, 10,000 keys: time', wall, 'µs a pair', 1)
  table('Redis, take and release, 256 in flight, 10,000 keys: CPU of the server', server, 'µs a pair', 1)
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
  `\`npm run bench:concurrency\`, Node ${process.version}, ${cpus().length} cores, ${new Date().toISOString().slice(0, 10)}. Least of ${ROUNDS} rounds, the contestants in turn. Ratios above 1 are slower than Sluice.`,
  '',
]
const text = [...head, ...lines].join('\n')
console.log(text)
if (!isQuick) writeFileSync(new URL('./RESULTS-concurrency.md', import.meta.url), `${text.trim()}\n`)
process.exit(0)

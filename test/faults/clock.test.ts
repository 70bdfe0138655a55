/**
 * Processes whose clocks are an hour apart take from one key. Decisions are by the server's clock,
 * so there is nothing to bound: they admit exactly what one process with the right time would be
 * admitted, and the dates they are told are the server's.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { Oracle, WindowOracle } from '../../src/testing/index.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'

const HOUR_MS = 3_600_000
const SKEWS_MS = [-HOUR_MS, 0, HOUR_MS]
const CONNECTIONS = 2
const CALLS = 100

type Data = Readonly<Record<string, unknown>> & { readonly type: string }
type Decided = readonly [atUs: number, cost: number, allowed: boolean]

interface Judge {
  take(nowUs: number, cost: number, aheadUs: number): string
}

/**
 * Limits that come back while the processes run, and one that does not. Ten seconds would have to
 * pass before all calls were admitted.
 */
const LIMITS: readonly (readonly [name: string, data: Data, oracle: () => Judge])[] = [
  ['gcra', { type: 'gcra', rate: '50/s', burst: 50 }, () => new Oracle('gcra', { capacity: 50, permits: 50, periodUs: 1_000_000 })],
  [
    'tokenBucket',
    { type: 'tokenBucket', refill: '50/s', capacity: 50 },
    () => new Oracle('tokenBucket', { capacity: 50, permits: 50, periodUs: 1_000_000 }),
  ],
  [
    'fixedWindow',
    { type: 'fixedWindow', limit: 50, window: '1s' },
    () => new WindowOracle('fixedWindow', { limit: 50, lengthUs: 1_000_000, anchor: 0, slots: 1 }),
  ],
  [
    'slidingLog',
    { type: 'slidingLog', limit: 50, window: '1h' },
    () => new WindowOracle('slidingLog', { limit: 50, lengthUs: HOUR_MS * 1000, anchor: 0, slots: 1 }),
  ],
]

let redis: TestRedis
beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())

test.each(LIMITS)('%s: over-admission 0', async (name, data, oracle) => {
  const startUs = await serverUs()
  const byProcess = await Promise.all(await runAll({ default: data }))
  const endUs = await serverUs()
  const judge = oracle()
  let over = 0
  for (const [atUs, cost, allowed] of byProcess.flat().sort(([a], [b]) => a - b)) {
    expect(atUs).toBeGreaterThanOrEqual(startUs)
    expect(atUs).toBeLessThanOrEqual(endUs)
    if (allowed) over += judge.take(atUs, cost, -1) === 'allowed' ? 0 : cost
  }
  const admitted = byProcess.map((decisions) => decisions.filter(([, , allowed]) => allowed).length)
  console.log(`${name}, clocks off by ${SKEWS_MS.map((ms) => ms / HOUR_MS)} h: ${admitted} admitted, ${over} too many, bound 0`)
  expect(over).toBe(0)
  // An hour of its own would have given one client everything, and another nothing.
  expect(admitted.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(50)
  expect(admitted.reduce((sum, count) => sum + count)).toBeLessThan(CALLS * CONNECTIONS * SKEWS_MS.length)
})

async function serverUs(): Promise<number> {
  const [seconds, micros] = (await redis.send(['TIME'])) as [string, string]
  return Number(seconds) * 1_000_000 + Number(micros)
}

/** Starts a process for each clock, lets them go at once, and gives what each was told. */
async function runAll(limits: object): Promise<Promise<Decided[]>[]> {
  const task = {
    port: inject('redisPort'),
    prefix: `skew-${randomUUID()}`,
    limits,
    key: 'hot',
    connections: CONNECTIONS,
    calls: CALLS,
    costs: [1],
  }
  const script = new URL('../redis/hammer.process.mjs', import.meta.url)
  const execArgv = ['--import', new URL('./skew.mjs', import.meta.url).href]
  const children = SKEWS_MS.map((skewMs) =>
    fork(script, [JSON.stringify(task)], { execArgv, env: { ...process.env, SKEW_MS: `${skewMs}` } }),
  )
  const clocks = children.map((child) => told(child, clockOf))
  const decisions = children.map((child) => told(child, (message) => (Array.isArray(message) ? (message as Decided[]) : undefined)))
  await Promise.all(children.map(allReady))
  const rightMs = Date.now()
  for (const [k, clockMs] of (await Promise.all(clocks)).entries()) {
    expect(Math.abs(clockMs - (SKEWS_MS[k] as number) - rightMs)).toBeLessThan(HOUR_MS / 2)
  }
  for (const child of children) child.send('go')
  return decisions
}

/** A process first says what its clock shows. */
function clockOf(message: unknown): number | undefined {
  return (message as { clockMs?: number }).clockMs
}

/** Each connection of a process says that it is ready. */
function allReady(child: ChildProcess): Promise<true> {
  let waiting = CONNECTIONS
  return told(child, (message) => {
    if (message === 'ready') waiting -= 1
    return waiting === 0 ? true : undefined
  })
}

function told<T>(child: ChildProcess, read: (message: unknown) => T | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`a process ended with ${code}`)))
    child.on('message', (message) => {
      const value = read(message)
      if (value !== undefined) resolve(value)
    })
  })
}

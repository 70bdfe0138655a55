/**
 * Several processes with several connections each take from one key at once. Redis dates every decision, so they can be put in order
 * afterwards: the oracle must accept every admission in that order, and must have had no room for the call that was refused last.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { expect, inject, test } from 'vitest'
import { Oracle, WindowOracle } from '../../src/testing/index.ts'

const PROCESSES = 3
const CONNECTIONS = 4
const CALLS = 150
const COSTS = [1, 1, 2, 1, 3]

type Data = Readonly<Record<string, unknown>> & { readonly type: string }
type Decided = readonly [atUs: number, cost: number, allowed: boolean]

/** What the race needs of an oracle. */
interface Judge {
  take(nowUs: number, cost: number, aheadUs: number): string
  ask(nowUs: number, cost: number, aheadUs: number): string
}

const level = (kind: 'gcra' | 'tokenBucket' | 'leakyBucket') => () => new Oracle(kind, { capacity: 200, permits: 500, periodUs: 1_000_000 })
const window = (kind: 'fixedWindow' | 'slidingWindow' | 'slidingLog', slots: number) => () =>
  new WindowOracle(kind, { limit: 200, lengthUs: 500_000, anchor: 0, slots })

/** Limits that are refilled while the race is on. */
const LIMITS: Readonly<Record<string, { readonly data: Data; readonly oracle: () => Judge }>> = {
  gcra: { data: { type: 'gcra', rate: '500/s', burst: 200 }, oracle: level('gcra') },
  tokenBucket: { data: { type: 'tokenBucket', refill: '500/s', capacity: 200 }, oracle: level('tokenBucket') },
  leakyBucket: { data: { type: 'leakyBucket', leak: '500/s', capacity: 200 }, oracle: level('leakyBucket') },
  fixedWindow: { data: { type: 'fixedWindow', limit: 200, window: 500 }, oracle: window('fixedWindow', 1) },
  slidingWindow: { data: { type: 'slidingWindow', limit: 200, window: 500, slots: 5 }, oracle: window('slidingWindow', 5) },
  slidingLog: { data: { type: 'slidingLog', limit: 200, window: 500 }, oracle: window('slidingLog', 1) },
}

const RACES: readonly (readonly [name: string, limits: readonly string[]])[] = [
  ...Object.keys(LIMITS).map((name) => [name, [name]] as const),
  ['a bucket and a window', ['tokenBucket', 'fixedWindow']],
  ['all six', Object.keys(LIMITS)],
]

test.each(RACES)('%s: every admission is right, and nobody was refused for nothing', async (_, names) => {
  const limits = Object.fromEntries(names.map((name) => [name, LIMITS[name]?.data]))
  const decisions = await race(limits)
  const judges = names.map((name) => (LIMITS[name] as (typeof LIMITS)[string]).oracle())
  const inOrder = [...decisions].sort(([a], [b]) => a - b)
  for (const [atUs, cost, allowed] of inOrder) {
    // Decisions of the same microsecond may stand in any order, so only admissions are told to the oracle.
    if (allowed) for (const judge of judges) expect(judge.take(atUs, cost, -1)).toBe('allowed')
  }
  const [lastUs, cost, allowed] = inOrder.at(-1) as Decided
  expect(inOrder.filter(([, , admitted]) => admitted).length).toBeGreaterThan(100)
  expect(inOrder.filter(([, , admitted]) => !admitted).length).toBeGreaterThan(100)
  const most = allowed ? 200 : cost
  expect(judges.some((judge) => judge.ask(lastUs, most, -1) === 'limited')).toBe(true)
})

async function race(limits: object): Promise<Decided[]> {
  const task = {
    port: inject('redisPort'),
    prefix: `race-${randomUUID()}`,
    limits,
    key: 'hot',
    connections: CONNECTIONS,
    calls: CALLS,
    costs: COSTS,
  }
  const script = new URL('./hammer.process.mjs', import.meta.url)
  const runners = Array.from({ length: PROCESSES }, () => new Runner(fork(script, [JSON.stringify(task)])))
  await Promise.all(runners.map((runner) => runner.ready))
  for (const runner of runners) runner.start()
  return (await Promise.all(runners.map((runner) => runner.decisions))).flat()
}

/** A process of the race: says for each connection that it is ready, starts when all are, and reports what was decided. */
class Runner {
  readonly ready: Promise<void>
  readonly decisions: Promise<Decided[]>
  readonly #child: ChildProcess

  constructor(child: ChildProcess) {
    this.#child = child
    let waiting = CONNECTIONS
    const failed = new Promise<never>((_, reject) =>
      child.once('exit', (code) => reject(new Error(`a process of the race ended with ${code}`))),
    )
    failed.catch(() => undefined)
    const told = <T>(read: (message: unknown) => T | undefined) =>
      new Promise<T>((resolve) =>
        child.on('message', (message) => {
          const value = read(message)
          if (value !== undefined) resolve(value)
        }),
      )
    const allReady = told((message) => {
      if (message === 'ready') waiting -= 1
      return waiting === 0 ? true : undefined
    })
    this.ready = Promise.race([allReady.then(() => undefined), failed])
    this.decisions = Promise.race([told((message) => (Array.isArray(message) ? (message as Decided[]) : undefined)), failed])
  }

  start(): void {
    this.#child.send('go')
  }
}

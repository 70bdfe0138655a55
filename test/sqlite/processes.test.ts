/**
 * Real processes on one file: they race, are killed, and are started again. The file dates every
 * decision, so they can be put in order afterwards, and the oracle judges them.
 */
import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createLimiter, fixedWindow, tokenBucket } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import { Oracle, WindowOracle } from '../../src/testing/index.ts'
import { openSqlite } from '../support/stores.ts'

const PROCESSES = 3
const CALLS = 250
const COSTS = [1, 1, 2, 1, 3]

type Decided = readonly [atUs: number, cost: number, allowed: boolean]

/** What a race needs of an oracle. */
interface Judge {
  take(nowUs: number, cost: number, aheadUs: number): string
  ask(nowUs: number, cost: number, aheadUs: number): string
}

const level = (kind: 'gcra' | 'tokenBucket' | 'leakyBucket') => () => new Oracle(kind, { capacity: 100, permits: 300, periodUs: 1_000_000 })
const window = (kind: 'fixedWindow' | 'slidingWindow' | 'slidingLog', slots: number) => () =>
  new WindowOracle(kind, { limit: 100, lengthUs: 300_000, anchor: 0, slots })

/** Limits that are refilled while the race is on. */
const LIMITS: Readonly<Record<string, { readonly data: object; readonly oracle: () => Judge }>> = {
  gcra: { data: { type: 'gcra', rate: '300/s', burst: 100 }, oracle: level('gcra') },
  tokenBucket: { data: { type: 'tokenBucket', refill: '300/s', capacity: 100 }, oracle: level('tokenBucket') },
  leakyBucket: { data: { type: 'leakyBucket', leak: '300/s', capacity: 100 }, oracle: level('leakyBucket') },
  fixedWindow: { data: { type: 'fixedWindow', limit: 100, window: '300ms' }, oracle: window('fixedWindow', 1) },
  slidingWindow: { data: { type: 'slidingWindow', limit: 100, window: '300ms', slots: 5 }, oracle: window('slidingWindow', 5) },
  slidingLog: { data: { type: 'slidingLog', limit: 100, window: '300ms' }, oracle: window('slidingLog', 1) },
}
const RACES = [...Object.keys(LIMITS).map((name) => [name]), ['tokenBucket', 'fixedWindow'], Object.keys(LIMITS)]

let file: ReturnType<typeof openSqlite>
beforeEach(() => {
  file = openSqlite()
})
afterEach(() => file.close())

const script = (name: string) => new URL(`./${name}.process.mjs`, import.meta.url)

describe('processes that race for one key', () => {
  test('every admission is right, nobody is refused for nothing, and time never runs backwards', async () => {
    const races = RACES.map((names) => Object.fromEntries(names.map((name) => [name, LIMITS[name]?.data])))
    const reports = await raced({ path: file.path, races, calls: CALLS, costs: COSTS })
    expect(reports.reduce((sum, { collisions }) => sum + collisions, 0)).toBeGreaterThan(0)
    for (const { decisions } of reports) for (const decided of decisions) expect(isForward(decided)).toBe(true)
    RACES.forEach((names, k) => {
      judge(
        names,
        reports.flatMap(({ decisions }) => decisions[k] as Decided[]).sort(([a], [b]) => a - b),
      )
    })
  })
})

function judge(names: readonly string[], inOrder: readonly Decided[]): void {
  const judges = names.map((name) => (LIMITS[name] as (typeof LIMITS)[string]).oracle())
  // Decisions of the same microsecond may stand in any order, so only admissions are told to the
  // oracle.
  for (const [atUs, cost, allowed] of inOrder) {
    if (allowed) for (const each of judges) expect(each.take(atUs, cost, -1), names.join()).toBe('allowed')
  }
  expect(inOrder.filter(([, , allowed]) => allowed).length).toBeGreaterThan(40)
  expect(inOrder.filter(([, , allowed]) => !allowed).length).toBeGreaterThan(40)
  const [lastUs, cost, allowed] = inOrder.at(-1) as Decided
  expect(judges.some((each) => each.ask(lastUs, allowed ? 100 : cost, -1) === 'limited')).toBe(true)
}

const isForward = (decided: readonly Decided[]) => decided.every(([atUs], k) => k === 0 || atUs >= (decided[k - 1] as Decided)[0])

interface Report {
  readonly decisions: readonly (readonly Decided[])[]
  readonly collisions: number
}

/** Rejects if the process ends without one. */
function messageOf(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`a process of the race ended with ${code}`)))
  })
}

/** All begin when all are ready. */
async function raced(task: object): Promise<Report[]> {
  const children = Array.from({ length: PROCESSES }, (_, seed) => fork(script('hammer'), [JSON.stringify({ ...task, seed })]))
  await Promise.all(children.map(messageOf))
  const reports = children.map((child) => messageOf(child) as Promise<Report>)
  for (const child of children) child.send('go')
  return Promise.all(reports)
}

test('of processes that are killed in the middle every permit is accounted for, and nobody waits for them', async () => {
  const store = sqliteStore(file.path)
  const limiter = createLimiter(fixedWindow({ limit: 1_000_000, window: '366d' }), { name: 'victims', store })
  const victims = Array.from({ length: 4 }, () => new Victim(spawn(process.execPath, [script('victim').pathname, file.path])))
  for (const [k, victim] of victims.entries()) await victim.killedAfter(100 + 61 * k)
  const told = victims.reduce((sum, { granted }) => sum + granted, 0)
  const { remaining, allowed } = limiter.consume('key')
  store.close()
  const used = 1_000_000 - remaining - 1
  expect(allowed).toBe(true)
  expect(told).toBeGreaterThan(400)
  // One that was killed may have been charged what it could not tell any more.
  expect(used).toBeGreaterThanOrEqual(told)
  expect(used).toBeLessThanOrEqual(told + victims.length)
})

class Victim {
  granted = 0
  readonly #child: ChildProcess
  readonly #closed: Promise<unknown>

  constructor(child: ChildProcess) {
    this.#child = child
    this.#closed = once(child, 'close')
    child.stdout?.on('data', (bytes: Buffer) => {
      this.granted += bytes.length
    })
  }

  async killedAfter(grants: number): Promise<void> {
    while (this.granted < grants) await once(this.#child.stdout as NodeJS.ReadableStream, 'data')
    this.#child.kill('SIGKILL')
    await this.#closed
  }
}

test('a process that is started again finds what was used, by the same time', () => {
  const before = Date.now()
  const told = Array.from({ length: 4 }, () =>
    JSON.parse(execFileSync(process.execPath, [script('once').pathname, file.path], { encoding: 'utf8' })),
  )
  expect(told.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
    [true, 2],
    [true, 1],
    [true, 0],
    [false, 0],
  ])
  const times = told.map(({ atMs }) => atMs as number)
  expect(times).toEqual([...times].sort((a, b) => a - b))
  expect(times[0]).toBeGreaterThanOrEqual(before - 25)
  const limiter = createLimiter(tokenBucket({ capacity: 3, refill: '1/h' }), { name: 'cli', store: file.store })
  expect(limiter.peek('user').atMs).toBeGreaterThanOrEqual(times.at(-1) as number)
  expect(limiter.tryAcquire('user')).toBe(false)
})

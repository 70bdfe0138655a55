/**
 * Races: several processes with several connections each take from one key at once. The store dates
 * every decision, so they can be put in order afterwards: the oracle must accept every admission in
 * that order, and must have had no room for the call that was refused last.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { expect } from 'vitest'
import { Oracle, WindowOracle } from '../../src/testing/index.ts'

const PROCESSES = 3
const CONNECTIONS = 4
const COSTS = [1, 1, 2, 1, 3]

/**
 * How fast a race is: the limits are refilled while it is on, and many are admitted and many
 * refused.
 */
export interface Pace {
  readonly capacity: number
  readonly perSecond: number
  /** Of the windows, each of which admits the capacity. */
  readonly windowMs: number
  /** Of each connection. */
  readonly calls: number
  /** How many must have been admitted, and refused. */
  readonly least: number
}

type Data = Readonly<Record<string, unknown>> & { readonly type: string }
type Decided = readonly [atUs: number, cost: number, allowed: boolean]

/** What the race needs of an oracle. */
interface Judge {
  take(nowUs: number, cost: number, aheadUs: number): string
  ask(nowUs: number, cost: number, aheadUs: number): string
}

interface RaceLimit {
  readonly data: Data
  readonly oracle: () => Judge
}

function levelOf(type: 'gcra' | 'tokenBucket' | 'leakyBucket', names: readonly [rate: string, capacity: string], pace: Pace): RaceLimit {
  const { capacity, perSecond } = pace
  const data = { type, [names[0]]: `${perSecond}/s`, [names[1]]: capacity }
  return { data, oracle: () => new Oracle(type, { capacity, permits: perSecond, periodUs: 1_000_000 }) }
}

function windowOf(type: 'fixedWindow' | 'slidingWindow' | 'slidingLog', slots: number, { capacity: limit, windowMs }: Pace): RaceLimit {
  const data = { type, limit, window: `${windowMs}ms`, ...(slots > 1 && { slots }) }
  return { data, oracle: () => new WindowOracle(type, { limit, lengthUs: 1000 * windowMs, anchor: 0, slots }) }
}

const LIMITS: Readonly<Record<string, (pace: Pace) => RaceLimit>> = {
  gcra: (pace) => levelOf('gcra', ['rate', 'burst'], pace),
  tokenBucket: (pace) => levelOf('tokenBucket', ['refill', 'capacity'], pace),
  leakyBucket: (pace) => levelOf('leakyBucket', ['leak', 'capacity'], pace),
  fixedWindow: (pace) => windowOf('fixedWindow', 1, pace),
  slidingWindow: (pace) => windowOf('slidingWindow', 5, pace),
  slidingLog: (pace) => windowOf('slidingLog', 1, pace),
}

/** Names, and the limits of each. */
export const RACES: readonly (readonly [name: string, limits: readonly string[]])[] = [
  ...Object.keys(LIMITS).map((name) => [name, [name]] as const),
  ['a bucket and a window', ['tokenBucket', 'fixedWindow']],
  ['all six', Object.keys(LIMITS)],
]

/**
 * Has the processes of a script race, and judges what they were told. `where`: what the script
 * needs to know to find the store.
 */
export async function expectExactRace(script: URL, where: object, names: readonly string[], pace: Pace): Promise<void> {
  const raced = names.map((name) => [name, (LIMITS[name] as (pace: Pace) => RaceLimit)(pace)] as const)
  const limits = Object.fromEntries(raced.map(([name, { data }]) => [name, data]))
  const decisions = await race(script, { ...where, limits, key: 'hot', connections: CONNECTIONS, calls: pace.calls, costs: COSTS })
  const judges = raced.map(([, { oracle }]) => oracle())
  const inOrder = [...decisions].sort(([a], [b]) => a - b)
  for (const [atUs, cost, allowed] of inOrder) {
    // Decisions of the same microsecond may stand in any order, so only admissions are told to the
    // oracle.
    if (allowed) for (const judge of judges) expect(judge.take(atUs, cost, -1)).toBe('allowed')
  }
  const [lastUs, cost, allowed] = inOrder.at(-1) as Decided
  expect(inOrder.filter(([, , admitted]) => admitted).length).toBeGreaterThan(pace.least)
  expect(inOrder.filter(([, , admitted]) => !admitted).length).toBeGreaterThan(pace.least)
  const most = allowed ? pace.capacity : cost
  expect(judges.some((judge) => judge.ask(lastUs, most, -1) === 'limited')).toBe(true)
}

async function race(script: URL, task: object): Promise<Decided[]> {
  const runners = Array.from({ length: PROCESSES }, () => new Runner(fork(script, [JSON.stringify(task)])))
  await Promise.all(runners.map((runner) => runner.ready))
  for (const runner of runners) runner.start()
  return (await Promise.all(runners.map((runner) => runner.decisions))).flat()
}

/**
 * A process of the race: says for each connection that it is ready, starts when all are, and
 * reports what was decided.
 */
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

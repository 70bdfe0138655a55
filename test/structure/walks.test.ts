/** The four walks in ARCHITECTURE, compared with the calls of a real run. */
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { createClient } from 'redis'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import type { rateLimit } from '../../src/adapters/express.ts'
import type { createLimiter, gcra, turnClock } from '../../src/index.ts'
import type { redisStore } from '../../src/stores/redis/index.ts'
import { type Call, callsOf, traced } from './trace.ts'

interface Traced {
  readonly createLimiter: typeof createLimiter
  readonly gcra: typeof gcra
  readonly turnClock: typeof turnClock
  readonly redisStore: typeof redisStore
  readonly rateLimit: typeof rateLimit
}

interface Walk {
  readonly title: string
  readonly stations: readonly Station[]
}

interface Station {
  readonly file: string
  readonly functions: readonly string[]
}

const section = readFileSync(new URL('../../ARCHITECTURE.md', import.meta.url), 'utf8')
  .split('\n## Four walks\n')[1]
  ?.split('\n## ')[0] as string
const WALKS: readonly Walk[] = section.split('\n### ').slice(1).map(walkOf)
/** Files that answer a question and are left at once. */
const HELPERS = filesIn(section.split('\n\n').find((paragraph) => paragraph.startsWith('Helpers')) as string)

/** `1. `limiter/plans.ts` `filled` `fill`: what it does` */
function walkOf(text: string): Walk {
  // What is indented belongs to the line above it.
  const [title, ...lines] = text.replace(/\n {2,}/g, ' ').split('\n') as [string, ...string[]]
  const stations = lines.flatMap((line) => {
    const [, file, names] = /^\d+\. `([^`]+\.ts)`((?: `[^`]+`)+):/.exec(line) ?? []
    return file === undefined ? [] : [{ file, functions: namesIn(names as string) }]
  })
  return { title, stations }
}

function namesIn(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name as string)
}

function filesIn(text: string): string[] {
  return namesIn(text).filter((name) => name.endsWith('.ts'))
}

const LAYERS = ['algorithms', 'clock', 'stores', 'limiter', 'http', 'adapters']
const layerOf = (file: string) => LAYERS.indexOf(file.split('/')[0] as string)

/** Calls from a layer into one that stands on it, by what is called. */
function upwards(calls: readonly Call[]): string[] {
  const up = calls.filter(({ file, from }) => from !== undefined && layerOf(from) < layerOf(file))
  return [...new Set(up.map(({ file, name }) => `${file} ${name}`))]
}

/** What is listed and does not come in this order. */
function missing(stations: readonly Station[], calls: readonly Call[]): string | undefined {
  let at = 0
  for (const { file, functions } of stations) {
    for (const name of functions) {
      const found = calls.findIndex((call, k) => k >= at && call.file === file && call.name === name)
      if (found < 0) return `${file} ${name} after ${calls[at - 1]?.file} ${calls[at - 1]?.name}`
      at = found + 1
    }
  }
  return undefined
}

function written(calls: readonly Call[]): string {
  return calls.map(({ file, name, from }) => `${file} ${name} < ${from ?? ''}`).join('\n')
}

let library: Traced
beforeAll(async () => {
  library = await traced<Traced>(`
    export { createLimiter, gcra, turnClock } from './src/index.ts'
    export { redisStore } from './src/stores/redis/index.ts'
    export { rateLimit } from './src/adapters/express.ts'
  `)
})

/**
 * What a walk calls. Its limiter is closed then: a timer that runs on would ring in the middle of a
 * later walk.
 */
async function walked(limiter: { close(): void }, run: () => unknown): Promise<Call[]> {
  try {
    return await callsOf(run)
  } finally {
    limiter.close()
  }
}

const SCENARIOS: readonly (() => Promise<Call[]>)[] = [
  () => {
    const limiter = library.createLimiter(library.gcra({ rate: '10/s', burst: 5 }))
    return walked(limiter, () => limiter.consume('user:42'))
  },

  async () => {
    const client = createClient({ socket: { host: '127.0.0.1', port: inject('redisPort') } })
    await client.connect()
    const store = library.redisStore(client, { prefix: 'walks' })
    // However busy the machine is, nothing takes too long.
    const limiter = library.createLimiter(library.gcra({ rate: '10/s', burst: 5 }), { name: 'walk', store, storeTimeoutMs: 600_000 })
    // The script is sent the first time.
    await limiter.consume('first')
    const calls = await walked(limiter, () => Promise.all(['a', 'b', 'c'].map((key) => limiter.consume(key))))
    client.destroy()
    return calls
  },

  () => {
    const limiter = library.createLimiter(library.gcra({ rate: '100/s', burst: 1 }), { clock: library.turnClock() })
    limiter.tryAcquire('user:42')
    return walked(limiter, () => limiter.acquire('user:42'))
  },

  async () => {
    const app = express()
    const limiter = library.createLimiter(library.gcra({ rate: '1/d', burst: 1 }))
    app.use(library.rateLimit({ limiter }))
    app.get('/', (_request, response) => void response.end('let in'))
    const server = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    expect((await fetch(url)).status).toBe(200)
    const calls = await walked(limiter, async () => expect((await fetch(url)).status).toBe(429))
    server.close()
    server.closeAllConnections()
    return calls
  },
]

/**
 * What is called upwards: the answer of a remote store is read where it arrives, a timer rings, a
 * request is read through what its adapter says of it.
 */
const UPWARDS: readonly (readonly string[])[] = [
  [],
  ['limiter/decision.ts decisionOf', 'limiter/asking.ts tell'],
  ['stores/queue/queue.ts goOn'],
  ['adapters/trusted-address.ts expressClient', 'adapters/node-request.ts header'],
]

test('ARCHITECTURE draws four walks', () => {
  expect(WALKS.length).toBe(SCENARIOS.length)
})

describe.each(WALKS.map((walk, k) => [walk.title, walk, k] as const))('%s', (_, { stations }, k) => {
  let calls: Call[]
  beforeAll(async () => {
    calls = await (SCENARIOS[k] as () => Promise<Call[]>)()
  })

  test('the listed functions are called, in this order', () => {
    expect(stations.length).toBeGreaterThan(5)
    expect(missing(stations, calls), written(calls)).toBe(undefined)
  })

  test('no other file is called, but for the helpers', () => {
    const listed = new Set([...stations.map(({ file }) => file), ...HELPERS])
    expect([...new Set(calls.map(({ file }) => file))].filter((file) => !listed.has(file))).toEqual([])
  })

  test('no file is on the list more than twice', () => {
    expect([...countsOf(stations)].filter(([, count]) => count > 2)).toEqual([])
  })

  test('nothing calls upwards but what is said', () => {
    expect(upwards(calls), written(calls)).toEqual(UPWARDS[k])
  })
})

function countsOf(stations: readonly Station[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { file } of stations) counts.set(file, (counts.get(file) ?? 0) + 1)
  return counts
}

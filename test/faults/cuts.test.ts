/**
 * A connection breaks while a decision is under way. Broken before Redis has the whole request,
 * nothing is charged. Broken after Redis ran the script, the charge is there and the caller does
 * not know: it is charged exactly once, because nobody sends the decision again, neither the store
 * nor the client. On every client.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type AsyncStore,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  type Limiter,
  leakyBucket,
  SluiceError,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { type Fate, type FaultProxy, isScript, ofScripts, once, startProxy } from '../support/fault-proxy.ts'
import { clientCases, type Opened } from '../support/redis-clients.ts'
import { type RedisServer, startServer, until } from '../support/redis-servers.ts'
import { keysWithoutExpiry, unhandled } from './watch.ts'

const CAPACITY = 100
const limits = {
  gcra: gcra({ rate: '1/h', burst: CAPACITY }),
  tokens: tokenBucket({ refill: '1/h', capacity: CAPACITY }),
  water: leakyBucket({ leak: '1/h', capacity: CAPACITY }),
  fixed: fixedWindow({ limit: CAPACITY, window: '1h', anchor: 'first' }),
  slots: slidingWindow({ limit: CAPACITY, window: '1h' }),
  log: slidingLog({ limit: CAPACITY, window: '1h' }),
}

interface Strike {
  readonly where: string
  readonly fate: NonNullable<Fate>
  /** What it leaves charged for each decision in the script call that is struck, and why. */
  readonly charged: 0 | 1
  readonly why: string
}

const STRIKES: readonly Strike[] = [
  { where: 'before the request', fate: { cut: 'request', afterBytes: 0 }, charged: 0, why: 'Redis has seen nothing of it' },
  { where: 'in the first line of the request', fate: { cut: 'request', afterBytes: 2 }, charged: 0, why: 'Redis runs only whole requests' },
  { where: 'in the middle of the request', fate: { cut: 'request', afterBytes: 100 }, charged: 0, why: 'Redis runs only whole requests' },
  { where: 'before the reply', fate: { cut: 'reply', afterBytes: 0 }, charged: 1, why: 'Redis has run it, and nobody sends it again' },
  {
    where: 'in the first line of the reply',
    fate: { cut: 'reply', afterBytes: 2 },
    charged: 1,
    why: 'Redis has run it, and nobody sends it again',
  },
  {
    where: 'in the middle of the reply',
    fate: { cut: 'reply', afterBytes: 30 },
    charged: 1,
    why: 'Redis has run it, and nobody sends it again',
  },
]

/** A reservation on a leaky bucket, or on a window, is another matter. */
const bookable = { gcra: limits.gcra, tokens: limits.tokens }
const USED = 10
type Sluice = Limiter<Readonly<Record<string, Limit>>, AsyncStore>

/** Every verb that writes, and what it leaves of a key of which some was used. */
const VERBS: readonly (readonly [verb: string, call: (limiter: Sluice) => Promise<unknown>, leaves: number])[] = [
  ['consume', (limiter) => limiter.consume('u1'), CAPACITY - USED - 1],
  ['reserve', (limiter) => limiter.reserve('u1'), CAPACITY - USED - 1],
  ['acquire', (limiter) => limiter.acquire('u1'), CAPACITY - USED - 1],
  ['refund', (limiter) => limiter.refund('u1'), CAPACITY - USED + 1],
  ['reset', (limiter) => limiter.reset('u1'), CAPACITY],
]

describe.each(clientCases.filter(({ topology }) => topology === 'single'))('$name', (cell) => {
  let server: RedisServer
  let proxy: FaultProxy
  let opened: Opened
  beforeAll(async () => {
    server = await startServer()
    proxy = await startProxy(server.port)
    opened = await cell.open([{ ...server, host: proxy.host, port: proxy.port }])
  })
  afterAll(async () => {
    await opened.close()
    await proxy.close()
    await server.kill()
    expect(unhandled()).toEqual([])
  })

  /**
   * All calls of a turn travel in one batch: what is not sent yet when the connection is cut would
   * be charged nothing.
   */
  const limiterOf = (ofThese: Readonly<Record<string, Limit>> = limits): Sluice =>
    createLimiter(ofThese, { name: 'api', store: redisStore(opened.client, { prefix: `test:${randomUUID()}`, maxBatch: 256 }) })

  /**
   * A decision of cost 0 by Redis, once the client has found it again: what is left of each limit.
   */
  async function left(limiter: Sluice, key = 'u1'): Promise<number[]> {
    let remaining: number[] = []
    await until(async () => {
      const { degraded, parts } = await limiter.peek(key, 0)
      remaining = Object.values(parts).map((part) => part.remaining)
      return degraded !== true
    })
    return [...new Set(remaining)]
  }

  test.each(STRIKES)('cut $where: charged $charged times, because $why', async ({ where, fate, charged, why }) => {
    for (const calls of [1, 20]) {
      const limiter = limiterOf()
      expect((await limiter.consume('u1')).allowed).toBe(true)
      let scripts = 0
      const struckBefore = proxy.struck
      const strike = once(ofScripts(fate))
      proxy.strike((command) => {
        scripts += isScript(command) ? 1 : 0
        return strike(command)
      })
      const ends = await Promise.allSettled(Array.from({ length: calls }, () => limiter.consume('u1')))
      expect(proxy.struck).toBe(struckBefore + 1)
      proxy.heal()
      const failed = ends.filter(({ status }) => status === 'rejected')
      for (const end of failed) expect((end as PromiseRejectedResult).reason).toBeInstanceOf(SluiceError)
      expect(failed.length).toBeGreaterThan(0)
      // Whatever a client sends again after it has connected again, it sends before the next
      // command.
      const [remaining = 0, ...others] = await left(limiter)
      expect(others).toEqual([])
      const used = CAPACITY - remaining - 1
      const served = calls - failed.length
      console.log(
        `${cell.name}, ${calls} at once, cut ${where}: ${failed.length} failed, ${used - served} of them charged; bound ${charged * failed.length}: ${why}`,
      )
      // Several may travel in more than one script call, of which one is struck: those behind it
      // may be lost before Redis has them.
      expect(used - served).toBeLessThanOrEqual(charged * failed.length)
      if (scripts === 1) expect(used - served).toBe(charged * failed.length)
      expect((await limiter.consume('u1')).remaining).toBe(remaining - 1)
    }
    expect(await keysWithoutExpiry([server])).toEqual([])
  })

  test.each(VERBS)('cut in the reply to %s: it is done once', async (verb, call, leaves) => {
    const limiter = limiterOf(bookable)
    await limiter.consume('u1', USED)
    proxy.strike(once(ofScripts({ cut: 'reply', afterBytes: 2 })))
    const end = await call(limiter).catch((error: unknown) => error)
    expect(end).toBeInstanceOf(SluiceError)
    proxy.heal()
    const remaining = await left(limiter)
    console.log(`${cell.name}, cut in the reply to ${verb}: ${remaining} left, bound ${leaves}`)
    expect(remaining).toEqual([leaves])
  })
})

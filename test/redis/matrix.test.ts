/**
 * Every client on every topology: the published tables, the cases that every store must pass, and
 * what scripts and slots can do to a call.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { limitFrom } from '../../src/config/index.ts'
import { type AsyncStore, createLimiter, fixedWindow, gcra, slidingLog, tokenBucket } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { redisKey, slotOf } from '../../src/stores/redis/keys.ts'
import { admitted } from '../../src/testing/admitted.ts'
import { playStory, playTape, storeCases } from '../../src/testing/index.ts'
import { type ClientCase, clientCases, leftOut, type Opened, type TopologyName } from '../support/redis-clients.ts'
import { hasValkey, type RedisServer, startCluster, startSentinels, startServer } from '../support/redis-servers.ts'
import { stories, tapes } from '../support/vectors.ts'

/** Whom clients are told of, and who holds the keys. */
interface Running {
  readonly addresses: readonly RedisServer[]
  readonly servers: readonly RedisServer[]
  stop(): Promise<void>
}

const running = {} as Record<TopologyName, Running>

async function startAll(): Promise<void> {
  const single = await startServer()
  running.single = { addresses: [single], servers: [single], stop: () => single.kill() }
  if (hasValkey()) {
    const valkey = await startServer([], undefined, 'valkey-server')
    running.valkey = { addresses: [valkey], servers: [valkey], stop: () => valkey.kill() }
  }
  const sentinels = await startSentinels()
  running.sentinel = { ...sentinels, addresses: sentinels.sentinels }
  const cluster = await startCluster()
  running.cluster = { ...cluster, addresses: cluster.servers }
}

beforeAll(startAll, 120_000)
afterAll(async () => {
  await Promise.all(Object.values(running).map(({ stop }) => stop()))
})

test('the matrix has all its cells', () => {
  const clients = ['redis', 'redis pool', 'ioredis', 'iovalkey', 'valkey-glide']
  const topologies: TopologyName[] = ['single', 'sentinel', 'cluster', 'valkey']
  const cells = clients.flatMap((name) => topologies.map((topology) => `${name} on ${topology}`))
  const named = (cell: { name: string; topology: string }) => `${cell.name} on ${cell.topology}`
  expect([...clientCases.map(named), ...leftOut.map(named)].sort()).toEqual(cells.sort())
  expect(clientCases).toHaveLength(hasValkey() ? 17 : 12)
  for (const { name, topology, why } of leftOut) console.log(`left out: ${name} on ${topology}: ${why}`)
})

describe.each([...clientCases])('$name on $topology', (cell: ClientCase) => {
  let opened: Opened
  beforeAll(async () => {
    opened = await cell.open(running[cell.topology].addresses)
  })
  afterAll(() => opened.close())

  /** A store whose keys are nobody else's. */
  const store = (options = {}): AsyncStore => redisStore(opened.client, { prefix: `test:${randomUUID()}`, ...options })

  const onEveryServer = async (...command: string[]) => {
    for (const server of running[cell.topology].servers) await server.command(...command)
  }

  test.each(tapes)('tape $id', async (tape) => {
    expect(await playTape(tape, { store: store(), limitFrom })).toEqual([])
  })

  test.each(stories)('story $id', async (story) => {
    expect(await playStory(story, { store: store(), limitFrom })).toEqual([])
  })

  test.each(storeCases(() => store()))('%s', async (_, run) => run())

  test('a server that has forgotten the script is told it again, and the call is charged once', async () => {
    const limiter = createLimiter(gcra({ rate: '1/h', burst: 5 }), { name: 'api', store: store() })
    for (let left = 4; left >= 0; left--) {
      await onEveryServer('SCRIPT', 'FLUSH')
      expect((await limiter.consume('u1')).remaining).toBe(left)
    }
  })

  test('many calls at once on a server that has forgotten the script are charged once each', async () => {
    const limiter = createLimiter(gcra({ rate: '1/h', burst: 100 }), { name: 'api', store: store() })
    await onEveryServer('SCRIPT', 'FLUSH')
    const answers = await Promise.all(Array.from({ length: 120 }, () => admitted(limiter, 'u1')))
    expect(answers.filter((allowed) => allowed)).toHaveLength(100)
  })

  test('a key for each limit: all are charged or none', async () => {
    const limits = { user: tokenBucket({ refill: '1/h', capacity: 3 }), tenant: fixedWindow({ limit: 5, window: '1h' }) }
    const limiter = createLimiter(limits, { name: 'api', store: store() })
    const answers = []
    for (let k = 0; k < 8; k++) answers.push((await limiter.consume({ user: `u${k % 2}`, tenant: 't9' })).allowed)
    expect(answers).toEqual([true, true, true, true, true, false, false, false])
    const left = async (user: string) => (await limiter.peek({ user, tenant: 't9' }, 0)).parts.user.remaining
    expect([await left('u0'), await left('u1')]).toEqual([0, 1])
  })

  test('a key for each limit: a reservation is booked, cancelled, given back and forgotten on all of them', async () => {
    const limits = { user: gcra({ rate: '1/20s', burst: 1 }), tenant: slidingLog({ limit: 3, window: '1h' }) }
    const limiter = createLimiter(limits, { name: 'api', store: store(), maxAheadMs: 60_000 })
    const key = { user: 'u1', tenant: 't9' }
    const left = async () => (await limiter.peek(key, 0)).parts.tenant.remaining
    await limiter.consume(key)
    const turn = await limiter.reserve(key)
    expect(turn.delayMs).toBeGreaterThan(0)
    expect(await left()).toBe(1)
    await turn.cancel()
    expect(await left()).toBe(2)
    await limiter.refund(key)
    expect(await left()).toBe(3)
    await limiter.consume(key)
    await limiter.reset(key)
    expect(await left()).toBe(3)
  })

  test('with a hash tag keys of one tenant are together, and decided as one', async () => {
    const hashTag = (key: string) => key.split('/')[0] as string
    const limits = { user: gcra({ rate: '1/h', burst: 2 }), tenant: gcra({ rate: '1/h', burst: 3 }) }
    const limiter = createLimiter(limits, { name: 'api', store: store({ hashTag }) })
    const call = (user: string) => admitted(limiter, { user: `t9/${user}`, tenant: 't9' })
    expect([await call('a'), await call('a'), await call('a'), await call('b'), await call('b')]).toEqual([true, true, false, true, false])
  })

  test('keys that look like patterns, tags or paths are keys like any other', async () => {
    const limiter = createLimiter(gcra({ rate: '1/h', burst: 1 }), { name: 'api', store: store() })
    const keys = [
      'a',
      '*',
      'a*',
      '?',
      '[a-z]',
      '{a}',
      '{',
      '}',
      '{}',
      '}{',
      'a b',
      ' ',
      '\n',
      '\0',
      'ä',
      '北京',
      '🚰',
      '%',
      '%7B',
      ':',
      'a:default',
      'x'.repeat(1024),
    ]
    for (const key of keys) expect((await limiter.consume(key)).allowed, key).toBe(true)
    await limiter.reset('*')
    for (const key of keys) expect((await limiter.consume(key)).allowed, key).toBe(key === '*')
  })

  test('waiters get their turn in the order in which the server saw them', async () => {
    const limiter = createLimiter(gcra({ rate: '100/s', burst: 1 }), { name: 'api', store: store() })
    const order: number[] = []
    const turns = Array.from({ length: 10 }, async (_, k) => {
      const turn = await limiter.acquire('u1')
      order.push(k)
      return turn.atMs
    })
    const atMs = await Promise.all(turns)
    expect(order).toEqual([...order].sort((a, b) => (atMs[a] as number) - (atMs[b] as number)))
    const sorted = atMs.map((ms) => Math.round(ms * 1000)).sort((a, b) => a - b)
    for (let k = 1; k < sorted.length; k++) expect((sorted[k] as number) - (sorted[k - 1] as number)).toBeGreaterThanOrEqual(10_000)
    expect(limiter.waiting()).toBe(0)
  })

  if (cell.topology === 'cluster') {
    test('the slot of a key is the one that the cluster says', async () => {
      const [server] = running.cluster.servers as [RedisServer]
      for (const key of ['a', 'user:42', '{a}', '北京', '🚰', 'a%b', 'x'.repeat(1024)]) {
        const name = redisKey({ prefix: 'p', hashTag: undefined }, 'api', key)
        expect(slotOf(name), key).toBe(await server.command('CLUSTER', 'KEYSLOT', name))
      }
    })
  }
})

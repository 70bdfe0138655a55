/** `sluice inspect`, as it is built, on a real Redis. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { createCluster } from 'redis'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { createLimiter, fixedWindow, gcra, type Limit, leakyBucket, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { freePort, type RedisServer, startServer, startShards } from '../support/redis-servers.ts'
import { fromHex, putBytes } from '../support/state-bytes.ts'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

interface Run {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

function inspect(...args: string[]): Promise<Run> {
  const child = spawn(process.execPath, [MAIN, 'inspect', ...args])
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  return new Promise((resolve) => child.once('close', (status) => resolve({ status, stdout, stderr })))
}

const url = () => `redis://127.0.0.1:${inject('redisPort')}`
let redis: TestRedis
beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())

const LIMITS: readonly (readonly [name: string, limit: Limit])[] = [
  ['gcra', gcra({ rate: '5/h', burst: 5 })],
  ['tokenBucket', tokenBucket({ refill: '5/h', capacity: 5 })],
  ['leakyBucket', leakyBucket({ leak: '5/h', capacity: 5 })],
  ['fixedWindow', fixedWindow({ limit: 5, window: '1h', anchor: 'first' })],
  ['slidingWindow', slidingWindow({ limit: 5, window: '1h' })],
  ['slidingLog', slidingLog({ limit: 5, window: '1h' })],
]

test.each(LIMITS)('a key of %s is read back', async (type, limit) => {
  const prefix = `test:${randomUUID()}`
  const limiter = createLimiter(limit, { name: 'api', store: redisStore(redis, { prefix }) })
  await limiter.consume('user:42', 2)
  const key = `${prefix}:api:{user:42}`
  const before = await redis.send(['DUMP', key])
  const { status, stdout } = await inspect(key, '--url', url(), '--json')
  expect(status).toBe(0)
  const { resetAfterMs } = await limiter.peek('user:42')
  const inspected = JSON.parse(stdout)
  expect(inspected).toMatchObject({ key, type, limit: 5, remaining: 3, state: expect.anything() })
  expect(Math.abs(inspected.resetAfterMs - resetAfterMs)).toBeLessThan(60_000)
  expect(inspected.ttlMs).toBeGreaterThan(0)
  expect(await redis.send(['DUMP', key])).toEqual(before)
})

test('people get lines', async () => {
  const prefix = `test:${randomUUID()}`
  await createLimiter(gcra({ rate: '5/h', burst: 5 }), { name: 'api', store: redisStore(redis, { prefix }) }).consume('user:42', 2)
  const { stdout } = await inspect(`${prefix}:api:{user:42}`, '--url', url())
  expect(stdout).toContain('gcra: up to 5 at once, all of which come back within 1 h')
  // In use for 24 minutes, of which some are over; as long as Redis keeps it, which is a little
  // longer.
  expect(stdout).toMatch(/^ {2}3 of 5 left now; all of them in 2[234] min( \d+ s)? without another call$/m)
  expect(stdout).toMatch(/^ {2}Redis forgets it in \d+ min( \d+ s)?$/m)
})

test('a key that limits share is shown limit by limit', async () => {
  const key = `test:${randomUUID()}`
  const limits = { burst: gcra({ rate: '5/h', burst: 5 }), daily: fixedWindow({ limit: 7, window: '1h', anchor: 'first' }) }
  await createLimiter(limits, { name: 'api', store: redisStore(redis, { prefix: key }) }).consume('user:42', 2)
  const { stdout } = await inspect(`${key}:api:{user:42}`, '--url', url())
  expect(stdout).toMatch(/\} burst\n {2}gcra: up to 5 at once[\s\S]*\} daily\n {2}fixedWindow: up to 7 at once/)
  const listed = JSON.parse((await inspect(`${key}:api:{user:42}`, '--url', url(), '--json')).stdout)
  expect(listed).toMatchObject([
    { policy: 'burst', type: 'gcra', remaining: 3 },
    { policy: 'daily', type: 'fixedWindow', remaining: 5 },
  ])
})

test('a key that is not there has an exit code of its own; one that cannot be of Sluice is said to be none', async () => {
  const absent = await inspect('sluice:api:{nobody}', '--url', url())
  expect(absent).toMatchObject({
    status: 3,
    stdout: expect.stringMatching(/no such key.*misspelt: keys are such as sluice:api:\{user:42\}/),
  })
  expect(await inspect('sluice:api:{nobody}', '--url', url(), '--json')).toEqual({ status: 3, stdout: 'null\n', stderr: '' })
  for (const typo of ['nope', 'sluice:api:user:42']) {
    expect(await inspect(typo, '--url', url())).toEqual({
      status: 3,
      stdout: '',
      stderr: `sluice: ${typo} is not there, and no key of Sluice: keys are such as sluice:api:{user:42}\n`,
    })
  }
})

test('a key of another program is an error', async () => {
  const key = `other:${randomUUID()}`
  await redis.send(['SADD', key, 'x'])
  const { status, stderr } = await inspect(key, '--url', url())
  expect(status).toBe(1)
  expect(stderr).toMatch(/WRONGTYPE.*something else wrote the key/)
})

test('a state of a format that is not known, and one that was cut off: told so', async () => {
  const key = `test:${randomUUID()}`
  await putBytes(redis, key, fromHex('06439efdcf9f00 08 63 00 03 0a0835 80f0'))
  const unknown = await inspect(key, '--url', url())
  expect([unknown.status, unknown.stderr]).toEqual([
    1,
    expect.stringMatching(/at byte 8: the state has the format 99, and .* knows 1 \(gcra\)/),
  ])
  await putBytes(redis, key, fromHex('06439efdcf9f00 08 01 00 03 0a08'))
  expect((await inspect(key, '--url', url())).stderr).toContain('the record ends within its head')
})

test('no key, no server: told so', async () => {
  for (const args of [[], [''], ['a', 'b']]) {
    expect(await inspect(...args, '--url', url())).toMatchObject({ status: 2, stderr: expect.stringContaining('inspect wants one key') })
  }
  const { status, stderr } = await inspect('a', '--url', `redis://127.0.0.1:${await freePort()}`)
  expect([status, stderr.trimEnd().split('\n').length]).toEqual([1, 1])
  expect(stderr).toContain('no Redis at redis://127.0.0.1:')
})

/** One line that says what is wrong, and nothing else. */
function expectOneLine({ status, stdout, stderr }: Run, says: RegExp): void {
  expect(stderr).toMatch(says)
  expect([status, stdout, stderr.trimEnd().split('\n').length]).toEqual([1, '', 1])
}

test('in a cluster any node leads to the key', async () => {
  const shards = await startShards()
  const client = createCluster({ rootNodes: shards.servers.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })) })
  try {
    await client.connect()
    const limiter = createLimiter(gcra({ rate: '5/h', burst: 5 }), { name: 'api', store: redisStore(client) })
    const [{ port }] = shards.servers as [RedisServer]
    // Of many keys some are on each of the nodes.
    const keys = ['ann', 'bob', 'eve', 'kim', 'lee', 'max']
    await Promise.all(keys.map((key) => limiter.consume(key, 2)))
    const runs = await Promise.all(keys.map((key) => inspect(`sluice:api:{${key}}`, '--url', `redis://127.0.0.1:${port}`, '--json')))
    for (const { stderr, stdout } of runs) {
      expect(stderr).toBe('')
      expect(JSON.parse(stdout)).toMatchObject({ type: 'gcra', remaining: 3 })
    }
  } finally {
    client.destroy()
    await shards.stop()
  }
})

test('a cluster that is down, and a user without rights: one line each', async () => {
  const [cluster, plain] = await Promise.all([startServer(['--cluster-enabled', 'yes']), startServer()])
  try {
    expectOneLine(await inspect('a', '--url', `redis://127.0.0.1:${cluster.port}`), /CLUSTERDOWN.*CLUSTER INFO/)
    await plain.command('ACL', 'SETUSER', 'limiter', 'on', '>secret', '~*', '+ping')
    expectOneLine(await inspect('a', '--url', `redis://limiter:secret@127.0.0.1:${plain.port}`), /NOPERM.*redis-keys\.md/)
    expectOneLine(await inspect('a', '--url', `redis://limiter:wrong@127.0.0.1:${plain.port}`), /WRONGPASS/)
  } finally {
    await Promise.all([cluster.kill(), plain.kill()])
  }
})

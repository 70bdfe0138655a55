/**
 * The decisions of one turn of the event loop travel together, and each is decided as if it had
 * come alone.
 */
import { randomUUID } from 'node:crypto'
import type { Writable } from 'node:stream'
import { Cluster } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { RULE } from '../../src/algorithms/algorithm.ts'
import { labelOf, writeState } from '../../src/algorithms/codec.ts'
import { systemClock } from '../../src/clock/clock.ts'
import { createLimiter, fixedWindow, gcra, type Limit, leakyBucket, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { type RedisSender, type RedisStoreOptions, redisStore } from '../../src/stores/redis/index.ts'
import { script } from '../../src/stores/redis/script.ts'
import { Dispatcher } from '../../src/stores/remote/dispatcher.ts'
import { Part, Step } from '../../src/stores/step.ts'
import { admitted } from '../../src/testing/admitted.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { countingSender } from '../support/counted-commands.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { startCluster, startServer } from '../support/redis-servers.ts'
import { bytesAt, fromHex, putBytes, toHex } from '../support/state-bytes.ts'

let redis: TestRedis
const sent: (readonly string[])[] = []
const counting: RedisSender = {
  send(args) {
    sent.push(args)
    return redis.send(args)
  },
}

beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())

let prefix: string

function limiterOn(limit: Limit, options: RedisStoreOptions = {}, sender: RedisSender = counting) {
  prefix = randomUUID()
  return createLimiter<Limit, ReturnType<typeof redisStore>>(limit, { name: 'api', store: redisStore(sender, { prefix, ...options }) })
}

const LIMIT = gcra({ rate: '5/h', burst: 5 })
const keysOf = (args: readonly string[]) => args.slice(3, 3 + Number(args[2]))

describe('one turn', () => {
  test('two hundred decisions are four script calls, and one by itself is one', async () => {
    const limiter = limiterOn(LIMIT)
    // From now on the server knows the script: else each call would be sent twice.
    await limiter.consume('first')
    sent.length = 0
    await Promise.all(Array.from({ length: 200 }, (_, k) => limiter.consume(`key ${k}`)))
    expect(sent.map((args) => keysOf(args).length)).toEqual([64, 64, 64, 8])
    await limiter.consume('alone')
    expect(sent.length).toBe(5)
  })

  test('a call that just takes by one limit tells of that and no more', async () => {
    const limiter = limiterOn(LIMIT)
    const told = async (...costs: number[]) => {
      sent.length = 0
      await Promise.all(costs.map((cost, k) => limiter.consume(`key ${k}`, cost)))
      return (sent[0] as readonly string[]).slice(3 + costs.length)
    }
    // The format, no name, four bytes of figures: 5, 1, 720000000.
    const label = '\x01\x00\x04(\x08\x47\x09'
    const part = (cost: number) => [label, '1', `${cost}`]
    expect(await told(1, 1)).toEqual([label, '1'])
    expect(await told(2)).toEqual([label, '2'])
    sent.length = 0
    await Promise.all(['key 1', 'key 2', 'key 1'].map((key) => limiter.consume(key)))
    expect(sent[0]?.slice(6)).toEqual([label, '1'])
    expect(await told(1, 2, 2)).toEqual(['', '0', 't', '1', label, '1', 't', '2', label, '2'])
    expect(await told(1, 0, 0)).toEqual(['', '0', 't', '1', label, '1', 'take -1 -1', '2', '1', '1', ...part(0)])
    sent.length = 0
    await limiter.peek('key 1')
    expect(sent[0]?.slice(4)).toEqual(['', '0', 'ask -1 -1', '1', '1', '1', ...part(1)])
    sent.length = 0
    await limiter.charge('key 1', 3)
    expect(sent[0]?.slice(4)).toEqual([label, '3', 'c'])
    const [one, other] = await Promise.all([limiter.consume('a', 2), limiter.consume('b', 2)])
    sent.length = 0
    await Promise.all([one.settle(1), other.settle(5)])
    const timesUs = ({ atMs, resetAfterMs }: typeof one) => `${Math.round(atMs * 1000)},${Math.round((atMs + resetAfterMs) * 1000)}`
    expect(sent[0]?.slice(5)).toEqual(['', '0', 's', '2', label, `[-1,${timesUs(one)},3,${timesUs(other)}]`])
  })

  test('a lone take reads once and writes once, and one that is refused writes nothing', async () => {
    const sender = countingSender(redis)
    const limiter = limiterOn(LIMIT, { denialCache: false }, sender)
    expect(await limiter.consume('u1', 2)).toMatchObject({ allowed: true, remaining: 3 })
    expect(sender.counts).toEqual({ get: 1, set: 1 })
    expect(await limiter.consume('u1', 2)).toMatchObject({ allowed: true, remaining: 1 })
    expect(sender.counts).toEqual({ get: 1, set: 1 })
    expect(await limiter.consume('u1', 2)).toMatchObject({ allowed: false, remaining: 1 })
    expect(sender.counts).toEqual({ get: 1, pttl: 1 })
  })

  test('one script decides everything, and has a bounded size', async () => {
    const [one, other] = [limiterOn(LIMIT), limiterOn(slidingLog({ limit: 1_000, window: '1min' }))]
    await Promise.all([one.consume('u1'), other.consume('u1')])
    sent.length = 0
    for (const call of [() => one.peek('u1'), () => one.reserve('u1'), () => other.charge('u1', 2), () => one.reset('u1')]) await call()
    expect(new Set(sent.map(([command, name]) => `${command} ${name}`)).size).toBe(1)
    expect(script().text.length).toBeLessThan(400_000)
  })

  test('maxBatch bounds a call, and 1 sends each by itself', async () => {
    for (const [maxBatch, calls] of [
      [10, 3],
      [1, 25],
      [1_000, 1],
    ] as const) {
      const limiter = limiterOn(LIMIT, { maxBatch })
      sent.length = 0
      await Promise.all(Array.from({ length: 25 }, (_, k) => admitted(limiter, `key ${k}`)))
      expect(sent.length).toBe(calls)
    }
  })

  test('calls made by promises that end in the same turn travel together too', async () => {
    const limiter = limiterOn(LIMIT)
    sent.length = 0
    const deep = async (depth: number) => {
      for (let k = 0; k < depth; k++) await Promise.resolve()
      return admitted(limiter, `key ${depth}`)
    }
    await Promise.all(Array.from({ length: 20 }, (_, depth) => deep(depth)))
    expect(sent.length).toBe(1)
  })

  test('a decision that is alone is sent before anything else happens', async () => {
    const limiter = limiterOn(LIMIT)
    sent.length = 0
    const order: string[] = []
    setImmediate(() => order.push(`immediate, ${sent.length} sent`))
    await limiter.consume('k')
    expect(order[0]).toBe('immediate, 1 sent')
  })

  test('what is beyond a full call leaves when that is written, in its order', async () => {
    const sentBeforeWriting: number[] = []
    const writingLater: RedisSender = {
      send(args) {
        setImmediate(() => sentBeforeWriting.push(sent.length))
        return counting.send(args, '')
      },
    }
    const limiter = limiterOn(LIMIT, { maxBatch: 10 }, writingLater)
    sent.length = 0
    const answers = Array.from({ length: 25 }, (_, k) => admitted(limiter, `key ${k}`))
    // After the end of the turn, and before the client has written: it must not overtake.
    const late = new Promise<boolean>((resolve) => queueMicrotask(() => process.nextTick(() => resolve(admitted(limiter, 'key 25')))))
    expect((await Promise.all([...answers, late])).every(Boolean)).toBe(true)
    expect(sentBeforeWriting[0]).toBe(1)
    expect(sent.map((args) => keysOf(args).length)).toEqual([10, 10, 6])
    const places = sent.flatMap(keysOf).map((key) => Number(/key (\d+)/.exec(key)?.[1]))
    expect(places).toEqual(Array.from({ length: 26 }, (_, k) => k))
  })

  test('the order of calls on one key is kept, whatever they are', async () => {
    const limiter = limiterOn(LIMIT, { denialCache: false })
    const remaining = async (decision: Promise<{ remaining: number; allowed: boolean }>) => {
      const { remaining, allowed } = await decision
      return allowed ? remaining : 'no'
    }
    const answers = await Promise.all([
      remaining(limiter.consume('k')),
      remaining(limiter.consume('k', 3)),
      remaining(limiter.consume('k', 2)),
      limiter.refund('k', 2).then(() => 'refund'),
      remaining(limiter.peek('k')),
      remaining(limiter.consume('k', 3)),
      limiter.reset('k').then(() => 'reset'),
      remaining(limiter.consume('k')),
    ])
    expect(answers).toEqual([4, 1, 'no', 'refund', 3, 0, 'reset', 4])
  })

  test('of a thousand calls at once on one key exactly the limit is admitted', async () => {
    const limiter = limiterOn(gcra({ rate: '100/h', burst: 100 }), { denialCache: false })
    const answers = await Promise.all(Array.from({ length: 1_000 }, () => admitted(limiter, 'k')))
    expect(answers.filter(Boolean).length).toBe(100)
    expect(answers.slice(0, 100).every(Boolean)).toBe(true)
  })

  test('limiters of all algorithms and several limits share a call, each with its own answer', async () => {
    const store = redisStore(counting, { prefix: randomUUID() })
    const limits = {
      gcra: gcra({ rate: '3/h', burst: 3 }),
      tokens: tokenBucket({ capacity: 4, refill: '4/h' }),
      leaky: leakyBucket({ capacity: 5, leak: '5/h' }),
      fixed: fixedWindow({ limit: 6, window: '1h' }),
      sliding: slidingWindow({ limit: 7, window: '1h' }),
      log: slidingLog({ limit: 8, window: '1h' }),
    }
    const single = Object.entries(limits).map(([name, limit]) => createLimiter<Limit, typeof store>(limit, { name, store }))
    const all = createLimiter(limits, { name: 'all', store })
    // The server knows the script.
    await all.peek('k')
    sent.length = 0
    const decisions = await Promise.all([...single.map((limiter) => limiter.consume('k')), all.consume('k', 2), all.peek('k')])
    expect(sent.length).toBe(1)
    expect(decisions.map(({ remaining }) => remaining)).toEqual([2, 3, 4, 5, 6, 7, 1, 1])
    expect(Object.values(decisions[6]?.parts ?? {}).map(({ remaining }) => remaining)).toEqual([1, 2, 3, 4, 5, 6])
  })

  test('reservations come back with tickets that cancel them', async () => {
    const limiter = limiterOn(gcra({ rate: '1/s', burst: 1 }))
    const reservations = await Promise.all(Array.from({ length: 5 }, () => limiter.reserve('k')))
    const delays = reservations.map(({ delayMs }) => Math.round(delayMs / 1_000))
    expect(delays).toEqual([0, 1, 2, 3, 4])
    await Promise.all(
      reservations
        .slice(1)
        .reverse()
        .map((reservation) => reservation.cancel()),
    )
    expect((await limiter.peek('k')).retryAfterMs).toBeLessThanOrEqual(1_000)
  })

  test('times that tests give are kept apart', async () => {
    const clock = fakeClock()
    const store = redisStore(counting, { prefix: randomUUID() })
    const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { name: 'api', store, clock, storeTimeoutMs: 60_000 })
    const first = limiter.consume('k')
    clock.setMs(400)
    const second = limiter.consume('k')
    clock.setMs(1_000)
    const third = limiter.consume('k')
    expect([(await first).allowed, (await second).retryAfterMs, (await third).allowed]).toEqual([true, 600, true])
  })
})

test('one turn: a key lives for as long as it is not idle, and no shorter', async () => {
  const limiter = limiterOn(gcra({ rate: '1/10d', burst: 1 }))
  await limiter.consume('k')
  const ttlMs = (await redis.send(['PTTL', `${prefix}:api:{k}`])) as number
  expect(ttlMs).toBeLessThanOrEqual(864_000_000 + 3_600_000)
  // However slow the machine: a minute is far less than a thousandth of that.
  expect(ttlMs).toBeGreaterThan(864_000_000 - 60_000)
})

test('one turn: a key lives until it is idle, rounded up, and a day at least by a clock of the caller', async () => {
  const label = labelOf(gcra({ rate: '1000000/s', burst: 10_000 })[RULE], 'default')
  const isExact = async (...argv: string[]) => {
    const key = `lives:${randomUUID()}`
    for (const command of [['MULTI'], ['EVAL', script().text, '1', key, ...argv], ['PTTL', key]]) void redis.send(command)
    const [[nowUs, first, ...rest], ttlMs] = (await redis.send(['EXEC'])) as [[number, number, ...number[]], number]
    // A debt is told in full.
    const resetUs = rest[first === -2 ? 2 : 0] as number
    const livesUntilUs = Math.ceil((nowUs + resetUs) / 1_250) * 1_250
    const livesMs = argv.length < 4 ? Math.ceil((livesUntilUs - nowUs) / 1000) : 86_400_000
    expect(ttlMs).toBeLessThanOrEqual(livesMs)
    return ttlMs === livesMs
  }
  // A millisecond may pass between the two commands, but not each time.
  while (!(await isExact(label, '1')));
  while (!(await isExact(label, '1001')));
  while (!(await isExact(label, '20000', 'c')));
  while (!(await isExact('1763200000000000', '0', 't', '1', label, '1')));
})

test('one turn: a key lives a millisecond at least, also one that is idle when it is written', async () => {
  const rule = gcra({ rate: '1/s', burst: 1 })[RULE]
  const label = labelOf(rule, 'default')
  const key = `idle:${randomUUID()}`
  // At a time that is rounded up to itself.
  const nowUs = 1_763_200_000_000_000
  const text = script().text.replace("redis.call('TIME')", `{ ${nowUs / 1e6}, 0 }`)
  await redis.send(['EVAL', text, '1', key, label, '1'])
  expect(await redis.send(['EVAL', text, '1', key, '', '0', 's', '1', label, `[-1,${nowUs},${nowUs + 1e6}]`])).toEqual([nowUs, 1])
})

test.each([
  gcra({ rate: '1/s', burst: 1 }),
  fixedWindow({ limit: 1, window: '1s', anchor: 'first' }),
  slidingLog({ limit: 1, window: '1s' }),
])('one turn: a state that is idle at 2^53 µs or later is neither written nor read (%#)', async (limit) => {
  const rule = limit[RULE]
  const label = labelOf(rule, 'default')
  const key = `ends:${randomUUID()}`
  const takenAt = (nowUs: number) => redis.send(['EVAL', script().text, '1', key, `${nowUs}`, '0', 't', '1', label, '1'])
  const spanUs = ((await takenAt(4_000_000)) as number[])[2] as number
  await redis.send(['DEL', key])
  await expect(takenAt(2 ** 53 - spanUs)).rejects.toThrow('a state has no end')
  const latestUs = 2 ** 53 - spanUs - 1
  expect(await takenAt(latestUs)).toEqual([latestUs, 0, spanUs])
  const record = toHex((await bytesAt(redis, key)) as Uint8Array)
  await putBytes(redis, key, fromHex(`20000000000000${record.slice(14)}`))
  await redis.send(['PEXPIRE', key, '600000'])
  await expect(takenAt(latestUs)).rejects.toThrow('it holds no states of Sluice')
})

describe('errors stay with the decision that has them', () => {
  test.each([gcra({ rate: '7/s', burst: 10 }), slidingLog({ limit: 10, window: '1h' })])('and name its key (%#)', async (limit) => {
    const limiter = limiterOn(limit)
    await redis.send(['SET', `${prefix}:api:{bad}`, 'not ours'])
    const answers = await Promise.allSettled(['a', 'b', 'c', 'bad', 'd'].map((key) => limiter.consume(key)))
    expect(answers.flatMap((each) => (each.status === 'rejected' ? [each.reason.message] : []))).toEqual([expect.stringContaining('{bad}')])
  })

  test('a word that is out of range', async () => {
    const limit = gcra({ rate: '7/s', burst: 10 })
    prefix = randomUUID()
    const limiter = createLimiter(limit, { name: 'api', clock: fakeClock(4_000), store: redisStore(redis, { prefix }) })
    const record = toHex(writeState(limit[RULE], Float64Array.of(4_500_000, 2 ** 52, 4_000_000), 0, 5_000_000, 'default'))
    await putBytes(redis, `${prefix}:api:{bad}`, fromHex(record.replace('10000000000000', '40000000000000')))
    const answers = await Promise.allSettled(['a', 'b', 'bad', 'c'].map((key) => limiter.consume(key)))
    expect(answers.map((answer) => (answer.status === 'rejected' ? answer.reason.message : answer.value.remaining))).toEqual([
      9,
      9,
      expect.stringContaining('a word is out of range'),
      9,
    ])
  })

  test('a key that another program wrote fails alone', async () => {
    const limiter = limiterOn(LIMIT)
    await redis.send(['SET', `${prefix}:api:{bad}`, 'not ours'])
    await redis.send(['LPUSH', `${prefix}:api:{list}`, 'x'])
    const answers = await Promise.allSettled(['a', 'bad', 'b', 'list', 'c'].map((key) => limiter.consume(key)))
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'])
    expect(answers[1]).toMatchObject({ reason: { code: 'STORE', isolated: true, message: expect.stringContaining('{bad}') } })
    expect(limiter.health().state).toBe('up')
    await redis.send(['DEL', `${prefix}:api:{bad}`, `${prefix}:api:{list}`])
  })

  test('a key that is no text fails before anything is sent', async () => {
    const limiter = limiterOn(LIMIT)
    const answers = await Promise.allSettled(['a', '\ud800', 'b'].map((key) => limiter.consume(key)))
    expect(answers).toMatchObject([{ status: 'fulfilled' }, { reason: { code: 'KEY' } }, { status: 'fulfilled' }])
  })

  test('a hashTag that throws is the caller’s fault, and the store stays up', async () => {
    const limiter = limiterOn(LIMIT, { hashTag: (key) => (key.split(':')[1] as string).toUpperCase() })
    const answers = await Promise.allSettled([limiter.consume('a:1'), limiter.consume('no colon')])
    expect(answers).toMatchObject([{ status: 'fulfilled' }, { reason: { code: 'CONFIG', message: expect.stringContaining('"no colon"') } }])
    expect(limiter.health().state).toBe('up')
  })

  test('a damaged state fails alone, and the answers of the others are theirs', async () => {
    const limiter = limiterOn(gcra({ rate: '3/h', burst: 3 }), { denialCache: false })
    for (let k = 0; k < 3; k++) await limiter.consume('full')
    const bad = `${prefix}:api:{bad}`
    // Ours but for a byte behind it.
    await limiter.consume('bad')
    await redis.send(['APPEND', bad, 'x'])
    const reason = { code: 'STORE', message: expect.stringContaining('does not hold a state that this version of Sluice wrote') }
    const answers = await Promise.allSettled(['bad', 'full', 'other'].map((key) => limiter.consume(key)))
    expect(answers).toMatchObject([
      { reason: { ...reason, isolated: true } },
      { value: { outcome: 'limited' } },
      { value: { outcome: 'allowed', remaining: 2 } },
    ])
    await expect(limiter.consume('bad')).rejects.toMatchObject(reason)
    await redis.send(['DEL', bad])
  })

  test('where nothing could be decided the client sees the error as one, and acts on it if it is one of those', async () => {
    const seen: string[] = []
    const send = (args: readonly string[]) =>
      redis.send(args).catch((error: Error) => {
        if (!error.message.startsWith('NOSCRIPT')) seen.push(error.message)
        throw error
      })
    const limiter = limiterOn(LIMIT, {}, { send })
    const bad = `${prefix}:api:{bad}`
    await redis.send(['SET', bad, 'not ours', 'PX', '5000'])
    await Promise.allSettled(['bad', 'other'].map((key) => limiter.consume(key)))
    expect(seen).toEqual([])
    await Promise.allSettled(['bad', 'bad'].map((key) => limiter.consume(key)))
    expect(seen).toEqual([expect.stringContaining('does not hold a state')])
    await redis.send(['DEL', bad])
  })

  test('a key of another type fails alone', async () => {
    const limiter = limiterOn(fixedWindow({ limit: 5, window: '1h' }))
    const bad = `${prefix}:api:{bad}`
    await redis.send(['LPUSH', bad, 'not ours'])
    const answers = await Promise.allSettled(['bad', 'other'].map((key) => limiter.consume(key)))
    const reason = { code: 'STORE', isolated: true, message: expect.stringContaining('does not hold a state') }
    expect(answers).toMatchObject([{ reason }, { status: 'fulfilled' }])
    await expect(limiter.consume('bad')).rejects.toMatchObject(reason)
    await redis.send(['DEL', bad])
  })

  test.each([
    ['a time that no state has', '20000000000000 08 01 00 04 28084709 80f0'],
    ['a word that no state has', '1fffffffffffff 08 01 00 04 28084709 70f0 ffffffffffffff'],
    ['a word that is a negative time', '1fffffffffffff 08 01 00 04 28084709 e0f0 ffffffffffff'],
    ['an end that lies before the end of its words', '1fffffffffffff 08 01 00 04 28084709 80b0 01'],
    ['a size of the head that leads beyond the end', '1fffffffffffff ff 01 00'],
  ])('%s is refused, or decided on, and hurts no other', async (_, hex) => {
    const limiter = limiterOn(LIMIT)
    const bad = `${prefix}:api:{bad}`
    await putBytes(redis, bad, fromHex(hex))
    const answers = await Promise.allSettled(['bad', 'other'].map((key) => limiter.consume(key)))
    expect(answers[1]).toMatchObject({ status: 'fulfilled', value: { remaining: 4 } })
    if (answers[0]?.status === 'rejected') {
      expect(answers[0].reason).toMatchObject({ code: 'STORE', isolated: true })
      expect(await bytesAt(redis, bad)).toEqual(fromHex(hex))
    }
    expect(limiter.health().state).toBe('up')
    await redis.send(['DEL', bad])
  })

  test('a state of a format of another version is an error that names both, and stays as it is', async () => {
    const limiter = limiterOn(LIMIT)
    const bytes = fromHex('1fffffffffffff 09 63 00 04 28084709 80f0')
    await putBytes(redis, `${prefix}:api:{k}`, bytes)
    const message = /holds a state of the format 99, and this version of Sluice knows 1 \(gcra\), 2 .*another version of Sluice wrote it/
    await expect(limiter.consume('k')).rejects.toMatchObject({ code: 'STORE', isolated: true, message: expect.stringMatching(message) })
    await expect(limiter.peek('k')).rejects.toMatchObject({ message: expect.stringMatching(message) })
    expect(await bytesAt(redis, `${prefix}:api:{k}`)).toEqual(bytes)
  })

  test('a key that the user may not touch fails alone', async () => {
    await redis.send(['ACL', 'SETUSER', 'few', 'on', '>secret', '~mine:api:*', '+@all'])
    const few = createClient({ socket: { host: '127.0.0.1', port: inject('redisPort') }, username: 'few', password: 'secret' })
    await few.connect()
    try {
      const store = redisStore(few, { prefix: 'mine' })
      const [mine, theirs] = ['api', 'other'].map((name) => createLimiter(LIMIT, { name, store }))
      const answers = await Promise.allSettled([mine?.consume('a'), theirs?.consume('a'), mine?.consume('b')])
      expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect(answers[1]).toMatchObject({ reason: { code: 'STORE', isolated: true, message: expect.stringContaining('NOPERM') } })
    } finally {
      few.destroy()
      await redis.send(['ACL', 'DELUSER', 'few'])
      await redis.send(['DEL', 'mine:api:{a}', 'mine:api:{b}'])
    }
  })

  test('a decision of which one key may be read only fails alone, and the answers of the others are theirs', async ({ skip }) => {
    const [, major] = /redis_version:(\d+)/.exec(`${await redis.send(['INFO', 'server'])}`) ?? []
    skip(Number(major) < 7, 'this server has no such permissions')
    const name = randomUUID()
    const commands = ['+hello', '+client', '+eval', '+evalsha', '+time', '+get']
    await redis.send(['ACL', 'SETUSER', name, 'on', '>secret', '~*', ...commands, '(+set ~*well*)'])
    const socket = { host: '127.0.0.1', port: inject('redisPort') }
    const client = await createClient({ username: name, password: 'secret', socket }).connect()
    const store = redisStore(client, { prefix: name })
    const limiter = createLimiter({ first: LIMIT, second: fixedWindow({ limit: 5, window: '1h' }) }, { name: 'api', store })
    const keys = ['well 1', { first: 'well 2', second: 'ill' }, 'ill', 'well 3'] as const
    const answers = await Promise.allSettled(keys.map((key) => limiter.consume(key)))
    await expect(createLimiter(LIMIT, { name: 'lone', store }).consume('ill')).rejects.toMatchObject({ code: 'STORE' })
    client.destroy()
    await redis.send(['ACL', 'DELUSER', name])
    expect(await redis.send(['EXISTS', `${name}:api:{ill}`])).toBe(0)
    const well = { status: 'fulfilled', value: { allowed: true, parts: { first: { remaining: 4 }, second: { remaining: 4 } } } }
    const ill = { status: 'rejected', reason: { code: 'STORE', isolated: true } }
    expect(answers).toMatchObject([well, ill, ill, well])
    // Of two keys none is written where one may not be.
    expect(await redis.send(['EXISTS', `${name}:api:{well 2}`])).toBe(0)
  })

  test('keys are read in one go, four thousand at a time', async () => {
    const sender = countingSender(redis)
    const limits = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, k) => [`limit-${k}`, LIMIT]))
    for (const [count, reading] of [
      [4, { mget: 1 }],
      [5, { mget: 2 }],
    ] as const) {
      const { driver } = redisStore(sender, { prefix: randomUUID() })
      const scope = createLimiter(limits(count)).scope()
      const stepOf = (n: number) =>
        new Step(
          'take',
          scope,
          scope.limits.map(({ name, rule }) => new Part(name, rule, `${name} of ${n}`, 1)),
          -1,
          -1,
          undefined,
        )
      const all = () => Array.from({ length: 1_000 }, (_, n) => stepOf(n))
      await driver.apply(all())
      const steps = all()
      expect(await driver.apply(steps)).toEqual([])
      expect(steps.every(({ parts }) => parts.every(({ verdict }) => verdict.outcome === 'allowed' && verdict.remaining === 3))).toBe(true)
      expect(sender.counts).toEqual({ ...reading, set: count * 1_000 })
    }
  })

  test.each([2, 5])('of %i keys nothing is asked one by one, and one by itself is not asked for in company', async (count) => {
    const sender = countingSender(redis)
    const limiter = limiterOn(LIMIT, {}, sender)
    const all = () => Promise.all(Array.from({ length: count }, (_, n) => limiter.consume(`key ${n}`)))
    await all()
    await all()
    expect(sender.counts).toEqual({ mget: 1, set: count })
    await limiter.consume('key 1')
    expect(sender.counts).toEqual({ get: 1, set: 1 })
  })

  test('a server that is full refuses every write, also behind one that forgets, and loses nothing', async () => {
    const server = await startServer(['--maxmemory-policy', 'noeviction'])
    const client = await createClient({ socket: { host: server.host, port: server.port } }).connect()
    try {
      const limits = [
        LIMIT,
        tokenBucket({ capacity: 5, refill: '5/h' }),
        leakyBucket({ capacity: 5, leak: '5/h' }),
        fixedWindow({ limit: 5, window: '1h', anchor: 'first' }),
        slidingWindow({ limit: 5, window: '1h' }),
        slidingLog({ limit: 5, window: '1h' }),
      ]
      const store = redisStore(client, { denialCache: false })
      const limiters = limits.map((limit) => createLimiter<Limit, typeof store>(limit, { name: limit.type, store }))
      for (const limiter of limiters) await limiter.consume('old', 2)
      await server.command('CONFIG', 'SET', 'maxmemory', '1')
      const calls = limiters.flatMap((limiter) => [limiter.reset('none'), limiter.consume('old'), limiter.consume('new')])
      const answers = await Promise.allSettled(calls)
      const refused = answers.filter(({ status }) => status === 'rejected')
      expect(refused.length).toBe(2 * limits.length)
      for (const each of refused) expect(each).toMatchObject({ reason: { code: 'STORE', message: expect.stringContaining('OOM') } })
      await server.command('CONFIG', 'SET', 'maxmemory', '0')
      const again = redisStore(client)
      for (const limit of limits) {
        const limiter = createLimiter<Limit, typeof again>(limit, { name: limit.type, store: again })
        expect([(await limiter.peek('old')).remaining, (await limiter.peek('new')).remaining]).toEqual([3, 5])
      }
    } finally {
      client.destroy()
      await server.kill()
    }
  })

  test('a script that the server has forgotten is sent again for all, and each is charged once', async () => {
    const limiter = limiterOn(LIMIT)
    await limiter.consume('warm-up')
    for (let k = 0; k < 4; k++) {
      await redis.send(['SCRIPT', 'FLUSH'])
      await Promise.all(Array.from({ length: 10 }, (_, n) => limiter.consume(`key ${n}`)))
    }
    const left = await Promise.all(Array.from({ length: 10 }, (_, n) => limiter.peek(`key ${n}`)))
    expect(left.map(({ remaining }) => remaining)).toEqual(left.map(() => 1))
  })
})

describe('a client that misbehaves', () => {
  const replies: readonly (readonly [string, () => unknown])[] = [
    [
      'throws where it should reject',
      () => {
        throw new Error('closed')
      },
    ],
    ['answers with nothing', () => Promise.resolve(null)],
    ['answers with too little', () => Promise.resolve([1])],
    ['answers with something else', () => Promise.resolve('OK')],
    ['says CROSSSLOT whatever it is sent', () => Promise.reject(new Error("CROSSSLOT Keys in request don't hash to the same slot"))],
    ['says NOPERM whatever it is sent', () => Promise.reject(new Error('NOPERM No permissions to access a key'))],
  ]
  test.each(replies)('%s: every decision fails, and none is left waiting', async (_, send) => {
    const limiter = limiterOn(LIMIT, {}, { send: send as RedisSender['send'] })
    const answers = await Promise.allSettled(['a', 'b', 'c'].map((key) => limiter.consume(key)))
    expect(answers).toMatchObject(answers.map(() => ({ status: 'rejected', reason: { code: 'STORE' } })))
    limiter.close()
  })
})

describe('a listener that throws', () => {
  /**
   * Submits a step for each key, and what is told to whom; the first throws whatever it is told.
   */
  async function toldBy(store: ReturnType<typeof redisStore>): Promise<string[]> {
    const scope = createLimiter(LIMIT, { name: 'api', store }).scope()
    const dispatcher = new Dispatcher(store.driver, 64, undefined)
    const [{ name, rule }] = scope.limits as [(typeof scope.limits)[number]]
    const told: string[] = []
    const submitted = ['a', 'b'].map(
      (key) =>
        new Promise<void>((resolve) => {
          const tell = (what: string) => {
            told.push(`${key} ${what}`)
            resolve()
            if (key === 'a') throw new Error(`of ${key}`)
          }
          const step = new Step('take', scope, [new Part(name, rule, key, 1)], -1, -1, undefined)
          dispatcher.submit({ step, answered: () => tell('yes'), failed: () => tell('no') })
        }),
    )
    const thrown = new Promise((resolve) => process.once('unhandledRejection', resolve))
    await Promise.all(submitted)
    expect(await thrown).toMatchObject({ message: 'of a' })
    return told
  }

  test('of verdicts is told once, and the others hear of theirs', async () => {
    expect(await toldBy(redisStore(counting, { prefix: randomUUID() }))).toEqual(['a yes', 'b yes'])
  })

  test('of a failure is told once, and the others hear of theirs', async () => {
    const broken = redisStore({ send: () => Promise.reject(new Error('no connection')) })
    expect(await toldBy(broken)).toEqual(['a no', 'b no'])
  })

  test('of a refusal that is known hears of it, and of nothing else', async () => {
    const store = redisStore(counting, { prefix: randomUUID() })
    const limiter = createLimiter(LIMIT, { name: 'api', store })
    const watch = { clock: systemClock, timeoutUs: 60_000_000, onStoreError: 'throw', localShare: 1, onHealth() {} } as const
    const guarded = store.connect(watch)
    const scope = limiter.scope()
    const [{ name, rule }] = scope.limits as [(typeof scope.limits)[number]]
    const stepOf = (cost: number) => new Step('take', scope, [new Part(name, rule, 'k', cost)], -1, -1, undefined)
    for (const cost of [5, 1]) await guarded.ask(stepOf(cost), () => {})
    sent.length = 0
    const told: string[] = []
    const asked = guarded.ask(stepOf(1), ([verdict]) => {
      told.push(verdict?.outcome as string)
      throw new Error('mine')
    })
    await expect(asked).rejects.toThrow('mine')
    expect({ told, sent }).toEqual({ told: ['limited'], sent: [] })
    guarded.close()
    limiter.close()
  })
})

describe('a cluster', () => {
  test('a client that fails to write together writes one by one', async () => {
    const uncaught: unknown[] = []
    const others = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    process.on('uncaughtException', (error) => uncaught.push(error))
    const failing: RedisSender = {
      ...counting,
      cluster: true,
      together() {
        throw new Error('no cork')
      },
    }
    const limiter = limiterOn(LIMIT, {}, failing)
    const answers = await Promise.all(['a', 'b', 'c'].map((key) => admitted(limiter, key)))
    process.removeAllListeners('uncaughtException')
    for (const other of others) process.on('uncaughtException', other)
    expect({ answers, uncaught }).toEqual({ answers: [true, true, true], uncaught: [] })
  })

  test('a cluster that says so late: decisions of one slot go again, those of several are asked slot by slot, none for ever', async () => {
    let sends = 0
    const oneAddress: RedisSender = {
      send(args) {
        sends += 1
        const tags = new Set(keysOf(args).map((key) => key.replace(/^.*\{(.*)\}.*$/, '$1')))
        return tags.size > 1 ? Promise.reject(new Error("CROSSSLOT Keys in request don't hash to the same slot")) : redis.send(args)
      },
    }
    const store = redisStore(oneAddress, { prefix: randomUUID() })
    const limiter = createLimiter({ user: LIMIT, tenant: LIMIT }, { name: 'api', store })
    const keys = [{ user: 'a', tenant: 'b' }, 'c', { user: 'a', tenant: 'b' }, { user: 'd', tenant: 'b' }, 'c'] as const
    const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
    expect(decisions.every(({ allowed }) => allowed)).toBe(true)
    const left = await Promise.all(['a', 'b', 'c', 'd'].map((key) => limiter.peek(key, 0)))
    expect(left.map(({ parts }) => [parts.user.remaining, parts.tenant.remaining])).toEqual([
      [3, 5],
      [5, 2],
      [3, 3],
      [4, 5],
    ])
    expect(sends).toBeLessThan(40)
  })

  test('what goes to one node is written at once, on ioredis too', async () => {
    const cluster = await startCluster()
    const client = new Cluster(
      cluster.servers.map(({ host, port }) => ({ host, port })),
      { retryDelayOnFailover: 0 },
    )
    try {
      const limiter = createLimiter(LIMIT, { name: 'api', store: redisStore(client) })
      // All connections are there and the script is known.
      await Promise.all(Array.from({ length: 300 }, (_, k) => limiter.consume(`warm ${k}`)))
      const writes = client.nodes('master').map(({ stream }) => countedWrites(stream as unknown as Writable))
      const decisions = await Promise.all(Array.from({ length: 300 }, (_, k) => limiter.consume(`key ${k}`)))
      expect(decisions.every(({ remaining }) => remaining === 4)).toBe(true)
      expect(writes.map((count) => count())).toEqual([1, 1, 1])
    } finally {
      client.disconnect()
      await cluster.stop()
    }
  })

  test('a call for each slot, behind one address too, and each decision once', async () => {
    const cluster = await startCluster()
    const client = createCluster({ rootNodes: cluster.servers.map(({ host, port }) => ({ socket: { host, port } })) })
    client.on('error', () => undefined)
    await client.connect()
    try {
      // A cluster that is not known to be one: every command goes to the node of its first key.
      const calls: (readonly string[])[] = []
      const oneAddress: RedisSender = {
        send(args, key) {
          calls.push(args)
          return client.sendCommand(key, false, [...args])
        },
      }
      const limiter = limiterOn(LIMIT, {}, oneAddress)
      const first = await Promise.all(Array.from({ length: 50 }, (_, k) => limiter.consume(`key ${k}`)))
      expect(first.map(({ remaining }) => remaining)).toEqual(first.map(() => 4))
      // The text is large, so each node is told it once, however many calls find that it does not
      // know the script.
      expect(calls.filter(([command]) => command === 'EVAL').length).toBeLessThanOrEqual(cluster.servers.length)
      calls.length = 0
      const second = await Promise.all(Array.from({ length: 50 }, (_, k) => limiter.consume(`key ${k % 25}`)))
      expect(second.slice(25).map(({ remaining }) => remaining)).toEqual(second.slice(25).map(() => 2))
      for (const args of calls) expect(new Set(keysOf(args)).size).toBe(1)
    } finally {
      client.destroy()
      await cluster.stop()
    }
  })
})

/** How often a stream has handed something to the system since now. */
function countedWrites(stream: Writable): () => number {
  let count = 0
  for (const name of ['_write', '_writev'] as const) {
    const write = stream[name]?.bind(stream) as (...args: unknown[]) => void
    Object.assign(stream, {
      [name]: (...args: unknown[]) => {
        count += 1
        write(...args)
      },
    })
  }
  return () => count
}

/**
 * The limits that a limiter has for one key are records of one string: one reading and one writing,
 * whichever of them take part in a decision.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  createLimiter,
  fixedWindow,
  gcra,
  type Limits,
  leakyBucket,
  memoryStore,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { type RedisSender, redisStore } from '../../src/stores/redis/index.ts'
import { inspectKey } from '../../src/stores/redis/inspect.ts'
import { script } from '../../src/stores/redis/script.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { Random } from '../model/random.ts'
import { countingSender } from '../support/counted-commands.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { bytesAt, fromHex, livesUntilUs, putBytes, recordsAt, toHex } from '../support/state-bytes.ts'

let redis: TestRedis
let prefix: string
beforeAll(async () => {
  redis = await connectRedis()
})
beforeEach(() => {
  prefix = randomUUID()
})
afterAll(() => redis.close())

const HOUR_MS = 3_600_000
const burst = gcra({ rate: '10/min', burst: 10 })
const daily = fixedWindow({ limit: 100, window: '1h', anchor: 'first' })
const hourly = gcra({ rate: '100/h', burst: 50 })

const limiterOf = <L extends Limits>(limits: L, sender: RedisSender = redis) =>
  createLimiter(limits, { name: 'api', store: redisStore(sender, { prefix }) })
const nameOf = (key: string) => `${prefix}:api:{${key}}`
const command = (...args: string[]) => redis.send(args)
const keysThere = async () => ((await command('KEYS', `${prefix}:*`)) as string[]).sort()
const leftOf = async (key: string) =>
  Object.fromEntries((await inspectKey(redis, nameOf(key))).map(({ policy, remaining }) => [policy, remaining]))

describe('one key', () => {
  test('holds every limit, and lives as long as the one that lives longest', async () => {
    const limiter = limiterOf({ burst, daily })
    await limiter.consume('u1', { burst: 2, daily: 3 })
    expect(await keysThere()).toEqual([nameOf('u1')])
    expect(await leftOf('u1')).toEqual({ burst: 8, daily: 97 })
    const ttlMs = Number(await command('PTTL', nameOf('u1')))
    expect(ttlMs).toBeGreaterThan(3_590_000)
    expect(ttlMs).toBeLessThanOrEqual(3_600_000 * 1.125)
    // Whichever of them stands first.
    await limiterOf({ daily, burst }).consume('u2')
    expect(Number(await command('PTTL', nameOf('u2')))).toBeGreaterThan(3_590_000)
  })

  test('holds limits of all algorithms, with and without a name', async () => {
    const limiter = limiterOf({
      default: burst,
      tokens: tokenBucket({ refill: '1/h', capacity: 5 }),
      water: leakyBucket({ leak: '1/h', capacity: 5 }),
      daily,
      slots: slidingWindow({ limit: 5, window: '1h' }),
      log: slidingLog({ limit: 5, window: '1h' }),
    })
    await limiter.consume('u1')
    await limiter.consume('u1', 2)
    expect(await keysThere()).toEqual([nameOf('u1')])
    const left = { tokens: 2, water: 2, daily: 97, slots: 2, log: 2 }
    expect(await leftOf('u1')).toEqual({ undefined: 7, ...left })
    const parts = (await limiter.peek('u1', 0)).parts
    for (const [name, remaining] of Object.entries({ default: 7, ...left })) {
      expect(parts[name as keyof typeof parts].remaining, name).toBe(remaining)
    }
  })

  test('is one reading and one writing', async () => {
    const sender = countingSender(redis)
    const limiter = limiterOf({ burst, daily }, sender)
    await limiter.consume('u1')
    await limiter.consume('u1')
    expect(sender.counts).toEqual({ get: 1, set: 1 })
  })

  test.each([2, 10])('of %i decisions of a call all keys are read in one go', async (count) => {
    const sender = countingSender(redis)
    const limiter = limiterOf({ burst, daily }, sender)
    const all = () => Promise.all(Array.from({ length: count }, (_, k) => limiter.consume(`u${k}`)))
    await all()
    await all()
    expect(sender.counts).toEqual({ mget: 1, set: count })
    expect(await leftOf('u1')).toEqual({ burst: 8, daily: 98 })
  })

  test('a limit without a name beside one with a name: each is read and written, and said in its place', async () => {
    const sender = countingSender(redis)
    const store = redisStore(sender, { prefix })
    const limiter = createLimiter({ burst, default: hourly }, { name: 'api', store, clock: fakeClock() })
    const all = () => Promise.all(['u1', 'u2', 'u3'].map((key) => limiter.consume(key, { burst: 1, default: 2 })))
    await all()
    for (const { allowed, parts } of await all()) {
      expect(allowed).toBe(true)
      expect(parts).toMatchObject({ burst: { remaining: 8, resetAfterMs: 12_000 }, default: { remaining: 46, resetAfterMs: 144_000 } })
    }
    expect(sender.counts).toEqual({ mget: 1, set: 3 })
  })

  test('is decided as one: what one limit refuses is charged on none', async () => {
    const limiter = limiterOf({ daily, burst })
    const asked = await Promise.all(Array.from({ length: 60 }, () => limiter.consume('u1')))
    expect(asked.filter(({ allowed }) => allowed).length).toBe(10)
    expect(await leftOf('u1')).toEqual({ daily: 90, burst: 0 })
  })
})

describe('who takes part', () => {
  test('limits with keys of their own find what was taken under one key, and leave what is not theirs', async () => {
    const limiter = limiterOf({ burst, hourly, daily })
    await limiter.consume('u1', 1)
    await limiter.consume({ burst: 'u1', hourly: 'u2', daily: 'u1' }, 2)
    expect(await leftOf('u1')).toEqual({ burst: 7, hourly: 49, daily: 97 })
    expect(await leftOf('u2')).toEqual({ hourly: 48 })
    await limiter.consume('u2', 3)
    expect(await leftOf('u2')).toEqual({ burst: 7, hourly: 45, daily: 97 })
  })

  test('a limit that was taken out of the limiter stays while it is in use, and then goes', async () => {
    const clock = fakeClock()
    const at = <L extends Limits>(limits: L) => createLimiter(limits, { name: 'api', store: redisStore(redis, { prefix }), clock })
    const namesNow = async () => (await inspectKey(redis, nameOf('u1'))).map(({ policy }) => policy)
    await at({ burst, daily }).consume('u1', 5)
    await at({ burst }).consume('u1', 1)
    expect(await namesNow()).toEqual(['burst', 'daily'])
    expect((await at({ burst, daily }).peek('u1')).parts).toMatchObject({ burst: { remaining: 4 }, daily: { remaining: 95 } })
    clock.setUs(3_600_000_000 - 1)
    await at({ burst: hourly }).consume('u1', 1)
    expect(await namesNow()).toEqual(['burst', 'daily'])
    clock.setUs(3_600_000_000)
    await at({ burst }).consume('u1', 1)
    expect(await namesNow()).toEqual(['burst'])
  })

  test('limits whose keys happen to be equal do not disturb each other, and are read and written as shortly', async () => {
    const sender = countingSender(redis)
    // Of which nothing comes back while the test runs, however slow the machine.
    const limits = { user: gcra({ rate: '10/h', burst: 10 }), tenant: gcra({ rate: '100/d', burst: 50 }) }
    const limiter = createLimiter(limits, { name: 'api', store: redisStore(sender, { prefix }), storeTimeoutMs: 60_000 })
    const calls = [
      { user: '7', tenant: '8' },
      { user: '9', tenant: '7' },
      { user: '8', tenant: '9' },
    ]
    const all = () => Promise.all(calls.map((key) => limiter.consume(key)))
    await all()
    await command('PEXPIRE', nameOf('7'), '60000')
    for (const { parts } of await all()) expect(parts).toMatchObject({ user: { remaining: 8 }, tenant: { remaining: 48 } })
    expect(sender.counts).toEqual({ mget: 1, set: 6 })
    for (const key of ['7', '8', '9']) expect(await leftOf(key)).toEqual({ user: 8, tenant: 48 })
    // It is set by each call, whatever it was.
    expect(Number(await command('PTTL', nameOf('7')))).toBeGreaterThan(60_000)
    await Promise.all(Array.from({ length: 12 }, () => limiter.consume({ user: '7', tenant: '9' })))
    expect(await leftOf('7')).toEqual({ user: 0, tenant: 48 })
  })

  test('the key lives as long as a limit that takes no part, and an hour longer at most', async () => {
    const both = limiterOf({ burst, daily })
    await both.consume('u1')
    await limiterOf({ burst }).consume('u1')
    const ttlMs = Number(await command('PTTL', nameOf('u1')))
    expect(ttlMs).toBeGreaterThan(3_590_000)
    expect(ttlMs).toBeLessThanOrEqual(2 * 3_600_000)
    await command('PERSIST', nameOf('u1'))
    await limiterOf({ burst }).consume('u1')
    expect(Number(await command('PTTL', nameOf('u1')))).toBeGreaterThan(3_590_000)
    await command('PERSIST', nameOf('u1'))
    await limiterOf({ burst }).peek('u1')
    expect(Number(await command('PTTL', nameOf('u1')))).toBeGreaterThan(3_590_000)
  })

  test('what is forgotten is only what was asked for', async () => {
    await limiterOf({ burst, daily }).consume('u1', 4)
    const ttlMs = Number(await command('PTTL', nameOf('u1')))
    await limiterOf({ burst }).reset('u1')
    expect(await leftOf('u1')).toEqual({ daily: 96 })
    expect(Math.abs(Number(await command('PTTL', nameOf('u1'))) - ttlMs)).toBeLessThan(60_000 + HOUR_MS)
    await limiterOf({ daily }).reset('u1')
    expect(await keysThere()).toEqual([])
    await limiterOf({ daily }).reset('u1')
    expect(await keysThere()).toEqual([])
  })

  test('a limiter with the same limits in another order finds them', async () => {
    await limiterOf({ a: burst, b: burst }).consume('u1', { a: 1, b: 4 })
    await limiterOf({ b: burst, a: burst }).consume('u1', { a: 2, b: 1 })
    expect(await leftOf('u1')).toEqual({ a: 7, b: 5 })
  })

  test('who comes to a key after one with other numbers sees what that one wrote', async () => {
    const limiter = limiterOf({ a: burst, b: burst })
    await limiter.consume({ a: 'u1', b: 'u2' })
    await limiterOf({ b: hourly }).consume('u3')
    const answers = await Promise.all(['u3', 'u2'].map((key) => limiter.consume({ a: 'u1', b: key })))
    expect(answers.map(({ parts }) => parts.a.remaining)).toEqual([8, 7])
    expect(await leftOf('u1')).toEqual({ a: 7 })
  })

  test('a record of a format that is not known, of a limit that takes no part, is kept byte by byte while it is in use', async () => {
    const clock = fakeClock(1_700_000_000_000)
    const at = <L extends Limits>(limits: L) => createLimiter(limits, { name: 'api', store: redisStore(redis, { prefix }), clock })
    // Format 99, named `new`, idle at 0x060a24181bbcc0 + 60 s, six bytes of tags and four words
    // that nobody here understands.
    const unknown = '060a241bb00dc0 0d 63 03 6e6577 01 05 1010 11 000002 07 08 09 0a'
    await putBytes(redis, nameOf('u1'), fromHex(unknown))
    await at({ burst }).consume('u1')
    const bytes = toHex((await bytesAt(redis, nameOf('u1'))) as Uint8Array)
    expect(bytes.endsWith(toHex(fromHex(unknown)))).toBe(true)
    expect(bytes.length).toBeGreaterThan(toHex(fromHex(unknown)).length)
    await at({ burst }).reset('u1')
    expect(toHex((await bytesAt(redis, nameOf('u1'))) as Uint8Array)).toBe(toHex(fromHex(unknown)))
    clock.setMs(1_700_000_061_000)
    await at({ burst }).consume('u1')
    expect((await recordsAt(redis, nameOf('u1'))).map(({ name }) => name)).toEqual(['burst'])
    await expect(at({ new: burst }).consume('u1')).resolves.toMatchObject({ remaining: 9 })
  })
})

describe('what is not ours', () => {
  const BURST = '1fffffffffffff 0d 01 05 6275727374 03 09080e 80f0'
  const WINDOW = '1fffffffffffff 0e 04 05 6275727374 04 09370000 0101 01 01'
  test.each([
    ['text', '68656c6c6f'],
    ['nothing', ''],
    ['a time and nothing else', '06439efdcf9f00'],
    ['a head that is cut off', '06439efdcf9f00 0d 01 05 6275'],
    ['a byte behind the last record', `${BURST} 78`],
    ['one limit twice', `${BURST}${BURST}`],
    ['a foreign record behind ours', `${BURST} 68656c6c6f20776f726c64`],
    ['another algorithm under the name', WINDOW],
    ['other figures than the algorithm has', '1fffffffffffff 0c 01 05 6275727374 02 0908 80f0'],
    ['figures that are no limit', '1fffffffffffff 0d 01 05 6275727374 03 000800 80f0'],
    ['a figure above 366 days', '1fffffffffffff 14 01 05 6275727374 0a 0908 7f7f7f7f7f7f7f3f 80f0'],
    ['three bytes of tags', '1fffffffffffff 0e 01 05 6275727374 03 09080e 80f000'],
    ['more words than there are', '1fffffffffffff 11 01 05 6275727374 03 09080e 8000 11 ffffff'],
    ['a fourth word', '1fffffffffffff 0d 01 05 6275727374 03 09080e 80f1 01'],
    ['a record of another limit that ends one byte too early', '1fffffffffffff 0d 01 05 6f74686572 03 09080e 10f0'],
    ['a record of another limit that is in use for ever', '20000000000000 0d 01 05 6f74686572 03 09080e 80f0'],
  ])('%s is an error, and stays as it is', async (_what, hex) => {
    const limiter = limiterOf({ burst, daily })
    await putBytes(redis, nameOf('u1'), fromHex(hex))
    await expect(limiter.consume('u1')).rejects.toMatchObject({ code: 'STORE', isolated: true })
    await expect(limiter.peek('u1')).rejects.toMatchObject({ code: 'STORE', isolated: true })
    expect(await bytesAt(redis, nameOf('u1'))).toEqual(fromHex(hex))
    expect(Number(await command('PTTL', nameOf('u1')))).toBe(-1)
    await limiter.reset('u1')
    expect((await limiter.consume('u1')).allowed).toBe(true)
  })

  test('bytes behind the last record, under the very limits that wrote it', async () => {
    const limiter = limiterOf({ burst })
    await limiter.consume('u1')
    const size = Number(await command('APPEND', nameOf('u1'), 'x'))
    await expect(limiter.consume('u1')).rejects.toMatchObject({ code: 'STORE', isolated: true })
    expect(await command('STRLEN', nameOf('u1'))).toBe(size)
  })

  test('a state of another algorithm, behind one of the same bytes that was read in the same call', async () => {
    const store = redisStore(redis, { prefix })
    const clock = fakeClock(1_700_000_000_000)
    const ours = createLimiter({ burst }, { name: 'api', store, clock })
    const other = createLimiter({ burst: tokenBucket({ refill: '1/s', capacity: 10 }) }, { name: 'api', store, clock })
    await Promise.all([ours.consume('u1'), ours.consume('u2')])
    const answers = await Promise.allSettled([ours.consume('u1'), other.consume('u2')])
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    expect((await recordsAt(redis, nameOf('u2'))).map(({ rule }) => rule.algorithm.type)).toEqual(['gcra'])
  })

  test('a key of another type, among others of the same call', async () => {
    const limiter = limiterOf({ burst, daily })
    await command('SADD', nameOf('u1'), 'x')
    const answers = await Promise.allSettled(['u0', 'u1', 'u2'].map((key) => limiter.consume(key)))
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(answers[1]).toMatchObject({ reason: { message: expect.stringMatching(/does not hold a state .*: .*WRONGTYPE/) } })
    expect(await command('SMEMBERS', nameOf('u1'))).toEqual(['x'])
  })

  test('a key of another type, among others of the same call, that nothing is taken from', async () => {
    const limiter = limiterOf({ burst, daily })
    await command('SADD', nameOf('u2'), 'x')
    // The first of a turn is sent alone.
    const answers = await Promise.allSettled(['u0', 'u1', 'u2'].map((key) => limiter.consume(key, { burst: 0, daily: 0 })))
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected'])
  })
})

/** Whatever is called, in whatever company: Redis says what memory says. */
test.each([1, 2, 3, 4, 5, 6])('answers as memory does, seed %i', async (seed) => {
  const random = new Random(seed)
  const pick = <T>(...from: readonly T[]) => random.pick(from)
  const clock = fakeClock()
  const limits = {
    burst: gcra({ rate: '7/s', burst: 4 }),
    daily: fixedWindow({ limit: 6, window: '3s' }),
    slow: tokenBucket({ refill: '2/s', capacity: 5 }),
  }
  const changed = {
    burst: gcra({ rate: '5/s', burst: 6 }),
    daily: fixedWindow({ limit: 4, window: '2s' }),
    slow: tokenBucket({ refill: '3/s', capacity: 3 }),
  }
  const [here, there] = [memoryStore(), redisStore(redis, { prefix, denialCache: false })].map((store) =>
    createLimiter(limits, { name: 'api', store, clock, plans: { other: changed } }),
  ) as [ReturnType<typeof createLimiter<typeof limits>>, ReturnType<typeof createLimiter<typeof limits>>]
  const anyKey = () => pick('a', 'b', 'c')
  for (let turn = 0; turn < 120; turn++) {
    clock.advanceMs(pick(0, 0, 1, 30, 142, 500, 2_000))
    const calls = Array.from({ length: pick(1, 1, 2, 5, 9) }, () => {
      const key = pick<string | { burst: string; daily: string; slow: string }>(anyKey(), anyKey(), {
        burst: anyKey(),
        daily: anyKey(),
        slow: anyKey(),
      })
      const cost = pick<number | { burst: number; daily: number; slow: number }>(1, 1, 2, 0, {
        burst: pick(0, 1, 3),
        daily: 1,
        slow: pick(1, 2),
      })
      const options = pick({}, {}, {}, { plan: 'other' }) as object
      const verb = pick('consume', 'consume', 'consume', 'consume', 'peek', 'refund', 'reset')
      return (limiter: typeof here) => (verb === 'reset' ? limiter.reset(key) : limiter[verb as 'consume'](key, cost, options))
    })
    const ofMemory = calls.map((call) => call(here))
    const ofRedis = await Promise.all(calls.map((call) => call(there)))
    expect(ofRedis, `turn ${turn}`).toEqual(ofMemory)
  }
})

describe('keys of one call that are as long', () => {
  test('are each read by their own records', async () => {
    const [one, other] = [limiterOf({ a: burst, b: hourly }), limiterOf({ b: hourly, a: burst })]
    for (const key of ['u1', 'u3']) await one.consume(key, { a: 2, b: 5 })
    await other.consume('u2', { a: 3, b: 7 })
    const answers = await Promise.all(['u1', 'u2', 'u3'].map((key) => one.consume(key)))
    expect(answers.map(({ parts }) => [parts.a.remaining, parts.b.remaining])).toEqual([
      [7, 44],
      [6, 42],
      [7, 44],
    ])
  })

  test('but one that goes on behind its records is refused alone', async () => {
    const limiter = limiterOf({ a: burst, b: hourly })
    for (const key of ['u1', 'u2', 'u3']) await limiter.consume(key)
    await command('APPEND', nameOf('u2'), 'x')
    const answers = await Promise.allSettled(['u1', 'u2', 'u3'].map((key) => limiter.consume(key)))
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })
})

test('a server that cannot tell rights, as Redis 6.2, writes several keys of a decision too', async () => {
  const older = 'local redis = { call = redis.call, pcall = redis.pcall, error_reply = redis.error_reply }'
  const send = ([name, sha1, ...args]: readonly string[]) =>
    command(...(name === 'EVALSHA' ? ['EVAL', `${older}\n${script().text}`, ...args] : [name as string, sha1 as string, ...args]))
  const limiter = limiterOf({ a: burst, b: hourly }, { send })
  expect((await limiter.consume({ a: 'k', b: 'l' })).parts).toMatchObject({ a: { remaining: 9 }, b: { remaining: 49 } })
  expect(await keysThere()).toEqual([nameOf('k'), nameOf('l')])
})

test('resets of one call forget on each key what was asked for, and are one answer each', async () => {
  const [one, both] = [limiterOf({ a: burst }), limiterOf({ a: burst, b: hourly })]
  const left = async () => await Promise.all(['k', 'l'].map(leftOf))
  await Promise.all(['k', 'l'].map((key) => both.consume(key)))
  await Promise.all(['m', 'k', 'l'].map((key) => one.reset(key)))
  expect(await left()).toEqual([{ b: 49 }, { b: 49 }])
  await Promise.all([both.consume('k'), both.consume('l', 2)])
  // The first of a turn is sent alone.
  const [, , taken] = await Promise.all([both.peek('m'), both.reset({ a: 'k', b: 'l' }), both.consume({ a: 'l', b: 'k' })])
  expect(taken.parts).toMatchObject({ a: { remaining: 7 }, b: { remaining: 47 } })
  expect(await left()).toEqual([{ b: 47 }, { a: 7 }])
})

test.each([
  ['a log', slidingLog({ limit: 10, window: '1h' })],
  ['a window', slidingWindow({ limit: 10, window: '1h' })],
  ['a window of many slots', slidingWindow({ limit: 10, window: '1h', slots: 100 })],
  ['a gcra', burst],
])('%s that is taken from alone leaves what else its key holds', async (_, first) => {
  const [both, alone] = [limiterOf({ first, hourly }), limiterOf({ first })]
  await both.consume('k')
  await alone.consume('k')
  await Promise.all([alone.charge('k'), alone.consume('k')])
  expect(await leftOf('k')).toEqual({ first: 6, hourly: 49 })
})

test('being refused neither writes a shared key nor prolongs it', async () => {
  const limiter = limiterOf({ a: burst, b: hourly })
  await limiter.consume('k', { a: 10, b: 1 })
  await command('PEXPIRE', nameOf('k'), '5000')
  const before = await command('DUMP', nameOf('k'))
  expect((await limiter.consume('k')).outcome).toBe('limited')
  expect(await command('DUMP', nameOf('k'))).toEqual(before)
  expect(Number(await command('PTTL', nameOf('k')))).toBeLessThanOrEqual(5_000)
})

describe('how long a key lives', () => {
  test('whatever is done to it, until the last of its records is idle, and no shorter', async () => {
    const quick = gcra({ rate: '600/min', burst: 600 })
    const slower = tokenBucket({ refill: '300/min', capacity: 300 })
    const minute = fixedWindow({ limit: 600, window: '1min' })
    const log = slidingLog({ limit: 600, window: '1min' })
    const limiters = [
      limiterOf({ quick, slower }),
      limiterOf({ quick }),
      limiterOf({ slower, quick }),
      limiterOf({ slower: tokenBucket({ refill: '600/min', capacity: 300 }) }),
      limiterOf({ quick, minute, log }),
      limiterOf({ minute }),
      limiterOf(quick),
    ] as unknown as ReturnType<typeof limiterOf<Limits>>[]
    const random = new Random(20_260_417)
    let seen = 0
    for (let step = 0; step < 1_000; step++) {
      const limiter = random.pick(limiters)
      const key = `u${random.whole(0, 5)}`
      const verb = random.whole(0, 20)
      if (verb === 0) await limiter.reset(key)
      else if (verb === 1) await limiter.refund(key, random.whole(1, 100))
      else if (verb === 2) await command('PERSIST', nameOf(key))
      else if (verb < 5) await limiter.peek(key)
      else if (verb < 8) await Promise.all([limiter.refund(key, 600), limiter.consume(key, 1)])
      else await limiter.consume(key, random.whole(1, 60))
      const expiresMs = Number(await command('PEXPIRETIME', nameOf(key)))
      const records = await recordsAt(redis, nameOf(key))
      const untilUs = Math.max(0, ...records.map(({ idleAtUs }) => idleAtUs))
      // Rounded up by the numbers of each: that is how long others hold it to live.
      const heldToUs = Math.max(0, ...records.map(({ rule, idleAtUs }) => livesUntilUs(rule, idleAtUs)))
      // -1: for ever, until the next call mends it. -2: it is gone, and may have gone between the
      // two questions.
      if (expiresMs < 0 || untilUs === 0) continue
      seen += 1
      // A key is there until its millisecond is over.
      expect(expiresMs * 1_000 + 1_000).toBeGreaterThan(heldToUs)
      // And Redis reads the clock once more when it writes: on a busy machine it may have stood
      // still in between.
      expect(expiresMs * 1_000 - untilUs).toBeLessThanOrEqual(HOUR_MS * 1_000 + 5_000_000)
    }
    expect(seen).toBeGreaterThan(500)
  })

  test('one that nothing in use is in goes, and is nothing to who comes next', async () => {
    const clock = fakeClock(1_700_000_000_000)
    const on = <L extends Limits>(limits: L) => createLimiter(limits, { name: 'api', clock, store: redisStore(redis, { prefix }) })
    const [one, other] = [on({ a: burst }), on({ b: burst })]
    await one.consume('k')
    await command('PERSIST', nameOf('k'))
    clock.setMs(1_700_000_060_000)
    expect((await other.peek('k')).remaining).toBe(10)
    expect(await keysThere()).toEqual([])
    expect((await Promise.all([other.peek('k'), one.consume('k'), other.consume('k')])).map(({ remaining }) => remaining)).toEqual([
      10, 9, 9,
    ])
    await command('PERSIST', nameOf('k'))
    clock.setMs(1_700_000_120_000)
    expect((await Promise.all([other.peek('k'), other.peek('k')])).map(({ remaining }) => remaining)).toEqual([10, 10])
    expect(await keysThere()).toEqual([])
  })

  test('one that has lost its time to live gets it back, also in the first microsecond of a clock', async () => {
    const clock = fakeClock(0)
    const on = <L extends Limits>(limits: L) => createLimiter(limits, { name: 'api', clock, store: redisStore(redis, { prefix }) })
    await on({ a: gcra({ rate: '1000000/s', burst: 10 }) }).consume('k')
    await command('PERSIST', nameOf('k'))
    await on({ b: burst }).peek('k')
    expect(Number(await command('PTTL', nameOf('k')))).toBeGreaterThan(0)
  })
})

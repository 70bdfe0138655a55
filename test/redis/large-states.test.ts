/**
 * Logs and windows of many slots in Redis: what a decision reads and writes does not grow with
 * them, and nothing is lost where one is refused.
 */
import { randomUUID } from 'node:crypto'
import { createClient } from 'redis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RULE } from '../../src/algorithms/algorithm.ts'
import { labelOf, writeState } from '../../src/algorithms/codec.ts'
import { createLimiter, fixedWindow, gcra, type Limit, type Limits, memoryStore, slidingLog, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { inspectKey } from '../../src/stores/redis/inspect.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { Random } from '../model/random.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { type RedisServer, startServer } from '../support/redis-servers.ts'
import { bytesAt, putBytes, recordsAt } from '../support/state-bytes.ts'

const START_US = 1_700_000_000_000_000

let redis: TestRedis
let server: RedisServer
beforeAll(async () => {
  redis = await connectRedis()
  server = await startServer()
})
afterAll(async () => {
  redis.close()
  await server.kill()
})

function limiterOn(sender: TestRedis, limits: Limits, clock: FakeClock, prefix = randomUUID()) {
  const limiter = createLimiter(limits, { name: 'api', store: redisStore(sender, { prefix, denialCache: false }), clock })
  return { limiter, key: `${prefix}:api:{k}` }
}

/** The record of a log with so many entries, a microsecond apart from `START_US` on. */
function logOf(limit: Limit, entries: number): Uint8Array {
  const rule = limit[RULE]
  const { algorithm } = rule
  const s = new Float64Array(rule.words)
  for (let k = 0; k < entries; k++) algorithm.charge(rule, rule, s, 0, START_US + k, 1)
  const words = Math.min(rule.words, algorithm.neededWords?.(s, 0) ?? rule.words)
  return writeState(rule, s.subarray(0, words), 0, START_US + entries + rule.windowUs, 'default')
}

/**
 * What a call makes the server do: how many commands of each kind, and how many bytes it would
 * replicate or append to the AOF.
 */
async function costOf(call: () => Promise<unknown>): Promise<{ commands: Record<string, number>; written: number }> {
  const offset = async () => Number(/master_repl_offset:(\d+)/.exec(`${await server.command('INFO', 'replication')}`)?.[1])
  await server.command('CONFIG', 'RESETSTAT')
  const before = await offset()
  await call()
  const written = (await offset()) - before
  const stats = `${await server.command('INFO', 'commandstats')}`
  const commands = [...stats.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name, calls]) => [name as string, Number(calls)] as const)
  return { commands: Object.fromEntries(commands.filter(([name]) => /get|set|strlen|expire/.test(name) && name !== 'config')), written }
}

async function onOwnServer(): Promise<TestRedis & { destroy(): void }> {
  const client = createClient({ socket: { host: server.host, port: server.port } })
  await client.connect()
  return { send: (args) => client.sendCommand([...args]), close: () => client.destroy(), destroy: () => client.destroy() }
}

test('a take by a log does the same with 10 entries and with 50,000: a take, one that half of the log has left before, and a call given back', async () => {
  const sender = await onOwnServer()
  const seen: object[] = []
  for (const entries of [10, 1_000, 50_000]) {
    const limit = slidingLog({ limit: 60_000, window: '1h' })
    const clock = fakeClock()
    const { limiter, key } = limiterOn(sender, limit, clock)
    await putBytes(sender, key, logOf(limit, entries))
    await sender.send(['PEXPIRE', key, '3600000'])
    clock.setUs(START_US + entries + 10)
    await limiter.consume('k')
    clock.setUs(START_US + entries + 20)
    const take = await costOf(() => limiter.consume('k'))
    const oldest = { atMs: START_US / 1000, parts: { default: { resetAfterMs: 0 } } }
    const back = await costOf(() => limiter.settle('k', 0, { of: oldest }))
    clock.setUs(START_US + entries / 2 + limit[RULE].windowUs)
    const left = await costOf(() => limiter.consume('k'))
    expect(await limiter.peek('k')).toMatchObject({ remaining: 60_000 - (entries / 2 - 1) - 3 })
    seen.push(take)
    const sum = (commands: Record<string, number>) => Object.values(commands).reduce((all, calls) => all + calls, 0)
    expect(take.commands).toEqual({ strlen: 1, getrange: 1, setrange: 3 })
    expect(take.written).toBeLessThan(600)
    // A page for each step of the search, and one for each segment of 256.
    expect(sum(left.commands)).toBeLessThan(10 + 2 * Math.log2(entries) + entries / 256)
    expect(left.written).toBeLessThan(600)
    // A segment at most.
    expect(sum(back.commands)).toBeLessThan(50 + 2 * Math.log2(entries))
    expect(back.written).toBeLessThan(5_000)
  }
  expect(seen[1]).toEqual(seen[0])
  sender.destroy()
})

test('a refund of half of a log reads a page for each segment, and writes little', async () => {
  const sender = await onOwnServer()
  for (const entries of [1_000, 50_000]) {
    const limit = slidingLog({ limit: 60_000, window: '1h' })
    const clock = fakeClock()
    const { limiter, key } = limiterOn(sender, limit, clock)
    await putBytes(sender, key, logOf(limit, entries))
    await sender.send(['PEXPIRE', key, '3600000'])
    clock.setUs(START_US + entries)
    const { commands, written } = await costOf(() => limiter.refund('k', entries / 2))
    expect(Object.values(commands).reduce((all, calls) => all + calls, 0)).toBeLessThan(30 + entries / 100)
    expect(written).toBeLessThan(1_000)
    expect(await limiter.peek('k')).toMatchObject({ remaining: 60_000 - entries / 2 })
    limiter.close()
  }
  sender.destroy()
})

test('a take by a window writes as much with 20 slots as with 100', async () => {
  const sender = await onOwnServer()
  const seen: object[] = []
  for (const slots of [20, 100]) {
    // The present slot and the oldest one stand on one page.
    const clock = fakeClock(START_US / 1000 + 600_000)
    const { limiter } = limiterOn(sender, slidingWindow({ limit: 100, window: '1h', slots }), clock)
    for (let k = 0; k < 3; k++) await limiter.consume('k')
    clock.advanceMs(1)
    const { commands, written } = await costOf(() => limiter.consume('k'))
    seen.push({ commands, isSmall: written < 600 })
  }
  expect(seen).toEqual([seen[1], seen[0]])
  sender.destroy()
})

test.each([
  [20, 40],
  [50, 100],
  [40, 20],
  [10, 40],
])('a window of %i slots goes on with %i', async (before, after) => {
  const clock = fakeClock(START_US / 1000)
  const limitOf = (slots: number) => slidingWindow({ limit: 100, window: '1h', slots })
  const { limiter } = limiterOn(redis, limitOf(before), clock)
  await limiter.consume('k', 30)
  limiter.update(limitOf(after))
  clock.advanceMs(1)
  expect(await limiter.consume('k')).toMatchObject({ outcome: 'allowed', remaining: 69 })
  expect(await limiter.consume('k', 70)).toMatchObject({ outcome: 'limited', remaining: 69 })
  limiter.close()
})

test('a log through growth, departures and old calls given back holds what one in memory holds', async () => {
  const random = new Random(20_261_119)
  const limit = slidingLog({ limit: 700, window: '1s' })
  const clock = fakeClock(START_US / 1000)
  const { limiter, key } = limiterOn(redis, limit, clock)
  const inMemory = createLimiter(limit, { clock })
  const taken: ReturnType<typeof inMemory.consume>[] = []
  for (let step = 0; step < 3_000; step++) {
    // A burst, then a pace at which most leave, and again.
    clock.setUs(clock.nowUs() + (step % 1_500 < 900 ? random.whole(1, 40) : random.whole(1, 60_000)))
    const back = random.chance(0.2) && taken.length > 0 ? taken[random.whole(0, taken.length - 1)] : undefined
    if (back === undefined) {
      const cost = random.chance(0.9) ? 1 : random.whole(1, 5)
      const expected = inMemory.consume('k', cost)
      expect(await limiter.consume('k', cost)).toEqual(expected)
      if (expected.allowed) taken.push(expected)
    } else {
      inMemory.settle('k', 0, { of: back })
      await limiter.settle('k', 0, { of: back })
    }
  }
  const [{ rule, words } = { rule: limit[RULE], words: new Float64Array() }] = await recordsAt(redis, key)
  const [shown] = await inspectKey(redis, key)
  expect(shown?.state).toEqual(rule.algorithm.fields(rule, words, 0))
  expect(inMemory.peek('k').remaining).toBe((await limiter.peek('k')).remaining)
}, 30_000)

test('a log with the longest name is counted, also while its small state is longer than what is read at once', async () => {
  const clock = fakeClock(START_US / 1000)
  const { limiter, key } = limiterOn(redis, { ['n'.repeat(64)]: slidingLog({ limit: 100, window: '366d' }) }, clock)
  const sizes: number[] = []
  for (let taken = 9; taken <= 90; taken += 9) {
    expect(await limiter.consume('k', 9)).toMatchObject({ allowed: true, remaining: 100 - taken })
    sizes.push(((await bytesAt(redis, key)) as Uint8Array).length)
    clock.advanceMs(3 * 86_400_000 + 12_345.678)
  }
  // Tagged words behind the 128 bytes that are read first, then doubles.
  expect(sizes.some((size) => size > 128 && size < 150)).toBe(true)
  expect(sizes.at(-1)).toBeGreaterThan(300)
})

test('beside others in one key a large state is written in place, and the others are kept', async () => {
  const clock = fakeClock(START_US / 1000)
  const limits = { fast: gcra({ rate: '10000/s', burst: 1_000 }), log: slidingLog({ limit: 500, window: '1min' }) }
  const { limiter, key } = limiterOn(redis, limits, clock)
  for (let k = 0; k < 120; k++) {
    clock.setUs(clock.nowUs() + 700)
    expect(await limiter.consume('k')).toMatchObject({ allowed: true })
  }
  const records = await recordsAt(redis, key)
  expect(records.map(({ name }) => name).sort()).toEqual(['fast', 'log'])
  expect((await limiter.peek('k')).parts).toMatchObject({ log: { remaining: 380 } })
})

test('of several limits any record may end where what is read at once ends', async () => {
  const limit = gcra({ rate: '10/s', burst: 1_000 })
  const ends = new Set<number>()
  for (let size = 1; size <= 40; size++) {
    const clock = fakeClock(START_US / 1000)
    const limits = { ['n'.repeat(size)]: limit, b: limit, c: limit, d: limit, log: slidingLog({ limit: 500, window: '1min' }) }
    const { limiter, key } = limiterOn(redis, limits, clock)
    for (let taken = 1; taken <= 3; taken++) {
      const { parts } = await limiter.consume('k')
      expect(Object.values(parts).map(({ remaining }) => remaining)).toEqual([...new Array(4).fill(1_000 - taken), 500 - taken])
    }
    for (const { end } of await recordsAt(redis, key)) ends.add(end)
  }
  for (const end of [127, 128, 129, 130]) expect(ends).toContain(end)
})

test('a large state and a small one, in one key or in two, hold what memory holds', async () => {
  const clock = fakeClock(START_US / 1000)
  // What is counted in the window takes one byte, and then two.
  const limits = { few: fixedWindow({ limit: 1_000, window: '1h' }), log: slidingLog({ limit: 900, window: '1min' }) }
  const memory = createLimiter(limits, { clock })
  const { limiter, key } = limiterOn(redis, limits, clock)
  const random = new Random(20_261_118)
  const KEYS = ['k', 'l', 'm']
  const leftIn = async (of: { consume: (typeof memory | typeof limiter)['consume'] }, calls: readonly (readonly [object, object])[]) => {
    const decisions = await Promise.all(calls.map(([keys, cost]) => of.consume(keys as never, cost as never)))
    return decisions.map(({ parts }) => Object.values(parts).map(({ remaining }) => remaining))
  }
  for (let turn = 0; turn < 60; turn++) {
    clock.setUs(clock.nowUs() + random.whole(1, 900))
    const calls = Array.from({ length: random.whole(1, 5) }, () => {
      const few = random.pick(KEYS)
      const log = random.chance(0.5) ? few : random.pick(KEYS)
      return [
        { few, log },
        random.pick([
          { few: 1, log: 1 },
          { few: 0, log: 1 },
          { few: 2, log: 0 },
        ]),
      ] as const
    })
    expect(await leftIn(limiter, calls), `turn ${turn}`).toEqual(await leftIn(memory, calls))
  }
  for (const each of KEYS) {
    const names = (await recordsAt(redis, key.replace('{k}', `{${each}}`))).map(({ name }) => name)
    expect(names.sort()).toEqual(['few', 'log'])
  }
})

test('a large state that was cut, has other bytes or is no state is an error, and stays as it is', async () => {
  const limit = slidingLog({ limit: 2_000, window: '1h' })
  const clock = fakeClock(START_US / 1000 + 1_000)
  const { limiter, key } = limiterOn(redis, limit, clock)
  const whole = logOf(limit, 1_000)
  const double = (place: number, bytes: readonly number[]) =>
    Uint8Array.from([...whole.slice(0, place), ...bytes, ...whole.slice(place + bytes.length)])
  const words = 8 + (whole[7] as number)
  const damaged = [
    whole.slice(0, whole.length - 1),
    whole.slice(0, 140),
    Uint8Array.from([...whole, 7]),
    // No number, for how many are held; and places outside of the ring.
    double(words + 8, [0x7f, 0xf8, 0, 0, 0, 0, 0, 0]),
    double(words, [0x41, 0xe0, 0, 0, 0, 0, 0, 0]),
  ]
  for (const bytes of damaged) {
    await putBytes(redis, key, bytes)
    for (const call of [limiter.consume('k'), limiter.peek('k'), limiter.refund('k')]) {
      await expect(call).rejects.toMatchObject({ code: 'STORE', isolated: true })
    }
    expect(Buffer.compare((await bytesAt(redis, key)) as Uint8Array, bytes)).toBe(0)
  }
})

test('a large state in which a word is no whole number from 0 to 2^53 is an error that says so', async () => {
  const limit = slidingLog({ limit: 2_000, window: '1h' })
  // Half of the entries have left, so that they are looked for.
  const { limiter, key } = limiterOn(redis, limit, fakeClock(START_US / 1000 + 3_600_000.05))
  const whole = logOf(limit, 100)
  const wordsAt = 8 + (whole[7] as number)
  const errorWith = async (word: number, places: readonly number[]) => {
    const bytes = Buffer.from(whole)
    for (const k of places) bytes.writeDoubleBE(word, wordsAt + k * 8)
    await putBytes(redis, key, bytes)
    return limiter.peek('k').then(
      () => 'none',
      (error) => error.message as string,
    )
  }
  // The first ten words are read at once, the others when they are asked for.
  const behind = Array.from({ length: (whole.length - wordsAt) / 8 - 10 }, (_, k) => 10 + k)
  const places = [...Array.from({ length: 10 }, (_, k) => [k]), behind]
  for (const each of places) {
    for (const word of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2 ** 53]) {
      expect(await errorWith(word, each), `${word} at ${each}`).toContain('a word is out of range')
    }
    for (const word of [0, 2 ** 53 - 1]) {
      expect(await errorWith(word, each), `${word} at ${each}`).not.toContain('a word is out of range')
    }
  }
  for (let k = 1; k < 10; k++) expect(await errorWith(0.5, [0, k]), `0.5 at 0 and ${k}`).toContain('a word is out of range')
})

test('every slot of a large window is written, one or several at a time, on two keys of a call', async () => {
  const clock = fakeClock(START_US / 1000)
  const limit = slidingWindow({ limit: 1_000, window: '25s', slots: 25 })
  const { limiter } = limiterOn(redis, limit, clock)
  const memory = createLimiter(limit, { clock })
  for (let step = 0; step < 90; step++) {
    clock.advanceMs([1_000, 2_000, 1_000, 3_000, 26_000][step % 11 === 10 ? 4 : step % 4] as number)
    const keys = ['k', 'l', 'k']
    const taken = (await Promise.all(keys.map((key) => limiter.consume(key, 2)))).map(({ remaining }) => remaining)
    expect(taken, `step ${step}`).toEqual(keys.map((key) => memory.consume(key, 2).remaining))
  }
  // A slot may hold any number, also those that are the numbers of its words.
  for (let step = 0; step < 100; step++) {
    if (step % 40 === 0) clock.advanceMs(27_000)
    expect((await limiter.consume('k')).remaining, `step ${step}`).toBe(memory.consume('k').remaining)
  }
})

test('a log is read wherever its first words end, however long its name is', async () => {
  const limit = slidingLog({ limit: 500, window: '1h' })
  const whole = logOf(limit, 40)
  const wordsAt = 8 + (whole[7] as number)
  // The last three bytes of a head say how many words a large state has.
  const [idle, count, words] = [whole.slice(0, 7), whole.slice(wordsAt - 3, wordsAt), whole.slice(wordsAt)]
  for (let size = 1; size <= 64; size++) {
    const name = 'n'.repeat(size)
    const { limiter, key } = limiterOn(redis, { [name]: limit }, fakeClock(START_US / 1000 + 1))
    const label = [...labelOf(limit[RULE], name)].map((letter) => letter.charCodeAt(0))
    await putBytes(redis, key, [...idle, label.length + 3, ...label, ...count, ...words])
    expect(await limiter.consume('k'), name).toMatchObject({ remaining: 459 })
    expect(await limiter.consume('k'), name).toMatchObject({ remaining: 458 })
  }
})

test('twenty words that are written as doubles are no state', async () => {
  const limit = slidingLog({ limit: 500, window: '1h' })
  const { limiter, key } = limiterOn(redis, limit, fakeClock(START_US / 1000))
  const label = [...labelOf(limit[RULE], 'default')].map((letter) => letter.charCodeAt(0))
  const idle = [...logOf(limit, 40).slice(0, 7)]
  await putBytes(redis, key, [...idle, label.length + 3, ...label, 0, 0, 20, ...new Array(160).fill(0)])
  for (const call of [limiter.consume('k'), limiter.peek('k')]) await expect(call).rejects.toThrow('20 words are no large state')
})

test('behind the end of a log there are zeros, as far as it says that it has room', async () => {
  const limit = slidingLog({ limit: 500, window: '1h' })
  const { limiter, key } = limiterOn(redis, limit, fakeClock(START_US / 1000 + 3_600_000.02))
  const bytes = Buffer.from(logOf(limit, 40))
  const wordAt = (k: number) => 8 + (bytes[7] as number) + k * 8
  const room = bytes.readDoubleBE(wordAt(4))
  // Twice the room, and the entries in the second half of it.
  bytes.writeDoubleBE(room * 2, wordAt(4))
  bytes.writeDoubleBE(room, wordAt(0))
  await putBytes(redis, key, bytes)
  expect((await limiter.peek('k')).remaining).toBe(460)
})

/** How long the server may take in between, by its own time: what it says is that exact. */
const SLACK_MS = 100

const HOUR_MS = 3_600_000

test('a log that is written in place lives until it is idle, by the time of the server', async () => {
  const client = createClient({ socket: { host: server.host, port: server.port } })
  await client.connect()
  /** The calls of a limiter are kept, and sent all at once: nothing comes between them. */
  const kept: { readonly args: readonly string[]; readonly answer: (reply: unknown) => void }[] = []
  let isKeeping = false
  const send = (args: readonly string[]) =>
    isKeeping ? new Promise((answer) => kept.push({ args, answer })) : client.sendCommand([...args])
  /** How long the key is to live after each of twenty calls, and how long all of it took. */
  const lives = async () => {
    const prefix = randomUUID()
    const store = redisStore({ send }, { prefix, denialCache: false })
    const limiter = createLimiter(slidingLog({ limit: 500, window: `${HOUR_MS}ms` }), {
      name: 'api',
      store,
      storeTimeoutMs: Number.POSITIVE_INFINITY,
    })
    // The script is known then.
    await limiter.consume('other')
    isKeeping = true
    const answers = Array.from({ length: 80 }, () => limiter.consume('k'))
    for (let k = 0; k <= 20; k++) {
      if (k > 0) answers.push(limiter.consume('k'))
      while (kept.length <= k) await new Promise((resolve) => setImmediate(resolve))
    }
    isKeeping = false
    const calls = kept.splice(0)
    const commands = calls.flatMap(({ args }) => [[...args], ['PTTL', `${prefix}:api:{k}`]])
    const all = client.multi()
    for (const command of [['TIME'], ...commands, ['TIME']]) all.addCommand(command)
    const replies = (await all.exec()) as unknown[]
    for (const [k, { answer }] of calls.entries()) answer(replies[1 + 2 * k])
    expect((await Promise.all(answers)).every(({ allowed }) => allowed)).toBe(true)
    limiter.close()
    const [fromMs, toMs] = [replies[0], replies.at(-1)].map(
      (time) => Number((time as string[])[0]) * 1e3 + Number((time as string[])[1]) / 1e3,
    )
    const ttlsMs = calls.map((_call, k) => Number(replies[2 + 2 * k])).slice(1)
    return { tookMs: (toMs as number) - (fromMs as number), ttlsMs }
  }
  let seen = await lives()
  // A server that stood still in the middle is asked again.
  while (seen.tookMs >= SLACK_MS) seen = await lives()
  client.destroy()
  // One that grows is written as a whole: a few of the twenty.
  const usualMs = seen.ttlsMs.toSorted((one, other) => one - other)[10]
  expect(usualMs).toBeGreaterThan(HOUR_MS - SLACK_MS)
  expect(usualMs).toBeLessThanOrEqual(HOUR_MS * 1.125)
})

test('a log whose time to live is set in place lives a second at least', async () => {
  const prefix = randomUUID()
  const store = redisStore(redis, { prefix, denialCache: false })
  const limiter = createLimiter(slidingLog({ limit: 500, window: '800ms' }), {
    name: 'api',
    store,
    storeTimeoutMs: Number.POSITIVE_INFINITY,
  })
  for (;;) {
    const first = await limiter.consume('k')
    // Entries of different times.
    for (let k = 0; k < 60; k++) await limiter.consume('k')
    await new Promise((resolve) => setTimeout(resolve, 250))
    const newest = await limiter.consume('k')
    // Without the newest it is idle earlier.
    await newest.cancel()
    const ttlMs = Number(await redis.send(['PTTL', `${prefix}:api:{k}`]))
    const { atMs: endMs, remaining } = await limiter.peek('k')
    // A machine that stood still is asked again.
    if (endMs - newest.atMs >= SLACK_MS || endMs - first.atMs >= 700) continue
    expect(remaining).toBeLessThan(440)
    expect(ttlMs).toBeGreaterThan(1_000 - SLACK_MS)
    expect(ttlMs).toBeLessThanOrEqual(1_000)
    return
  }
})

test.each([31, 33, 45, 60])('a window of 30 slots that is taken from by numbers with %d', async (slots) => {
  const clock = fakeClock(START_US / 1000)
  const [prefix, memory] = [randomUUID(), memoryStore()]
  const limits = [30, slots].map((each) => slidingWindow({ limit: 1_000, window: '61380ms', slots: each }))
  const remote = limits.map((limit) => limiterOn(redis, limit, clock, prefix).limiter)
  const local = limits.map((limit) => createLimiter(limit, { name: 'api', clock, store: memory }))
  for (let step = 0; step < 80; step++) {
    clock.advanceMs(1_300)
    const k = step % 3 === 2 ? 1 : 0
    const answers = await Promise.all([remote, local].map(async (limiters) => (await limiters[k]?.consume('k', 2))?.remaining))
    expect(answers[0], `step ${step}`).toBe(answers[1])
  }
})

test('a log whose sums are the numbers of their words', async () => {
  const clock = fakeClock(START_US / 1000)
  const limit = slidingLog({ limit: 2_000, window: '1min' })
  const [memory, { limiter }] = [createLimiter(limit, { clock }), limiterOn(redis, limit, clock)]
  const remaining = async (cost: number) => expect((await limiter.consume('k', cost)).remaining).toBe(memory.consume('k', cost).remaining)
  await remaining(11)
  for (let k = 0; k < 80; k++) {
    clock.advanceMs(0.5)
    await remaining(1)
    await remaining(1)
  }
  // As they leave, their sums are read.
  for (let k = 0; k < 40; k++) {
    clock.setMs(START_US / 1000 + 60_000 + k)
    await remaining(1)
  }
})

test('a string of nothing is an error, and stays', async () => {
  const { limiter, key } = limiterOn(redis, slidingLog({ limit: 2_000, window: '1h' }), fakeClock(START_US / 1000))
  await redis.send(['SET', key, ''])
  for (const call of [limiter.consume('k'), limiter.peek('k')]) await expect(call).rejects.toMatchObject({ code: 'STORE', isolated: true })
  expect(await redis.send(['STRLEN', key])).toBe(0)
})

test('ten megabytes of something else are an error, and are not read', async () => {
  const sender = await onOwnServer()
  const { limiter, key } = limiterOn(sender, slidingLog({ limit: 2_000, window: '1h' }), fakeClock(START_US / 1000))
  await sender.send(['SET', key, 'A'.repeat(10_000_000)])
  await expect(limiter.consume('k')).rejects.toMatchObject({ code: 'STORE', isolated: true })
  const { commands } = await costOf(() => limiter.consume('k').catch(() => undefined))
  expect(commands).toEqual({ getrange: expect.any(Number), strlen: expect.any(Number) })
  expect(await sender.send(['STRLEN', key])).toBe(10_000_000)
  sender.destroy()
})

test('a server that is full refuses to write in place, and the log stays as it is', async () => {
  const sender = await onOwnServer()
  const { limiter, key } = limiterOn(sender, slidingLog({ limit: 500, window: '1h' }), fakeClock(START_US / 1000))
  const clocked = async (count: number) => {
    for (let k = 0; k < count; k++) await limiter.consume('k')
  }
  await clocked(3)
  const filled = limiterOn(sender, slidingLog({ limit: 500, window: '1h' }), fakeClock(START_US / 1000)).key
  await putBytes(sender, filled, logOf(slidingLog({ limit: 500, window: '1h' }), 100))
  const before = await bytesAt(sender, filled)
  await server.command('CONFIG', 'SET', 'maxmemory', '1')
  const other = createLimiter(slidingLog({ limit: 500, window: '1h' }), {
    name: 'api',
    store: redisStore(sender, { prefix: filled.slice(0, filled.indexOf(':api')), denialCache: false }),
    clock: fakeClock(START_US / 1000 + 1),
  })
  await expect(other.consume('k')).rejects.toMatchObject({ code: 'STORE' })
  const several = await Promise.allSettled(['k', 'a', 'b'].map((each) => other.consume(each)))
  expect(several.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  await server.command('CONFIG', 'SET', 'maxmemory', '0')
  expect(await bytesAt(sender, filled)).toEqual(before)
  expect(await sender.send(['EXISTS', filled.replace('{k}', '{a}')])).toBe(0)
  expect(Number(await sender.send(['PTTL', key]))).toBeGreaterThan(0)
  sender.destroy()
})

/**
 * Runs of takes, charges and settlements, of releases and renewals, mixed in one turn and thus in
 * one script call, on few keys, by two plans, with a clock that steps back now and then: every
 * answer is the one that the memory store gives, and what stands in Redis are the bytes that
 * codec.ts would write.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RULE } from '../../src/algorithms/algorithm.ts'
import { readState, writeState } from '../../src/algorithms/codec.ts'
import {
  concurrency,
  createLimiter,
  type Decision,
  fixedWindow,
  gcra,
  type Limit,
  leakyBucket,
  memoryStore,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { RedisDriver } from '../../src/stores/redis/driver.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { redisKey } from '../../src/stores/redis/keys.ts'
import { Part, type Scope, Step } from '../../src/stores/step.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { Random } from '../model/random.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { startServer } from '../support/redis-servers.ts'
import { bytesAt, toHex } from '../support/state-bytes.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())

const KEYS = ['a', 'b', 'c', 'd']
const TURNS = 60

/** A limit, and the same for another plan. */
const LIMITS: readonly (readonly [name: string, limit: Limit, other: Limit])[] = [
  ['gcra', gcra({ rate: '7/s', burst: 20 }), gcra({ rate: '11/s', burst: 9 })],
  ['tokenBucket', tokenBucket({ refill: '7/s', capacity: 20 }), tokenBucket({ refill: '1/s', capacity: 40 })],
  ['leakyBucket', leakyBucket({ leak: '7/s', capacity: 20 }), leakyBucket({ leak: '1/s', capacity: 40 })],
  ['fixedWindow', fixedWindow({ limit: 20, window: '3s' }), fixedWindow({ limit: 9, window: '5s', anchor: 'first' })],
  ['slidingWindow', slidingWindow({ limit: 20, window: '3s' }), slidingWindow({ limit: 9, window: '5s' })],
  ['slidingWindow of 40 slots', slidingWindow({ limit: 20, window: '3s', slots: 40 }), slidingWindow({ limit: 9, window: '5s' })],
  ['slidingLog', slidingLog({ limit: 20, window: '3s' }), slidingLog({ limit: 9, window: '5s' })],
]

interface Verb {
  readonly name: 'consume' | 'charge' | 'settle'
  readonly key: string
  readonly cost: number
  readonly plan: 'other' | undefined
  readonly of: number
}

type Settleable = Decision & { settle(actual: number): unknown }

const told = ({ outcome, remaining, retryAfterMs, resetAfterMs, delayMs }: Decision) => [
  outcome,
  remaining,
  retryAfterMs,
  resetAfterMs,
  delayMs,
]

/** Today, and as a clock of a test begins: then times are smaller numbers than spans are. */
const STARTS_MS = [1_763_200_000_000, 5]

test.each(STARTS_MS.flatMap((startMs) => LIMITS.map((each) => [startMs, ...each] as const)))(
  'from %d ms on: %s',
  async (startMs, _, limit, other) => {
    const random = new Random(21)
    const clock = fakeClock(startMs)
    const prefix = randomUUID()
    const plans = { other }
    const memory = createLimiter(limit, { clock, plans })
    const remote = createLimiter(limit, { name: 'api', clock, plans, store: redisStore(redis, { prefix, denialCache: false }) })
    const taken: (readonly [ours: Settleable, theirs: Settleable])[] = []
    const seen = new Set<string>()

    const verb = (): Verb => {
      const name = random.pick(['consume', 'consume', 'charge', 'settle'] as const)
      const cost = random.pick([1, 1, 1, 2, random.magnitude(1, 20)])
      return { name, key: random.pick(KEYS), cost, plan: random.whole(1, 8) === 1 ? 'other' : undefined, of: random.whole(0, 1e6) }
    }
    const run = (limiter: typeof memory | typeof remote, place: 0 | 1, { name, key, cost, plan, of }: Verb) => {
      if (name === 'settle' && taken.length > 0) return taken[of % taken.length]?.[place].settle(cost - 1)
      return name === 'charge' ? limiter.charge(key, cost, { plan }) : limiter.consume(key, cost, { plan })
    }

    for (let turn = 0; turn < TURNS; turn++) {
      const stepMs = random.pick([0, 0.001, 17, random.magnitude(1, 700), random.magnitude(1, 9_000), -random.magnitude(1, 400)])
      clock.setMs(Math.max(1, clock.nowUs() / 1000 + stepMs))
      const verbs = Array.from({ length: random.whole(1, 12) }, verb)
      const expected = verbs.map((each) => run(memory, 0, each))
      const answers = await Promise.all(verbs.map((each) => run(remote, 1, each)))
      answers.forEach((answer, k) => {
        const mine = expected[k] as Settleable | undefined
        if (mine === undefined || answer === undefined) return
        seen.add(mine.outcome)
        expect(told(answer as Decision), `turn ${turn}, ${JSON.stringify(verbs[k])}`).toEqual(told(mine))
        if (mine.allowed && (verbs[k] as Verb).name !== 'charge') taken.push([mine, answer as Settleable])
      })
      taken.splice(0, taken.length - 20)
      for (const key of KEYS) {
        const bytes = await bytesAt(redis, redisKey({ prefix, hashTag: undefined }, 'api', key))
        if (bytes === undefined) continue
        const { rule, words, idleAtUs, name } = readState(bytes, 0)
        expect(toHex(writeState(rule, words, 0, idleAtUs, name))).toBe(toHex(bytes))
      }
    }
    expect([...seen]).toEqual(expect.arrayContaining(['allowed', 'limited']))
    memory.close()
    remote.close()
  },
)

test.each(LIMITS)('%s: new keys and held ones in one call', async (_, limit) => {
  const store = redisStore(redis, { prefix: randomUUID(), denialCache: false })
  const remote = createLimiter(limit, { name: 'api', clock: fakeClock(1_763_200_000_000), store })
  await remote.consume('held', 5)
  const remaining = async (keys: readonly string[]) =>
    (await Promise.all(keys.map((key) => remote.consume(key)))).map((each) => each.remaining)
  expect(await remaining(['a', 'held', 'b', 'held', 'c'])).toEqual([19, 14, 19, 13, 19])
  expect(await remaining(['a', 'b', 'c', 'held', 'd'])).toEqual([18, 18, 18, 12, 19])
})

test('reservations of what may be had at once are settled as in memory', async () => {
  const clock = fakeClock(1_763_200_000_000)
  const limits = { fast: gcra({ rate: '7/s', burst: 20 }), even: leakyBucket({ leak: '50/s', capacity: 20 }) }
  const memory = createLimiter(limits, { clock })
  const remote = createLimiter(limits, { name: 'api', clock, store: redisStore(redis, { prefix: randomUUID(), denialCache: false }) })
  const steps = async (limiter: typeof memory | typeof remote) => {
    const first = await limiter.reserve('k', 5, { maxWaitMs: 0 })
    const second = await limiter.reserve('k', 1, { maxWaitMs: 0 })
    await first.settle(2)
    const { parts } = await limiter.peek('k')
    return [told(first), told(second), parts.fast, parts.even]
  }
  expect(await steps(remote)).toEqual(await steps(memory))
})

test('a window whose start takes a byte more than the last one', async () => {
  const clock = fakeClock(0.2)
  const limit = fixedWindow({ limit: 9, window: '1ms', anchor: 'first' })
  const memory = createLimiter(limit, { clock })
  const prefix = randomUUID()
  const remote = createLimiter(limit, { name: 'api', clock, store: redisStore(redis, { prefix, denialCache: false }) })
  for (const [nowMs, startUs] of [
    [0.2, 200],
    [0.8, 200],
    [1.3, 1_300],
    [1.4, 1_300],
    [70, 70_000],
  ] as const) {
    clock.setMs(nowMs)
    expect(told(await remote.consume('k')), `${nowMs} ms`).toEqual(told(memory.consume('k')))
    const bytes = (await bytesAt(redis, redisKey({ prefix, hashTag: undefined }, 'api', 'k'))) as Uint8Array
    expect(readState(bytes, 0).words[0]).toBe(startUs)
  }
})

/**
 * There a key that holds nothing any more is deleted. Tokens occur twice in a call, were released
 * before, or were never given out.
 */
test.each([1, 3, 40])('permits of %d places, by the time of the server', async (max) => {
  const random = new Random(max)
  const rules = [concurrency({ max, lease: '100ms' })[RULE], concurrency({ max: max + 1, lease: '1h' })[RULE]] as const
  const scopeOf = (rule: (typeof rules)[number]): Scope => ({ name: 'held', limits: [{ name: 'default', rule }] })
  const driver = new RedisDriver({ prefix: randomUUID(), hashTag: undefined }, redis)
  const memory = memoryStore()
  let nowUs = Date.now() * 1000
  let tokens: (readonly [key: string, token: number])[] = []
  const seen = new Set<string>()

  /** The same step as often as it is asked for. */
  const anyStep = () => {
    const op = random.pick(['take', 'take', 'take', 'give', 'give', 'give', 'renew', 'renew', 'line', 'charge', 'ask'] as const)
    const rule = random.pick([rules[0], rules[0], rules[0], rules[1]])
    const [key, token] = random.pick([...tokens, [random.pick(KEYS), nowUs - random.whole(0, 1_000_000)] as const])
    const cost = op === 'renew' ? random.whole(0, 1) : random.pick([1, 1, 2])
    const others = tokens.flatMap(([of, other]) => (of === key && random.whole(1, 3) === 1 ? [other] : []))
    const words = op === 'renew' ? [token, ...others] : [token]
    const ticket = op === 'renew' || op === 'line' ? { numbers: rule.numbers, words: Float64Array.from(words) } : undefined
    return () => new Step(op, scopeOf(rule), [new Part('default', rule, key, cost, ticket)], -1, op === 'give' ? token : -1, undefined)
  }
  const verdictOf = ({ op, parts: [part] }: Step) => {
    const { given, ...verdict } = (part as Part).verdict
    return { ...verdict, given: op === 'give' || op === 'renew' || op === 'line' ? given : 0, atUs: 0 }
  }

  for (let turn = 0; turn < 150; turn++) {
    const makers = Array.from({ length: random.whole(1, 10) }, anyStep)
    const steps = makers.map((make) => make())
    expect(await driver.apply(steps)).toEqual([])
    const [[first]] = steps.map(({ parts }) => parts) as [[Part]]
    nowUs = first.verdict.atUs
    makers.forEach((make, k) => {
      const [step, { op }] = [make(), steps[k] as Step]
      memory.open(step.scope, () => nowUs).apply(step, true)
      const expected = verdictOf(step)
      expect(verdictOf(steps[k] as Step), `turn ${turn}, ${k}: ${op}`).toEqual(expected)
      seen.add(`${op} ${expected.outcome}`)
      if (op === 'take' || op === 'line') tokens.push([(step.parts[0] as Part).key, expected.enteredUs])
    })
    tokens = tokens.slice(-12)
  }
  expect([...seen]).toEqual(expect.arrayContaining(['take allowed', 'give allowed', 'give limited', 'renew allowed', 'renew limited']))
})

const placesOn = (sender: TestRedis, prefix: string, clock?: FakeClock) =>
  createLimiter(concurrency({ max: 3, lease: '30s' }), { name: 'held', store: redisStore(sender, { prefix }), ...(clock && { clock }) })

test('permits: a key that holds nothing any more is deleted, by the time of the server alone', async () => {
  const prefix = randomUUID()
  const [limiter, clocked] = [placesOn(redis, prefix), placesOn(redis, prefix, fakeClock(1_763_200_000_000))]
  const isThere = (key: string) => redis.send(['EXISTS', redisKey({ prefix, hashTag: undefined }, 'held', key)])
  const [one, two, other] = await Promise.all(['k', 'k', 'l'].map((key) => limiter.consume(key)))
  expect(await isThere('k')).toBe(1)
  const [, , third] = await Promise.all([one?.release(), two?.release(), limiter.consume('k'), other?.release()])
  expect([third.remaining, await isThere('k'), await isThere('l')]).toEqual([2, 1, 0])
  await third.release()
  expect(await isThere('k')).toBe(0)
  await (await clocked.consume('m')).release()
  expect(await isThere('m')).toBe(1)
})

test('permits: a server that is full takes no permits behind a release either', async () => {
  const server = await startServer()
  const sender = await connectRedis(server.port)
  const prefix = randomUUID()
  const limiter = placesOn(sender, prefix)
  const permit = await limiter.consume('k')
  await server.command('CONFIG', 'SET', 'maxmemory', '1')
  const [, taken] = await Promise.allSettled([permit.release(), limiter.consume('l')])
  expect(taken.status).toBe('rejected')
  expect(await sender.send(['EXISTS', redisKey({ prefix, hashTag: undefined }, 'held', 'l')])).toBe(0)
  limiter.close()
  sender.close()
  await server.kill()
})

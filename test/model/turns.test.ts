/**
 * Many calls in one turn of the event loop, by limiters of all kinds, on a few keys: a remote store
 * gets them in one batch, and answers each as memory does, which is asked one by one.
 */
import { describe, expect, test } from 'vitest'
import {
  type AsyncStore,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  leakyBucket,
  memoryStore,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { admitted } from '../../src/testing/admitted.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { storeCases } from '../support/stores.ts'
import { Random } from './random.ts'
import { SEED, traceCount } from './trace.ts'

const START_MS = 1_700_000_000_000
const TURNS = 12
const KEYS = ['one', 'two', 'three']
/** No lease has to be renewed in a life. */
const LEASE = '1d'

type AnyLimit = ReturnType<typeof gcra>

const rateOf = (random: Random) => ({ permits: random.whole(1, 40), per: random.pick(['1s', '3s', '7001ms'] as const) })
const windowOf = (random: Random) => random.pick(['1s', '2500ms', '7s'] as const)

/** Sometimes none at all. */
const limitOf = (random: Random) => (random.chance(0.03) ? 0 : random.magnitude(1, 2_000))

const RATES: readonly ((random: Random) => unknown)[] = [
  (random) => gcra({ rate: rateOf(random), burst: limitOf(random) }),
  (random) => tokenBucket({ refill: rateOf(random), capacity: limitOf(random) }),
  (random) => leakyBucket({ leak: rateOf(random), capacity: limitOf(random) }),
  (random) => fixedWindow({ limit: limitOf(random), window: windowOf(random), anchor: random.pick(['first', 'epoch']) }),
  (random) => slidingWindow({ limit: limitOf(random), window: windowOf(random), slots: random.pick([1, 2, 10, 25, 100]) }),
  (random) => slidingLog({ limit: limitOf(random), window: windowOf(random) }),
]
const held = (random: Random) => concurrency({ max: random.magnitude(1, 60), lease: LEASE })

/** The limits of a limiter: the same kinds whenever they are made anew, by other numbers. */
type Make = (random: Random) => Record<string, AnyLimit>

function kindOf(random: Random, count: number, isHeld: boolean): Make {
  const kinds = Array.from({ length: count }, () => random.pick(RATES))
  if (isHeld) kinds[random.whole(0, count - 1)] = held
  return (by) => Object.fromEntries(kinds.map((kind, k) => [`limit${k}`, kind(by)])) as Record<string, AnyLimit>
}

interface Limited {
  readonly name: string
  readonly make: Make
  readonly isHeld: boolean
  readonly limiter: ReturnType<typeof limiterOn>
}

function limiterOn(store: AsyncStore, name: string, make: Make, random: Random, clock: ReturnType<typeof fakeClock>) {
  return createLimiter(make(random), { name, store, clock, maxAheadMs: 2_000, plans: { pro: make(random) } })
}

/** Of each kind two versions of a program. */
function limitersOn(store: AsyncStore, random: Random, clock: ReturnType<typeof fakeClock>): Limited[] {
  const kinds = [
    { name: 'alone', count: 1, isHeld: false },
    { name: 'several', count: random.whole(2, 5), isHeld: false },
    { name: 'permit', count: 1, isHeld: true },
    { name: 'permits', count: random.whole(2, 3), isHeld: true },
  ]
  return kinds.flatMap(({ name, count, isHeld }) => {
    const make = kindOf(random, count, isHeld)
    return [0, 1].map(() => ({ name, make, isHeld, limiter: limiterOn(store, name, make, random, clock) }))
  })
}

type Taken = Awaited<ReturnType<Limited['limiter']['consume']>> & { release?(): unknown }
type Booking = Awaited<ReturnType<Limited['limiter']['reserve']>>

/** One life of a few keys. Equal seeds are equal lives as long as the answers are. */
async function live(store: AsyncStore, seed: number, keysOf: KeysOf): Promise<string[]> {
  const random = new Random(seed)
  const clock = fakeClock(START_MS)
  const limiters = limitersOn(store, random, clock)
  const memory = { taken: [] as { of: Limited; decision: Taken }[], booked: [] as Booking[] }
  const told: string[] = []
  for (let turn = 0; turn < TURNS; turn++) {
    clock.setUs(clock.nowUs() + random.pick([0, 1, random.whole(0, 200_000), random.whole(0, 2_500_000)]))
    const calls = Array.from({ length: random.magnitude(1, 120) }, (_, k) => called(random, limiters, memory, `${turn}.${k}`, keysOf))
    for (const { what, answer, keep } of await Promise.all(calls.map(settled))) {
      told.push(`${what} ${shown(answer)}`)
      keep?.(answer)
    }
  }
  for (const { limiter } of limiters) limiter.close()
  return told
}

type KeysOf = (random: Random, names: readonly string[]) => string | Record<string, string>

const oneKey = (random: Random) => random.pick(KEYS)
/** Sometimes one for each limit, which shared memory does not do. */
const anyKeys: KeysOf = (random, names) =>
  random.chance(0.15) ? Object.fromEntries(names.map((name) => [name, random.pick(KEYS)])) : oneKey(random)

interface Called {
  readonly what: string
  readonly answer: unknown
  readonly keep?: ((answer: never) => void) | undefined
}

async function settled({ what, answer, keep }: Called): Promise<Called & { keep?: (answer: unknown) => void }> {
  return { what, answer: await answer, keep: keep as (answer: unknown) => void }
}

function shown(answer: unknown): string {
  return JSON.stringify(answer, (_, value) => (value === Number.POSITIVE_INFINITY ? 'Infinity' : value))
}

function called(
  random: Random,
  limiters: readonly Limited[],
  { taken, booked }: { taken: { of: Limited; decision: Taken }[]; booked: Booking[] },
  id: string,
  keysOf: KeysOf,
): Called {
  const of = random.pick(limiters)
  const { limiter, isHeld, name } = of
  const names = Object.keys(of.make(random))
  const key = keysOf(random, names)
  const whole = random.pick([0, 1, 1, 1, 2, random.magnitude(1, 300)])
  const cost = random.chance(0.15) ? (Object.fromEntries(names.map((each) => [each, random.whole(0, 9)])) as Record<string, number>) : whole
  const options = random.chance(0.3) ? ({ plan: 'pro' } as const) : undefined
  const place = random.whole(0, 9)
  const actual = random.magnitude(1, 300) - 1
  const verb = random.pick(isHeld ? HELD_VERBS : VERBS)
  const what = `${id} ${name} ${verb} ${shown(key)} ${shown(cost)} ${shown(options)}`
  switch (verb) {
    case 'consume':
      return {
        what,
        answer: limiter.consume(key, cost, options),
        keep: (decision: Taken) => decision.allowed && taken.unshift({ of, decision }),
      }
    case 'tryAcquire':
      return { what, answer: admitted(limiter, key, cost, options) }
    case 'peek':
      return { what, answer: limiter.peek(key, cost, options) }
    case 'charge':
      return { what, answer: limiter.charge(key, cost, options) }
    case 'reserve':
      return {
        what,
        answer: limiter.reserve(key, cost, { ...options, maxWaitMs: random.whole(0, 1_500) }),
        keep: (decision: Booking) => decision.allowed && booked.unshift(decision),
      }
    case 'cancel':
      return { what, answer: booked.splice(place, 1)[0]?.cancel() }
    case 'settle':
      return { what, answer: (taken.find(({ of: { isHeld } }, k) => k >= place && !isHeld)?.decision ?? booked[place])?.settle(actual) }
    case 'release': {
      const held = taken.findIndex(({ of: { isHeld } }, k) => k >= place && isHeld)
      return { what, answer: held < 0 ? undefined : taken.splice(held, 1)[0]?.decision.release?.() }
    }
    case 'refund':
      return { what, answer: limiter.refund(key, cost, options) }
    case 'reset':
      return { what, answer: limiter.reset(key) }
    default:
      return { what, answer: limiter.update(of.make(random)) }
  }
}

const MANY = ['consume', 'consume', 'consume', 'consume', 'consume', 'consume']
const VERBS = [
  ...MANY,
  'tryAcquire',
  'tryAcquire',
  'peek',
  'charge',
  'charge',
  'reserve',
  'cancel',
  'settle',
  'settle',
  'refund',
  'reset',
  'update',
]
const HELD_VERBS = [...MANY, 'peek', 'release', 'release', 'release', 'update']

/** With room for five long logs in debt. */
const roomyShared = {
  name: 'shared memory',
  open: async () => ({ store: sharedStore({ maxKeys: 50, recordWords: 51_000 }), close: () => {} }),
}
const STORES = [roomyShared, ...storeCases.filter(({ name }) => name !== 'memory' && name !== roomyShared.name)]

describe.each(STORES)('$name', ({ name, open }) => {
  test('answers each call of a turn as memory does', async () => {
    const keysOf = name === roomyShared.name ? oneKey : anyKeys
    for (let k = 0; k < traceCount(10); k++) {
      const expected = await live(memoryStore() as unknown as AsyncStore, SEED + k, keysOf)
      const { store, close } = await open()
      try {
        const answers = await live(store as AsyncStore, SEED + k, keysOf)
        // The first that differs says more than all of them.
        const differs = answers.findIndex((answer, n) => answer !== expected[n])
        expect(answers[differs], `SLUICE_SEED=${SEED + k}`).toBe(expected[differs])
        expect(answers).toHaveLength(expected.length)
      } finally {
        close()
      }
    }
  })
})

/**
 * Several limits of unlike algorithms on one key, under plans and two versions of a program at
 * once: every store answers each call as the memory does, which stands beside the oracles.
 */
import { describe, expect, test } from 'vitest'
import {
  type AsyncStore,
  createLimiter,
  fixedWindow,
  gcra,
  leakyBucket,
  memoryStore,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { storeCases } from '../support/stores.ts'
import { Random } from './random.ts'
import { SEED, traceCount } from './trace.ts'

const START_US = 1_700_000_000_000_000
const STEPS = 150
const PLANS = [undefined, 'pro', 'free'] as const
type Plan = (typeof PLANS)[number]

/** Now and then a program admits nothing. */
const limitOf = (random: Random, most: number) => (random.chance(0.02) ? 0 : random.whole(5, most))

/** Three limits each, with numbers that matter to each other. */
const MIXES = {
  'gcra, fixed window and log': (random: Random) => ({
    a: gcra({ rate: { permits: random.whole(1, 20), per: '1s' }, burst: limitOf(random, 30) }),
    b: fixedWindow({ limit: limitOf(random, 60), window: random.pick(['1s', '3s', '7s'] as const) }),
    c: slidingLog({ limit: limitOf(random, 60), window: random.pick(['1s', '2s', '5s'] as const) }),
  }),
  'buckets and sliding window': (random: Random) => ({
    a: tokenBucket({ refill: { permits: random.whole(1, 20), per: '1s' }, capacity: limitOf(random, 30) }),
    b: leakyBucket({ leak: { permits: random.whole(1, 20), per: '1s' }, capacity: limitOf(random, 30) }),
    c: slidingWindow({ limit: limitOf(random, 60), window: random.pick(['1s', '2s'] as const), slots: random.pick([2, 10, 25]) }),
  }),
  'levels, booked ahead': (random: Random) => ({
    a: gcra({ rate: { permits: random.whole(1, 20), per: '1s' }, burst: limitOf(random, 30) }),
    b: tokenBucket({ refill: { permits: random.whole(1, 20), per: '1s' }, capacity: limitOf(random, 30) }),
  }),
}

type MakeLimits = (random: Random) => ReturnType<(typeof MIXES)['levels, booked ahead']>

/** Two versions of a program, each with plans. */
function programsOn(store: AsyncStore, make: MakeLimits, random: Random, clock: ReturnType<typeof fakeClock>) {
  return [0, 1].map(() =>
    createLimiter(make(random), { name: 'mixed', store, clock, maxAheadMs: 2_000, plans: { pro: make(random), free: make(random) } }),
  )
}

type Program = ReturnType<typeof programsOn>[number]
type Booking = Awaited<ReturnType<Program['reserve']>>
type Taken = Awaited<ReturnType<Program['consume']>>

/** One life of a key. Equal seeds are equal lives, whatever the store answers. */
async function live(store: AsyncStore, make: MakeLimits, seed: number, mayStepBack: boolean): Promise<string[]> {
  const random = new Random(seed)
  const clock = fakeClock(START_US / 1000)
  const programs = programsOn(store, make, random, clock)
  const told: string[] = []
  const booked: Booking[] = []
  const taken: Taken[] = []
  for (let k = 0; k < STEPS; k++) {
    const backUs = mayStepBack && random.chance(0.06) ? random.whole(1, 4_000_000) : 0
    clock.setUs(clock.nowUs() - backUs + random.pick([0, 1, random.whole(0, 100_000), random.whole(0, 1_500_000)]))
    const program = random.pick(programs)
    const plan: Plan = random.pick(PLANS)
    const cost = random.pick([1, 1, 2, random.whole(1, 8)])
    const verb = random.pick(['consume', 'consume', 'consume', 'peek', 'reserve', 'cancel', 'refund', 'charge', 'settle', 'update'])
    const answer = await act(verb, program, plan, cost, random, make, booked, taken)
    const { parts } = await program.peek('key', 0, { plan })
    told.push(`${k} ${verb} ${JSON.stringify(answer)} ${JSON.stringify(parts)}`)
  }
  for (const program of programs) program.close()
  return told
}

async function act(
  verb: string,
  program: Program,
  plan: Plan,
  cost: number,
  random: Random,
  make: MakeLimits,
  booked: Booking[],
  taken: Taken[],
): Promise<unknown> {
  const of = random.whole(0, 3)
  const actual = random.whole(0, 12)
  const other = make(random)
  switch (verb) {
    case 'consume': {
      const decision = await program.consume('key', cost, { plan })
      if (decision.allowed) taken.unshift(decision)
      return decision
    }
    case 'reserve': {
      const decision = await program.reserve('key', cost, { plan, maxWaitMs: 1_500 })
      if (decision.allowed) booked.unshift(decision)
      return decision
    }
    case 'cancel':
      return await (random.chance(0.5) ? booked : taken).splice(of, 1)[0]?.cancel()
    case 'settle':
      return await (random.chance(0.5) ? booked : taken).splice(of, 1)[0]?.settle(actual)
    case 'refund':
      return await program.refund('key', cost, { plan })
    case 'charge':
      return await program.charge('key', cost, { plan })
    case 'update':
      return await program.update(other)
    default:
      return await program.peek('key', cost, { plan })
  }
}

/** Of several states of a key Redis forgets what is idle: a step back would find it gone. */
const FORGETS = ['redis']

describe.each(storeCases.filter(({ name }) => name !== 'memory'))('$name', ({ name, open }) => {
  test.each(Object.keys(MIXES) as (keyof typeof MIXES)[])('answers as memory does: %s', async (mix) => {
    const make = MIXES[mix] as MakeLimits
    for (let k = 0; k < traceCount(4); k++) {
      const mayStepBack = !FORGETS.includes(name)
      const expected = await live(memoryStore() as unknown as AsyncStore, make, SEED + k, mayStepBack)
      const { store, close } = await open()
      try {
        expect(await live(store as AsyncStore, make, SEED + k, mayStepBack)).toEqual(expected)
      } finally {
        close()
      }
    }
  })
})

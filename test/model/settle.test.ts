/**
 * Laws 10 and 11 of levels, in a world beside it in which everybody knew from the start what each
 * call would cost: after a settlement never less is in use than there, so that it is never a gift,
 * and exactly as much as long as the key is in use.
 */
import { describe, expect, test } from 'vitest'
import { createLimiter, type Decision, gcra, type Limit, leakyBucket, tokenBucket } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { Random } from './random.ts'
import { SEED } from './trace.ts'

const KEY = 'k'
const RUNS = 400
const START_US = 1_700_000_000_000_000

/** 7 permits a second: an interval that is no whole number of microseconds. */
const LEVELS: readonly { readonly type: string; readonly limit: Limit }[] = [
  { type: 'gcra', limit: gcra({ rate: '7/s', burst: 50 }) },
  { type: 'tokenBucket', limit: tokenBucket({ refill: '7/s', capacity: 50 }) },
  { type: 'leakyBucket', limit: leakyBucket({ leak: '7/s', capacity: 50 }) },
]
const PERMITS = 7n
const PERIOD_US = 1_000_000n

/** A charge in the world in which everybody knew from the start what it would cost. */
interface Known {
  readonly atUs: number
  cost: number
}

/**
 * The level in units of 1 / 1,000,000 permits: each charge adds to it, time drains it, never below
 * zero.
 */
function levelOf(known: readonly Known[], nowUs: number): bigint {
  let level = 0n
  let atUs = BigInt(START_US)
  const drain = (toUs: bigint) => {
    const left = level - (toUs - atUs) * PERMITS
    level = left > 0n ? left : 0n
    atUs = toUs
  }
  for (const { atUs: chargedUs, cost } of known) {
    drain(BigInt(chargedUs))
    level += BigInt(cost) * PERIOD_US
    if (level < 0n) level = 0n
  }
  drain(BigInt(nowUs))
  return level
}

/** How much of it `resetAfterMs` tells: the whole microseconds until it has drained. */
function drainedInUs(level: bigint): number {
  return Number((level + PERMITS - 1n) / PERMITS)
}

describe.each(LEVELS)('$type', ({ limit }) => {
  test('settled while nobody came after it, has in use what it would have, down to nothing', () => {
    for (let seed = SEED; seed < SEED + RUNS; seed++) {
      const random = new Random(seed)
      const { limiter, clock } = setUp(limit)
      const before = random.whole(0, 30)
      limiter.charge(KEY, before)
      const estimate = random.whole(1, 20)
      const decision = limiter.consume(KEY, estimate)
      const actual = random.whole(0, estimate)
      clock.setUs(START_US + random.whole(0, drainedInUs(BigInt(before + estimate) * PERIOD_US)))
      decision.settle(actual)
      const level = levelOf([{ atUs: START_US, cost: before + actual }], clock.nowUs())
      expect(limiter.peek(KEY, 0).resetAfterMs * 1000, `seed ${seed}`).toBeCloseTo(drainedInUs(level), 3)
    }
  })

  test('settled up while the key is in use, has in use what it would have', () => {
    for (let seed = SEED; seed < SEED + RUNS; seed++) {
      const random = new Random(seed)
      const { limiter, clock } = setUp(limit)
      const estimate = random.whole(5, 20)
      const decision = limiter.consume(KEY, estimate)
      clock.setUs(START_US + random.whole(0, 600_000))
      const others = random.whole(0, 40)
      const othersUs = clock.nowUs()
      limiter.charge(KEY, others)
      clock.setUs(START_US + random.whole(600_000, 700_000))
      const actual = estimate + random.whole(1, 100)
      decision.settle(actual)
      const level = levelOf(
        [
          { atUs: START_US, cost: actual },
          { atUs: othersUs, cost: others },
        ],
        clock.nowUs(),
      )
      expect(limiter.peek(KEY, 0).resetAfterMs * 1000, `seed ${seed}`).toBeCloseTo(drainedInUs(level), 3)
    }
  })

  test('is never a gift: whatever else is charged, no less is in use than if the actual costs had been known', () => {
    let down = 0
    let exact = 0
    for (let seed = SEED; seed < SEED + RUNS; seed++) {
      const random = new Random(seed)
      const { limiter, clock } = setUp(limit)
      const known: Known[] = []
      // Those that were charged last are settled first: none is settled after one before it was
      // given back.
      const open: { readonly entry: Known; readonly estimate: number; settle(actual: number): void }[] = []
      for (let n = 0; n < 60; n++) {
        clock.setUs(clock.nowUs() + random.pick([0, 1, random.whole(0, 300_000), random.whole(0, 3_000_000)]))
        const last = open.at(-1)
        if (last !== undefined && random.chance(0.4)) {
          open.pop()
          last.entry.cost = random.chance(0.8) ? random.whole(0, last.estimate) : last.estimate + random.whole(0, 30)
          if (last.entry.cost < last.estimate) down += 1
          last.settle(last.entry.cost)
        } else if (random.chance(0.2)) {
          const cost = random.whole(0, 60)
          limiter.charge(KEY, cost)
          known.push({ atUs: clock.nowUs(), cost })
        } else {
          const estimate = random.whole(0, 25)
          const decision = limiter.consume(KEY, estimate)
          if (!decision.allowed) continue
          const entry = { atUs: clock.nowUs(), cost: estimate }
          known.push(entry)
          open.push({ entry, estimate, settle: (actual) => decision.settle(actual) })
        }
        const leastUs = drainedInUs(levelOf(known, clock.nowUs()))
        const us = Math.round(limiter.peek(KEY, 0).resetAfterMs * 1000)
        expect(us, `seed ${seed}, step ${n}`).toBeGreaterThanOrEqual(leastUs)
        if (us === leastUs) exact += 1
      }
    }
    expect(down).toBeGreaterThan(RUNS)
    expect(exact).toBeGreaterThan(RUNS * 10)
  })

  test('in any order, and with refunds and resets, no more is given away than came back since the decision of what was before it', () => {
    let gifts = 0
    for (let seed = SEED; seed < SEED + RUNS; seed++) gifts += playInAnyOrder(limit, seed)
    expect(gifts).toBeGreaterThan(RUNS / 10)
  })
})

/** A call that is not settled yet. */
interface Open {
  readonly entry: Known
  readonly estimate: number
  readonly decision: Decision & { settle(actual: number): void; cancel(): void }
  readonly drainedUs: number
  /**
   * What came back since it was decided of charges before it, and of those that nobody named. In
   * microseconds of draining, rounded up.
   */
  beforeUs: number
  unnamedUs: number
  isReset: boolean
}

/**
 * Plays calls that are settled, cancelled and reset in any order beside a world that knew all
 * costs. What is missing there in the end is a gift, and it is at most what the settlements were
 * allowed: each the difference, and no more than what came back meanwhile of charges before it.
 * Answers how often there was one.
 */
function playInAnyOrder(limit: Limit, seed: number): number {
  const random = new Random(seed)
  const { limiter, clock } = setUp(limit)
  const inUseUs = () => Math.round(limiter.peek(KEY, 0).resetAfterMs * 1000)
  let known: Known[] = []
  let open: Open[] = []
  let allowed = 0n
  let gifts = 0
  /** How long what is given back would have taken to drain, at most. */
  const givenBy = (give: () => void): number => {
    const beforeUs = inUseUs()
    give()
    const us = beforeUs - inUseUs()
    return us > 0 ? us + 1 : 0
  }
  const allow = ({ drainedUs, isReset }: Open, permits: number, cameBackUs: number) => {
    const mostUs = isReset ? Math.max(0, drainedUs - clock.nowUs()) : cameBackUs
    allowed += smaller(BigInt(permits) * PERIOD_US, BigInt(mostUs) * PERMITS)
  }
  const settle = (one: Open) => {
    const { entry, estimate, decision, beforeUs, unnamedUs } = one
    entry.cost = random.chance(0.8) ? random.whole(0, estimate) : estimate + random.whole(0, 10)
    allow(one, Math.max(0, estimate - entry.cost), beforeUs + unnamedUs)
    decision.settle(entry.cost)
  }
  const cancel = (one: Open) => {
    one.entry.cost = 0
    allow(one, one.estimate, one.beforeUs + one.unnamedUs)
    one.decision.cancel()
  }
  for (let n = 0; n < 80; n++) {
    clock.setUs(clock.nowUs() + random.pick([0, 1, random.whole(0, 300_000), random.whole(0, 2_000_000)]))
    const act = random.weighted([
      [50, 'consume'],
      [open.length > 0 ? 40 : 0, 'settle'],
      [open.length > 0 ? 8 : 0, 'cancel'],
      [8, 'refund of any'],
      [2, 'reset'],
    ])
    if (act === 'consume') {
      const estimate = random.whole(1, 25)
      const decision = limiter.consume(KEY, estimate)
      if (!decision.allowed) continue
      const entry = { atUs: clock.nowUs(), cost: estimate }
      known.push(entry)
      open.push({ entry, estimate, decision, drainedUs: clock.nowUs() + inUseUs(), beforeUs: 0, unnamedUs: 0, isReset: false })
    } else if (act === 'reset') {
      limiter.reset(KEY)
      known = []
      for (const each of open) each.isReset = true
    } else if (act === 'refund of any') {
      const cost = random.whole(1, 5)
      const givenUs = givenBy(() => limiter.refund(KEY, cost))
      known.push({ atUs: clock.nowUs(), cost: -cost })
      for (const each of open) each.unnamedUs += givenUs
    } else {
      const place = random.whole(0, open.length - 1)
      const one = open[place] as Open
      open = open.filter((each) => each !== one)
      const givenUs = givenBy(() => (act === 'settle' ? settle(one) : cancel(one)))
      for (const later of open.slice(place)) later.beforeUs += givenUs
    }
    const level = levelOf(known, clock.nowUs())
    allowed = smaller(allowed, level)
    const told = `seed ${seed}, step ${n}: ${act}`
    expect(inUseUs(), told).toBeGreaterThanOrEqual(drainedInUs(level - allowed))
    if (inUseUs() < drainedInUs(level)) gifts += 1
  }
  return gifts
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

function setUp(limit: Limit) {
  const clock = fakeClock()
  clock.setUs(START_US)
  return { limiter: createLimiter(limit, { clock }), clock }
}

/**
 * The level: one rule for GCRA, token bucket and leaky bucket, which differ in their delays and in
 * what people see. Times in microseconds.
 */
import { describe, expect, test } from 'vitest'
import { LATEST_US, nextTime, rulesOf } from '../../test/lua/rules.ts'
import { Random } from '../../test/model/random.ts'
import { HeldKey } from '../../test/support/held-key.ts'
import type { Algorithm } from './algorithm.ts'
import { gcraAlgorithm } from './gcra/gcra.ts'
import { leakyBucketAlgorithm } from './leaky-bucket/leaky-bucket.ts'
import type { LevelRule } from './level.ts'
import { paceOf, type Rate } from './rate.ts'
import { tokenBucketAlgorithm } from './token-bucket/token-bucket.ts'

const SECOND = 1_000_000
const DAY = 86_400 * SECOND
/** How far ahead is booked: the domain of a level has room for it. */
const AHEAD_US = 60 * SECOND

type Level = Algorithm<LevelRule>

function ruleOf(algorithm: Level, capacity: number, rate: Rate): LevelRule {
  const { permits, periodUs } = paceOf(rate, 'rate')
  return algorithm.ruleOf([capacity, permits, periodUs])
}

describe.each([gcraAlgorithm, tokenBucketAlgorithm, leakyBucketAlgorithm])('$type', (algorithm) => {
  const rule = (capacity: number, rate: Rate) => ruleOf(algorithm, capacity, rate)
  const keyOf = (capacity: number, rate: Rate) => new HeldKey(rule(capacity, rate))

  test('leaves the same state after one take of 2 as after two takes of 1', () => {
    const [once, twice] = [keyOf(5, '7/s'), keyOf(5, '7/s')]
    once.take(40, 2)
    twice.take(40)
    twice.take(40)
    expect(once.s).toEqual(twice.s)
  })

  test('limits one microsecond before the wait is over and allows at its end', () => {
    const key = keyOf(2, '1/s')
    key.take(0, 2)
    expect([key.waitUs(0, 1), key.waitUs(0, 2), key.waitUs(1_500_000, 2)]).toEqual([SECOND, 2 * SECOND, 500_000])
    expect([key.take(SECOND - 1), key.take(SECOND)]).toEqual([1, 0])
  })

  test('is as if never used once its time to reset is over', () => {
    const key = keyOf(3, '7/s')
    key.take(0, 2)
    const idleUs = key.resetUs(0)
    expect(idleUs).toBe(285_715)
    expect([key.resetUs(idleUs - 1), key.resetUs(idleUs), key.remaining(idleUs)]).toEqual([1, 0, 3])
  })

  test('adds up to nothing over 10,000 permits: the k-th comes after k / 7 of a second, rounded up', () => {
    const key = keyOf(2, '7/s')
    key.take(0, 2)
    for (let k = 1; k <= 10_000; k++) {
      const nowUs = Math.ceil((k * SECOND) / 7)
      expect([key.take(nowUs - 1), key.take(nowUs)]).toEqual([1, 0])
    }
  })

  describe('a clock that steps back', () => {
    test('by at most one window finds time standing still: what is used stays used, and nothing is written', () => {
      const key = keyOf(2, '1/s')
      key.take(100 * SECOND, 2)
      const before = key.s.slice()
      for (const stepUs of [1, SECOND, 2 * SECOND]) {
        const nowUs = 100 * SECOND - stepUs
        expect([key.repair(nowUs), key.remaining(nowUs), key.waitUs(nowUs)]).toEqual([false, 0, stepUs + SECOND])
      }
      expect(key.s).toEqual(before)
    })

    test('by more than one window finds the state dated to now, with what was used, and that is written', () => {
      const key = keyOf(2, '7/s')
      key.take(100 * SECOND)
      const nowUs = 100 * SECOND - 285_715 - 1
      expect([key.repair(nowUs + 1), key.repair(nowUs), key.s]).toEqual([false, true, Float64Array.of(nowUs + 142_857, 1, nowUs)])
      expect([key.remaining(nowUs), key.resetUs(nowUs), key.repair(nowUs)]).toEqual([1, 142_858, false])
    })

    test('keeps what is booked ahead and debt, whole', () => {
      const key = keyOf(2, '1/s')
      key.book(100 * SECOND, 5)
      expect([key.repair(98 * SECOND), key.used(98 * SECOND), key.waitUs(98 * SECOND)]).toEqual([false, 5, 6 * SECOND])
      expect([key.repair(98 * SECOND - 1), key.used(98 * SECOND - 1)]).toEqual([true, 5])
    })

    test('charges meanwhile at the time that stands still', () => {
      const key = keyOf(2, '1/s')
      key.take(100 * SECOND)
      expect([key.take(99 * SECOND), key.s]).toEqual([0, Float64Array.of(102 * SECOND, 0, 100 * SECOND)])
      expect(key.take(99 * SECOND)).toBe(2 * SECOND)
    })

    test('gives back meanwhile, and keeps the date', () => {
      const key = keyOf(2, '1/s')
      key.take(100 * SECOND, 2)
      expect([key.give(99 * SECOND, 1), key.s]).toEqual([true, Float64Array.of(101 * SECOND, 0, 100 * SECOND)])
      // It differs from a fresh one until its date.
      expect([key.give(99 * SECOND, 1), key.resetUs(99 * SECOND)]).toEqual([true, SECOND])
    })

    test('has no window to wait out under a capacity of 0', () => {
      const key = new HeldKey(algorithm.ruleOf([0, 1, SECOND]))
      key.book(100 * SECOND, 3)
      expect([key.repair(100 * SECOND), key.repair(100 * SECOND - 1), key.used(100 * SECOND - 1)]).toEqual([false, true, 3])
    })

    test('and leaps forward again is just time passing', () => {
      const key = keyOf(2, '1/s')
      key.take(0, 2)
      expect([key.repair(1e9 * SECOND), key.remaining(1e9 * SECOND)]).toEqual([false, 2])
    })
  })

  describe('other numbers', () => {
    test('of the caller are held against what is used, which drains at its own pace, and the state stays as it is', () => {
      const key = keyOf(10, '1/s')
      key.take(0, 4)
      const before = key.s.slice()
      key.under(rule(3, '1000/s'))
      expect([key.remaining(0), key.take(0), key.take(0, 2), key.resetUs(0)]).toEqual([0, 2 * SECOND, 3 * SECOND, 4 * SECOND])
      key.under(rule(5, '1/d'))
      expect([key.remaining(0), key.remaining(SECOND), key.take(0, 2)]).toEqual([1, 2, SECOND])
      expect([key.s, key.numbers]).toEqual([before, '10 1 1000000'])
    })

    test('give no free refill, and a larger capacity is had at once', () => {
      const key = keyOf(5, '1/s')
      key.take(0, 5)
      key.under(rule(8, '1/s'))
      expect([key.remaining(0), key.take(0, 3), key.used(0)]).toEqual([3, 0, 8])
      key.under(rule(5, '1/s'))
      expect([key.remaining(0), key.take(0), key.take(4 * SECOND)]).toEqual([0, 4 * SECOND, 0])
    })

    test('keep every permit with a charge, and drain at the new pace from there', () => {
      const key = keyOf(10, '1/s')
      key.take(0, 5)
      key.under(rule(10, '1/d')).take(SECOND)
      expect([key.used(SECOND), key.resetUs(SECOND), key.numbers]).toEqual([5, 5 * DAY, '10 1 86400000000'])
    })

    test('round what was used up to the new unit', () => {
      const key = keyOf(10, '1/3us')
      key.take(0)
      // Two thirds of a permit are left to drain. Over 7 microseconds that is 4 2/3 of 7 parts, so 5.
      key.under(rule(10, '1/7us')).take(1)
      expect(key.resetUs(1)).toBe(12)
    })

    test('date a booking at the pace of the state, which moves to theirs then', () => {
      const key = keyOf(10, '1/s')
      key.take(0, 10)
      key.under(rule(4, '10/s'))
      const delays = algorithm.spaced ? [10 * SECOND, 10 * SECOND] : [7 * SECOND, 10 * SECOND]
      expect([key.dueUs(0, 1), key.dueUs(0, 4)]).toEqual(delays)
      const { words } = key.book(0, 4)
      // When it would have drained, when it was entered, when its caller may act, what came back.
      expect([...words]).toEqual([1_400_000, 0, 10 * SECOND, 0])
      expect([key.used(0), key.resetUs(0)]).toEqual([14, 1_400_000])
    })

    test('that are the same pace are the same state', () => {
      const key = keyOf(5, '10/s')
      key.take(0, 3)
      const before = key.s.slice()
      key.under(rule(9, '100/10s')).take(0, 2)
      expect([key.s[0], key.s[1]]).toEqual([(before[0] as number) + 200_000, 0])
    })
  })

  describe('giving back as of now', () => {
    test('returns the permits, never above idle', () => {
      const key = keyOf(5, '7/s')
      key.take(0, 3)
      expect([key.give(0, 1), key.remaining(0)]).toEqual([true, 3])
      expect([key.give(0, 5), key.remaining(0), key.resetUs(0)]).toEqual([true, 5, 0])
      expect(key.give(0, 1)).toBe(false)
    })

    test('is by the pace of the state, whatever that of the caller is', () => {
      const key = keyOf(10, '1/s')
      key.take(0, 10)
      key.under(rule(1, '10/s'))
      expect([key.give(4 * SECOND, 5), key.resetUs(4 * SECOND), key.numbers]).toEqual([true, SECOND, '10 1 1000000'])
    })
  })

  describe('settling a charge down', () => {
    /** A key of `1/s` that has taken its capacity of 2 at 0, so that two booked now may act after two seconds. */
    const full = () => {
      const key = keyOf(2, '1/s')
      key.take(0, 2)
      return key
    }

    test('gives back what still counts of it', () => {
      const key = keyOf(2, '1/s')
      const first = key.book(0)
      key.book(SECOND / 2)
      expect([key.settle(SECOND / 2, 1, first), key.resetUs(SECOND / 2)]).toEqual([0, SECOND])
      const other = keyOf(2, '1/s')
      const gone = other.book(0)
      other.book(SECOND - 1)
      expect([other.settle(SECOND, 1, gone), other.resetUs(SECOND)]).toEqual([-1, SECOND])
    })

    test('gives a booking back whole before its time, if it is the last', () => {
      const key = full()
      const before = key.s.slice()
      expect([key.settle(0, 2, key.book(0, 2)), key.s]).toEqual([2, before])
      const thirds = keyOf(1, '7/s')
      thirds.book(0, 3)
      const booked = thirds.book(0)
      expect([thirds.settle(12_345, 1, booked), thirds.resetUs(12_345)]).toEqual([1, 428_572 - 12_345])
    })

    test('gives back its cost less what was booked after it', () => {
      const [key, other] = [full(), full()]
      const booked = key.book(0, 2)
      key.book(0)
      expect([key.settle(0, 2, booked), key.used(0)]).toEqual([1, 4])
      const same = other.book(0, 2)
      other.book(0, 2)
      expect([other.settle(0, 2, same), other.used(0)]).toEqual([-1, 6])
    })

    test('gives back what was booked, not what was given back to the key since', () => {
      const key = full()
      const booked = key.book(0, 2)
      key.give(0, 1)
      expect([key.settle(0, 2, booked), key.used(0)]).toEqual([2, 1])
    })

    test('gives back at its time what any charge would', () => {
      const dueUs = algorithm.spaced ? 2 * SECOND : SECOND
      const [before, after] = [full(), full()]
      const [one, other] = [before.book(0), after.book(0)]
      expect([one.words[2], other.words[2]]).toEqual([dueUs, dueUs])
      before.book(dueUs - 1)
      expect([before.settle(dueUs - 1, 1, one), before.resetUs(dueUs - 1)]).toEqual([-1, 4 * SECOND - dueUs + 1])
      after.book(dueUs)
      expect([after.settle(dueUs, 1, other), after.resetUs(dueUs)]).toEqual([1, 3 * SECOND - dueUs])
    })

    test.each([150_000, 300_000])(
      'in two steps gives back what one does: after %i microseconds, before its time in a queue and after it',
      (nowUs) => {
        const [once, twice] = [keyOf(9, '7/s'), keyOf(9, '7/s')]
        for (const key of [once, twice]) key.take(0, 2)
        const [one, other] = [once.book(0, 6), twice.book(0, 6)]
        expect(once.settle(nowUs, 5, one)).toBe(5)
        expect([twice.settle(nowUs, 2, other), twice.settle(nowUs, 3, { ...other, words: other.words.with(3, 2) })]).toEqual([2, 3])
        expect(once.s).toEqual(twice.s)
      },
    )

    test.each([
      [0, 3],
      [1, 2],
      [SECOND, 2],
      [SECOND + 1, 1],
      [2 * SECOND, 1],
      [2 * SECOND + 1, -1],
      [3 * SECOND, -1],
    ])('after %i microseconds, at another pace by then, gives back its share of the time that was left: %i', (nowUs, given) => {
      const key = keyOf(10, '1/s')
      const charge = key.book(0, 3)
      key.under(rule(10, '10/s')).book(nowUs, 9)
      const before = key.resetUs(nowUs)
      const what = [key.settle(nowUs, 3, charge), before - key.resetUs(nowUs), key.numbers]
      expect(what).toEqual([given, Math.max(0, given) * 100_000, '10 1 100000'])
    })

    test('gives nothing back of a booking before its time once the pace is another', () => {
      const key = full()
      const booked = key.book(0, 1)
      const dueUs = booked.words[2] as number
      const other = rule(10, { permits: 1, per: '1d' })
      key.under(other).book(0)
      expect([key.settle(dueUs - 1, 1, booked), key.used(dueUs - 1)]).toEqual([-1, 4])
      const raised = full()
      const same = raised.book(0, 1)
      raised.under(rule(20, '1/s')).take(0)
      // A capacity is no pace.
      expect([raised.settle(0, 1, same), raised.used(0)]).toEqual([-1, 4])
      raised.give(0, 1)
      expect([raised.settle(0, 1, same), raised.used(0)]).toEqual([1, 2])
    })

    test('finds a time before the charge to be its time, where the clock stepped back', () => {
      const key = keyOf(4, '1/s')
      key.take(100 * SECOND, 1)
      const charge = key.book(100 * SECOND, 2)
      expect([key.repair(50 * SECOND), key.settle(50 * SECOND, 2, charge), key.used(50 * SECOND)]).toEqual([true, 2, 1])
    })
  })
})

/**
 * How a level is told in units, of which a permit is `periodUs` and `permits` drain each
 * microsecond.
 */
function unitsIn({ permits }: LevelRule, [tatUs, part, atUs]: Float64Array, nowUs: number): number {
  const fromUs = Math.max(nowUs, atUs as number)
  return Math.max(0, ((tatUs as number) - fromUs) * permits + (part as number))
}

describe('settled', () => {
  /**
   * When a charge would have drained is known to the microsecond, rounded up. While no call came
   * after it, what it gives back is exact. Else less than one microsecond's may be missing, or,
   * where more than one permit drains in a microsecond, be a gift.
   */
  test.each([
    [7, 8, 0],
    [3, 5, 0],
    [1, 1, 0],
    [1, 4, 0],
    [3, 2, 2],
    [10, 1, 9],
  ])(
    'at %i permits every %i microseconds comes back to the unit, or to the microsecond: a gift of %i units at most',
    (permits, periodUs, most) => {
      const random = new Random(permits)
      const many = 12 * permits
      const seen = { missing: 0, gift: 0, before: 0, late: 0, none: 0 }
      for (let k = 0; k < 8_000; k++) {
        const capacity = random.whole(1, many)
        const rule = ruleOf(random.pick([gcraAlgorithm, leakyBucketAlgorithm]), capacity, { permits, per: `${periodUs}us` })
        const key = new HeldKey(rule)
        let nowUs = 1_000
        if (random.chance(0.5)) key.book(nowUs, random.whole(1, many))
        nowUs += random.whole(0, periodUs)
        const cost = random.whole(1, capacity)
        const charge = key.book(nowUs, cost)
        // What would be in use, had no call come after it.
        const alone = new HeldKey(rule)
        alone.s.set(key.s)
        const after = random.whole(0, 2)
        for (let n = 0; n < after; n++) {
          nowUs += random.whole(0, 2 * periodUs)
          key.book(nowUs, random.whole(1, 2 * permits))
        }
        nowUs += random.whole(0, 2 * periodUs)
        const asked = random.whole(1, cost)
        const [level, mark] = [unitsIn(rule, key.s, nowUs), unitsIn(rule, alone.s, nowUs)]
        const isBefore = nowUs < (charge.words[2] as number)
        const owed = Math.max(0, isBefore ? asked * periodUs - (level - mark) : Math.min(mark, asked * periodUs))
        const what = JSON.stringify({ capacity, state: [...key.s], charge: [...charge.words], nowUs, asked, level, mark })
        const given = key.settle(nowUs, asked, charge)
        const units = level - unitsIn(rule, key.s, nowUs)
        if (units < level) expect(given, what).toBe(units > 0 ? Math.floor(units / periodUs) : -1)
        if (after === 0) expect(units, what).toBe(owed)
        seen.missing = Math.max(seen.missing, owed - units)
        seen.gift = Math.max(seen.gift, units - owed)
        seen.before += isBefore && units > 0 && level > mark ? 1 : 0
        seen.late += !isBefore && units > 0 && level > mark ? 1 : 0
        seen.none += units === 0 ? 1 : 0
      }
      expect(seen.missing).toBeLessThan(permits)
      expect(seen.gift).toBeLessThanOrEqual(most)
      expect(Math.min(seen.before, seen.late, seen.none)).toBeGreaterThan(100)
    },
  )
})

/** The definition, in whole units of any size. */
class Units {
  #units = 0n
  #atUs = 0n
  rule: LevelRule

  constructor(rule: LevelRule) {
    this.rule = rule
  }

  /** A state dated more than one window ahead is re-dated. */
  repair(nowUs: number): void {
    const { capacity, permits, periodUs } = this.rule
    const windowUs = ceil(BigInt(capacity) * BigInt(periodUs), BigInt(permits))
    if (this.#atUs - BigInt(nowUs) > windowUs) this.#atUs = BigInt(nowUs)
  }

  #at(nowUs: number): readonly [units: bigint, atUs: bigint] {
    const now = BigInt(nowUs)
    if (now <= this.#atUs) return [this.#units, this.#atUs]
    const left = this.#units - (now - this.#atUs) * BigInt(this.rule.permits)
    return [left > 0n ? left : 0n, now]
  }

  /** What is used, how long until no more than `room` is, and how long until it is idle. */
  seen(nowUs: number, room: number): readonly bigint[] {
    const [units, atUs] = this.#at(nowUs)
    const [p, q] = [BigInt(this.rule.permits), BigInt(this.rule.periodUs)]
    const lateUs = atUs - BigInt(nowUs)
    const over = units - BigInt(room) * q
    return [ceil(units, q), over > 0n ? ceil(over, p) + lateUs : 0n, ceil(units, p) + lateUs]
  }

  /** How long until what is used, at another pace, drains to `room` permits within `aheadUs`. */
  movesInUs(nowUs: number, to: LevelRule, room: number, aheadUs: number): bigint {
    const { permits, periodUs } = this.rule
    if (permits === to.permits && periodUs === to.periodUs) return 0n
    const [units, atUs] = this.#at(nowUs)
    const most = BigInt(room) * BigInt(to.periodUs) + BigInt(aheadUs) * BigInt(to.permits)
    const over = units - (most * BigInt(periodUs)) / BigInt(to.periodUs)
    return over > 0n ? ceil(over, BigInt(permits)) + atUs - BigInt(nowUs) : 0n
  }

  charge(nowUs: number, cost: number, to: LevelRule): void {
    const [units, atUs] = this.#at(nowUs)
    const periodUs = BigInt(to.periodUs)
    this.#units = ceil(units * periodUs, BigInt(this.rule.periodUs)) + BigInt(cost) * periodUs
    this.#atUs = atUs
    this.rule = to
  }

  give(nowUs: number, cost: number): void {
    const [units, atUs] = this.#at(nowUs)
    if (units === 0n) return
    const left = units - BigInt(cost) * BigInt(this.rule.periodUs)
    this.#units = left > 0n ? left : 0n
    this.#atUs = atUs
  }
}

function ceil(a: bigint, b: bigint): bigint {
  return (a + b - 1n) / b
}

test('over the whole domain, up to 2^52, a level is what it is in BigInt', () => {
  const random = new Random(52)
  const seen = { full: 0, repaired: 0, moved: 0, waits: 0, booked: 0 }
  for (let walk = 0; walk < 1_000; walk++) {
    const rules = rulesOf('gcra', random) as LevelRule[]
    const [first] = rules as [LevelRule]
    const { repair, used, untilUs, movesInUs, resetUs, charge, giveBack } = first.algorithm as Required<Level>
    const units = new Units(first)
    const s = new Float64Array(first.words)
    let nowUs = random.magnitude(1, LATEST_US / 2)
    for (let step = 0; step < 40; step++) {
      const own = units.rule
      nowUs = nextTime(nowUs, own, random)
      const to = random.pick([own, own, random.pick(rules)])
      const room = random.pick([0, own.capacity, random.whole(0, own.capacity)])
      const what = JSON.stringify({ own: own.numbers, to: to.numbers, nowUs, room, state: [...s] })
      units.repair(nowUs)
      seen.repaired += repair(own, s, 0, nowUs) ? 1 : 0
      const asked = [used(own, s, 0, nowUs), untilUs(own, s, 0, nowUs, room), resetUs(own, s, 0, nowUs)]
      expect(asked.map(BigInt), what).toEqual(units.seen(nowUs, room))
      const [roomThere, aheadUs] = [random.whole(0, to.capacity), random.magnitude(1, AHEAD_US)]
      const movesUs = movesInUs(own, to, s, 0, nowUs, roomThere, aheadUs)
      expect(BigInt(movesUs), what).toBe(units.movesInUs(nowUs, to, roomThere, aheadUs))
      seen.waits += movesUs > 0 ? 1 : 0
      const cost = random.pick([1, random.magnitude(1, Math.max(1, to.capacity)), random.magnitude(1, to.mostUsed)])
      if (random.chance(0.3)) {
        giveBack(own, s, 0, nowUs, cost, -1, undefined)
        units.give(nowUs, cost)
        continue
      }
      // What is booked fits. Else no more is charged than may be in use.
      const left = to.capacity - cost
      const isBooked = left >= 0 && untilUs(own, s, 0, nowUs, left) <= AHEAD_US && movesInUs(own, to, s, 0, nowUs, left, AHEAD_US) <= 0
      const within = isBooked ? cost : Math.min(cost, to.mostUsed - used(own, s, 0, nowUs))
      if (within <= 0) continue
      seen.booked += isBooked && used(own, s, 0, nowUs) > left ? 1 : 0
      charge(own, to, s, 0, nowUs, within)
      units.charge(nowUs, within, to)
      seen.full += used(to, s, 0, nowUs) === to.mostUsed ? 1 : 0
      seen.moved += own === to ? 0 : 1
    }
  }
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(300)
})

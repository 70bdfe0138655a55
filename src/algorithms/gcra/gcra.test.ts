import { describe, expect, test } from 'vitest'
import { HeldKey } from '../../../test/support/held-key.ts'
import { RULE } from '../algorithm.ts'
import type { LevelRule } from '../level.ts'
import { type GcraOptions, gcra, gcraAlgorithm } from './gcra.ts'

const SECOND = 1_000_000

function ruleOf(options: GcraOptions): LevelRule {
  return gcra(options)[RULE] as LevelRule
}

class Key extends HeldKey {
  get tatUs(): number {
    return this.s[0] as number
  }
}

describe('the number line of 1/s with a burst of 2', () => {
  test('allows two at 0.1 s, refuses the third for a second, and allows the next at 1.5 s', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 2 }))
    expect([key.take(100_000), key.tatUs, key.remaining(100_000)]).toEqual([0, 1_100_000, 1])
    expect([key.take(100_000), key.tatUs, key.remaining(100_000)]).toEqual([0, 2_100_000, 0])
    expect([key.take(100_000), key.tatUs, key.remaining(100_000)]).toEqual([SECOND, 2_100_000, 0])
    expect([key.take(1_500_000), key.tatUs, key.remaining(1_500_000)]).toEqual([0, 3_100_000, 0])
    expect(key.resetUs(1_500_000)).toBe(1_600_000)
  })

  test('limits one microsecond before the wait is over and allows at its end', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 2 }))
    key.take(0, 2)
    expect([key.take(SECOND - 1), key.take(SECOND)]).toEqual([1, 0])
  })

  test('waits for as many as are asked for', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 2 }))
    key.take(0, 2)
    expect([key.waitUs(0, 1), key.waitUs(0, 2), key.waitUs(1_500_000, 2)]).toEqual([SECOND, 2 * SECOND, 500_000])
  })

  test('leaves the same state after one take of 2 as after two takes of 1', () => {
    const [once, twice] = [new Key(ruleOf({ rate: '7/s', burst: 5 })), new Key(ruleOf({ rate: '7/s', burst: 5 }))]
    once.take(40, 2)
    twice.take(40)
    twice.take(40)
    expect(once.s).toEqual(twice.s)
  })

  test('is as if never used once its time to reset is over', () => {
    const key = new Key(ruleOf({ rate: '7/s', burst: 3 }))
    key.take(0, 2)
    const idleUs = key.resetUs(0)
    expect(idleUs).toBe(285_715)
    expect([key.resetUs(idleUs - 1), key.resetUs(idleUs), key.remaining(idleUs)]).toEqual([1, 0, 3])
  })
})

test('7 per second is exact: the interval is 142857 and 1/7 microseconds, and seven of them are a second', () => {
  const key = new Key(ruleOf({ rate: '7/s', burst: 7 }))
  expect([key.take(0), key.s]).toEqual([0, Float64Array.of(142_857, 1, -1)])
  key.take(0, 6)
  expect(key.s).toEqual(Float64Array.of(SECOND, 0, -1))
  expect([key.take(142_857), key.take(142_858)]).toEqual([1, 0])
})

test('parts that add up to more than a microsecond are waited out to the microsecond', () => {
  const key = new Key(ruleOf({ rate: '7/s', burst: 7 }))
  key.take(0, 6)
  // 12/7 of a second, less the second that the burst forgives: 714285 and 5/7.
  expect(key.take(0, 6)).toBe(714_286)
})

test('7 per second adds up to nothing over 10,000 permits: the k-th comes after k / 7 of a second, rounded up', () => {
  const key = new Key(ruleOf({ rate: '7/s', burst: 2 }))
  key.take(0, 2)
  for (let k = 1; k <= 10_000; k++) {
    const nowUs = Math.ceil((k * SECOND) / 7)
    expect([key.take(nowUs - 1), key.take(nowUs)]).toEqual([1, 0])
  }
})

test('people see the TAT, its part, and the date of what is booked ahead', () => {
  const key = new Key(ruleOf({ rate: '7/s', burst: 5 }))
  key.take(100_000)
  expect(key.state).toEqual({ tatUs: 242_857, part: 1, atUs: -1 })
  key.reserve(100_000, 6)
  expect(key.state).toEqual({ tatUs: 1_100_000, part: 0, atUs: 100_000 })
})

describe('a clock that steps back', () => {
  const rule = ruleOf({ rate: '1/s', burst: 2 })

  test('by less than what is left of the burst changes nothing: the TAT stays where it is', () => {
    const key = new Key(rule)
    key.take(100 * SECOND)
    expect([key.repair(99 * SECOND), key.tatUs]).toEqual([false, 101 * SECOND])
    expect([key.remaining(99 * SECOND), key.waitUs(99 * SECOND)]).toEqual([0, SECOND])
  })

  test('by more finds the TAT clamped to one full burst from now, and writes that', () => {
    const key = new Key(rule)
    key.take(100 * SECOND)
    expect([key.repair(10 * SECOND), key.tatUs]).toEqual([true, 12 * SECOND])
    expect([key.remaining(10 * SECOND), key.waitUs(10 * SECOND)]).toEqual([0, SECOND])
    expect(key.repair(10 * SECOND)).toBe(false)
  })

  test('clamps to the exact burst, with its part', () => {
    const key = new Key(ruleOf({ rate: '7/s', burst: 2 }))
    key.take(100 * SECOND, 2)
    key.repair(0)
    expect(key.s).toEqual(Float64Array.of(285_714, 2, -1))
  })

  test('finds time standing still for what is booked ahead, up to one window', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 2 }))
    key.reserve(100 * SECOND, 5)
    expect([key.repair(98 * SECOND), key.used(98 * SECOND), key.waitUs(98 * SECOND)]).toEqual([false, 5, 6 * SECOND])
    expect([key.repair(98 * SECOND - 1), key.s]).toEqual([true, Float64Array.of(103 * SECOND - 1, 0, 98 * SECOND - 1)])
  })

  test('and what is booked at microsecond 0 is dated, too', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 2 }))
    key.reserve(0, 5)
    expect([key.repair(0), key.used(0)]).toEqual([false, 5])
  })

  test('keeps the date of what is no longer booked, as long as it lies ahead', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 2 }))
    key.reserve(100 * SECOND, 3)
    key.give(99 * SECOND, 1)
    expect([key.used(99 * SECOND), key.s]).toEqual([2, Float64Array.of(102 * SECOND, 0, 100 * SECOND)])
    key.give(100 * SECOND, 1)
    expect(key.s).toEqual(Float64Array.of(101 * SECOND, 0, -1))
  })

  test('keeps it where nothing is given back', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 2 }))
    key.reserve(100 * SECOND, 3)
    key.give(99 * SECOND, 1)
    expect([key.give(100 * SECOND, 1, 0), key.s]).toEqual([false, Float64Array.of(102 * SECOND, 0, 100 * SECOND)])
    const drained = { rule, words: Float64Array.of(99 * SECOND) }
    expect([gcraAlgorithm.giveRest?.(rule, key.s, 0, 100 * SECOND, 1, drained), key.s[2]]).toEqual([-1, 100 * SECOND])
  })

  test('and a leap forward is just time passing', () => {
    const key = new Key(rule)
    key.take(0, 2)
    expect([key.repair(1e9 * SECOND), key.remaining(1e9 * SECOND)]).toEqual([false, 2])
  })
})

describe('other numbers', () => {
  test('of the caller are held against what is used, which drains at its own pace, and the state stays as it is', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 10 }))
    key.take(0, 4)
    const before = key.s.slice()
    key.under(ruleOf({ rate: '1000/s', burst: 3 }))
    expect([key.remaining(0), key.take(0), key.take(0, 2), key.resetUs(0)]).toEqual([0, 2 * SECOND, 3 * SECOND, 4 * SECOND])
    key.under(ruleOf({ rate: '1/d', burst: 5 }))
    expect([key.remaining(0), key.remaining(SECOND), key.take(0, 2)]).toEqual([1, 2, SECOND])
    expect([key.s, key.numbers]).toEqual([before, '10 1 1000000'])
  })

  test('give no free refill, and a larger capacity is had at once', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 5 }))
    key.take(0, 5)
    key.under(ruleOf({ rate: '1/s', burst: 8 }))
    expect([key.remaining(0), key.take(0, 3), key.used(0)]).toEqual([3, 0, 8])
    key.under(ruleOf({ rate: '1/s', burst: 5 }))
    expect([key.remaining(0), key.take(0), key.take(4 * SECOND)]).toEqual([0, 4 * SECOND, 0])
  })

  test('keep every permit with a charge, and drain at the new pace from there', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 10 }))
    key.take(0, 5)
    key.under(ruleOf({ rate: '1/d', burst: 10 })).take(SECOND)
    expect([key.used(SECOND), key.resetUs(SECOND), key.numbers]).toEqual([5, 5 * 86_400 * SECOND, '10 1 86400000000'])
  })

  test('round what was used up to the new unit', () => {
    const key = new Key(ruleOf({ rate: '1/3us', burst: 10 }))
    key.take(0)
    // Two thirds of a permit are left to drain. Over 7 microseconds that is 4 2/3 of 7 parts, so 5.
    key.under(ruleOf({ rate: '1/7us', burst: 10 })).take(1)
    expect(key.resetUs(1)).toBe(12)
  })

  test('that are the same numbers change nothing', () => {
    const key = new Key(ruleOf({ rate: '10/s', burst: 5 }))
    key.take(0)
    expect(key.under(ruleOf({ rate: '100/10s', burst: 5 })).numbers).toBe(ruleOf({ rate: '100/10s', burst: 5 }).numbers)
  })

  test('tell a reservation when it may act: when it fits at its own pace', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 10 }))
    key.take(0, 10)
    key.under(ruleOf({ rate: '10/s', burst: 4 }))
    expect([key.dueUs(0, 1), key.dueUs(0, 4), key.waitUs(0, 1)]).toEqual([700_000, SECOND, 7 * SECOND])
  })

  test('of another pace leave a ticket nothing to give back', () => {
    const slow = ruleOf({ rate: '1/s', burst: 2 })
    const key = new Key(slow)
    const ticket = key.reserve(0, 5)
    key.under(ruleOf({ rate: '2/s', burst: 20 })).take(0)
    expect([key.under(slow).cancel(0, 5, ticket), key.used(0)]).toEqual([false, 6])
    const raised = ruleOf({ rate: '1/s', burst: 20 })
    const other = new Key(slow)
    const same = other.reserve(0, 5)
    other.under(raised).take(0)
    expect([other.under(slow).cancel(0, 5, same), other.used(0)]).toEqual([true, 2])
  })

  test('give back by the pace of the state, whatever that of the caller is', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 10 }))
    key.take(0, 10)
    key.under(ruleOf({ rate: '10/s', burst: 1 }))
    expect([key.give(9 * SECOND, 10, 0), key.used(9 * SECOND), key.numbers]).toEqual([true, 0, '10 1 1000000'])
  })
})

describe('giving back', () => {
  test('returns the permits, never above idle', () => {
    const key = new Key(ruleOf({ rate: '7/s', burst: 5 }))
    key.take(0, 3)
    expect([key.give(0, 1), key.remaining(0)]).toEqual([true, 3])
    expect([key.give(0, 5), key.remaining(0), key.resetUs(0)]).toEqual([true, 5, 0])
    expect(key.give(0, 1)).toBe(false)
  })

  test('of a charge gives back what has not drained of it', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 2 }))
    key.take(0)
    key.take(SECOND - 1)
    expect([key.give(SECOND, 1, 0), key.resetUs(SECOND)]).toEqual([false, SECOND])
    // Of half of it, half is given back.
    expect([key.give(SECOND - 1, 1, SECOND / 2 - 1), key.resetUs(SECOND - 1)]).toEqual([true, SECOND / 2 + 1])
  })

  test('cancels the last reservation whole', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 2 }))
    key.take(0, 2)
    const ticket = key.reserve(0, 2)
    expect([key.cancel(0, 2, ticket), key.tatUs]).toEqual([true, 2 * SECOND])
  })

  test('cancels an earlier reservation minus what was reserved after it', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 2 }))
    key.take(0, 2)
    const ticket = key.reserve(0, 2)
    key.reserve(0)
    expect([key.cancel(0, 2, ticket), key.tatUs]).toEqual([true, 4 * SECOND])
  })

  test('cancels nothing when as much was reserved after it', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 2 }))
    key.take(0, 2)
    const ticket = key.reserve(0, 2)
    key.reserve(0, 2)
    expect([key.cancel(0, 2, ticket), key.tatUs]).toEqual([false, 6 * SECOND])
  })

  test('cancels nothing once the time of the reservation has come', () => {
    const key = new Key(ruleOf({ rate: '1/s', burst: 2 }))
    key.take(0, 2)
    const ticket = key.reserve(0, 1)
    expect(key.cancel(SECOND, 1, ticket)).toBe(false)
    expect(key.cancel(SECOND - 1, 1, ticket)).toBe(true)
  })

  describe.each(['7/s', '7/2us', '7/us'] as const)('at %s, to the last part of a microsecond,', (rate) => {
    const rule = ruleOf({ rate, burst: 1 })
    const upTo12 = Array.from({ length: 12 }, (_, k) => k + 1)

    /** A key with this many reserved at 0. */
    function reserved(permits: number): Key {
      const key = new Key(rule)
      key.reserve(0, permits)
      return key
    }

    test.each(upTo12)('cancels a reservation of %i minus what was reserved after it', (cost) => {
      for (const after of upTo12) {
        const key = reserved(20)
        const ticket = key.reserve(0, cost)
        key.reserve(0, after)
        expect([after, key.cancel(0, cost, ticket), key.s]).toEqual([after, after < cost, reserved(20 + after + Math.min(after, cost)).s])
      }
    })

    test.each(upTo12)('cancels a reservation of %i whole if something was given back after it', (cost) => {
      for (const given of upTo12) {
        const key = reserved(30)
        const ticket = key.reserve(0, cost)
        key.give(0, given)
        expect([given, key.cancel(0, cost, ticket), key.s]).toEqual([given, true, reserved(30 - given).s])
      }
    })
  })

  test('cancels exactly when the interval has a part', () => {
    const key = new Key(ruleOf({ rate: '7/s', burst: 1 }))
    key.take(0)
    const before = key.s.slice()
    const ticket = key.reserve(0, 4)
    expect([key.cancel(0, 4, ticket), key.s]).toEqual([true, before])
  })
})

describe('a ticket', () => {
  const rule = ruleOf({ rate: '7/s', burst: 9 })
  /** A key of which the whole burst is used. */
  const full = () => {
    const key = new Key(rule)
    key.take(10, 9)
    return key
  }

  test.each([1, 2, 3, 7, 8, 9])('of %i tells when its reservation may act: when it would have fitted', (cost) => {
    const key = full()
    const waitUs = key.waitUs(10, cost)
    expect(gcraAlgorithm.actUs?.(rule, key.reserve(10, cost), cost)).toBe(10 + waitUs)
  })

  test.each([1, 2, 3, 4, 5, 6, 7])('without its last %i permits is that of a smaller reservation', (cost) => {
    expect(gcraAlgorithm.shorten?.(rule, full().reserve(10, 8), cost)).toEqual(full().reserve(10, 8 - cost))
  })
})

describe('the factory', () => {
  test('returns frozen plain data that JSON carries', () => {
    const limit = gcra({ rate: '10/s', burst: 20 })
    expect(Object.isFrozen(limit)).toBe(true)
    expect(JSON.parse(JSON.stringify(limit))).toEqual({ type: 'gcra', rate: '10/s', burst: 20 })
  })

  test('makes the same limit again from its own JSON', () => {
    const limit = gcra({ rate: { permits: 5, per: '10s' }, burst: 20 })
    const again = gcra(JSON.parse(JSON.stringify(limit)))
    expect(again[RULE]).toEqual(limit[RULE])
    expect(JSON.stringify(again)).toBe(JSON.stringify(limit))
  })

  test('hides the symbol from keys, spreads and logs', () => {
    const limit = gcra({ rate: '10/s', burst: 20 })
    expect(Object.keys(limit)).toEqual(['type', 'rate', 'burst'])
    expect(Object.getOwnPropertySymbols({ ...limit })).toEqual([])
    expect(RULE in limit).toBe(true)
  })

  test('compiles to lowest terms, so that equal limits have equal numbers', () => {
    expect(ruleOf({ rate: '10/s', burst: 20 }).numbers).toBe('20 1 100000')
    expect(ruleOf({ rate: '600/min', burst: 20 }).numbers).toBe('20 1 100000')
    expect(Object.isFrozen(ruleOf({ rate: '10/s', burst: 20 }))).toBe(true)
  })
})

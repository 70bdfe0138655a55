import { describe, expect, test } from 'vitest'
import { Random } from '../../../test/model/random.ts'
import { HeldKey } from '../../../test/support/held-key.ts'
import { RULE } from '../algorithm.ts'
import { type SlidingWindowOptions, slidingWindow } from './sliding-window.ts'

const MS = 1_000
const SECOND = 1_000_000

describe('the number line of 10 a second in 2 slots', () => {
  test('weighs the oldest slot by the part of it that the window has not left', () => {
    const key = new HeldKey(slidingWindow({ limit: 10, window: '1s', slots: 2 }))
    expect([key.take(400 * MS, 10), key.remaining(400 * MS)]).toEqual([0, 0])
    expect([key.take(700 * MS), key.take(SECOND), key.take(1_049_999)]).toEqual([350 * MS, 50 * MS, 1])
    expect([key.take(1_050 * MS), key.remaining(1_050 * MS), key.remaining(1_250 * MS)]).toEqual([0, 0, 4])
    expect(key.state).toEqual({ atUs: 1050000, 0: 10, 2: 1 })
  })

  test('is idle when the newest slot that holds something has left the window', () => {
    const key = new HeldKey(slidingWindow({ limit: 10, window: '1s', slots: 2 }))
    key.take(400 * MS, 10)
    expect([key.resetUs(400 * MS), key.remaining(1_499_999), key.resetUs(1_499_999)]).toEqual([1_100 * MS, 9, 1])
    expect([key.remaining(1_500 * MS), key.resetUs(1_500 * MS)]).toEqual([10, 0])
  })

  test('waits for as many as are asked for', () => {
    const key = new HeldKey(slidingWindow({ limit: 10, window: '1s', slots: 2 }))
    key.take(0, 4)
    key.take(600 * MS, 6)
    // The 4 of slot 0 fade from 1,000 to 1,500 ms, the 6 of slot 1 from 1,500 to 2,000 ms.
    expect([1, 4, 5, 10].map((cost) => key.waitUs(600 * MS, cost))).toEqual([525 * MS, 900 * MS, 983_334, 1_400 * MS])
  })

  test('leaves the same state after one take of 2 as after two takes of 1', () => {
    const limit = slidingWindow({ limit: 5, window: '1s' })
    const [once, twice] = [new HeldKey(limit), new HeldKey(limit)]
    once.take(40, 2)
    twice.take(40)
    twice.take(40)
    expect(once.state).toEqual(twice.state)
  })
})

test('after an idle gap nothing stale counts, wherever the ring comes round to', () => {
  for (let gap = 11; gap < 40; gap++) {
    const key = new HeldKey(slidingWindow({ limit: 10, window: '1s', slots: 10 }))
    for (let slot = 0; slot < 10; slot++) key.take(slot * 100 * MS)
    const nowUs = 900 * MS + gap * 100 * MS
    expect([key.remaining(nowUs), key.resetUs(nowUs), key.take(nowUs, 10)]).toEqual([10, 0, 0])
  }
})

test('never more than the limit in any window - window / slots, but nearly twice in a whole window', () => {
  const key = new HeldKey(slidingWindow({ limit: 100, window: '1s', slots: 10 }))
  expect([key.take(99_999, 100), key.take(999_999), key.take(1_099_998, 99)]).toEqual([0, 1_001, 0])
})

describe('a clock that steps back', () => {
  const full = () => {
    const key = new HeldKey(slidingWindow({ limit: 10, window: '1s', slots: 2 }))
    key.take(10_400 * MS, 10)
    return key
  }

  test('by at most the window and one slot finds time standing still', () => {
    const key = full()
    expect([key.repair(8_900 * MS), key.waitUs(8_900 * MS), key.remaining(8_900 * MS)]).toEqual([false, 2_150 * MS, 0])
  })

  test('by more counts in the present slot what was in use, and that is written', () => {
    const key = full()
    const nowUs = 8_900 * MS - 1
    expect([key.repair(nowUs), key.waitUs(nowUs), key.repair(nowUs)]).toEqual([true, 650 * MS + 1, false])
    expect(key.state).toEqual({ atUs: 8899999, 17: 10 })
  })

  test('leaves an empty key idle only once its time no longer stands still', () => {
    const key = full()
    key.give(10_400 * MS, 10)
    expect([key.resetUs(10_400 * MS), key.resetUs(9_900 * MS)]).toEqual([0, 500 * MS])
  })
})

describe('other numbers', () => {
  const limit = (permits: number, window: SlidingWindowOptions['window'], slots: number) => slidingWindow({ limit: permits, window, slots })

  test('of the caller are held against what is in use, and the state stays as it is', () => {
    const key = new HeldKey(limit(10, '1s', 2))
    key.take(400 * MS, 8)
    const before = key.state
    key.under(limit(5, '2s', 4))
    expect([key.remaining(500 * MS), key.take(500 * MS), key.resetUs(500 * MS)]).toEqual([0, 750 * MS, SECOND])
    expect([key.state, key.numbers]).toEqual([before, '10 1000000 2'])
    key.under(limit(20, '2s', 4))
    expect(key.remaining(500 * MS)).toBe(12)
  })

  test('of another limit only leave every count in its slot', () => {
    const key = new HeldKey(limit(10, '1s', 2))
    key.take(400 * MS, 8)
    key.under(limit(20, '1s', 2)).take(600 * MS, 2)
    expect([key.state, key.numbers]).toEqual([{ atUs: 600_000, 0: 8, 1: 2 }, '20 1000000 2'])
  })

  test('of another window or other slots count what is in use in the present slot with a charge, the oldest by its part, rounded up', () => {
    const key = new HeldKey(limit(10, '1s', 2))
    key.take(400 * MS, 7)
    key.take(600 * MS, 2)
    // Half of slot 0 has left the window: 3.5 of its 7 are in use.
    key.under(limit(20, '2s', 2)).take(1_250 * MS)
    expect([key.state, key.numbers]).toEqual([{ atUs: 1_250_000, 1: 7 }, '20 2000000 2'])
  })

  test('of as many slots, or of slots as long, are other slots', () => {
    const key = new HeldKey(limit(10, '1s', 5))
    key.take(0, 3)
    key.under(limit(10, '2s', 5)).take(900 * MS)
    expect([key.state, key.numbers]).toEqual([{ atUs: 900_000, 2: 4 }, '10 2000000 5'])
    key.under(limit(10, '4s', 10)).take(900 * MS)
    expect([key.state, key.numbers]).toEqual([{ atUs: 900_000, 2: 5 }, '10 4000000 10'])
  })

  test('in turn hold nothing for longer than a window', () => {
    const key = new HeldKey(limit(3, '1s', 2))
    key.take(0, 3)
    for (let ms = 100; ms < 1000; ms += 100) {
      key.under(limit(3 + ((ms / 100) % 2), '1s', 4)).take(ms * MS)
      expect(key.resetUs(ms * MS)).toBeLessThanOrEqual(1_500 * MS)
    }
  })

  test('to more slots or fewer keep what was used', () => {
    const key = new HeldKey(limit(10, '1s', 2))
    key.take(0, 4)
    for (const [k, slots] of [64, 1, 100, 8].entries()) {
      key.under(limit(10, '1s', slots)).take(0)
      expect(key.used(0)).toBe(5 + k)
    }
  })
})

describe('giving back', () => {
  const spread = () => {
    const key = new HeldKey(slidingWindow({ limit: 10, window: '1s', slots: 2 }))
    key.take(0, 4)
    key.take(600 * MS, 3)
    key.take(1_200 * MS, 3)
    return key
  }

  test('without a time gives to the newest slot first, then to the ones before it', () => {
    const key = spread()
    expect([key.give(1_200 * MS, 5), key.state]).toEqual([true, { atUs: 1200000, 0: 4, 1: 1 }])
    expect([key.give(1_200 * MS, 99), key.state]).toEqual([true, { atUs: 1200000 }])
    expect(key.give(1_200 * MS, 1)).toBe(false)
  })

  test('with a time gives to its slot and to no other', () => {
    const key = spread()
    expect([key.give(1_200 * MS, 99, 999_999), key.state]).toEqual([true, { atUs: 1200000, 0: 4, 2: 3 }])
    expect(key.give(1_200 * MS, 1, 999_999)).toBe(false)
  })

  test('of a slot that has left the window, or is still to come, does nothing', () => {
    const key = spread()
    expect([key.give(1_500 * MS, 1, 0), key.give(1_200 * MS, 1, 1_500 * MS)]).toEqual([false, false])
  })
})

test('weighs the whole oldest slot at the very start of the next one', () => {
  const key = new HeldKey(slidingWindow({ limit: 5, window: '1s', slots: 1 }))
  key.take(0, 3)
  key.take(SECOND)
  expect([key.take(SECOND, 2) > 0, key.take(SECOND, 1)]).toEqual([true, 0])
})

test('a sum that was damaged, and that the counts do not have, is waited for until every slot has left', () => {
  const rule = slidingWindow({ limit: 10, window: '1s', slots: 2 })[RULE]
  const s = new Float64Array(rule.words)
  rule.algorithm.charge(rule, rule, s, 0, 0, 3)
  s[2] = 50
  expect(rule.algorithm.untilUs(rule, s, 0, 0, 5)).toBe(1_500 * MS)
})

/** The definition: counts by slot, weighed anew at every microsecond. */
class Slots {
  readonly counts = new Map<number, number>()
  readonly #slots: number
  readonly #windowUs: number
  atUs = 0

  constructor(slots: number, windowUs: number) {
    this.#slots = slots
    this.#windowUs = windowUs
  }

  slotOf(us: number): number {
    return Math.floor((us * this.#slots) / this.#windowUs)
  }

  #count(slot: number): number {
    return this.counts.get(slot) ?? 0
  }

  used(us: number): number {
    const nowUs = Math.max(us, this.atUs)
    const slot = this.slotOf(nowUs)
    let full = 0
    for (let k = slot - this.#slots + 1; k <= slot; k++) full += this.#count(k)
    const rest = this.#windowUs - (nowUs * this.#slots - slot * this.#windowUs)
    return full + Math.ceil((this.#count(slot - this.#slots) * rest) / this.#windowUs)
  }

  /** The first time at which something holds. */
  firstUs(nowUs: number, holds: (us: number) => boolean): number {
    let us = nowUs
    while (!holds(us)) us += 1
    return us - nowUs
  }

  isIdle(us: number): boolean {
    const oldest = this.slotOf(us) - this.#slots
    return us >= this.atUs && [...this.counts].every(([slot, count]) => count === 0 || slot < oldest)
  }

  charge(nowUs: number, cost: number): number {
    const atUs = Math.max(nowUs, this.atUs)
    const slot = this.slotOf(atUs)
    this.counts.set(slot, this.#count(slot) + cost)
    this.atUs = atUs
    return atUs - nowUs
  }

  give(nowUs: number, cost: number, ofUs: number): number {
    const atUs = Math.max(nowUs, this.atUs)
    const [newest, oldest] = ofUs < 0 ? [this.slotOf(atUs), this.slotOf(atUs) - this.#slots] : [this.slotOf(ofUs), this.slotOf(ofUs)]
    let left = cost
    for (let slot = newest; slot >= Math.max(oldest, this.slotOf(atUs) - this.#slots); slot--) {
      const given = Math.min(left, this.#count(slot))
      this.counts.set(slot, this.#count(slot) - given)
      left -= given
    }
    if (left < cost) this.atUs = atUs
    return left < cost ? cost - left : -1
  }
}

test.each([1, 2, 5, 10])('a window of 50 microseconds in %i slots, charged and given back, is what its slots say', (slots) => {
  const rule = slidingWindow({ limit: 20, window: '50us', slots })[RULE]
  const { charge, giveBack, repair, used, untilUs, resetUs } = rule.algorithm
  expect([rule.words, rule.freshWords]).toEqual([3 + slots + 1, 3 + slots + 1])
  const random = new Random(slots)
  const s = new Float64Array(rule.words + 4).fill(-7)
  s.fill(0, 2, 2 + rule.words)
  const model = new Slots(slots, 50)
  let nowUs = 0
  for (let step = 0; step < 600; step++) {
    nowUs += random.pick([0, 1, random.whole(0, 6), random.whole(0, 70), -random.whole(0, 30)])
    nowUs = Math.max(0, nowUs, model.atUs - 50)
    const [cost, room] = [random.whole(1, 6), random.whole(0, 20)]
    const ofUs = random.pick([-1, Math.max(0, nowUs - random.whole(-3, 70))])
    const laterUs = Math.max(0, nowUs + random.pick([0, random.whole(0, 60), -random.whole(0, 5)]))
    const act = random.pick(['charge', 'charge', 'give'] as const)
    const [written, expected] = {
      charge: () => [charge(rule, rule, s, 2, nowUs, cost), model.charge(nowUs, cost)],
      give: () => [giveBack(rule, s, 2, nowUs, cost, ofUs, undefined), model.give(nowUs, cost, ofUs)],
    }[act]()
    const seen = [used(rule, s, 2, laterUs), untilUs(rule, s, 2, laterUs, room), resetUs(rule, s, 2, laterUs), repair(rule, s, 2, laterUs)]
    const fitsInUs = model.firstUs(laterUs, (us) => model.used(us) <= room)
    const idleInUs = model.firstUs(laterUs, (us) => model.isIdle(us))
    expect([{ step, act, nowUs, cost, ofUs }, written, ...seen]).toEqual([
      { step, act, nowUs, cost, ofUs },
      expected,
      model.used(laterUs),
      fitsInUs,
      idleInUs,
      false,
    ])
  }
  expect([...s.subarray(0, 2), ...s.subarray(2 + rule.words)]).toEqual([-7, -7, -7, -7])
})

describe('the factory', () => {
  const rule = (options: SlidingWindowOptions) => slidingWindow(options)[RULE]

  test('returns frozen plain data that JSON carries, and makes the same limit again from it', () => {
    const limit = slidingWindow({ limit: 100, window: '1min' })
    const json = JSON.parse(JSON.stringify(limit))
    expect(Object.isFrozen(limit)).toBe(true)
    expect(json).toEqual({ type: 'slidingWindow', limit: 100, window: '1min', slots: 10 })
    expect(slidingWindow(json)[RULE]).toEqual(limit[RULE])
  })

  test('knows how long a charge is felt: a window and one slot', () => {
    expect([rule({ limit: 1, window: '1s', slots: 8 }).windowUs, rule({ limit: 1, window: '1s', slots: 1 }).windowUs]).toEqual([
      1_125_000,
      2 * SECOND,
    ])
  })

  test('cuts a window into ten slots, or into the largest smaller number that divides it', () => {
    const windows = ['1s', '1us', '9us', '11us', '12us', '1000003us'] as const
    expect(windows.map((window) => rule({ limit: 1, window }).numbers)).toEqual([
      '1 1000000 10',
      '1 1 1',
      '1 9 9',
      '1 11 1',
      '1 12 6',
      '1 1000003 1',
    ])
  })

  test('takes any number of slots from 1 to 100 that divides the window', () => {
    for (let slots = 1; slots <= 100; slots++) {
      const { numbers, words } = rule({ limit: 1, window: `${slots * 7}ms`, slots })
      expect([numbers, words]).toEqual([`1 ${slots * 7_000} ${slots}`, slots + 4])
    }
  })

  const bad: [unknown, string][] = [
    [undefined, 'slidingWindow undefined must be an object with limit, window, slots'],
    [{ limit: -1, window: '1s' }, 'slidingWindow limit -1 must be a whole number from 0 to 1,000,000,000'],
    [{ limit: 1, window: '0s' }, 'slidingWindow window "0s" must be from 1 microsecond to 366 days'],
    [{ limit: 1, window: '367d' }, 'slidingWindow window "367d" must be from 1 microsecond to 366 days'],
    [{ limit: 1, window: '1s', slots: 0 }, 'slidingWindow slots 0 must be a whole number from 1 to 100'],
    [{ limit: 1, window: '1s', slots: 1.5 }, 'slidingWindow slots 1.5 must be a whole number from 1 to 100'],
    [{ limit: 1, window: '1s', slots: 101 }, 'slidingWindow slots 101 must be a whole number from 1 to 100'],
    [
      { limit: 1, window: '1s', slots: 60 },
      'slidingWindow slots 60 must cut the window "1s" into whole microseconds: the nearest that do are 50 and 64',
    ],
    [{ limit: 1, window: '9us', slots: 10 }, 'slidingWindow slots 10 must cut the window "9us" into whole microseconds: 9 does'],
    [
      { limit: 1, window: '11us', slots: 2 },
      'slidingWindow slots 2 must cut the window "11us" into whole microseconds: the nearest that do are 1 and 11',
    ],
    [{ limit: 1, window: '1s', anchor: 0 }, 'slidingWindow "anchor" is not an option: it has limit, window, slots'],
  ]
  test.each(bad)('refuses %j', (options, message) => {
    expect(() => slidingWindow(options as SlidingWindowOptions)).toThrow(expect.objectContaining({ code: 'CONFIG', message }))
  })
})

import { describe, expect, test } from 'vitest'
import { HeldKey, readBack } from '../../../test/support/held-key.ts'
import { SluiceError } from '../../errors.ts'
import { COMPILE, type EncodedState } from '../algorithm.ts'
import { type SlidingWindowOptions, slidingWindow } from './sliding-window.ts'

const MS = 1_000
const SECOND = 1_000_000

describe('the number line of 10 a second in 2 slots', () => {
  test('weighs the oldest slot by the part of it that the window has not left', () => {
    const key = new HeldKey(slidingWindow({ limit: 10, window: '1s', slots: 2 }))
    expect([key.take(400 * MS, 10), key.remaining(400 * MS)]).toEqual([0, 0])
    expect([key.take(700 * MS), key.take(SECOND), key.take(1_049_999)]).toEqual([350 * MS, 50 * MS, 1])
    expect([key.take(1_050 * MS), key.remaining(1_050 * MS), key.remaining(1_250 * MS)]).toEqual([0, 0, 4])
    expect(key.state).toEqual({ time: '1050000', limit: '10 1000000 2', 0: '10', 2: '1' })
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

test('slots that are no whole number of microseconds never drift: a second in 7', () => {
  const slotAt = (us: number) => {
    const key = new HeldKey(slidingWindow({ limit: 1, window: '1s', slots: 7 }), us)
    key.take(us)
    return Object.keys(key.state).find((name) => /^\d+$/.test(name))
  }
  const startUs = 1_700_000_000 * SECOND
  for (let slot = 0; slot < 7; slot++) {
    const firstUs = startUs + Math.ceil((slot * SECOND) / 7)
    const number = 1_700_000_000 * 7 + slot
    expect([slotAt(firstUs - 1), slotAt(firstUs)]).toEqual([`${number - 1}`, `${number}`])
  }
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

describe('the hash in Redis', () => {
  const limit = slidingWindow({ limit: 10, window: '1s', slots: 2 })

  test.each([
    { time: '0', limit: '10 1000000 2' },
    { time: '1050000', limit: '10 1000000 2', 0: '10', 2: '1' },
    { time: '1763200000000001', limit: '1000000000 1000000 7', 12342400000: '999999999' },
  ])('reads back as it was written: %o', (hash) => expect(readBack(limit, hash as unknown as EncodedState)).toEqual(hash))

  test.each([
    'hello',
    {},
    { time: '5' },
    { time: 'now', limit: '10 1000000 2' },
    { time: '5', limit: '10 1000000' },
    { time: '5', limit: '10 1000000 0' },
    { time: '5', limit: '10 1000000 2', hello: '1' },
    { time: '5', limit: '10 1000000 2', 0: '-1' },
    { time: '5', limit: '10 1000000 2', 1: '1' },
    { time: '5000000', limit: '10 1000000 2', 7: '1' },
  ])('is refused if the sliding window did not write it: %j', (foreign) => {
    const call = () => readBack(limit, foreign as EncodedState)
    expect(call).toThrow(SluiceError)
    expect(call).toThrow(/^slidingWindow state .* must be a hash of time, limit and the count of each slot$/)
  })
})

describe('a clock that steps back', () => {
  const full = () => {
    const key = new HeldKey(slidingWindow({ limit: 10, window: '1s', slots: 2 }), 10_400 * MS)
    key.take(10_400 * MS, 10)
    return key
  }

  test('by at most the window and one slot finds time standing still', () => {
    const key = full()
    expect([key.settle(8_900 * MS), key.waitUs(8_900 * MS), key.remaining(8_900 * MS)]).toEqual([false, 2_150 * MS, 0])
  })

  test('by more counts in the present slot what was in use, and that is written', () => {
    const key = full()
    const nowUs = 8_900 * MS - 1
    expect([key.settle(nowUs), key.waitUs(nowUs), key.settle(nowUs)]).toEqual([true, 650 * MS + 1, false])
    expect(key.state).toEqual({ time: '8899999', limit: '10 1000000 2', 17: '10' })
  })

  test('leaves an empty key idle only once its time no longer stands still', () => {
    const key = full()
    key.give(10_400 * MS, 10)
    expect([key.resetUs(10_400 * MS), key.resetUs(9_900 * MS)]).toEqual([0, 500 * MS])
  })
})

describe('changed numbers', () => {
  test('count what is in use in the slot that was written in, the oldest by its part, rounded up', () => {
    const key = new HeldKey(slidingWindow({ limit: 10, window: '1s', slots: 2 }))
    key.take(400 * MS, 8)
    key.take(600 * MS, 2)
    expect(key.settle(1_250 * MS, slidingWindow({ limit: 20, window: '2s', slots: 2 }))).toBe(true)
    expect(key.state).toEqual({ time: '600000', limit: '20 2000000 2', 0: '6' })
    expect(key.remaining(1_250 * MS)).toBe(14)
  })

  test('that would not count it in full any more count it in the present slot', () => {
    const key = new HeldKey(slidingWindow({ limit: 10, window: '1s', slots: 2 }))
    key.take(600 * MS, 2)
    key.settle(1_250 * MS, slidingWindow({ limit: 20, window: '500ms', slots: 2 }))
    expect(key.state).toEqual({ time: '1250000', limit: '20 500000 2', 5: '2' })
  })

  test('in turn with the old ones hold nothing for longer than a window', () => {
    const key = new HeldKey(slidingWindow({ limit: 3, window: '1s', slots: 2 }))
    key.take(0, 3)
    for (let ms = 100; ms < 1000; ms += 100) {
      key.settle(ms * MS, slidingWindow({ limit: 3 + ((ms / 100) % 2), window: '1s', slots: 2 }))
      expect(key.resetUs(ms * MS)).toBe((1500 - ms) * MS)
    }
  })

  test('clamp to the new limit, so that no key is stuck', () => {
    const key = new HeldKey(slidingWindow({ limit: 100, window: '1s', slots: 2 }))
    key.take(0, 100)
    key.settle(0, slidingWindow({ limit: 5, window: '1s', slots: 2 }))
    expect([key.remaining(0), key.waitUs(0), key.resetUs(0)]).toEqual([0, 1_100 * MS, 1_500 * MS])
  })

  test('to more slots or fewer keep what was used', () => {
    const key = new HeldKey(slidingWindow({ limit: 10, window: '1s', slots: 2 }))
    key.take(0, 4)
    for (const slots of [60, 1, 100, 7]) {
      key.settle(0, slidingWindow({ limit: 10, window: '1s', slots }))
      expect(key.remaining(0)).toBe(6)
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
    expect([key.give(1_200 * MS, 5), key.state]).toEqual([true, { time: '1200000', limit: '10 1000000 2', 0: '4', 1: '1' }])
    expect([key.give(1_200 * MS, 99), key.state]).toEqual([true, { time: '1200000', limit: '10 1000000 2' }])
    expect(key.give(1_200 * MS, 1)).toBe(false)
  })

  test('with a time gives to its slot and to no other', () => {
    const key = spread()
    expect([key.give(1_200 * MS, 99, 999_999), key.state]).toEqual([true, { time: '1200000', limit: '10 1000000 2', 0: '4', 2: '3' }])
    expect(key.give(1_200 * MS, 1, 999_999)).toBe(false)
  })

  test('of a slot that has left the window, or is still to come, does nothing', () => {
    const key = spread()
    expect([key.give(1_500 * MS, 1, 0), key.give(1_200 * MS, 1, 1_500 * MS)]).toEqual([false, false])
    expect(key.cancel(1_200 * MS, 1)).toBe(false)
  })
})

test('the short form weighs the whole oldest slot at the very start of the next one', () => {
  const key = new HeldKey(slidingWindow({ limit: 5, window: '1s', slots: 1 }))
  const rule = slidingWindow({ limit: 5, window: '1s', slots: 1 })[COMPILE](0)
  key.take(0, 3)
  key.take(SECOND)
  expect([rule.algorithm.tryTake(rule, key.s, 0, SECOND, 2), rule.algorithm.tryTake(rule, key.s, 0, SECOND, 1)]).toEqual([false, true])
})

test('the short form takes its slot from its own words: the word before them may look like one', () => {
  const rule = slidingWindow({ limit: 10, window: '1s', slots: 2 })[COMPILE](0)
  const nowUs = 3 * SECOND
  const s = new Float64Array(1 + rule.algorithm.words(rule))
  rule.algorithm.fresh(rule, s, 1, 0)
  s[0] = nowUs / (SECOND / 2)
  const key = new HeldKey(rule)
  expect([rule.algorithm.tryTake(rule, s, 1, nowUs, 1), key.take(nowUs)]).toEqual([true, 0])
  expect(rule.algorithm.encode(rule, s, 1)).toEqual(key.state)
})

describe('the factory', () => {
  const rule = (options: SlidingWindowOptions) => slidingWindow(options)[COMPILE](0)

  test('returns frozen plain data that JSON carries, and makes the same limit again from it', () => {
    const limit = slidingWindow({ limit: 100, window: '1min' })
    const json = JSON.parse(JSON.stringify(limit))
    expect(Object.isFrozen(limit)).toBe(true)
    expect(json).toEqual({ type: 'slidingWindow', limit: 100, window: '1min', slots: 10 })
    expect(slidingWindow(json)[COMPILE](0)).toEqual(limit[COMPILE](0))
  })

  test('knows how long a charge is felt: a window and one slot, rounded up', () => {
    expect([rule({ limit: 1, window: '1s', slots: 7 }).windowUs, rule({ limit: 1, window: '1s', slots: 1 }).windowUs]).toEqual([
      1_142_858,
      2 * SECOND,
    ])
  })

  test('cuts a window that is shorter than 10 microseconds into as many slots as it has', () => {
    expect([rule({ limit: 1, window: '1us' }).numbers, rule({ limit: 1, window: '9us' }).numbers]).toEqual(['1 1 1', '1 9 9'])
  })

  const bad: [unknown, string][] = [
    [undefined, 'slidingWindow undefined must be an object with limit, window, slots'],
    [{ limit: 0, window: '1s' }, 'slidingWindow limit 0 must be a whole number from 1 to 1,000,000,000'],
    [{ limit: 1, window: 0 }, 'slidingWindow window 0 must be from 1 microsecond to 366 days'],
    [{ limit: 1, window: '367d' }, 'slidingWindow window "367d" must be from 1 microsecond to 366 days'],
    [{ limit: 1, window: '1s', slots: 0 }, 'slidingWindow slots 0 must be a whole number from 1 to 1000'],
    [{ limit: 1, window: '1s', slots: 1.5 }, 'slidingWindow slots 1.5 must be a whole number from 1 to 1000'],
    [{ limit: 1, window: '1s', slots: 1_001 }, 'slidingWindow slots 1001 must be a whole number from 1 to 1000'],
    [{ limit: 1, window: '9us', slots: 10 }, 'slidingWindow slots 10 must be at most one per microsecond of the window, 9'],
    [{ limit: 1, window: '1s', anchor: 0 }, 'slidingWindow "anchor" is not an option: it has limit, window, slots'],
  ]
  test.each(bad)('refuses %j', (options, message) => {
    expect(() => slidingWindow(options as SlidingWindowOptions)).toThrow(expect.objectContaining({ code: 'CONFIG', message }))
  })
})

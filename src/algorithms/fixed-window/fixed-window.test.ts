import { describe, expect, test } from 'vitest'
import { HeldKey } from '../../../test/support/held-key.ts'
import { RULE } from '../algorithm.ts'
import { type FixedWindowOptions, fixedWindow } from './fixed-window.ts'

const MS = 1_000
const SECOND = 1_000_000
const HOUR = 3_600 * SECOND

describe('the number line of 100 a second', () => {
  test('admits 100 on both sides of the boundary, and refuses the next until its window ends', () => {
    const key = new HeldKey(fixedWindow({ limit: 100, window: '1s' }))
    expect([key.take(990 * MS, 100), key.take(990 * MS)]).toEqual([0, 10 * MS])
    expect([key.take(1_010 * MS, 100), key.take(1_010 * MS)]).toEqual([0, 990 * MS])
    expect([key.remaining(1_010 * MS), key.resetUs(1_010 * MS)]).toEqual([0, 990 * MS])
    expect(key.state).toEqual({ count: 100, startUs: 1_010 * MS, endUs: 2 * SECOND, atUs: 1_010 * MS })
  })

  test('is over at its end and not a microsecond before', () => {
    const key = new HeldKey(fixedWindow({ limit: 1, window: '1s' }))
    key.take(0)
    expect([key.take(SECOND - 1), key.take(SECOND)]).toEqual([1, 0])
  })

  test('leaves the same state after one take of 2 as after two takes of 1', () => {
    const limit = fixedWindow({ limit: 5, window: '1s' })
    const [once, twice] = [new HeldKey(limit), new HeldKey(limit)]
    once.take(40, 2)
    twice.take(40)
    twice.take(40)
    expect(once.state).toEqual(twice.state)
  })
})

describe("anchor: 'first'", () => {
  test('begins a window with the first call that is admitted when none is running', () => {
    const key = new HeldKey(fixedWindow({ limit: 2, window: '1s', anchor: 'first' }))
    expect([key.take(300 * MS), key.take(400 * MS)]).toEqual([0, 0])
    expect([key.take(500 * MS), key.take(1_299 * MS)]).toEqual([800 * MS, MS])
    expect([key.take(1_300 * MS), key.remaining(1_300 * MS)]).toEqual([0, 1])
    expect(key.state).toEqual({ count: 1, startUs: 1_300 * MS, endUs: 2_300 * MS, atUs: 1_300 * MS })
  })

  test('begins anew after everything was given back: a window that holds nothing is no window', () => {
    const key = new HeldKey(fixedWindow({ limit: 2, window: '1s', anchor: 'first' }))
    key.take(300 * MS)
    key.give(400 * MS, 1)
    key.take(900 * MS)
    expect(key.resetUs(900 * MS)).toBe(SECOND)
  })
})

test('a number as anchor moves the windows: midnight in UTC+8', () => {
  const key = new HeldKey(fixedWindow({ limit: 1, window: '1d', anchor: -8 * 3_600_000 }))
  // 15:00 UTC is 23:00 there.
  key.take(15 * HOUR)
  expect([key.resetUs(15 * HOUR), key.take(16 * HOUR)]).toEqual([HOUR, 0])
})

test('the first window of all may begin before 1970', () => {
  const key = new HeldKey(fixedWindow({ limit: 1, window: '1s', anchor: 300 }))
  key.take(0)
  expect([key.take(300 * MS - 1), key.resetUs(0), key.take(300 * MS)]).toEqual([1, 300 * MS, 0])
})

describe('a clock that steps back', () => {
  const full = () => {
    const key = new HeldKey(fixedWindow({ limit: 2, window: '1s' }))
    key.take(10_500 * MS, 2)
    return key
  }

  test('by at most one window finds the window it counted in, which ends when it ends', () => {
    const key = full()
    expect([key.repair(9_500 * MS), key.waitUs(9_500 * MS), key.remaining(9_500 * MS)]).toEqual([false, 1_500 * MS, 0])
  })

  test('by more than one window counts in the present window what was counted, and that is written', () => {
    const key = full()
    const nowUs = 9_500 * MS - 1
    expect([key.repair(nowUs), key.waitUs(nowUs), key.remaining(nowUs)]).toEqual([true, 500 * MS + 1, 0])
    expect([key.state, key.repair(nowUs)]).toEqual([{ count: 2, startUs: nowUs, endUs: 10 * SECOND, atUs: nowUs }, false])
  })

  test('and takes meanwhile are counted in the window that was written', () => {
    const key = new HeldKey(fixedWindow({ limit: 2, window: '1s' }))
    key.take(10_500 * MS)
    expect([key.take(9_800 * MS), key.state]).toEqual([0, { count: 2, startUs: 10_500 * MS, endUs: 11 * SECOND, atUs: 10_500 * MS }])
  })

  test('leaves an empty key idle only once its time no longer stands still: until then it differs from a fresh one', () => {
    const key = full()
    key.give(10_500 * MS, 2)
    expect([key.resetUs(10_500 * MS), key.resetUs(9_900 * MS)]).toEqual([0, 600 * MS])
  })
})

describe('other numbers', () => {
  const limit = (permits: number, window: FixedWindowOptions['window'], anchor: FixedWindowOptions['anchor'] = 'epoch') =>
    fixedWindow({ limit: permits, window, anchor })

  test('of the caller are held against what the window has admitted, and the state stays as it is', () => {
    const key = new HeldKey(limit(10, '1s'))
    key.take(61_200 * MS, 8)
    const before = key.state
    key.under(limit(5, '1min'))
    expect([key.take(61_300 * MS), key.remaining(61_300 * MS), key.resetUs(61_300 * MS)]).toEqual([700 * MS, 0, 700 * MS])
    expect([key.state, key.numbers]).toEqual([before, '10 1000000 0 0'])
    key.under(limit(20, '1s'))
    expect(key.remaining(61_300 * MS)).toBe(12)
  })

  test('write the later of the two ends with a charge, and keep what was counted', () => {
    const key = new HeldKey(limit(10, '1s'))
    key.take(61_200 * MS, 3)
    key.under(limit(10, '1min')).take(61_300 * MS)
    expect([key.state, key.numbers]).toEqual([
      { count: 4, startUs: 61_200 * MS, endUs: 120 * SECOND, atUs: 61_300 * MS },
      '10 60000000 0 0',
    ])
    key.under(limit(10, '1s')).take(62 * SECOND)
    expect([key.state.endUs, key.used(119 * SECOND), key.used(120 * SECOND)]).toEqual([120 * SECOND, 5, 0])
  })

  test('that end a window within one of the caller do not let it take its limit twice in that', () => {
    const key = new HeldKey(limit(100, '5s'))
    key.take(0)
    const second = limit(10, '2s')
    key.under(second).take(1_000 * MS, 9)
    // The window of 5 s ends in the middle of the caller's third.
    expect(key.take(4_500 * MS)).toBe(500 * MS)
    const other = new HeldKey(limit(100, '5s'))
    other.take(0)
    other.under(second).take(1_000 * MS)
    expect(other.take(4_500 * MS, 8)).toBe(0)
    expect([other.take(5 * SECOND, 10), other.take(6 * SECOND, 10)]).toEqual([SECOND, 0])
  })

  test("keep the start of a 'first' window", () => {
    const key = new HeldKey(limit(10, '1s', 'first'))
    key.take(300 * MS, 3)
    key.under(limit(10, '2s', 'first')).take(800 * MS)
    expect([key.resetUs(800 * MS), key.remaining(800 * MS)]).toEqual([1_500 * MS, 6])
  })

  test('keep nothing of a window that has passed', () => {
    const key = new HeldKey(limit(10, '1s'))
    key.take(0, 8)
    key.under(limit(5, '1min'))
    expect([key.remaining(SECOND), key.take(SECOND, 5), key.numbers]).toEqual([5, 0, '5 60000000 0 0'])
  })

  test('in turn hold nothing for longer than a window', () => {
    const key = new HeldKey(limit(3, '1s', 'first'))
    key.take(0, 3)
    for (let ms = 100; ms < 1000; ms += 100) {
      key.under(limit(3 + ((ms / 100) % 2), '1s', 'first')).take(ms * MS)
      expect(key.resetUs(ms * MS)).toBe((1000 - ms) * MS)
    }
    expect(key.under(limit(3, '1s')).waitUs(SECOND, 3)).toBe(0)
  })

  test('with a shorter window re-date a state that now lies too far ahead', () => {
    const key = new HeldKey(limit(10, '1min'))
    key.take(100 * SECOND, 3)
    key.under(limit(10, '1s')).take(98 * SECOND)
    // The minute that is running ends with its own end: it is waited out as long as it is left.
    expect([key.repair(98 * SECOND), key.repair(79 * SECOND), key.used(79 * SECOND)]).toEqual([false, true, 4])
    expect(key.state).toEqual({ count: 4, startUs: 79 * SECOND, endUs: 99 * SECOND, atUs: 79 * SECOND })
  })
})

describe('giving back', () => {
  test('without a time gives to the present window, never below zero', () => {
    const key = new HeldKey(fixedWindow({ limit: 5, window: '1s' }))
    key.take(0, 3)
    expect([key.give(0, 1), key.remaining(0)]).toEqual([true, 3])
    expect([key.give(0, 9), key.remaining(0), key.give(0, 1)]).toEqual([true, 5, false])
  })

  test('with a time gives only if that lies in the present window, from its first charge on', () => {
    const key = new HeldKey(fixedWindow({ limit: 5, window: '1s' }))
    key.take(1_500 * MS, 3)
    expect([key.give(1_500 * MS, 1, 1_499_999), key.give(1_500 * MS, 1, 2 * SECOND)]).toEqual([false, false])
    expect([key.give(1_500 * MS, 1, 1_500 * MS), key.give(1_500 * MS, 1, 1_999_999)]).toEqual([true, true])
    expect(key.remaining(1_500 * MS)).toBe(4)
  })

  test('once the window has passed does nothing', () => {
    const key = new HeldKey(fixedWindow({ limit: 5, window: '1s' }))
    key.take(0, 3)
    expect([key.give(SECOND, 1), key.give(SECOND, 1, 0)]).toEqual([false, false])
  })

  test('happens in the numbers of the state, whatever those of the caller are', () => {
    const key = new HeldKey(fixedWindow({ limit: 5, window: '1min' }))
    key.take(0, 3)
    key.under(fixedWindow({ limit: 1, window: '1s' }))
    expect([key.give(30 * SECOND, 1, 0), key.used(30 * SECOND), key.numbers]).toEqual([true, 2, '5 60000000 0 0'])
  })
})

test('a state takes four doubles', () => {
  const { words, freshWords } = fixedWindow({ limit: 1, window: '1s' })[RULE]
  expect([words, freshWords]).toEqual([4, 4])
})

test('a window tells that all of it leaves at once', () => {
  expect(fixedWindow({ limit: 1, window: '1s' })[RULE].algorithm.endsAtOnce).toBe(true)
})

describe('the factory', () => {
  const rule = (options: FixedWindowOptions) => fixedWindow(options)[RULE]

  test('returns frozen plain data that JSON carries, and makes the same limit again from it', () => {
    const limit = fixedWindow({ limit: 5_000, window: '1d' })
    const json = JSON.parse(JSON.stringify(limit))
    expect(Object.isFrozen(limit)).toBe(true)
    expect(json).toEqual({ type: 'fixedWindow', limit: 5_000, window: '1d', anchor: 'epoch' })
    expect(fixedWindow(json)[RULE]).toEqual(limit[RULE])
  })

  test('compiles equal windows to equal numbers', () => {
    expect(rule({ limit: 5, window: '1min' }).numbers).toBe('5 60000000 0 0')
    expect(rule({ limit: 5, window: '60s', anchor: 0 }).numbers).toBe('5 60000000 0 0')
    expect(rule({ limit: 5, window: '60000ms', anchor: -60_000.001 }).numbers).toBe('5 60000000 0 59999999')
    expect(rule({ limit: 5, window: '1min', anchor: 'first' }).numbers).toBe('5 60000000 1 0')
  })

  test('takes an anchor that is whole microseconds though its product with 1000 is not', () => {
    expect(1.005 * 1000).toBeLessThan(1005)
    expect(rule({ limit: 5, window: '1s', anchor: 1.005 }).numbers).toBe('5 1000000 0 1005')
  })

  test('takes an anchor as long as its microseconds are exact', () => {
    const anchored = (anchor: number) => rule({ limit: 5, window: '1s', anchor }).numbers
    expect([anchored(9_007_199_254_740), anchored(-9_007_199_254_740)]).toEqual(['5 1000000 0 740000', '5 1000000 0 260000'])
    for (const anchor of [9_007_199_254_741, -9_007_199_254_741])
      expect(() => anchored(anchor)).toThrow(/^fixedWindow anchor -?9007199254741 must/)
  })

  test.each([5n, Symbol('anchor')])('refuses what is no number at all as an anchor: %s', (anchor) => {
    const options = { limit: 5, window: '1s', anchor } as unknown as FixedWindowOptions
    expect(() => fixedWindow(options)).toThrow(expect.objectContaining({ code: 'CONFIG' }))
  })

  const bad: [unknown, string][] = [
    [undefined, 'fixedWindow undefined must be an object with limit, window, anchor'],
    [{ limit: -1, window: '1s' }, 'fixedWindow limit -1 must be a whole number from 0 to 1,000,000,000'],
    [{ limit: 1.5, window: '1s' }, 'fixedWindow limit 1.5 must be a whole number from 0 to 1,000,000,000'],
    [{ limit: 1_000_000_001, window: '1s' }, 'fixedWindow limit 1000000001 must be a whole number from 0 to 1,000,000,000'],
    [{ limit: 1, window: '0s' }, 'fixedWindow window "0s" must be from 1 microsecond to 366 days'],
    [{ limit: 1, window: '367d' }, 'fixedWindow window "367d" must be from 1 microsecond to 366 days'],
    [{ limit: 1, window: '0.0001ms' }, 'fixedWindow window "0.0001ms" must be a whole number of microseconds'],
    [{ limit: 5, window: 3600 }, "fixedWindow window 3600 of what? write '3600s' or '3600ms'"],
    [{ limit: 1 }, "fixedWindow window undefined must be a number with a unit (us, ms, s, min, h, d), such as '500ms' or '10s'"],
    [
      { limit: 1, window: '1s', anchor: 'last' },
      "fixedWindow anchor \"last\" must be 'epoch', 'first' or milliseconds, whole to the microsecond",
    ],
    [
      { limit: 1, window: '1s', anchor: 0.0001 },
      "fixedWindow anchor 0.0001 must be 'epoch', 'first' or milliseconds, whole to the microsecond",
    ],
    [
      { limit: 1, window: '1s', anchor: Number.NaN },
      "fixedWindow anchor NaN must be 'epoch', 'first' or milliseconds, whole to the microsecond",
    ],
    [{ limit: 1, window: '1s', slots: 2 }, 'fixedWindow "slots" is not an option: it has limit, window, anchor'],
    [{ type: 'gcra', limit: 1, window: '1s' }, 'fixedWindow "gcra" is another type: leave it out or say \'fixedWindow\''],
  ]
  test.each(bad)('refuses %j', (options, message) => {
    expect(() => fixedWindow(options as FixedWindowOptions)).toThrow(expect.objectContaining({ code: 'CONFIG', message }))
  })
})

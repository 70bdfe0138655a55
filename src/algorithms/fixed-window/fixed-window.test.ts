import { describe, expect, test } from 'vitest'
import { HeldKey, readBack } from '../../../test/support/held-key.ts'
import { SluiceError } from '../../errors.ts'
import { COMPILE, type EncodedState } from '../algorithm.ts'
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
    expect(key.state).toBe('100 1000000 1010000 100 1000000 0 0')
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
    expect(once.state).toBe(twice.state)
  })
})

describe("anchor: 'first'", () => {
  test('begins a window with the first call that is admitted when none is running', () => {
    const key = new HeldKey(fixedWindow({ limit: 2, window: '1s', anchor: 'first' }))
    expect([key.take(300 * MS), key.take(400 * MS)]).toEqual([0, 0])
    expect([key.take(500 * MS), key.take(1_299 * MS)]).toEqual([800 * MS, MS])
    expect([key.take(1_300 * MS), key.remaining(1_300 * MS)]).toEqual([0, 1])
    expect(key.state).toBe('1 1300000 1300000 2 1000000 1 0')
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
  expect([key.state, key.resetUs(0)]).toEqual(['1 -700000 0 1 1000000 0 300000', 300 * MS])
  expect(readBack(fixedWindow({ limit: 1, window: '1s' }), key.state)).toBe(key.state)
})

describe('the string in Redis', () => {
  const limit = fixedWindow({ limit: 2, window: '1s' })

  test.each([
    '0 0 0 2 1000000 0 0',
    '2 1000000 1010000 2 1000000 0 0',
    '1 1763200000000001 1763200000000002 1000000000 31622400000000 1 0',
  ])('reads back as it was written: %s', (text) => expect(readBack(limit, text)).toBe(text))

  const foreign = ['', 'hello', '2 0 5', '2 0 5 2 1000000 2 0', '-2 0 5 2 1000000 0 0', '1.5 0 5 2 1000000 0 0', '2 0 5 2 1000000 0 0 ']
  // The fields of a hash, the way clients give them: without a prototype, so that they have no text.
  test.each([...foreign, {}, Object.assign(Object.create(null), { count: '2' })])(
    'is refused if the fixed window did not write it: %j',
    (state) => {
      const call = () => readBack(limit, state as EncodedState)
      expect(call).toThrow(SluiceError)
      expect(call).toThrow(/^fixedWindow state .* must be 'count start time limit window first offset'$/)
    },
  )
})

describe('a clock that steps back', () => {
  const full = () => {
    const key = new HeldKey(fixedWindow({ limit: 2, window: '1s' }), 10_500 * MS)
    key.take(10_500 * MS, 2)
    return key
  }

  test('by at most one window finds the window it counted in, which ends when it ends', () => {
    const key = full()
    expect([key.settle(9_500 * MS), key.waitUs(9_500 * MS), key.remaining(9_500 * MS)]).toEqual([false, 1_500 * MS, 0])
  })

  test('by more than one window counts in the present window what was counted, and that is written', () => {
    const key = full()
    const nowUs = 9_500 * MS - 1
    expect([key.settle(nowUs), key.waitUs(nowUs), key.remaining(nowUs)]).toEqual([true, 500 * MS + 1, 0])
    expect([key.state, key.settle(nowUs)]).toEqual(['2 9000000 9499999 2 1000000 0 0', false])
  })

  test('and takes meanwhile are counted in the window that was written', () => {
    const key = new HeldKey(fixedWindow({ limit: 2, window: '1s' }), 10_500 * MS)
    key.take(10_500 * MS)
    expect([key.take(9_800 * MS), key.state]).toEqual([0, '2 10000000 10500000 2 1000000 0 0'])
  })

  test('leaves an empty key idle only once its time no longer stands still: until then it differs from a fresh one', () => {
    const key = full()
    key.give(10_500 * MS, 2)
    expect([key.resetUs(10_500 * MS), key.resetUs(9_900 * MS)]).toEqual([0, 600 * MS])
  })
})

describe('changed numbers', () => {
  test('keep what the present window has admitted, clamped to the new limit', () => {
    const key = new HeldKey(fixedWindow({ limit: 10, window: '1s' }))
    key.take(61_200 * MS, 8)
    expect(key.settle(61_300 * MS, fixedWindow({ limit: 5, window: '1min' }))).toBe(true)
    expect(key.state).toBe('5 60000000 61200000 5 60000000 0 0')
    expect(key.waitUs(61_300 * MS)).toBe(58_700 * MS)
  })

  test('keep nothing of a window that has passed, and are written all the same', () => {
    const key = new HeldKey(fixedWindow({ limit: 10, window: '1s' }))
    key.take(0, 8)
    expect(key.settle(SECOND, fixedWindow({ limit: 5, window: '1min' }))).toBe(true)
    expect(key.remaining(SECOND)).toBe(5)
  })

  test("to 'first' begin a whole window when the state was written", () => {
    const key = new HeldKey(fixedWindow({ limit: 10, window: '1s' }))
    key.take(300 * MS, 3)
    key.settle(400 * MS, fixedWindow({ limit: 10, window: '1s', anchor: 'first' }))
    expect([key.resetUs(400 * MS), key.remaining(400 * MS)]).toEqual([900 * MS, 7])
  })

  test('whose window has ended for it count it in the present one', () => {
    const key = new HeldKey(fixedWindow({ limit: 10, window: '1min' }))
    key.take(SECOND, 3)
    key.settle(5_500 * MS, fixedWindow({ limit: 10, window: '1s' }))
    expect(key.state).toBe('3 5000000 5500000 10 1000000 0 0')
  })

  test('in turn with the old ones hold nothing for longer than a window', () => {
    const key = new HeldKey(fixedWindow({ limit: 3, window: '1s', anchor: 'first' }))
    key.take(0, 3)
    for (let ms = 100; ms < 1000; ms += 100) {
      key.settle(ms * MS, fixedWindow({ limit: 3 + ((ms / 100) % 2), window: '1s', anchor: 'first' }))
      expect(key.resetUs(ms * MS)).toBe((1000 - ms) * MS)
    }
    expect(key.waitUs(SECOND, 3)).toBe(0)
  })

  test('to a shorter window re-date a state that now lies too far ahead', () => {
    const key = new HeldKey(fixedWindow({ limit: 10, window: '1min' }), 100 * SECOND)
    key.take(100 * SECOND, 3)
    expect(key.settle(98 * SECOND, fixedWindow({ limit: 10, window: '1s' }))).toBe(true)
    expect(key.state).toBe('3 98000000 98000000 10 1000000 0 0')
  })

  test('that are the same numbers change nothing', () => {
    const key = new HeldKey(fixedWindow({ limit: 10, window: '1min' }))
    key.take(0)
    expect(key.settle(1, fixedWindow({ limit: 10, window: 60_000, anchor: 'epoch' }))).toBe(false)
  })
})

describe('giving back', () => {
  test('without a time gives to the present window, never below zero', () => {
    const key = new HeldKey(fixedWindow({ limit: 5, window: '1s' }))
    key.take(0, 3)
    expect([key.give(0, 1), key.remaining(0)]).toEqual([true, 3])
    expect([key.give(0, 9), key.remaining(0), key.give(0, 1)]).toEqual([true, 5, false])
  })

  test('with a time gives only if that lies in the present window', () => {
    const key = new HeldKey(fixedWindow({ limit: 5, window: '1s' }))
    key.take(1_500 * MS, 3)
    expect([key.give(1_500 * MS, 1, 999_999), key.give(1_500 * MS, 1, 2 * SECOND)]).toEqual([false, false])
    expect([key.give(1_500 * MS, 1, SECOND), key.give(1_500 * MS, 1, 1_999_999)]).toEqual([true, true])
    expect(key.remaining(1_500 * MS)).toBe(4)
  })

  test('once the window has passed does nothing', () => {
    const key = new HeldKey(fixedWindow({ limit: 5, window: '1s' }))
    key.take(0, 3)
    expect([key.give(SECOND, 1), key.give(SECOND, 1, 0)]).toEqual([false, false])
  })

  test('cannot be done by cancelling: nothing is booked ahead', () => {
    const key = new HeldKey(fixedWindow({ limit: 5, window: '1s' }))
    key.take(0, 3)
    expect([key.cancel(0, 3), key.remaining(0)]).toEqual([false, 2])
  })
})

describe('the factory', () => {
  const rule = (options: FixedWindowOptions) => fixedWindow(options)[COMPILE](0)

  test('returns frozen plain data that JSON carries, and makes the same limit again from it', () => {
    const limit = fixedWindow({ limit: 5_000, window: '1d' })
    const json = JSON.parse(JSON.stringify(limit))
    expect(Object.isFrozen(limit)).toBe(true)
    expect(json).toEqual({ type: 'fixedWindow', limit: 5_000, window: '1d', anchor: 'epoch' })
    expect(fixedWindow(json)[COMPILE](0)).toEqual(limit[COMPILE](0))
  })

  test('compiles equal windows to equal numbers', () => {
    expect(rule({ limit: 5, window: '1min' }).numbers).toBe('5 60000000 0 0')
    expect(rule({ limit: 5, window: 60_000, anchor: 0 }).numbers).toBe('5 60000000 0 0')
    expect(rule({ limit: 5, window: 60_000, anchor: -60_000.001 }).numbers).toBe('5 60000000 0 59999999')
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
    [{ limit: 0, window: '1s' }, 'fixedWindow limit 0 must be a whole number from 1 to 1,000,000,000'],
    [{ limit: 1.5, window: '1s' }, 'fixedWindow limit 1.5 must be a whole number from 1 to 1,000,000,000'],
    [{ limit: 1_000_000_001, window: '1s' }, 'fixedWindow limit 1000000001 must be a whole number from 1 to 1,000,000,000'],
    [{ limit: 1, window: 0 }, 'fixedWindow window 0 must be from 1 microsecond to 366 days'],
    [{ limit: 1, window: '367d' }, 'fixedWindow window "367d" must be from 1 microsecond to 366 days'],
    [{ limit: 1, window: 0.0001 }, 'fixedWindow window 0.0001 must be a whole number of microseconds'],
    [
      { limit: 1 },
      "fixedWindow window undefined must be milliseconds or a number with a unit (us, ms, s, min, h, d), such as '500ms' or '10s'",
    ],
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

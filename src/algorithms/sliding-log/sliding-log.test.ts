import { describe, expect, test } from 'vitest'
import { HeldKey, readBack } from '../../../test/support/held-key.ts'
import { SluiceError } from '../../errors.ts'
import { COMPILE, type EncodedState } from '../algorithm.ts'
import { type SlidingLogOptions, slidingLog } from './sliding-log.ts'

const MS = 1_000
const SECOND = 1_000_000

describe('the number line of 3 a second', () => {
  const spread = () => {
    const key = new HeldKey(slidingLog({ limit: 3, window: '1s' }))
    for (const ms of [0, 400, 800]) key.take(ms * MS)
    return key
  }

  test('waits until as many admissions as are asked for have left the window', () => {
    const key = spread()
    expect([1, 2, 3].map((cost) => key.waitUs(900 * MS, cost))).toEqual([100 * MS, 500 * MS, 900 * MS])
    expect([key.remaining(900 * MS), key.resetUs(900 * MS)]).toEqual([0, 900 * MS])
  })

  test('admits again when an admission is exactly one window old, and not a microsecond before', () => {
    const key = spread()
    expect([key.take(SECOND - 1), key.take(SECOND), key.take(SECOND)]).toEqual([1, 0, 400 * MS])
  })

  test('keeps one entry for each microsecond, and drops what has left with the next charge', () => {
    const key = spread()
    key.take(1_400 * MS, 2)
    expect(key.state).toEqual({ 'at 1400000 limit 3 1000000': '0', '800000 1': '800000', '1400000 2': '1400000' })
  })

  test('leaves the same state after one take of 2 as after two takes of 1', () => {
    const limit = slidingLog({ limit: 5, window: '1s' })
    const [once, twice] = [new HeldKey(limit), new HeldKey(limit)]
    once.take(40, 2)
    twice.take(40)
    twice.take(40)
    expect(once.state).toEqual(twice.state)
  })

  test('goes on for ever in the room of its limit', () => {
    const limit = slidingLog({ limit: 3, window: '1s' })
    const rule = limit[COMPILE](0)
    // Room for three entries and one guard.
    const s = new Float64Array(rule.algorithm.words(rule) + 1).fill(-7)
    rule.algorithm.fresh(rule, s, 0, 0)
    for (let k = 0; k < 1_000; k++) {
      const nowUs = Math.ceil((k * SECOND) / 3)
      expect(rule.algorithm.tryTake(rule, s, 0, nowUs, 1)).toBe(true)
      expect(rule.algorithm.tryTake(rule, s, 0, nowUs, 3)).toBe(false)
    }
    expect(s.at(-1)).toBe(-7)
  })
})

test('an idle log asks for the room of one entry, a full one for no more than its limit', () => {
  const rule = slidingLog({ limit: 2, window: '1s' })[COMPILE](0)
  const s = new Float64Array(rule.algorithm.words(rule))
  const needed = () => rule.algorithm.neededWords?.(rule, s, 0)
  rule.algorithm.fresh(rule, s, 0, 0)
  const sizes = [needed()]
  for (const nowUs of [1, 2]) {
    rule.algorithm.take(rule, s, 0, nowUs, 1)
    sizes.push(needed())
  }
  expect(sizes).toEqual([6, 8, 8])
})

describe('the sorted set in Redis', () => {
  const limit = slidingLog({ limit: 3, window: '1s' })

  test.each([
    { 'at 0 limit 3 1000000': '0' },
    { 'at 1400000 limit 3 1000000': '0', '800000 1': '800000', '1400000 2': '1400000' },
    { 'at 1763200000000002 limit 100 1000000': '0', '1763200000000001 99': '1763200000000001' },
  ])('reads back as it was written: %o', (members) => expect(readBack(limit, members as unknown as EncodedState)).toEqual(members))

  test.each([
    'hello',
    {},
    { '800000 1': '800000' },
    { 'at 5 limit 3': '0' },
    { 'at now limit 3 1000': '0' },
    { 'at 5 limit 3 1000': '0', hello: '3' },
    { 'at 5 limit 3 1000': '0', '3 -1': '3' },
    { 'at 5 limit 3 1000': '0', 'at 6 limit 3 1000': '0' },
  ])('is refused if the sliding log did not write it: %j', (foreign) => {
    const call = () => readBack(limit, foreign as unknown as EncodedState)
    expect(call).toThrow(SluiceError)
    expect(call).toThrow(
      /^slidingLog state .* must be a sorted set of one member 'at ... limit ...' and one 'time count' for each admission$/,
    )
  })
})

describe('a clock that steps back', () => {
  const full = () => {
    const key = new HeldKey(slidingLog({ limit: 2, window: '1s' }), 10 * SECOND)
    key.take(9_500 * MS)
    key.take(10 * SECOND)
    return key
  }

  test('by at most one window finds time standing still: used stays used', () => {
    const key = full()
    expect([key.settle(9 * SECOND), key.waitUs(9 * SECOND), key.remaining(9 * SECOND)]).toEqual([false, 2 * SECOND, 0])
  })

  test('by more counts what was in use as admitted now, and that is written', () => {
    const key = full()
    const nowUs = 9 * SECOND - 1
    expect([key.settle(nowUs), key.waitUs(nowUs), key.settle(nowUs)]).toEqual([true, SECOND, false])
    expect(key.state).toEqual({ 'at 8999999 limit 2 1000000': '0', '8999999 2': '8999999' })
  })

  test('and takes meanwhile are entered at the time that stands still', () => {
    const key = new HeldKey(slidingLog({ limit: 2, window: '1s' }), 10 * SECOND)
    key.take(10 * SECOND)
    expect([key.take(9_500 * MS), key.state]).toEqual([0, { 'at 10000000 limit 2 1000000': '0', '10000000 2': '10000000' }])
  })

  test('leaves an empty key idle only once its time no longer stands still', () => {
    const key = full()
    key.give(10 * SECOND, 2)
    expect([key.resetUs(10 * SECOND), key.resetUs(9_400 * MS)]).toEqual([0, 600 * MS])
  })
})

describe('changed numbers', () => {
  test('make one entry of what is in use, dated as the state was', () => {
    const key = new HeldKey(slidingLog({ limit: 3, window: '1s' }))
    for (const ms of [0, 400, 800]) key.take(ms * MS)
    expect(key.settle(1_100 * MS, slidingLog({ limit: 10, window: '1min' }))).toBe(true)
    expect(key.state).toEqual({ 'at 800000 limit 10 60000000': '0', '800000 2': '800000' })
  })

  test('that would not count it any more date it to the contact', () => {
    const key = new HeldKey(slidingLog({ limit: 3, window: '1s' }))
    key.take(0)
    key.settle(300 * MS, slidingLog({ limit: 3, window: '300ms' }))
    expect(key.state).toEqual({ 'at 300000 limit 3 300000': '0', '300000 1': '300000' })
  })

  test('in turn with the old ones hold nothing for longer than a window', () => {
    const key = new HeldKey(slidingLog({ limit: 3, window: '1s' }))
    key.take(0, 3)
    for (let ms = 100; ms < 1000; ms += 100) {
      key.settle(ms * MS, slidingLog({ limit: 3 + ((ms / 100) % 2), window: '1s' }))
      expect(key.waitUs(ms * MS, 2)).toBe((1000 - ms) * MS)
    }
    expect(key.waitUs(SECOND, 2)).toBe(0)
  })

  test('clamp to the new limit, so that no key is stuck', () => {
    const key = new HeldKey(slidingLog({ limit: 100, window: '1s' }))
    key.take(0, 100)
    key.settle(0, slidingLog({ limit: 5, window: '1s' }))
    expect([key.remaining(0), key.waitUs(0), key.resetUs(0)]).toEqual([0, SECOND, SECOND])
  })

  test('are written even when nothing is in use', () => {
    const key = new HeldKey(slidingLog({ limit: 3, window: '1s' }))
    key.take(0)
    expect([key.settle(SECOND, slidingLog({ limit: 5, window: '1s' })), key.state]).toEqual([true, { 'at 1000000 limit 5 1000000': '0' }])
  })
})

describe('giving back', () => {
  const spread = () => {
    const key = new HeldKey(slidingLog({ limit: 6, window: '1s' }))
    for (const ms of [0, 400, 800]) key.take(ms * MS, 2)
    return key
  }

  test('without a time gives the newest first', () => {
    const key = spread()
    expect([key.give(900 * MS, 3), key.state]).toEqual([true, { 'at 900000 limit 6 1000000': '0', '0 2': '0', '400000 1': '400000' }])
    expect([key.give(900 * MS, 99), key.remaining(900 * MS), key.give(900 * MS, 1)]).toEqual([true, 6, false])
  })

  test('with a time gives to the entry of exactly that microsecond, and no more than it holds', () => {
    const key = spread()
    expect([key.give(900 * MS, 1, 400_001), key.give(900 * MS, 99, 400_000)]).toEqual([false, true])
    expect(key.state).toEqual({ 'at 900000 limit 6 1000000': '0', '0 2': '0', '800000 2': '800000' })
  })

  test('of an entry that has left the window does nothing', () => {
    const key = spread()
    expect([key.give(SECOND, 1, 0), key.remaining(SECOND), key.cancel(SECOND, 1)]).toEqual([false, 2, false])
  })
})

test('giving back what was taken then finds every entry of a long log', () => {
  const times = [0, 2, 4, 10, 14, 22, 26, 34]
  for (const ofUs of times) {
    const key = new HeldKey(slidingLog({ limit: 10, window: '1s' }))
    for (const nowUs of times) key.take(nowUs)
    expect([key.give(40, 1, ofUs + 1), key.give(40, 1, ofUs)]).toEqual([false, true])
    expect(Object.values(key.state)).toEqual(['0', ...times.filter((time) => time !== ofUs).map(String)])
  }
})

test('a log that is given less room than its limit moves its entries to the front, not beyond its end', () => {
  const rule = slidingLog({ limit: 4, window: '1s' })[COMPILE](0)
  const s = new Float64Array(3 + 4 + 2 * 2)
  rule.algorithm.fresh(rule, s, 3, 0)
  for (const nowUs of [0, 1, SECOND + 5]) rule.algorithm.take(rule, s, 3, nowUs, 1)
  expect(rule.algorithm.encode(rule, s, 3)).toEqual({ 'at 1000005 limit 4 1000000': '0', '1000005 1': '1000005' })
})

test('a sorted set is read in the order of its times, in whatever order its members come', () => {
  const state = { '700 1': '700', 'at 900 limit 3 1000000': '0', '90 2': '90' }
  expect(Object.keys(readBack(slidingLog({ limit: 3, window: '1s' }), state))).toEqual(['at 900 limit 3 1000000', '90 2', '700 1'])
})

test('a log asks for room for the entries it holds, one more, and a quarter to move in, never for more than its limit and a quarter', () => {
  const rule = slidingLog({ limit: 4, window: '1s' })[COMPILE](0)
  const key = new HeldKey(rule)
  const roomFor = () => ((rule.algorithm.neededWords?.(rule, key.s, 0) as number) - 4) / 2
  const rooms = [0, 1, 2, 3, SECOND + 1, SECOND + 2].map((nowUs) => {
    const room = roomFor()
    key.take(nowUs)
    return room
  })
  expect([...rooms, roomFor()]).toEqual([1, 2, 3, 5, 5, 5, 5])
  key.take(SECOND + 4, 1)
  expect([roomFor(), key.take(3 * SECOND), roomFor()]).toEqual([5, 0, 2])
})

describe('the factory', () => {
  test('returns frozen plain data that JSON carries, and makes the same limit again from it', () => {
    const limit = slidingLog({ limit: 5, window: '1min' })
    const json = JSON.parse(JSON.stringify(limit))
    expect(Object.isFrozen(limit)).toBe(true)
    expect(json).toEqual({ type: 'slidingLog', limit: 5, window: '1min' })
    expect(slidingLog(json)[COMPILE](0)).toEqual(limit[COMPILE](0))
    expect(limit[COMPILE](0).numbers).toBe('5 60000000')
  })

  test('keeps up to 100,000 admissions', () => {
    expect(slidingLog({ limit: 100_000, window: '1s' })[COMPILE](0).capacity).toBe(100_000)
  })

  const bad: [unknown, string][] = [
    [undefined, 'slidingLog undefined must be an object with limit, window'],
    [{ limit: 0, window: '1s' }, 'slidingLog limit 0 must be a whole number from 1 to 100,000, because every admission is kept'],
    [{ limit: 100_001, window: '1s' }, 'slidingLog limit 100001 must be a whole number from 1 to 100,000, because every admission is kept'],
    [{ limit: 2.5, window: '1s' }, 'slidingLog limit 2.5 must be a whole number from 1 to 100,000, because every admission is kept'],
    [{ limit: 1, window: -1 }, 'slidingLog window -1 must be from 1 microsecond to 366 days'],
    [
      { limit: 1, window: '1 week' },
      "slidingLog window \"1 week\" must be milliseconds or a number with a unit (us, ms, s, min, h, d), such as '500ms' or '10s'",
    ],
    [{ limit: 1, window: '1s', slots: 2 }, 'slidingLog "slots" is not an option: it has limit, window'],
  ]
  test.each(bad)('refuses %j', (options, message) => {
    expect(() => slidingLog(options as SlidingLogOptions)).toThrow(expect.objectContaining({ code: 'CONFIG', message }))
  })
})

import { describe, expect, test } from 'vitest'
import { HeldKey } from '../../../test/support/held-key.ts'
import { RULE } from '../algorithm.ts'
import { type LeakyBucketOptions, leakyBucket } from './leaky-bucket.ts'

const MS = 1_000
const SECOND = 1_000_000

describe('the number line of a capacity of 10 that leaks 2/s', () => {
  test('delays by the water that is there already, and refuses what does not fit', () => {
    const key = new HeldKey(leakyBucket({ capacity: 10, leak: '2/s' }))
    expect([key.dueUs(0), key.take(0, 8)]).toEqual([0, 0])
    expect([key.dueUs(SECOND), key.take(SECOND)]).toEqual([3 * SECOND, 0])
    expect([key.take(SECOND, 4), key.remaining(SECOND)]).toEqual([500 * MS, 3])
    expect([key.dueUs(1_500 * MS), key.take(1_500 * MS, 4)]).toEqual([3 * SECOND, 0])
    expect([key.remaining(1_500 * MS), key.resetUs(1_500 * MS)]).toEqual([0, 5 * SECOND])
    expect(key.state).toEqual({ water: 10, part: 0, atUs: 1500000 })
  })

  test('lets four calls of 1 leave evenly spaced, and refuses the one that does not fit', () => {
    const key = new HeldKey(leakyBucket({ capacity: 3, leak: '1/s' }))
    const leaving: (number | undefined)[] = []
    for (let k = 0; k < 3; k++) {
      leaving.push(key.dueUs(0))
      key.take(0)
    }
    expect([leaving, key.take(0)]).toEqual([[0, SECOND, 2 * SECOND], SECOND])
  })

  test('does not overshoot with fractional water', () => {
    const key = new HeldKey(leakyBucket({ capacity: 2, leak: '1/s' }))
    key.take(0, 2)
    expect([key.take(500 * MS), key.take(SECOND - 1), key.take(SECOND)]).toEqual([500 * MS, 1, 0])
  })

  test('delays to the microsecond: the water is gone at the end of the delay and not one before', () => {
    const key = new HeldKey(leakyBucket({ capacity: 5, leak: '7/s' }))
    key.take(0, 2)
    expect([key.dueUs(0), key.dueUs(285_714), key.dueUs(285_715)]).toEqual([285_715, 1, 0])
  })
})

test('people see the water, and the part of one that has not leaked yet', () => {
  const key = new HeldKey(leakyBucket({ capacity: 2, leak: '1/s' }))
  key.take(0, 1)
  key.take(400 * MS, 1)
  expect(key.state).toEqual({ water: 1, part: 600_000, atUs: 400_000 })
})

describe('the delay', () => {
  const limit = leakyBucket({ capacity: 2, leak: '1/s' })

  test('counts from the reading of a clock that stepped back', () => {
    const key = new HeldKey(limit)
    key.take(100 * SECOND, 1)
    expect([key.dueUs(98 * SECOND), key.repair(98 * SECOND - 1), key.dueUs(98 * SECOND - 1)]).toEqual([3 * SECOND, true, SECOND])
  })

  test('is none where there is no water', () => {
    const key = new HeldKey(limit)
    key.take(100 * SECOND, 1)
    key.give(100 * SECOND, 1)
    expect([key.dueUs(99 * SECOND), key.resetUs(99 * SECOND)]).toEqual([0, SECOND])
  })

  test('is as long as the water that is there leaks at its own pace, whatever the numbers of the caller', () => {
    const key = new HeldKey(leakyBucket({ capacity: 10, leak: '1/s' }))
    key.take(0, 6)
    key.under(leakyBucket({ capacity: 20, leak: '2/s' }))
    expect([key.remaining(SECOND), key.dueUs(SECOND), key.resetUs(SECOND)]).toEqual([15, 5 * SECOND, 5 * SECOND])
    expect([key.take(SECOND), key.dueUs(SECOND), key.resetUs(SECOND)]).toEqual([0, 3 * SECOND, 3 * SECOND])
  })
})

describe('the factory', () => {
  test('returns frozen plain data that JSON carries, and makes the same limit again from it', () => {
    const limit = leakyBucket({ capacity: 20, leak: { permits: 5, per: '10s' } })
    const json = JSON.parse(JSON.stringify(limit))
    expect(Object.isFrozen(limit)).toBe(true)
    expect(json).toEqual({ type: 'leakyBucket', capacity: 20, leak: { permits: 5, per: '10s' } })
    expect(leakyBucket(json)[RULE]).toEqual(limit[RULE])
    expect(limit[RULE].numbers).toBe('20 1 2000000')
  })

  const bad: [unknown, string][] = [
    [undefined, 'leakyBucket undefined must be an object with capacity, leak'],
    [{ capacity: -1, leak: '1/s' }, 'leakyBucket capacity -1 must be a whole number from 0 to 1,000,000,000'],
    [{ capacity: 1, leak: '0/s' }, 'leakyBucket leak "0/s" must be at least 1 permit: for a limit that admits nothing write capacity: 0'],
    [
      { capacity: 1, leak: 'fast' },
      "leakyBucket leak \"fast\" must be permits per time with a unit (us, ms, s, min, h, d), such as '10/s' or '5/10s'",
    ],
    [{ capacity: 1, leak: '11/us' }, 'leakyBucket leak "11/us" must be at most 10 million permits per second'],
    [{ capacity: 36_526, leak: '1/d' }, 'leakyBucket capacity 36526 must be at most 26062 at this rate, to be counted exactly'],
    [{ capacity: 1, leak: '1/s', rate: '1/s' }, 'leakyBucket "rate" is not an option: it has capacity, leak'],
  ]
  test.each(bad)('refuses %j', (options, message) => {
    expect(() => leakyBucket(options as LeakyBucketOptions)).toThrow(expect.objectContaining({ code: 'CONFIG', message }))
  })
})

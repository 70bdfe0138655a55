import { describe, expect, test } from 'vitest'
import { RULE } from './algorithm.ts'
import { fixedWindow, gcra, slidingLog, slidingWindow } from './all.ts'
import { atRate, rateOf } from './at-rate.ts'

const bucket = gcra({ rate: '7/s', burst: 5 })[RULE]
const window = slidingWindow({ limit: 30, window: '1min', slots: 4 })[RULE]

describe('a limit that drains keeps its burst', () => {
  test.each([
    [7, '5 7 1000000'],
    [1, '5 1 1000000'],
    [0.5, '5 1 2000000'],
    // Ten thousand steps are enough, and more are not taken.
    [1.000_05, '5 10001 10000000000'],
    [12_345.4, '5 2469 200000'],
    [1e6, '5 1 1'],
    [1e-6, '5 1 1000000000000'],
    // The longest period that a power of ten is.
    [1e-9, '5 1 10000000000000'],
  ])('at %d permits a second', (permitsPerSecond, numbers) => {
    expect(atRate(bucket, permitsPerSecond).numbers).toBe(numbers)
  })
})

describe('a window keeps its length, and admits one at least', () => {
  test.each([
    [1, '60 60000000 4'],
    [0.51, '31 60000000 4'],
    [0.02, '1 60000000 4'],
    [0.0001, '1 60000000 4'],
  ])('at %d permits a second', (permitsPerSecond, numbers) => {
    expect(atRate(window, permitsPerSecond).numbers).toBe(numbers)
  })

  test('and no more than there may be', () => {
    expect(() => atRate(window, 1e9)).toThrow('the limit of a window at this rate 60000000000 must be at most 1,000,000,000')
    expect(atRate(window, 1e9 / 60).capacity).toBe(1e9)
  })

  test('nor, of a log, than it may keep', () => {
    const log = slidingLog({ limit: 90_000, window: '1min' })[RULE]
    expect(() => atRate(log, 3_000)).toThrow('the limit of a window at this rate 180000 must be at most 100,000')
    expect(atRate(log, 100_000 / 60).capacity).toBe(100_000)
  })
})

test('the rate of a limit is permits per second', () => {
  expect([bucket, window, fixedWindow({ limit: 10, window: '4s' })[RULE]].map(rateOf)).toEqual([7, 0.5, 2.5])
})

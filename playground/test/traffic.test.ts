/** The kinds of traffic: when their calls arrive, and the errors about wrong ones. */
import { describe, expect, test } from 'vitest'
import { freshTraffic } from '../src/playground/state.ts'
import { arrivalsOf, COLUMNS, MAX_CALLS, type Traffic, TrafficError, type TrafficKind } from '../src/simulation/traffic.ts'

type Spread = Exclude<Traffic, { kind: 'tape' }>

const timesMs = (traffic: Spread) => [...arrivalsOf(traffic).atUs].map((us) => us / 1000)
const refusal = (traffic: Spread): string => {
  try {
    arrivalsOf(traffic)
    return 'none'
  } catch (error) {
    return error instanceof TrafficError ? error.reason : String(error)
  }
}

const KINDS: readonly Exclude<TrafficKind, 'tape'>[] = ['boundary', 'steady', 'flash', 'crawler', 'poisson', 'drawn', 'pasted']

test.each(KINDS)('a fresh %s comes in order, in whole microseconds, within its axis', (kind) => {
  const { atUs, cost, lengthUs } = arrivalsOf(freshTraffic(kind) as Spread)
  expect(atUs.length).toBeGreaterThan(5)
  expect(atUs.every((us, k) => Number.isInteger(us) && us >= (atUs[k - 1] ?? 0) && us < lengthUs)).toBe(true)
  expect([...new Set(cost)]).toEqual([1])
})

test('the boundary burst comes 10 ms before and 10 ms after, and then steadily if wanted', () => {
  expect(timesMs({ kind: 'boundary', count: 2, atSecond: 3, after: 0 })).toEqual([2990, 2990, 3010, 3010])
  expect(timesMs({ kind: 'boundary', count: 1, atSecond: 1, after: 1 })).toEqual([990, 1010, 1050, 2050])
})

test('a flash sale halves every second', () => {
  const times = timesMs({ kind: 'flash', quiet: 1, peak: 64 })
  const between = (from: number, to: number) => times.filter((ms) => ms >= from && ms < to).length - (to - from) / 1000
  expect(between(0, 2000)).toBe(0)
  expect(between(2000, 3000) / between(3000, 4000)).toBeCloseTo(2, 0)
  expect(between(3000, 4000) / between(4000, 5000)).toBeCloseTo(2, 0)
})

test('a seed always means the same poisson traffic, and another seed another', () => {
  const poisson = (seed: number): Spread => ({ kind: 'poisson', perSecond: 50, seconds: 20, seed })
  expect(timesMs(poisson(7))).toEqual(timesMs(poisson(7)))
  expect(timesMs(poisson(7))).not.toEqual(timesMs(poisson(8)))
  // A thousand on average; five standard deviations is one seed in a million.
  expect(Math.abs(timesMs(poisson(7)).length - 1000)).toBeLessThan(160)
})

test('drawn calls come in their column', () => {
  const columns = new Array<number>(COLUMNS).fill(0).with(3, 2).with(31, 1)
  expect(timesMs({ kind: 'drawn', columns, seconds: 32 })).toEqual([3000, 3500, 31_000])
})

describe('pasted timestamps', () => {
  const pasted = (text: string) => timesMs({ kind: 'pasted', text })

  test('are milliseconds, separated by whatever', () => {
    expect(pasted('0, 10;20\n 30.5\t5')).toEqual([0, 5, 10, 20, 30.5])
  })

  test('may be seconds or milliseconds since 1970, or dates: counted from the full second before the first', () => {
    expect(pasted('1700000000.25 1700000001')).toEqual([250, 1000])
    expect(pasted('1700000000250, 1700000001000')).toEqual([250, 1000])
    expect(pasted('2024-05-01T10:00:00.250Z\n2024-05-01T12:00:01+02:00')).toEqual([250, 1000])
  })

  test.each([
    ['', 'none'],
    ['0 banana', 'times'],
    ['0 -5', 'times'],
    ['0 99999999', 'times'],
  ])('%j is refused: %s', (text, reason) => {
    expect(refusal({ kind: 'pasted', text })).toBe(reason)
  })
})

test('numbers out of range and too many calls are refused by name', () => {
  expect(refusal({ kind: 'steady', perSecond: 0, seconds: 1 })).toBe('number')
  expect(refusal({ kind: 'steady', perSecond: Number.NaN, seconds: 1 })).toBe('number')
  expect(refusal({ kind: 'steady', perSecond: 50_000, seconds: 5 })).toBe('many')
  expect(refusal({ kind: 'crawler', size: 1000, everyMs: 1, seconds: 100 })).toBe('many')
  expect(refusal({ kind: 'drawn', columns: [], seconds: 1 })).toBe('none')
  expect(arrivalsOf({ kind: 'steady', perSecond: 50_000, seconds: 4 }).atUs.length).toBe(MAX_CALLS)
})

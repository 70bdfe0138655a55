/** The sketch of the keys refused most, compared with a plain count. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { HALVED_EVERY_US, PLACES, TopRefused } from '../src/live/top-refused.ts'

const HALVED_EVERY_MS = HALVED_EVERY_US / 1000

/** Counts every key. N is every refusal, halved as often as time says. */
class Exact {
  counts = new Map<string, number>()
  total = 0

  refused(key: string): void {
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1)
    this.total += 1
  }

  halve(): void {
    for (const [key, count] of this.counts) this.counts.set(key, Math.floor(count / 2))
    this.total /= 2
  }
}

/**
 * A key by its number, or so many times five minutes. Low numbers are common, as the worst callers
 * are.
 */
const refusal = fc.oneof({ weight: 3, arbitrary: fc.nat(3) }, { weight: 5, arbitrary: fc.nat(40) })
const step = fc.oneof(
  { weight: 40, arbitrary: refusal.map((key) => ({ key: `k${key}`, halvings: 0 })) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }).map((halvings) => ({ key: '', halvings })) },
)

test('no count is too low or too high by more than it says, none is missing that is above N / places, and the order is right', () => {
  const seen = { errors: 0, missing: 0 }
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 400, size: 'max' }), (places, steps) => {
      const clock = fakeClock(1_000)
      const sketch = new TopRefused(clock, places)
      const exact = new Exact()
      for (const { key, halvings } of steps) {
        clock.advanceMs(halvings * HALVED_EVERY_MS)
        for (let k = 0; k < halvings; k++) exact.halve()
        if (key === '') continue
        sketch.refused('api', key)
        exact.refused(key)
      }
      const held = [...sketch.keys()]
      expect(held.length).toBeLessThanOrEqual(places)
      expect(held.map(({ count }) => count)).toEqual(held.map(({ count }) => count).sort((a, b) => b - a))
      expect(held.reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(exact.total)
      for (const { key, count, error } of held) {
        const truth = exact.counts.get(key) as number
        expect(truth).toBeLessThanOrEqual(count)
        expect(truth).toBeGreaterThanOrEqual(count - error)
        expect(error).toBeLessThanOrEqual(exact.total / places + 1)
        if (error > 0) seen.errors += 1
      }
      const names = new Set(held.map(({ key }) => key))
      expect(names.size).toBe(held.length)
      for (const [key, count] of exact.counts) {
        if (count > exact.total / places) expect(names).toContain(key)
        else if (count > 0 && !names.has(key)) seen.missing += 1
      }
    }),
    { numRuns: 1_000, seed: 10 },
  )
  // The hard cases have happened.
  expect(seen.errors).toBeGreaterThan(1_000)
  expect(seen.missing).toBeGreaterThan(1_000)
})

test('a million keys take the places that there are, and the one that is behind the rest is found', () => {
  const sketch = new TopRefused(fakeClock())
  for (let k = 0; k < 1_000_000; k++) sketch.refused('api', k % 100 === 0 ? 'crawler' : `key-${k}`)
  const held = [...sketch.keys()]
  expect(held).toHaveLength(PLACES)
  expect(held[0]).toMatchObject({ limiter: 'api', key: 'crawler' })
  expect(held[0]?.count).toBeGreaterThanOrEqual(10_000)
  expect((held[0]?.count as number) - (held[0]?.error as number)).toBeLessThanOrEqual(10_000)
})

test('the same key of two limiters is two keys', () => {
  const sketch = new TopRefused(fakeClock())
  for (const limiter of ['api', 'api', 'login']) sketch.refused(limiter, 'u1')
  expect([...sketch.keys()]).toMatchObject([
    { limiter: 'api', count: 2 },
    { limiter: 'login', count: 1 },
  ])
})

test('a day without refusals forgets all, and nothing has to be done meanwhile', () => {
  const clock = fakeClock()
  const sketch = new TopRefused(clock)
  for (let k = 0; k < 1_000; k++) sketch.refused('api', 'u1')
  expect(clock.timers).toBe(0)
  clock.advanceMs(86_400_000)
  expect([...sketch.keys()]).toEqual([])
})

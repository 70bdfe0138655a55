/** The history of Live: rates from counts, restarts, and its bounds. */
import { describe, expect, test } from 'vitest'
import { ALL, History, KEPT, type LiveEvent, type LiveLimiter, MAX_LIMITERS } from '../src/live/history.ts'

const limiter = (name: string, figures: Partial<LiveLimiter> = {}): LiveLimiter => ({
  name,
  rule: null,
  allowed: 0,
  denied: 0,
  shadowed: 0,
  errors: 0,
  waiting: 0,
  waits: { count: 0, sumMs: 0, maxMs: 0 },
  store: 'up',
  keys: 0,
  ...figures,
})
const event = (atMs: number, limiters: readonly LiveLimiter[], startedAtMs = 1): LiveEvent => ({
  atMs,
  startedAtMs,
  limiters,
  topRefused: null,
})

function watched(...events: readonly LiveEvent[]): History {
  const history = new History()
  for (const each of events) history.add(each)
  return history
}

describe('the history', () => {
  test('makes rates of counts, by the time that has really passed', () => {
    const history = watched(
      event(10_000, [limiter('api', { allowed: 100, denied: 5 }), limiter('b')]),
      event(12_000, [
        limiter('api', { allowed: 140, denied: 6, shadowed: 2, waits: { count: 4, sumMs: 10, maxMs: 7 } }),
        limiter('b', { allowed: 2 }),
      ]),
    )
    expect(history.rates('api')).toEqual({ admitted: 20, refused: 0.5, shadowed: 1, meanWaitMs: 2.5, maxWaitMs: 7 })
    expect(history.rates(ALL)).toMatchObject({ admitted: 21, refused: 0.5, maxWaitMs: 7 })
    expect(history.chart('api')).toEqual([
      [10, 12],
      [null, 20],
      [null, 0.5],
      [null, 7],
    ])
  })

  test('takes a restart of the service for what it is, not for a negative rate', () => {
    const history = watched(
      event(1000, [limiter('api', { allowed: 100 })], 1),
      event(2000, [limiter('api', { allowed: 3 })], 1500),
      event(3000, [limiter('api', { allowed: 5 })], 1500),
    )
    expect(history.restarts).toBe(1)
    expect(history.chart('api')[1]).toEqual([null, null, 2])
  })

  test('holds ten minutes and no more, however long it runs', () => {
    const history = new History()
    for (let k = 0; k < 5 * KEPT; k++) history.add(event(k * 1000, [limiter('api', { allowed: k })]))
    const chart = history.chart('api')
    expect(chart.map((values) => values.length)).toEqual([KEPT, KEPT, KEPT, KEPT])
    expect(chart[0].at(-1)).toBe(5 * KEPT - 1)
  })

  test('forgets limiters that are gone, and knows where a new one begins', () => {
    const history = watched(
      event(1000, [limiter('old')]),
      event(2000, [limiter('old')]),
      event(3000, [limiter('new')]),
      event(4000, [limiter('new', { allowed: 6 })]),
    )
    expect(history.chart('old')[1]).toEqual([null, null, null, null])
    expect(history.chart('new')[1]).toEqual([null, null, null, 6])
  })

  test('is bounded in limiters too', () => {
    const many = Array.from({ length: MAX_LIMITERS + 50 }, (_, k) => limiter(`l${k}`))
    const history = watched(
      event(1000, many),
      event(
        2000,
        many.map((each) => ({ ...each, allowed: 1 })),
      ),
    )
    expect(history.rates(ALL).admitted).toBe(MAX_LIMITERS + 50)
    expect(history.chart(`l${MAX_LIMITERS}`)[1]).toEqual([null, null])
  })

  test('has a gap where nobody watched', () => {
    const history = watched(
      event(1000, [limiter('api')]),
      event(60_000, [limiter('api', { allowed: 590 })]),
      event(61_000, [limiter('api', { allowed: 595 })]),
    )
    expect(history.chart('api')[1]).toEqual([null, null, 5])
    expect(history.restarts).toBe(0)
  })

  test('begins anew when the clock of the service is set back: times are always in order', () => {
    const history = watched(...[1, 2, 3, 0, 1, 2, 3].map((second, k) => event(second * 1000, [limiter('api', { allowed: k })])))
    expect(history.chart('api')).toEqual([
      [1, 2, 3],
      [1, 1, 1],
      [0, 0, 0],
      [0, 0, 0],
    ])
  })

  test('two events of one moment say nothing about a pace', () => {
    const history = watched(event(1000, [limiter('api')]), event(1000, [limiter('api', { allowed: 9 })]))
    expect(history.rates('api').admitted).toBe(0)
  })
})

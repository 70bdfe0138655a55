/**
 * Governors by windows alone: published vectors, and the closed loop that tells those that creep
 * from those that stay.
 */
import { describe, expect, test } from 'vitest'
import { aimd, type Governor, type GovernorState, knee, vegas, type Window } from '../../src/govern/index.ts'

/** A window with one call in it, as the published vectors have it. */
function sample(latencyMs: number, inflight: number, isDropped = false): Window {
  return { atMs: 0, durationMs: 1_000, ok: isDropped ? 0 : 1, dropped: isDropped ? 1 : 0, latencyMs, inflight }
}

function limitsOf<S extends GovernorState>(governor: Governor<S>, windows: readonly Window[]): number[] {
  let state = governor.initial
  return windows.map((window) => {
    state = governor.next(state, window)
    return state.limit
  })
}

const times = (count: number, window: Window) => Array.from({ length: count }, () => window)

describe('aimd answers the published vectors', () => {
  test('grows by one when half of the limit is used', () => {
    expect(limitsOf(aimd(), [sample(1, 10), sample(1, 5)])).toEqual([21, 21])
    expect(limitsOf(aimd({ initial: 21, max: 21 }), [sample(1, 21)])).toEqual([21])
  })

  test('falls to nine tenths with each drop, and with calls that are too slow', () => {
    expect(limitsOf(aimd({ initial: 30 }), [sample(1, 0, true)])).toEqual([27])
    expect(limitsOf(aimd({ initial: 100 }), times(8, sample(1, 0, true)))).toEqual([90, 81, 72, 64, 57, 51, 45, 40])
    expect(limitsOf(aimd({ initial: 30 }), [sample(5_001, 30)])).toEqual([27])
  })
})

describe('vegas answers the published vectors', () => {
  const small = { initial: 10, max: 20, alpha: () => 3, beta: () => 6 }

  test.each([
    ['grows by beta without a queue', [10, 10], 16],
    ['falls with a long one', [10, 50], 9],
    ['rests between alpha and beta', [10, 14], 10],
  ])('%s', (_, latencies, expected) => {
    expect(
      limitsOf(
        vegas(small),
        latencies.map((ms) => sample(ms, 14)),
      ).at(-1),
    ).toBe(expected)
  })

  test('scales with the logarithm of the limit', () => {
    const big = vegas({ initial: 10_000, max: 20_000 })
    expect(limitsOf(big, [sample(10_000, 5_000), sample(10_000, 6_000)])).toEqual([10_000, 10_024])
    expect(limitsOf(vegas(), times(17, sample(10, 200))).slice(1)).toEqual([
      26, 32, 38, 44, 50, 56, 62, 68, 74, 80, 86, 92, 98, 104, 116, 128,
    ])
  })

  test('smooths', () => {
    const halving = { initial: 100, max: 200, decrease: (limit: number) => limit / 2 }
    const drops = [sample(10, 100), sample(10, 100, true), sample(10, 100, true)]
    expect(limitsOf(vegas({ ...halving, smoothing: 0.5 }), drops)).toEqual([100, 75, 56])
    expect(limitsOf(vegas(halving), drops)).toEqual([100, 50, 25])
  })
})

test('vegas falls while all calls are dropped, and keeps the base that it had measured', () => {
  const governor = vegas({ initial: 50 })
  const good = { ...sample(10, 50), ok: 100 }
  const onlyDrops = { ...sample(0, 50, true), dropped: 100 }
  const states: { limit: number; baseMs: number }[] = []
  let state = governor.initial
  for (const window of [good, onlyDrops, onlyDrops]) {
    state = governor.next(state, window)
    states.push({ limit: state.limit, baseMs: state.baseMs })
  }
  expect(states).toEqual([
    { limit: 50, baseMs: 10 },
    { limit: 49, baseMs: 10 },
    { limit: 48, baseMs: 10 },
  ])
})

/**
 * 20 workers of 50 ms, and demand without end: more than 20 in flight only wait. The best limit
 * is 20.
 */
function closedLoop<S extends GovernorState>(governor: Governor<S>, windows: number, isOne: boolean): number[] {
  let state = governor.initial
  return Array.from({ length: windows }, (_, k) => {
    const { limit } = state
    const ok = isOne ? 1 : Math.min(limit, 20) * 20
    const latencyMs = 50 * Math.max(1, limit / 20)
    state = governor.next(state, { atMs: 1_000 * k, durationMs: 1_000, ok, dropped: 0, latencyMs, inflight: limit })
    return state.limit
  })
}

describe('under endless demand', () => {
  const at = [60, 600, 3_600, 36_000]

  test('vegas creeps as published', () => {
    const limits = closedLoop(vegas({ max: 100_000 }), 36_000, true)
    expect(at.map((windows) => limits[windows - 1])).toEqual([26, 32, 48, 159])
  })

  test('aimd rises until calls time out', () => {
    const limits = closedLoop(aimd({ max: 100_000 }), 36_000, true)
    expect(at.map((windows) => limits[windows - 1])).toEqual([80, 620, 1_802, 1_882])
  })

  test.each([
    ['one call a window', true, undefined],
    ['all calls', false, undefined],
    ['a start far above', false, 1_000],
    ['a start far below', false, 1],
  ])('knee stays within 15 and 30 for 36,000 windows: %s', (_, isOne, initial) => {
    const limits = closedLoop(knee({ min: 1, max: 100_000, initial }), 36_000, isOne).slice(30)
    expect(Math.min(...limits)).toBeGreaterThanOrEqual(15)
    expect(Math.max(...limits)).toBeLessThanOrEqual(30)
  })
})

describe('knee', () => {
  test('never leaves its bounds, whatever it is shown', () => {
    const governor = knee({ min: 3, max: 50 })
    let state = governor.initial
    let seed = 7
    const random = () => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return seed / 2_147_483_648
    }
    for (let k = 0; k < 5_000; k++) {
      const ok = Math.floor(random() * 3) * Math.floor(random() * 500)
      const dropped = random() < 0.8 ? 0 : Math.floor(random() * 500)
      const latencyMs = ok === 0 ? 0 : 10 ** (4 * random())
      state = governor.next(state, { atMs: k, durationMs: 500, ok, dropped, latencyMs, inflight: Math.ceil(random() * 1.2 * state.limit) })
      expect(Number.isInteger(state.limit) && state.limit >= 3 && state.limit <= 50).toBe(true)
    }
  })

  test('drops count once: the first window without them ends a fall of any length', () => {
    const governor = knee({ min: 1, max: 1_000 })
    let state = governor.initial
    const play = (windows: number, isDown: boolean) =>
      Array.from({ length: windows }, (_, k) => {
        const { limit } = state
        const served = { dropped: 0, ok: Math.min(limit, 16) * 10, latencyMs: 50 * Math.max(1, limit / 16) }
        const failed = { dropped: 3_000, ok: 0, latencyMs: 0 }
        state = governor.next(state, { atMs: k, durationMs: 500, inflight: limit, ...(isDown ? failed : served) })
        return state.limit
      })
    const [rested = 0] = play(40, false).slice(-1)
    expect(rested).toBeGreaterThanOrEqual(16)
    expect(play(60, true).slice(-1)).toEqual([1])
    expect(state.isCoarse).toBe(true)
    const [back = 0, grown = 0] = play(2, false)
    expect(back).toBe(Math.ceil(0.7 * rested))
    expect(grown).toBe(rested - 1)
  })

  test('goes on with its start after an outage that was there before it', () => {
    const governor = knee({ min: 1, max: 1_000 })
    const failed = { ...sample(0, 10, true), dropped: 100 }
    const good = (ok: number, limit: number) => ({ ...sample(50, limit), ok })
    expect(limitsOf(governor, [...times(9, failed), good(20, 1), good(40, 2), good(80, 4)]).slice(-4)).toEqual([1, 2, 4, 8])
  })

  test('drops that go on when the limit has come back lower it again, and further', () => {
    const governor = knee({ min: 1, max: 1_000, initial: 100 })
    let state = governor.initial
    // Above ten in flight nothing ends well.
    const limits = Array.from({ length: 60 }, (_, k) => {
      const { limit } = state
      const isOver = limit > 10
      state = governor.next(state, {
        atMs: k,
        durationMs: 500,
        ok: isOver ? 0 : limit * 10,
        dropped: isOver ? 100 : 0,
        latencyMs: isOver ? 0 : 50,
        inflight: limit,
      })
      return state.limit
    })
    const late = limits.slice(20)
    expect(Math.max(...late)).toBeLessThanOrEqual(20)
    expect(late.filter((limit) => limit <= 10).length).toBeGreaterThan(late.length * 0.7)
  })

  test('does not change a limit that is not reached', () => {
    const governor = knee({ min: 1, max: 100, initial: 40 })
    expect(new Set(limitsOf(governor, times(500, { ...sample(50, 35), ok: 100 })))).toEqual(new Set([40]))
  })

  test('is not held at a least limit that is above the knee', () => {
    const governor = knee({ min: 20, max: 1_000 })
    let state = governor.initial
    const play = (workers: number, windows: number) => {
      for (let k = 0; k < windows; k++) {
        const { limit } = state
        const latencyMs = 50 * Math.max(1, limit / workers)
        state = governor.next(state, {
          atMs: k,
          durationMs: 1_000,
          ok: Math.min(limit, workers) * 20,
          dropped: 0,
          latencyMs,
          inflight: limit,
        })
      }
      return state.limit
    }
    expect(play(10, 500)).toBeLessThanOrEqual(30)
    expect(play(40, 30)).toBeGreaterThanOrEqual(36)
    expect(play(10, 30)).toBeLessThanOrEqual(30)
  })

  test('keeps calls below maxLatencyMs', () => {
    const governor = knee({ min: 1, max: 100, maxLatencyMs: 40 })
    let state = governor.initial
    // Calls take as many milliseconds more as there are in flight, with more throughput all the
    // way.
    const limits: number[] = []
    for (let k = 0; k < 200; k++) {
      const latencyMs = 20 + state.limit
      state = governor.next(state, {
        atMs: k,
        durationMs: 1_000,
        ok: (1_000 * state.limit) / latencyMs,
        dropped: 0,
        latencyMs,
        inflight: state.limit,
      })
      limits.push(state.limit)
    }
    expect(Math.max(...limits.slice(20))).toBeLessThanOrEqual(20)
  })

  test.each([
    [{ min: 0, max: 5 }, /min 0 must be a whole number from 1/],
    [{ min: 5, max: 4 }, /max 4 must be a whole number from min \(5\)/],
    [{ min: 1, max: 5, initial: 6 }, /initial 6 must be .* max \(5\)/],
    [{ min: 1, max: 5, maxLatencyMs: 0 }, /maxLatencyMs 0 must be above 0/],
    [{ min: 1, max: 5, maxLatency: 9 }, /knee "maxLatency" is not an option/],
  ])('refuses %o', (options, message) => {
    expect(() => knee(options as never)).toThrow(message)
  })
})

/** `govern` on a limiter of the same interface as one with permits, and what callers get wrong. */
import { spawnSync } from 'node:child_process'
import { expect, test, vi } from 'vitest'
import { RULE } from '../../src/algorithms/algorithm.ts'
import { gcra } from '../../src/algorithms/gcra/gcra.ts'
import { SluiceError } from '../../src/errors.ts'
import { aimd, type ChangeEvent, govern, knee } from '../../src/govern/index.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { HandMadeLimiter } from './hand-made-limiter.ts'

/** Calls of 50 ms, all places taken all the time, for some seconds. */
function busy(
  limiter: HandMadeLimiter,
  clock: ReturnType<typeof fakeClock>,
  seconds: number,
  outcome: 'ok' | 'dropped' | 'ignored' = 'ok',
) {
  for (let k = 0; k < seconds * 20; k++) {
    while (limiter.tryAcquire());
    clock.advanceMs(50)
    for (let left = limiter.inflight; left > 0; left--) limiter.release(50, outcome)
  }
}

test('changes one limit and leaves the others as they are, with an event for each change', () => {
  const rate = gcra({ rate: '10/s', burst: 5 })[RULE]
  const limiter = new HandMadeLimiter(99, { rate })
  const clock = fakeClock()
  const changes: ChangeEvent[] = []
  const governed = govern(limiter, { limit: 'inflight', by: knee({ min: 2, max: 40 }), clock, onChange: (event) => changes.push(event) })
  expect(limiter.max).toBe(10)
  busy(limiter, clock, 30)
  expect(limiter.max).toBe(40)
  expect([governed.limit, governed.inflight]).toEqual([40, 40])
  expect(limiter.scope().limits.map(({ name, rule }) => [name, rule.figures])).toEqual([
    ['rate', rate.figures],
    ['inflight', [40, 30_000_000]],
  ])
  expect(changes.map(({ from }) => from).slice(1)).toEqual(changes.map(({ to }) => to).slice(0, -1))
  expect(changes[0]).toMatchObject({ limiter: 'hand-made', limit: 'inflight', from: 10, to: 20, reason: 'no queue' })
  expect(limiter.updates).toBe(1 + changes.length)
})

test('ends with close, and the limit stays', () => {
  const limiter = new HandMadeLimiter(10)
  const clock = fakeClock()
  const governed = govern(limiter, { by: knee({ min: 2, max: 40 }), clock })
  busy(limiter, clock, 5)
  const { max } = limiter
  governed.close()
  busy(limiter, clock, 30)
  expect(limiter.max).toBe(max)
  expect(clock.timers).toBe(0)
})

test('calls that are ignored teach nothing; drops lower the limit to its least', () => {
  const limiter = new HandMadeLimiter(10)
  const clock = fakeClock()
  const governed = govern(limiter, { by: knee({ min: 2, max: 40, initial: 20 }), clock })
  busy(limiter, clock, 30, 'ignored')
  expect([limiter.max, governed.reason]).toEqual([20, 'start'])
  busy(limiter, clock, 30, 'dropped')
  expect([limiter.max, governed.reason]).toEqual([2, 'drops'])
})

test('a pause without calls is not part of a window', () => {
  const limiter = new HandMadeLimiter(10)
  const clock = fakeClock()
  const seen: number[] = []
  const by = aimd({ min: 1, max: 1_000 })
  govern(limiter, {
    by: {
      ...by,
      next(state, window) {
        seen.push(window.durationMs)
        return by.next(state, window)
      },
    },
    clock,
  })
  busy(limiter, clock, 3)
  clock.advanceMs(3_600_000)
  busy(limiter, clock, 3)
  expect(seen.length).toBeGreaterThan(4)
  expect(Math.max(...seen)).toBeLessThan(5_000)
})

test('an outage and what comes after it are not one window', () => {
  const by = aimd({ min: 1, max: 1_000 })
  // Windows are half a second long; the outage ends at each place in one.
  for (let steps = 0; steps < 10; steps++) {
    const limiter = new HandMadeLimiter(10)
    const clock = fakeClock()
    const seen: { ok: number; dropped: number }[] = []
    govern(limiter, {
      by: {
        ...by,
        next(state, window) {
          seen.push(window)
          return state
        },
      },
      clock,
    })
    busy(limiter, clock, 3)
    busy(limiter, clock, 7, 'dropped')
    seen.length = 0
    busy(limiter, clock, 1 + steps / 20, 'dropped')
    busy(limiter, clock, 3)
    expect([seen.some(({ dropped }) => dropped > 0), seen.some(({ ok }) => ok > 0)]).toEqual([true, true])
    expect(seen.filter(({ ok, dropped }) => ok > 0 && dropped > 0)).toEqual([])
  }
})

test('an onChange that throws is a warning', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const limiter = new HandMadeLimiter(10)
  const clock = fakeClock()
  const onChange = () => {
    throw new Error('no')
  }
  govern(limiter, { by: knee({ min: 2, max: 40 }), clock, onChange })
  busy(limiter, clock, 5)
  expect(warned.mock.calls[0]?.[0]).toMatch(/onChange of govern for limiter 'hand-made' threw: Error: no/)
  expect(limiter.max).toBeGreaterThan(5)
  warned.mockRestore()
})

test('a limit that the limiter refuses is a warning, and the one in force stays', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const limiter = new HandMadeLimiter(10)
  const clock = fakeClock()
  const by = { name: 'odd', min: 1, max: 9, initial: { limit: 7, reason: 'start' }, next: () => ({ limit: 2.5, reason: 'odd' }) }
  const governed = govern(limiter, { by, clock })
  busy(limiter, clock, 3)
  expect([limiter.max, governed.limit, governed.reason]).toEqual([7, 7, 'start'])
  expect(warned.mock.calls[0]?.[0]).toMatch(/limiter 'hand-made' refused the limit of govern: .* 2.5 must be a whole number/)
  warned.mockRestore()
})

test('a limit has one governor at a time', () => {
  const limiter = new HandMadeLimiter(10)
  const clock = fakeClock()
  const first = govern(limiter, { by: knee({ min: 2, max: 40 }), clock })
  expect(() => govern(limiter, { by: aimd({ min: 2, max: 40 }), clock })).toThrow(/govern limit "inflight" follows the load already/)
  expect(limiter.updates).toBe(1)
  first.close()
  govern(limiter, { by: aimd({ min: 2, max: 40 }), clock }).close()
})

test('ends with its limiter', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const limiter = new HandMadeLimiter(10)
  const clock = fakeClock()
  const governed = govern(limiter, { by: knee({ min: 2, max: 40 }), clock })
  let asked = 0
  limiter.update = () => {
    asked += 1
    throw new SluiceError('CLOSED', 'closed')
  }
  busy(limiter, clock, 30)
  expect([governed.limit, asked, warned.mock.calls]).toEqual([10, 1, []])
  warned.mockRestore()
})

test('a limiter that refuses the first limit is not listened to', () => {
  const limiter = new HandMadeLimiter(10)
  limiter.update = () => {
    throw new SluiceError('CLOSED', 'closed')
  }
  const listened = vi.spyOn(limiter, 'listen')
  expect(() => govern(limiter, { by: knee({ min: 2, max: 40 }) })).toThrow('closed')
  expect(listened).not.toHaveBeenCalled()
})

test('goes on at once when the clock has stepped back', () => {
  const limiter = new HandMadeLimiter(10)
  let aheadMs = 3_600_000
  const clock = fakeClock()
  const stepping = { ...clock, nowUs: () => clock.nowUs() + aheadMs * 1_000 }
  const governed = govern(limiter, { by: knee({ min: 2, max: 40 }), clock: stepping })
  busy(limiter, clock, 1)
  aheadMs = 0
  busy(limiter, clock, 30)
  expect(governed.limit).toBe(40)
})

test.each([
  [{ by: {} }, /govern by .* must be a governor such as knee/],
  [{ by: knee({ min: 1, max: 2 }), limit: 'rate' }, /govern limit "rate" must be one of the limits: inflight/],
  [{ by: knee({ min: 1, max: 2 }), windowMs: 5 }, /windowMs 5 must be from 10 to 60,000/],
  [{ by: knee({ min: 1, max: 2 }), onChange: 7 }, /onChange 7 must be a function/],
  [{ by: knee({ min: 1, max: 2 }), every: 7 }, /govern "every" is not an option/],
])('refuses %o before anything is touched', (options, message) => {
  const limiter = new HandMadeLimiter(10)
  expect(() => govern(limiter, options as never)).toThrow(message)
  expect([limiter.updates, limiter.max]).toEqual([0, 10])
})

test('refuses a limit that nothing is released from', () => {
  const limiter = new HandMadeLimiter(10, { rate: gcra({ rate: '10/s', burst: 5 })[RULE] })
  expect(() => govern(limiter, { limit: 'rate', by: knee({ min: 1, max: 2 }) })).toThrow(/govern limit "rate" is a gcra, but must be/)
  expect(limiter.updates).toBe(0)
})

test('keeps no process alive, with all signals open', () => {
  const code = `
    import { createLimiter, gcra } from './dist/index.js'
    import * as load from './dist/load/index.js'
    const limiter = () => createLimiter(gcra({ rate: '100/s', burst: 10 }))
    for (const signal of [load.eventLoopDelay(), load.eventLoopUtilization(), load.cpu(), load.heap(), load.latency(), load.errorRate()])
      load.followLoad(limiter(), { min: '10/s', max: '100/s', signal, from: 1, to: 2 })
    console.log('end')`
  const { status, signal, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { timeout: 30_000, encoding: 'utf8' })
  expect({ status, signal, stdout }).toEqual({ status: 0, signal: null, stdout: 'end\n' })
})

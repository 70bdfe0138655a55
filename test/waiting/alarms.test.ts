/** Any number of alarms on one timer: random ones, set, stopped and rung, beside a plain list. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Alarm, Alarms } from '../../src/clock/alarms.ts'
import type { Clock } from '../../src/clock/clock.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { SEED, traceCount } from '../model/trace.ts'

const steps = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ op: fc.constant('set' as const), n: fc.nat(200) }) },
    { weight: 3, arbitrary: fc.record({ op: fc.constant('stop' as const), n: fc.nat(1_000) }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('wait' as const), n: fc.nat(40) }) },
  ),
  { minLength: 20, maxLength: 120, size: 'max' },
)

test('each rings once, at its time, in the order of the times; one timer at most, and none without alarms', () => {
  const property = fc.property(steps, (all) => {
    const clock = fakeClock()
    const alarms = new Alarms(clock, true)
    const set = new Map<number, Alarm>()
    const rung: number[] = []
    for (const [id, { op, n }] of all.entries()) {
      if (op === 'set') {
        const atUs = clock.nowUs() + n
        const ring = () => {
          expect(clock.nowUs()).toBe(atUs)
          rung.push(atUs)
          set.delete(id)
        }
        set.set(id, alarms.set(atUs, ring))
      } else if (op === 'stop') {
        const [chosen] = [...set].slice(n % Math.max(1, set.size))
        if (chosen !== undefined) alarms.stop(chosen[1])
        if (chosen !== undefined) set.delete(chosen[0])
      } else clock.setUs(clock.nowUs() + n)
      expect([...set.values()].every(({ atUs }) => op !== 'wait' || atUs > clock.nowUs())).toBe(true)
      expect(clock.timers).toBe(set.size > 0 ? 1 : 0)
    }
    clock.setUs(clock.nowUs() + 1_000)
    expect([set.size, clock.timers]).toEqual([0, 0])
    expect(rung).toEqual([...rung].sort((a, b) => a - b))
  })
  fc.assert(property, { seed: SEED, numRuns: traceCount(400) })
})

test('a timer that may rest serves alarm after alarm, and keeps a process alive only while there is one', () => {
  const clock = fakeClock()
  const stays: boolean[] = []
  const restful: Clock = {
    nowUs: () => clock.nowUs(),
    setTimer(fn, us, keepAlive = true) {
      stays.push(keepAlive)
      return Object.assign(clock.setTimer(fn, us), { keepAlive: (now: boolean) => stays.push(now) })
    },
  }
  const alarms = new Alarms(restful, true, true)
  const startUs = clock.nowUs()
  alarms.stop(alarms.set(startUs + 100, () => expect.fail('it was stopped')))
  expect([clock.timers, stays]).toEqual([1, [true, false]])

  clock.setUs(startUs + 60)
  alarms.stop(alarms.set(startUs + 160, () => expect.fail('it was stopped')))
  expect([clock.timers, stays]).toEqual([1, [true, false, true, false]])

  let rungUs = 0
  alarms.set(startUs + 190, () => {
    rungUs = clock.nowUs()
  })
  // The timer of the first one ends: what is set by now gets one of its own.
  clock.setUs(startUs + 100)
  expect([clock.timers, stays.splice(4)]).toEqual([1, [true, true]])
  clock.setUs(startUs + 1_000)
  expect([rungUs, clock.timers]).toEqual([startUs + 190, 0])

  alarms.stop(alarms.set(startUs + 2_000, () => expect.fail('it was stopped')))
  clock.setUs(startUs + 2_000)
  expect(clock.timers).toBe(0)

  const last = alarms.set(startUs + 3_000, () => expect.fail('it was stopped'))
  alarms.close()
  expect(clock.timers).toBe(1)
  alarms.stop(last)
  expect(clock.timers).toBe(0)
})

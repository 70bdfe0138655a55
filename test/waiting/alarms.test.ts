/** Any number of alarms on one timer: random ones, set, stopped and rung, beside a plain list. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Alarm, Alarms } from '../../src/limiter/alarms.ts'
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

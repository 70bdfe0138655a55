/**
 * The time of all processes, on clocks of the test's: what is done to the wall clock, and what
 * callers see of it.
 */
import { describe, expect, test } from 'vitest'
import { type Anchor, CommonTime } from '../../src/stores/sqlite/time.ts'
import { Random } from '../model/random.ts'

const START_US = 1_700_000_000_000_000
const SECOND = 1_000_000

/**
 * A machine whose wall clock shows whole milliseconds, and a file with one anchor that its
 * processes share.
 */
class Machine {
  steady = 5 * SECOND
  aheadUs = START_US
  anchor: Anchor
  readonly #processes: CommonTime[]

  constructor(processes: number) {
    const clocks = { steadyUs: () => this.steady, wallUs: () => this.wallUs }
    this.#processes = Array.from({ length: processes }, () => new CommonTime(clocks))
    this.anchor = (this.#processes[0] as CommonTime).anchor
  }

  get wallUs(): number {
    return Math.floor((this.steady + this.aheadUs) / 1000) * 1000
  }

  /**
   * A step of one of the processes: it follows the file, and writes to it where the clocks have
   * left it.
   */
  read(process: number): number {
    const time = this.#processes[process] as CommonTime
    time.follow(this.anchor)
    this.anchor = time.corrected() ?? this.anchor
    time.follow(this.anchor)
    return time.nowUs()
  }
}

describe('the time of all processes', () => {
  test('is the wall clock, to the microsecond', () => {
    const machine = new Machine(2)
    machine.steady += 1_234
    expect([machine.read(0), machine.read(1)]).toEqual([START_US + 5 * SECOND + 1_234, START_US + 5 * SECOND + 1_234])
  })

  test('leaps with the wall clock: the machine slept, or was started again', () => {
    const machine = new Machine(2)
    machine.aheadUs += 3_600 * SECOND
    expect(machine.read(1)).toBe(machine.wallUs)
    machine.steady = 100
    machine.aheadUs = START_US + 7_200 * SECOND
    expect(machine.read(0)).toBe(machine.wallUs)
    expect(machine.read(1)).toBe(machine.wallUs)
  })

  test('runs on when the clock is set back by seconds, and is the wall clock again in the end', () => {
    const machine = new Machine(2)
    const before = machine.read(0)
    machine.aheadUs -= 2 * SECOND
    expect(machine.read(1)).toBe(before)
    machine.steady += 16 * SECOND
    // A sixteenth slower, and nobody stands still.
    expect(machine.read(0)).toBe(before + 15 * SECOND)
    machine.steady += 160 * SECOND
    expect(machine.read(1) - machine.wallUs).toBeLessThan(20_000)
  })

  test('follows a clock that is set back by more than ten seconds', () => {
    const machine = new Machine(1)
    machine.aheadUs -= 11 * SECOND
    expect(machine.read(0)).toBe(machine.wallUs)
  })

  test('never runs backwards, whatever small is done to the clock, in 20,000 steps of three processes', () => {
    const random = new Random(7)
    const machine = new Machine(3)
    const leads: number[] = []
    let lastUs = 0
    let backwards = 0
    let steps = 0
    for (let k = 0; k < 20_000; k++) {
      machine.steady += random.whole(0, 30_000)
      if (random.chance(0.02)) {
        machine.aheadUs += random.whole(-100_000, 100_000)
        steps += 1
      }
      const nowUs = machine.read(random.whole(0, 2))
      // Beyond ten seconds it follows the wall clock, which is a step back: here they never add up
      // to that.
      if (nowUs < lastUs) backwards += 1
      leads.push(nowUs - machine.wallUs)
      lastUs = nowUs
    }
    expect(backwards).toBe(0)
    expect(Math.max(...leads)).toBeLessThanOrEqual(10 * SECOND)
    expect(Math.min(...leads)).toBeGreaterThan(-25_000)
    expect(steps).toBeGreaterThan(300)
  })
})

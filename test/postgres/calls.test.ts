/**
 * Which steps travel together, judged by the obvious way to find them: to look at all that wait, in
 * the order they came.
 */
import { expect, test } from 'vitest'
import { Calls } from '../../src/stores/postgres/calls.ts'
import { Job } from '../../src/stores/postgres/groups.ts'
import { PLAIN, weightOf } from '../../src/stores/remote/batches.ts'
import type { Step } from '../../src/stores/step.ts'
import { Random } from '../model/random.ts'

const MOST_CALLS = 3

interface Call {
  readonly jobs: readonly Job[]
  finish(): void
}

/** Calls that are under way until the test ends them, and what waits. */
class Stage {
  readonly underWay: Call[] = []
  waiting: Job[] = []
  done = 0
  readonly #calls: Calls

  constructor(mostWeight: number) {
    const run = (jobs: readonly Job[], onDone: (jobs: readonly Job[]) => void) =>
      new Promise<void>((resolve) => {
        this.#expectMayLeave(jobs, mostWeight)
        this.waiting = this.waiting.filter((job) => !jobs.includes(job))
        const finish = () => {
          this.underWay.splice(this.underWay.indexOf(call), 1)
          onDone(jobs)
          resolve()
        }
        const call = { jobs, finish }
        this.underWay.push(call)
      })
    this.#calls = new Calls(run, MOST_CALLS, mostWeight)
  }

  add(rows: readonly (readonly string[])[]): void {
    const jobs = rows.map((ids) => {
      const parts = ids.map((key) => ({ key, rule: { words: 1 } }))
      return new Job({ parts } as unknown as Step, ids, () => {
        this.done += 1
      })
    })
    this.waiting.push(...jobs)
    this.#calls.add(jobs)
  }

  /** No row is in two calls, nobody is overtaken at a row, and a call is not too heavy. */
  #expectMayLeave(jobs: readonly Job[], mostWeight: number): void {
    const busy = new Set(this.underWay.flatMap((call) => call.jobs.flatMap(({ ids }) => ids)))
    for (const { ids } of jobs) for (const id of ids) expect(busy.has(id)).toBe(false)
    for (const id of new Set(jobs.flatMap(({ ids }) => ids))) {
      const wanting = (all: readonly Job[]) => all.filter(({ ids }) => ids.includes(id))
      expect(wanting(jobs).every((job, k) => job === wanting(this.waiting)[k])).toBe(true)
    }
    expect(jobs.slice(0, -1).reduce((sum, { step }) => sum + weightOf(step), 0)).toBeLessThan(mostWeight)
  }

  /** What could leave and has not. */
  mayLeave(): Job[] {
    const wanted = new Set(this.underWay.flatMap((call) => call.jobs.flatMap(({ ids }) => ids)))
    return this.waiting.filter(({ ids }) => {
      const isFree = !ids.some((id) => wanted.has(id))
      for (const id of ids) wanted.add(id)
      return isFree
    })
  }
}

test('no step is overtaken, no row is in two calls, and a step that can leave leaves', async () => {
  for (const seed of [1, 2, 3]) {
    const random = new Random(seed)
    const stage = new Stage(4 * PLAIN)
    let added = 0
    for (let turn = 0; turn < 1_000 || stage.underWay.length > 0; turn++) {
      if (turn < 1_000 && random.chance(0.55)) {
        const rows = () => [...new Set(Array.from({ length: random.whole(1, 3) }, () => `row ${random.whole(1, 9)}`))]
        const ids = Array.from({ length: random.whole(1, 4) }, rows)
        added += ids.length
        stage.add(ids)
      } else stage.underWay[random.whole(0, stage.underWay.length - 1)]?.finish()
      // A call has ended when its promise is told.
      await new Promise(setImmediate)
      if (stage.underWay.length < MOST_CALLS) expect(stage.mayLeave()).toEqual([])
    }
    expect(stage.done).toBe(added)
    expect(added).toBeGreaterThan(1_000)
  }
})

test('a step is looked at a few times, however many wait for the same row', async () => {
  let looks = 0
  let done = 0
  const step = { parts: [{ key: 'hot', rule: { words: 1 } }] } as unknown as Step
  const counted = () => {
    const get = () => {
      looks += 1
      return ['hot']
    }
    const onDone = () => {
      done += 1
    }
    return Object.defineProperty(new Job(step, ['hot'], onDone), 'ids', { get })
  }
  const calls = new Calls(async (jobs, onDone) => onDone(jobs), MOST_CALLS, 4 * PLAIN)
  calls.add(Array.from({ length: 4_000 }, counted))
  await new Promise(setImmediate)
  expect(done).toBe(4_000)
  expect(looks).toBeLessThan(10 * 4_000)
})

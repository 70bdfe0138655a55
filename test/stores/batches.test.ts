/**
 * Batches under random drivers and call times: every step is sent once and answered once, and no
 * batch is heavier than it may be.
 */
import { describe, expect, test } from 'vitest'
import { RULE } from '../../src/algorithms/algorithm.ts'
import { gcra, slidingLog, slidingWindow } from '../../src/index.ts'
import { Batches, weightOf } from '../../src/stores/remote/batches.ts'
import { Part, Step } from '../../src/stores/step.ts'
import type { Failures, Group, StoreDriver } from '../../src/stores/store.ts'
import { Random } from '../model/random.ts'

const LIMITS = [
  gcra({ rate: '5/h', burst: 5 }),
  slidingWindow({ limit: 5, window: '1h', slots: 100 }),
  slidingLog({ limit: 9_000, window: '1h' }),
]
const RULES = LIMITS.map((limit) => limit[RULE])
const SCOPE = { name: 'api', limits: [] }
const PLAIN = 3

const turns = async (count: number) => {
  for (let k = 0; k < count; k++) await new Promise(setImmediate)
}

/**
 * Answers after some turns of the event loop, and fails in every way that it may, and in some that
 * it may not.
 */
class UnreliableDriver implements StoreDriver {
  readonly shared = true
  readonly sent: (readonly Step[])[] = []
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  apply(steps: readonly Step[]): Promise<Failures | undefined> {
    this.sent.push(steps)
    const how = this.#random.pick(['at once', 'later', 'later', 'later', 'rejects', 'rejects with nothing', 'throws', 'some'])
    if (how === 'throws') throw new Error('thrown')
    return this.#answer(how, steps)
  }

  async #answer(how: string, steps: readonly Step[]): Promise<Failures | undefined> {
    if (how !== 'at once') await turns(this.#random.whole(0, 5))
    if (how === 'rejects') throw new Error('rejected')
    if (how === 'rejects with nothing') throw undefined
    return how === 'some' ? steps.map(() => (this.#random.chance(0.5) ? new Error('one') : undefined)) : undefined
  }

  together(applyAll: () => void): void {
    const how = this.#random.pick(['well', 'well', 'throws', 'throws behind it', 'does nothing'])
    if (how === 'throws') throw new Error('no cork')
    if (how !== 'does nothing') applyAll()
    if (how === 'throws behind it') throw new Error('no uncork')
  }
}

/** When the next call is made, from wherever the last one was. */
const WHEN: readonly ((call: () => void) => void)[] = [
  (call) => call(),
  (call) => call(),
  (call) => queueMicrotask(call),
  (call) => process.nextTick(call),
  (call) => setImmediate(call),
  (call) => setTimeout(call, 0),
  (call) => void Promise.resolve().then(() => process.nextTick(call)),
]

/**
 * Makes calls at all times, some of them as soon as another is answered. Answers how often each was
 * answered, when nothing is left to happen.
 */
async function answersOf(seed: number, calls: number, maxBatch: number, groups: number) {
  const random = new Random(seed)
  const driver = new UnreliableDriver(random)
  const batches = new Batches(driver, maxBatch)
  const answers: number[] = []
  const groupBy = new Map<Step, Group>()
  let made = 0
  const call = () => {
    if (made === calls) return
    const number = made++
    const count = random.pick([1, 1, 1, 2, 10, 70])
    const key = `key ${random.whole(0, 20)}`
    const parts = Array.from({ length: count }, (_, k) => new Part(`limit ${k}`, random.pick(RULES), k % 3 === 2 ? 'other' : key, 1))
    const step = new Step('take', SCOPE, parts, -1, -1, undefined)
    const group = groups === 0 ? undefined : random.whole(1, groups)
    groupBy.set(step, group)
    answers[number] = 0
    const answered = () => {
      answers[number] = (answers[number] as number) + 1
      if (random.chance(0.5)) call()
    }
    batches.run({ step, answered, failed: answered }, group)
  }
  while (made < calls) {
    await new Promise<void>((resolve) => {
      random.pick(WHEN)(() => {
        for (let k = random.pick([1, 1, 2, 5, 40]); k > 0; k--) call()
        resolve()
      })
    })
  }
  // More turns than the driver takes, whatever was called by an answer to an answer.
  await turns(60)
  return { answers, sent: driver.sent, groupBy }
}

describe.each([
  ['one by one', 1, 0],
  ['small batches', 4, 0],
  ['default batches', 64, 0],
  ['groups', 8, 5],
  ['many groups', 64, 40],
])('%s', (_, maxBatch, groups) => {
  test.each(Array.from({ length: 12 }, (_, k) => k))('seed %i', async (seed) => {
    const calls = 400
    const { answers, sent, groupBy } = await answersOf(seed, calls, maxBatch, groups)
    expect(answers).toEqual(new Array(calls).fill(1))
    const steps = sent.flat()
    expect({ sent: steps.length, once: new Set(steps).size }).toEqual({ sent: calls, once: calls })
    for (const batch of sent) {
      const weight = batch.reduce((sum, step) => sum + weightOf(step), 0)
      expect(batch.length === 1 || weight <= maxBatch * PLAIN).toBe(true)
      expect(new Set(batch.map((step) => groupBy.get(step))).size).toBe(1)
    }
  })
})

/**
 * Linearizability of real histories: several threads call one limiter on one key, with everything
 * that a caller sees written down, and between which ticks of a common counter each call lay. There
 * must be an order of the calls that respects the ticks and in which one after the other gives the
 * same answers.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { limitFrom } from '../../src/config/index.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { Random } from '../model/random.ts'
import { Crew, gate } from './crew.ts'

const THREADS = 2
const CALLS = 8
const ROUNDS = 100
/**
 * On a busy machine threads may happen to run one after the other: batches are run until some calls
 * lay side by side.
 */
const MOST_BATCHES = 30
const CAPACITY = 7

interface Call {
  readonly verb: 'consume' | 'peek' | 'refund' | 'reset'
  readonly cost: number
  readonly from: number
  readonly to: number
  readonly answer: { readonly allowed: boolean; readonly remaining: number } | undefined
}

/**
 * What each algorithm is while the clock stands still: so many used, of so many. Tells what is used
 * afterwards, or -1 if that is not the answer.
 */
function after(used: number, { verb, cost, answer }: Call): number {
  if (verb === 'reset') return 0
  if (verb === 'refund') return Math.max(0, used - cost)
  const allowed = used + cost <= CAPACITY
  const next = allowed && verb === 'consume' ? used + cost : used
  return answer?.allowed === allowed && answer.remaining === CAPACITY - next ? next : -1
}

/** Whether some order explains the history. Who began after another had ended comes after it. */
function isLinearizable(history: readonly (readonly Call[])[]): boolean {
  const failed = new Set<string>()
  const explains = (done: readonly number[], used: number): boolean => {
    const id = `${done} ${used}`
    if (failed.has(id)) return false
    const next = history.map((calls, thread) => calls[done[thread] as number])
    if (next.every((call) => call === undefined)) return true
    const firstToEnd = Math.min(...next.map((call) => call?.to ?? Number.POSITIVE_INFINITY))
    for (const [thread, call] of next.entries()) {
      if (call === undefined || call.from > firstToEnd) continue
      const then = after(used, call)
      if (then < 0) continue
      if (
        explains(
          done.map((count, at) => (at === thread ? count + 1 : count)),
          then,
        )
      )
        return true
    }
    failed.add(id)
    return false
  }
  return explains(
    history.map(() => 0),
    0,
  )
}

const isOverlapping = (history: readonly (readonly Call[])[]) => {
  return history.some((calls, one) =>
    history.some((others, two) => one !== two && calls.some((a) => others.some((b) => a.from < b.to && b.from < a.to))),
  )
}

let crew: Crew
beforeAll(() => {
  crew = new Crew(THREADS)
})
afterAll(() => crew.dismiss())

describe.each([
  ['gcra', { rate: '1/s', burst: CAPACITY }],
  ['tokenBucket', { refill: '1/s', capacity: CAPACITY }],
  ['leakyBucket', { leak: '1/s', capacity: CAPACITY }],
  ['fixedWindow', { limit: CAPACITY, window: '1h' }],
  ['slidingWindow', { limit: CAPACITY, window: '1h' }],
  ['slidingLog', { limit: CAPACITY, window: '1h' }],
] as const)('%s', (factory, options) => {
  test('every history of two threads has an order that explains it', async () => {
    const random = new Random(7)
    const verbs = ['consume', 'consume', 'consume', 'peek', 'refund', 'reset'] as const
    const callsOf = () => Array.from({ length: CALLS }, () => [verbs[random.whole(0, verbs.length - 1)], random.whole(1, 3)])
    const plan = Array.from({ length: ROUNDS }, () => Array.from({ length: THREADS }, callsOf))
    const limits = limitFrom({ type: factory, ...options })
    let [batches, overlapping] = [0, 0]
    for (; batches < MOST_BATCHES && overlapping === 0; batches++) {
      const { handle } = sharedStore({ maxKeys: ROUNDS + THREADS, limits })
      const order = {
        handle,
        plan,
        rounds: ROUNDS,
        limits: [factory, options],
        nowUs: 1_700_000_000_000_000,
        ticks: new SharedArrayBuffer(4),
      }
      const answers = await crew.work<Call[][]>(THREADS, 'history', { ...order, gate: Array.from({ length: ROUNDS }, gate) })
      const histories = Array.from({ length: ROUNDS }, (_, round) => answers.map((rounds) => rounds[round] as Call[]))
      expect(histories.filter((history) => !isLinearizable(history))).toEqual([])
      overlapping = histories.filter(isOverlapping).length
    }
    console.log(`${factory}: ${batches * ROUNDS} histories of ${THREADS * CALLS} calls, ${overlapping} with calls at the same time`)
    expect(overlapping).toBeGreaterThan(0)
  })
})

test('a history that no order explains is told apart', () => {
  const call = (from: number, to: number, remaining: number): Call => ({
    verb: 'consume',
    cost: 1,
    from,
    to,
    answer: { allowed: true, remaining },
  })
  expect(isLinearizable([[call(0, 3, 6)], [call(1, 2, 5)]])).toBe(true)
  expect(isLinearizable([[call(0, 3, 6)], [call(1, 2, 6)]])).toBe(false)
  expect(isLinearizable([[call(0, 1, 5)], [call(2, 3, 6)]])).toBe(false)
})

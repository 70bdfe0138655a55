/** Helpers that the tests of waiting share. */

import { afterAll, beforeAll, expect } from 'vitest'
import type { Verdict } from '../../src/algorithms/decide.ts'
import {
  type AsyncStore,
  type Clock,
  createLimiter,
  type LimiterOptions,
  type Limits,
  memoryStore,
  SluiceError,
  type SyncStore,
} from '../../src/index.ts'
import type { Step } from '../../src/stores/store.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { asStore, type StepDriver } from '../support/as-store.ts'
import { Opened } from '../support/opened.ts'

/**
 * Everything that was promised so far has been told: no promise of a limiter is more than a few
 * microtasks deep.
 */
export async function told(): Promise<void> {
  for (let k = 0; k < 16; k++) await Promise.resolve()
}

/**
 * Nobody may be left with a rejection that no one handles, whatever happens to a wait. Called once
 * in each file.
 */
export function noUnhandledRejections(): void {
  const unhandled: unknown[] = []
  const listener = (reason: unknown) => unhandled.push(reason)
  beforeAll(() => {
    process.on('unhandledRejection', listener)
  })
  afterAll(async () => {
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', listener)
    expect(unhandled).toEqual([])
  })
}

export function setUp<const L extends Limits, P extends string = never>(limits: L, options: LimiterOptions<L, SyncStore, P> = {}) {
  const clock = fakeClock()
  const store = memoryStore()
  const limiter = createLimiter<L, SyncStore, P>(limits, { name: 'api', store, clock, ...options })
  /** What the store holds for a key, as text. */
  const held = (key = 'k', limit = 'default') => store.inspect('api', limit, key)
  const moveTo = async (us: number) => {
    clock.setUs(us)
    await told()
  }
  return { clock, store, limiter, held, moveTo }
}

export interface Watched {
  /** The decision of acquire. */
  value: unknown
  error: unknown
  /** Whether it has ended, and how. */
  end: 'waits' | 'resolved' | 'rejected'
  /** Code of the error, if it has one. */
  readonly code: string | undefined
}

/** A promise that can be looked at. */
export function watched(promise: Promise<unknown>, onEnd: () => void = () => {}): Watched {
  const seen: Watched = {
    value: undefined,
    error: undefined,
    end: 'waits',
    get code() {
      return (this.error as { code?: string } | undefined)?.code
    },
  }
  promise.then(
    (value) => {
      Object.assign(seen, { value, end: 'resolved' })
      onEnd()
    },
    (error) => {
      Object.assign(seen, { error, end: 'rejected' })
      onEnd()
    },
  )
  return seen
}

/**
 * A wait for an answer has no end here, and an error concerns one step only: what the limiter does
 * about an ill store is tested elsewhere.
 */
export const PATIENT = { storeTimeoutMs: Number.POSITIVE_INFINITY } as const

/** One step that a slow store was asked for. It is done when told to, and answered when told to. */
export interface Pending {
  readonly step: Step
  /** The store does it: from now on others see it. Does nothing the second time. */
  run(): void
  /** The store does it if it has not, and the answer arrives. */
  answer(): void
  /** The store does it or not, and an error arrives. */
  fail(): void
}

interface SlowDriver extends StepDriver {
  /** Steps whose answer is not there yet, in the order they were sent. */
  readonly pending: Pending[]
  readonly memory: ReturnType<typeof memoryStore>
  /** Does and answers everything, and what comes of it, until nothing more comes. */
  settle(): Promise<void>
}

export type SlowStore = SlowDriver & AsyncStore

/**
 * A store that is far away: nothing happens in it before the test says so. With a clock of its own,
 * it decides by that.
 */
export function slowStore(clock?: Clock): SlowStore {
  const memory = memoryStore()
  const opened = new Opened(memory)
  const pending: Pending[] = []
  const store: SlowDriver = {
    shared: false,
    memory,
    pending,
    apply: (step) =>
      new Promise((resolve, reject) => {
        let verdicts: readonly Verdict[] | undefined
        const end = () => pending.splice(pending.indexOf(entry), 1)
        const entry: Pending = {
          step,
          run() {
            verdicts ??= opened.apply(step, clock?.nowUs()).map(copyOf)
          },
          answer() {
            entry.run()
            end()
            resolve(verdicts as readonly Verdict[])
          },
          fail() {
            end()
            reject(new SluiceError('STORE', 'no connection', { isolated: true }))
          },
        }
        pending.push(entry)
      }),
    async settle() {
      while (pending.length > 0) {
        pending[0]?.answer()
        await told()
      }
    },
  }
  return asStore(store)
}

/** The memory store writes over its verdicts with the next step. */
function copyOf(verdict: Verdict): Verdict {
  return { ...verdict }
}

/**
 * By how much any of these times is too early after any before it, if there must be one interval
 * between one and the next.
 */
export function mostEarly(times: readonly number[], interval: number): number {
  let latest = Number.NEGATIVE_INFINITY
  let most = 0
  for (const [k, time] of times.entries()) {
    const inStep = time - k * interval
    most = Math.max(most, latest - inStep)
    latest = Math.max(latest, inStep)
  }
  return most
}

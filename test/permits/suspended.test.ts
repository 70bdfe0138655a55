/**
 * A machine that is suspended stops its monotonic clock, and the store gives the place away: the
 * wall clock tells, from before the store was asked.
 */
import { afterEach, expect, test, vi } from 'vitest'
import { concurrency, createLimiter, memoryStore, systemClock } from '../../src/index.ts'
import { asyncStore } from '../../src/stores/index.ts'
import type { Step } from '../../src/stores/step.ts'

/** Longer than a busy machine needs. */
const WAIT = { timeout: 30_000 }

afterEach(() => void vi.restoreAllMocks())

/** Of a store whose answers wait until they are let through. */
function heldUp() {
  const memory = memoryStore()
  let letThrough: (() => void) | undefined
  let isHeldUp = false
  const apply = async (steps: readonly Step[]) => {
    for (const step of steps) memory.open(step.scope, systemClock.nowUs).apply(step, true)
    if (isHeldUp) await new Promise<void>((resolve) => (letThrough = resolve))
  }
  const limiter = createLimiter(concurrency({ max: 1, lease: '30s' }), {
    name: 'jobs',
    store: asyncStore({ shared: true, apply }),
    storeTimeoutMs: Number.POSITIVE_INFINITY,
  })
  /** Asks, and the machine is suspended for a while before the answer is read. */
  const across = async <T>(ask: () => Promise<T>, suspendedMs: number): Promise<T> => {
    isHeldUp = true
    const asked = ask()
    await vi.waitFor(() => expect(letThrough).toBeDefined(), WAIT)
    const now = Date.now
    vi.spyOn(Date, 'now').mockImplementation(() => now() + suspendedMs)
    isHeldUp = false
    letThrough?.()
    return asked
  }
  return { limiter, across }
}

test.each([
  ['consume', (limiter: ReturnType<typeof heldUp>['limiter']) => limiter.consume('key')],
  ['acquire', (limiter: ReturnType<typeof heldUp>['limiter']) => limiter.acquire('key')],
] as const)('a lease that ran out between question and answer of %s is known to be lost', async (_, take) => {
  const { limiter, across } = heldUp()
  const permit = await across(() => take(limiter), 31_000)
  expect(permit.allowed).toBe(true)
  expect([permit.held, permit.signal.reason?.code]).toEqual([false, 'LOST'])
  expect(limiter.inflight()).toBe(0)
  limiter.close()
})

test('a lease that still runs after a short suspension is held', async () => {
  const { limiter, across } = heldUp()
  const permit = await across(() => limiter.acquire('key'), 5_000)
  expect([permit.held, permit.signal.aborted]).toEqual([true, false])
  await permit.release()
  limiter.close()
})

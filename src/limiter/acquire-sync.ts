/**
 * `acquire` for threads that may block: it stops the thread until its turn has come, instead of
 * promising to call back. It is reserve and wait, as `acquire` is, so that it queues with all other
 * threads in the order in which the store saw them.
 */
import { onlyKnown } from '../algorithms/rate.ts'
import { SluiceError, shown } from '../errors.ts'
import { anyUntilReleased } from '../stores/step.ts'
import type { SyncStore } from '../stores/store.ts'
import { atItsTime, type Decision } from './decision.ts'
import { type Cost, type Key, timeoutUs } from './input.ts'
import type { Acquired, Limiter, Settleable } from './limiter.ts'
import type { LimitName, Limits } from './options.ts'
import { WaitError } from './wait-error.ts'

export interface AcquireSyncOptions<Name extends string = string, P extends string = string> {
  readonly cost?: Cost<Name> | undefined
  /**
   * Give up if the turn cannot come within this time, in milliseconds: at once where that is known.
   * Default: wait as long as it takes.
   */
  readonly timeoutMs?: number | undefined
  /** Decide by the numbers of this plan. */
  readonly plan?: P | undefined
}

type Reserved<Name extends string> = Decision<Name> & Settleable<Name, SyncStore>

/**
 * Waits its turn and takes. Throws `TIMEOUT` or `IMPOSSIBLE` if a limit ends the wait (nothing was
 * taken then), `UNSUPPORTED` where threads may not block, as in the main thread of a browser, and
 * where the limiter's clock does not move meanwhile. Only for limiters that answer at once: in
 * memory or in shared memory.
 */
export function acquireSync<L extends Limits, P extends string = string>(
  limiter: Limiter<L, SyncStore, P>,
  key: Key<LimitName<L>>,
  options: AcquireSyncOptions<LimitName<L>, P> = {},
): Acquired<LimitName<L>> {
  onlyKnown(options, ['cost', 'timeoutMs', 'plan'], 'the options of acquireSync')
  const { cost = 1, plan } = options
  const withinUs = timeoutUs(options.timeoutMs)
  checkBlocking()
  if (anyUntilReleased(limiter.scope(plan).limits)) {
    throw new SluiceError('UNSUPPORTED', 'acquireSync cannot be used where a limit is held until it is released: use acquire')
  }
  const of = plan === undefined ? {} : { plan }
  const nowUs = () => inUs(atOnce(limiter.peek(key, 0, of)).atMs)
  const startUs = nowUs()
  const reserve = (maxWaitUs: number) =>
    limiter.reserve(key, cost, maxWaitUs === Number.POSITIVE_INFINITY ? of : { ...of, maxWaitMs: maxWaitUs / 1000 })
  const fail = (code: 'TIMEOUT' | 'IMPOSSIBLE', decision: Decision) =>
    new WaitError(code, `a cost of ${shown(cost)} for key ${shown(key)}`, decision)
  for (;;) {
    const leftUs = Math.max(0, startUs + withinUs - nowUs())
    const reserved = reserveWithin(reserve, leftUs)
    if (reserved.outcome === 'impossible') throw fail('IMPOSSIBLE', reserved)
    if (reserved.allowed) {
      // From now on, not from `atMs`: it may have been entered later than now, if the clock stepped
      // back.
      if (reserved.delayMs > 0 && !blockUntil(nowUs() + inUs(reserved.delayMs), nowUs)) {
        reserved.cancel()
        throw stoodStill()
      }
      const isBooked = limiter.scope(plan).limits.every(({ rule }) => rule.algorithm.bookable)
      return acquired(atItsTime(reserved, inUs(reserved.delayMs), isBooked), (nowUs() - startUs) / 1000)
    }
    if (inUs(reserved.retryAfterMs) > leftUs) throw fail('TIMEOUT', reserved)
    if (!blockUntil(inUs(reserved.atMs) + inUs(reserved.retryAfterMs), nowUs)) throw stoodStill()
  }
}

/** Decisions are exact to the microsecond, and whole ones are exact to add up. */
function inUs(ms: number): number {
  return Math.round(ms * 1000)
}

function atOnce(decision: Decision): Decision {
  if (!(decision instanceof Promise)) return decision
  // It was only a question, and nobody waits for the answer.
  decision.catch(() => undefined)
  throw new SluiceError('UNSUPPORTED', 'acquireSync needs a store that answers at once: use acquire')
}

/** A reservation, or a refusal that tells how long it would have to wait in all. */
function reserveWithin<Name extends string>(reserve: (maxWaitUs: number) => Reserved<Name>, leftUs: number): Reserved<Name> {
  const reserved = reserve(leftUs)
  if (reserved.outcome !== 'limited' || leftUs === 0 || leftUs === Number.POSITIVE_INFINITY) return reserved
  // What it says is how much longer than `leftUs`; without a wait it says how long. It is granted
  // if it fits by now.
  return reserve(0)
}

function acquired<Name extends string>(decision: Decision<Name>, waitedMs: number): Acquired<Name> {
  return Object.assign(decision, { waitedMs }) as unknown as Acquired<Name>
}

/** Longer than the coarsest clock takes from one reading to the next. */
const STILL_MS = 200

/**
 * Timers may fire early: the clock is asked again. False if the clock does not move while the
 * thread stands still: then that would be for ever.
 */
function blockUntil(timeUs: number, nowUs: () => number): boolean {
  let thenUs = nowUs()
  while (thenUs < timeUs) {
    block((timeUs - thenUs) / 1000)
    if (nowUs() === thenUs) block(STILL_MS)
    const readUs = nowUs()
    if (readUs === thenUs) return false
    thenUs = readUs
  }
  return true
}

function block(ms: number): void {
  Atomics.wait(nobody(), 0, 0, ms)
}

function stoodStill(): SluiceError {
  return new SluiceError(
    'UNSUPPORTED',
    'the clock of the limiter does not move while the thread is blocked (a fake clock, or one that is read once a turn): use acquire, or another clock',
  )
}

/** A word that nobody else knows of, so that nobody wakes who waits for it. */
function nobody(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4))
}

/**
 * Asks for a wait that ends at once, before anything is taken: where threads may not block it
 * throws nevertheless.
 */
function checkBlocking(): void {
  try {
    Atomics.wait(nobody(), 0, 1, 0)
  } catch (cause) {
    throw new SluiceError(
      'UNSUPPORTED',
      'this thread may not block (in browsers only workers may, on a cross-origin isolated page): use acquire',
      {
        cause,
      },
    )
  }
}

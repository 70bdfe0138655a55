/** Where requests are held until their turn (`maxWaitMs`), and for how many there is room. */
import { SluiceError } from '../errors.ts'
import type { Decision } from '../limiter/decision.ts'
import type { Abortable } from '../limiter/input.ts'
import type { WaitError } from '../limiter/wait-error.ts'
import type { Scope } from '../stores/store.ts'
import type { AnyCost, AnyKey, AnyLimiter } from './limiters.ts'

/** How many may wait at a gate, whatever their keys. */
const MAX_WAITING = 10_000
/** How many may wait for one key, though a limit lets in fewer in the time that they would wait. */
const MIN_QUEUE = 10

interface WaitingRequest {
  readonly limiter: AnyLimiter
  readonly key: AnyKey
  readonly cost: AnyCost
  readonly plan: string | undefined
}

/** How a wait ended: the client left; or a decision, which may be that there is no room to wait. */
export type Waited = 'gone' | { readonly decision: Decision; readonly isRefused: boolean }

export class WaitingRoom {
  readonly #maxWaitMs: number
  /** How many may wait for one key; undefined: as many as can have their turn in time. */
  readonly #maxQueue: number | undefined
  /** How many wait now, for whatever keys. */
  #waiting = 0

  constructor(maxWaitMs: number, maxQueue: number | undefined) {
    this.#maxWaitMs = maxWaitMs
    this.#maxQueue = maxQueue
  }

  /** `giveBack` is called if the client left when its turn had come already. */
  async wait(asked: WaitingRequest, signal: Abortable | undefined, giveBack: (decision: Decision) => void): Promise<Waited> {
    const { limiter, key, cost, plan } = asked
    // A request without a place is let in only if that can be at once.
    const places = this.#hasPlace(asked) ? 1 : 0
    const options = { cost, plan, signal, timeoutMs: places === 0 ? 0 : this.#maxWaitMs }
    this.#waiting += places
    try {
      const decision = await limiter.acquire(key, options)
      if (!signal?.aborted) return { decision, isRefused: false }
      giveBack(decision)
      return 'gone'
    } catch (error) {
      if (signal?.aborted) return 'gone'
      if (!isWaitError(error)) throw error
      const decision = error.decision ?? (await limiter.peek(key, cost, plan === undefined ? undefined : { plan }))
      return { decision, isRefused: true }
    } finally {
      this.#waiting -= places
    }
  }

  #hasPlace({ limiter, key, plan }: WaitingRequest): boolean {
    if (this.#waiting >= MAX_WAITING) return false
    const maxQueue = this.#maxQueue ?? servedWithin(this.#maxWaitMs, limiter.scope(plan))
    return limiter.waiting(key) < maxQueue
  }
}

/**
 * Also of another copy of the package: what a limit ends is told with a decision, if there was one.
 */
function isWaitError(error: unknown): error is WaitError {
  return error instanceof SluiceError && 'decision' in error
}

/**
 * How many of one key can have their turn within so many milliseconds, were none let in before:
 * within a few and the most that may wait at all. For a limit that admits nothing none waits.
 */
function servedWithin(maxWaitMs: number, { limits }: Scope): number {
  const served = limits.map(({ rule: { capacity, windowUs } }) =>
    capacity === 0 ? Number.POSITIVE_INFINITY : capacity * Math.ceil((maxWaitMs * 1000) / windowUs),
  )
  return Math.min(Math.max(MIN_QUEUE, Math.min(...served)), MAX_WAITING)
}

/**
 * Telling others about decisions and about the store's health: the limiter's own `onDecision` and
 * `onHealth`, the listeners that were handed to `listen`, and Node's diagnostics channels
 * `sluice:decision` and `sluice:health` for tools that hold no limiter. When nobody listens, a
 * decision costs one look.
 */
import { invalid } from '../algorithms/rate.ts'
import { warn } from '../errors.ts'
import type { HealthEvent } from '../stores/remote/health.ts'
import type { Decision } from './decision.ts'
import type { Cost, Key } from './input.ts'

export interface DecisionEvent {
  /** The name of the limiter. */
  readonly limiter: string
  readonly verb: 'tryAcquire' | 'consume' | 'reserve' | 'acquire' | 'charge'
  readonly key: Key<string>
  readonly cost: Cost<string>
  readonly plan: string | undefined
  readonly decision: Decision
  /**
   * From the call to its answer, by the limiter's clock, in milliseconds: of `acquire` this is the
   * wait.
   */
  readonly tookMs: number
}

/**
 * A call that ended without a decision: the store failed, a wait was given up before it was
 * decided, or the clock threw as it began.
 */
export interface FailureEvent {
  /** The name of the limiter. */
  readonly limiter: string
  readonly error: unknown
}

/**
 * A permit that was released. One that was lost, because its lease ran out, is told as `ignored`.
 */
export interface ReleaseEvent {
  /** The name of the limiter. */
  readonly limiter: string
  readonly key: Key<string>
  readonly plan: string | undefined
  /** How long it was held, by the limiter's clock, in milliseconds. */
  readonly heldMs: number
  /**
   * The outcome by the holder: it went well, it failed because of too much load, or it says nothing
   * about that.
   */
  readonly outcome: ReleaseOutcome
  /** How many permits of the key this limiter of this process held, this one included. */
  readonly inflight: number
}

export type ReleaseOutcome = 'ok' | 'dropped' | 'ignored'

/**
 * The events of a limiter: `limiter.listen(listener)`. Promises of a listener are not awaited. The
 * first time that a listener throws or rejects, a warning says so; no verb fails for it.
 */
export interface Listener {
  /** Of every decision that takes, or refuses to. */
  onDecision?(event: DecisionEvent): void
  onFailure?(event: FailureEvent): void
  /** When the store goes down or is full, and when it is up again. */
  onHealth?(event: HealthEvent): void
  /** Of every permit that was released. */
  onRelease?(event: ReleaseEvent): void
}

interface Channel {
  readonly hasSubscribers: boolean
  publish(message: unknown): void
}

interface Diagnostics {
  channel(name: string): Channel
}

/**
 * Looked up at run time, so that the core imports nothing from Node and runs elsewhere too; there
 * nobody ever subscribes.
 */
const diagnostics = (
  globalThis as { process?: { getBuiltinModule?: (id: string) => Diagnostics | undefined } }
).process?.getBuiltinModule?.('node:diagnostics_channel')

const NOBODY: Channel = { hasSubscribers: false, publish() {} }
const channel = diagnostics?.channel('sluice:decision') ?? NOBODY
const healthChannel = diagnostics?.channel('sluice:health') ?? NOBODY

/** What a listener may have. */
const HANDLERS = ['onDecision', 'onFailure', 'onHealth', 'onRelease'] as const
type Handler = (typeof HANDLERS)[number]

/** A listener that was added: one that was added twice has two. */
interface Seat {
  readonly listener: Listener
}

/** Functions that have failed, by what they listen to: each is told of once. */
const failing = new Map(HANDLERS.map((name) => [name, new WeakSet<object>()]))

function warnOfFailure(fn: object, name: Handler, limiter: string, error: unknown): void {
  const told = failing.get(name)
  if (told?.has(fn)) return
  told?.add(fn)
  warn('SLUICE_LISTENER', `${name} of limiter '${limiter}' failed: ${String(error)}`, error)
}

export class Listeners {
  #all: readonly Seat[] = []
  /** Whether one of them wants decisions: looked at for each. */
  #hasEars = false
  hearFailures = false
  hearReleases = false

  add(listener: Listener): () => void {
    for (const name of HANDLERS) {
      const fn: unknown = listener[name]
      if (fn !== undefined && typeof fn !== 'function') throw invalid(name, fn, 'must be a function')
    }
    const seat = { listener }
    this.#set([...this.#all, seat])
    return () => this.#set(this.#all.filter((other) => other !== seat))
  }

  get any(): boolean {
    return this.#hasEars || channel.hasSubscribers
  }

  tell(event: DecisionEvent): void {
    this.#tellEach('onDecision', event)
    channel.publish(event)
  }

  tellFailure(event: FailureEvent): void {
    this.#tellEach('onFailure', event)
  }

  tellHealth(event: HealthEvent): void {
    this.#tellEach('onHealth', event)
    healthChannel.publish(event)
  }

  tellRelease(event: ReleaseEvent): void {
    this.#tellEach('onRelease', event)
  }

  #tellEach(name: Handler, event: FailureEvent | HealthEvent | DecisionEvent | ReleaseEvent): void {
    for (const { listener } of this.#all) {
      const failed = (error: unknown) => warnOfFailure(listener[name] as object, name, event.limiter, error)
      try {
        const told: unknown = listener[name]?.(event as never)
        // An async listener that fails would otherwise be an unhandled rejection, which ends a
        // process.
        if (told instanceof Promise) told.catch(failed)
      } catch (error) {
        failed(error)
      }
    }
  }

  #set(seats: readonly Seat[]): void {
    const hear = (name: Handler) => seats.some(({ listener }) => listener[name] !== undefined)
    this.#all = seats
    this.#hasEars = hear('onDecision')
    this.hearFailures = hear('onFailure')
    this.hearReleases = hear('onRelease')
  }
}

/**
 * A listener must have a handler, and a misspelt one must not go unnoticed. It may have properties
 * of its own besides.
 */
export function checkListener(listener: Listener): void {
  if (typeof listener !== 'object' || listener === null) {
    throw invalid('listener', listener, `must be an object with ${HANDLERS.join(', ')}`)
  }
  for (const [name, value] of Object.entries(listener)) {
    if (/^on./.test(name) && typeof value === 'function' && !HANDLERS.includes(name as Handler)) {
      throw invalid('listener', name, `is not told anything: it has ${HANDLERS.join(', ')}`)
    }
  }
  if (HANDLERS.every((name) => listener[name] === undefined)) {
    throw invalid('listener', listener, `must have one of ${HANDLERS.join(', ')}`)
  }
}

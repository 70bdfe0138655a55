/**
 * Telling others about decisions and about the store's health: the limiter's own `onDecision` and `onHealth`, whoever was handed to `listen`, and
 * Node's diagnostics channels `sluice:decision` and `sluice:health` for tools that hold no limiter. When nobody listens, a decision costs one look.
 */
import { warn } from '../errors.ts'
import type { Decision } from './decision.ts'
import type { Cost, Key } from './input.ts'
import type { HealthEvent } from './outage/health.ts'

export interface DecisionEvent {
  /** The name of the limiter. */
  readonly limiter: string
  readonly verb: 'tryAcquire' | 'consume' | 'reserve' | 'acquire'
  readonly key: Key<string>
  readonly cost: Cost<string>
  readonly plan: string | undefined
  readonly decision: Decision
  /** Whether the call was one that waits for its turn: `acquire`, and `tryAcquire` with a time or a signal. */
  readonly waits: boolean
  /** From the call to its answer, by the limiter's clock, in milliseconds. */
  readonly tookMs: number
}

/** A call that ended without a decision: the store failed, or a wait was given up before it was decided. */
export interface FailureEvent {
  /** The name of the limiter. */
  readonly limiter: string
  readonly error: unknown
}

/** Whoever wants to hear of a limiter: `limiter.listen(listener)`. */
export interface Listener {
  /** Of every decision that takes, or refuses to. An error it throws reaches the caller of the verb. */
  onDecision?(event: DecisionEvent): void
  onFailure?(event: FailureEvent): void
  /** When the store goes down and when it is up again. */
  onHealth?(event: HealthEvent): void
}

interface Channel {
  readonly hasSubscribers: boolean
  publish(message: unknown): void
}

interface Diagnostics {
  channel(name: string): Channel
}

/** Looked up at run time, so that the core imports nothing from Node and runs elsewhere too; there nobody ever subscribes. */
const diagnostics = (
  globalThis as { process?: { getBuiltinModule?: (id: string) => Diagnostics | undefined } }
).process?.getBuiltinModule?.('node:diagnostics_channel')

const NOBODY: Channel = { hasSubscribers: false, publish() {} }
const channel = diagnostics?.channel('sluice:decision') ?? NOBODY
const healthChannel = diagnostics?.channel('sluice:health') ?? NOBODY

export class Listeners {
  #all: readonly Listener[] = []
  /** Whether one of them wants decisions: looked at for each. */
  #hasEars = false
  #hearFailures = false

  add(listener: Listener): () => void {
    this.#set([...this.#all, listener])
    return () => this.#set(this.#all.filter((other) => other !== listener))
  }

  get any(): boolean {
    return this.#hasEars || channel.hasSubscribers
  }

  get hearFailures(): boolean {
    return this.#hearFailures
  }

  tell(event: DecisionEvent): void {
    for (const listener of this.#all) listener.onDecision?.(event)
    channel.publish(event)
  }

  tellFailure(event: FailureEvent): void {
    for (const listener of this.#all) listener.onFailure?.(event)
  }

  tellHealth(event: HealthEvent): void {
    try {
      for (const listener of this.#all) listener.onHealth?.(event)
    } catch (error) {
      // Whoever waits for a decision has nothing to do with it.
      warn('SLUICE_LISTENER', `onHealth of limiter '${event.limiter}' threw: ${String(error)}`, error)
    }
    healthChannel.publish(event)
  }

  #set(listeners: readonly Listener[]): void {
    this.#all = listeners
    this.#hasEars = listeners.some(({ onDecision }) => onDecision !== undefined)
    this.#hearFailures = listeners.some(({ onFailure }) => onFailure !== undefined)
  }
}

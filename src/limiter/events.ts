/**
 * Telling others about decisions and about the store's health: the limiter's own `onDecision` and `onHealth`, and Node's diagnostics channels
 * `sluice:decision` and `sluice:health` for tools that were not there when the limiter was made. When nobody listens, a decision costs one look.
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
  readonly #onDecision: ((event: DecisionEvent) => void) | undefined
  readonly #onHealth: ((event: HealthEvent) => void) | undefined

  constructor(onDecision: ((event: DecisionEvent) => void) | undefined, onHealth: ((event: HealthEvent) => void) | undefined) {
    this.#onDecision = onDecision
    this.#onHealth = onHealth
  }

  get any(): boolean {
    return this.#onDecision !== undefined || channel.hasSubscribers
  }

  tell(event: DecisionEvent): void {
    this.#onDecision?.(event)
    if (channel.hasSubscribers) channel.publish(event)
  }

  tellHealth(event: HealthEvent): void {
    try {
      this.#onHealth?.(event)
    } catch (error) {
      // Whoever waits for a decision has nothing to do with it.
      warn('SLUICE_LISTENER', `onHealth of limiter '${event.limiter}' threw: ${String(error)}`, error)
    }
    if (healthChannel.hasSubscribers) healthChannel.publish(event)
  }
}

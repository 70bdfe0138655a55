/**
 * Telling others about decisions: the limiter's own `onDecision`, and Node's diagnostics channel `sluice:decision` for tools that were not
 * there when the limiter was made. When nobody listens, a decision costs one look.
 */
import type { Decision } from './decision.ts'
import type { Cost, Key } from './input.ts'

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

/** Looked up at run time, so that the core imports nothing from Node and runs elsewhere too; there nobody ever subscribes. */
const channel: Channel = (
  globalThis as { process?: { getBuiltinModule?: (id: string) => { channel(name: string): Channel } | undefined } }
).process
  ?.getBuiltinModule?.('node:diagnostics_channel')
  ?.channel('sluice:decision') ?? { hasSubscribers: false, publish() {} }

export class Listeners {
  readonly #onDecision: ((event: DecisionEvent) => void) | undefined

  constructor(onDecision: ((event: DecisionEvent) => void) | undefined) {
    this.#onDecision = onDecision
  }

  get any(): boolean {
    return this.#onDecision !== undefined || channel.hasSubscribers
  }

  tell(event: DecisionEvent): void {
    this.#onDecision?.(event)
    if (channel.hasSubscribers) channel.publish(event)
  }
}

/** The log of the service, for its operators. */
import type { Logger } from 'pino'
import type { StoreState } from './running/store-watch.ts'
import type { DecisionEvent, Health, RateChange, SluiceError } from './sluice.ts'

export interface Journal {
  /** A request failed, and it is our fault. */
  failed(error: unknown): void
  /** The client of the store lost its connection, or got none: it says so at every attempt. */
  connectionFailed(error: Error): void
  /** The store began to answer, or ceased to. */
  storeChanged(state: StoreState): void
  /** The same, as one limiter sees it: it may have less patience. */
  limiterChanged(limiter: string, health: Health): void
  /** A single decision failed: the next one may not. */
  decisionFailed(limiter: string, error: SluiceError): void
  /** A rate has followed the load. */
  limitMoved(change: RateChange): void
  /**
   * Hits were refused by a rule that is asked with 0 hits first: they may have been used already,
   * at the end of a stream.
   */
  notCharged(rule: string, hits: number): void
  /** Undefined: there is no listener. */
  readonly decided: ((limiter: string, event: DecisionEvent, isShadow: boolean) => void) | undefined
}

/** A key that something else has written to fails at every call. */
const FAILURES_EVERY_MS = 10_000

export function journalIn(log: Logger, nowMs: () => number = () => performance.now()): Journal {
  const downSinceMs = new Map<string, number>()
  const toldAtMs = new Map<string, number>()
  let lastReason = ''
  /** How long something was down, when it is up. */
  const downMs = (name: string, state: 'up' | 'down'): number => {
    const since = downSinceMs.get(name) ?? nowMs()
    if (state === 'down') downSinceMs.set(name, since)
    else downSinceMs.delete(name)
    return Math.round(nowMs() - since)
  }
  return {
    failed: (error) => log.error({ err: error }, 'a request failed by our fault'),
    connectionFailed({ message }) {
      if (message !== lastReason) log.warn({ reason: message }, 'the store cannot be reached')
      lastReason = message
    },
    storeChanged({ state, error }) {
      const ms = downMs('', state)
      if (state === 'down') log.warn({ reason: error?.message }, 'the store does not answer')
      else log.info({ downMs: ms }, 'the store answers again')
      if (state === 'up') lastReason = ''
    },
    limiterChanged(limiter, { state, error }) {
      const ms = downMs(limiter, state)
      if (state === 'down')
        log.warn({ limiter, reason: error?.message }, 'a limiter has no answer from the store: its failure policy decides')
      else log.info({ limiter, downMs: ms }, 'a limiter has answers from the store again')
    },
    decisionFailed(limiter, { message }) {
      if (nowMs() - (toldAtMs.get(limiter) ?? Number.NEGATIVE_INFINITY) < FAILURES_EVERY_MS) return
      toldAtMs.set(limiter, nowMs())
      log.warn({ limiter, reason: message }, 'the store failed at a decision')
    },
    limitMoved: ({ limiter, limit, from, to, signal, reason }) =>
      log.info({ limiter, limit, from, to, signal, reason }, 'a limit has followed the load: permits per second'),
    notCharged: (rule, hits) =>
      log.warn(
        { rule, hits },
        'hits did not fit and were not charged: if they are reported at the end of a stream, the rule wants charge: true',
      ),
    decided: log.isLevelEnabled('debug') ? (limiter, event, isShadow) => log.debug(lineOf(limiter, event, isShadow), 'decided') : undefined,
  }
}

function lineOf(limiter: string, { verb, key, cost, plan, decision, tookMs }: DecisionEvent, shadow: boolean): object {
  const { outcome, policy, remaining, retryAfterMs, degraded } = decision
  return { limiter, verb, key, cost, plan, outcome, policy, remaining, retryAfterMs, degraded, shadow, tookMs }
}

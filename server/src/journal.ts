/** The log of the service, for its operators. */
import type { Logger } from 'pino'
import type { StoreState } from './running/store-watch.ts'
import type { DecisionEvent, Health, RateChange, SluiceError } from './sluice.ts'

export interface Journal {
  /** A request failed, and it is our fault. */
  failed(error: unknown): void
  /** A connection was refused: its client had sent too many requests before the first answer. */
  flooded(address: string): void
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

/**
 * What clients can cause is told once in so long. `more` says how often it has happened since the
 * line before.
 */
const EVERY_MS = 10_000

export function journalIn(log: Logger, nowMs: () => number = () => performance.now()): Journal {
  const downSinceMs = new Map<string, number>()
  const told = new Map<string, { readonly atMs: number; more: number }>()
  const full = new Set<string>()
  let lastReason = ''
  /** How long something was down, when it is up. */
  const downMs = (name: string, state: Health['state']): number => {
    const since = downSinceMs.get(name) ?? nowMs()
    if (state === 'up') downSinceMs.delete(name)
    else downSinceMs.set(name, since)
    return Math.round(nowMs() - since)
  }
  /** Calls `tell` unless the same was told lately. */
  const seldom = (what: string, tell: (more: { readonly more?: number }) => void): void => {
    const last = told.get(what)
    if (last !== undefined && nowMs() - last.atMs < EVERY_MS) {
      last.more += 1
      return
    }
    told.set(what, { atMs: nowMs(), more: 0 })
    tell(last === undefined || last.more === 0 ? {} : { more: last.more })
  }
  return {
    // By its kind: what a message says may come from the client.
    failed: (error) =>
      seldom(`failed: ${error instanceof Error ? error.name : ''}`, (more) =>
        log.error({ err: error, ...more }, 'a request failed by our fault'),
      ),
    flooded: (address) =>
      seldom('flooded', (more) => log.warn({ address, ...more }, 'a connection was refused: it had too many unanswered requests')),
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
      // Limits that callers bring along are many limiters under one name.
      const before = full.has(limiter) ? 'full' : downSinceMs.has(limiter) ? 'down' : 'up'
      if (state === before) return
      const ms = downMs(limiter, state)
      const wasFull = full.delete(limiter)
      if (state === 'full') full.add(limiter)
      if (state === 'down')
        log.warn({ limiter, reason: error?.message }, 'a limiter has no answer from the store: its failure policy decides')
      else if (state === 'full') log.warn({ limiter, reason: error?.message }, 'a limiter has no room for new keys')
      else if (wasFull) log.info({ limiter, fullMs: ms }, 'a limiter has room for new keys again')
      else log.info({ limiter, downMs: ms }, 'a limiter has answers from the store again')
    },
    // A key that something else has written to fails at every call.
    decisionFailed: (limiter, { message }) =>
      seldom(`decision: ${limiter}`, (more) => log.warn({ limiter, reason: message, ...more }, 'the store failed at a decision')),
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
  const reason = decision.allowed ? undefined : decision.reason
  return { limiter, verb, key, cost, plan, outcome, reason, policy, remaining, retryAfterMs, degraded, shadow, tookMs }
}

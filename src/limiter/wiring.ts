/**
 * How a limiter is joined with its store, by its options: the circuit breaker of a remote one, and
 * the queues in front of any.
 */
import type { Clock } from '../clock/clock.ts'
import { Queue } from '../stores/queue/queue.ts'
import { WaitQueues } from '../stores/queue/wait-queues.ts'
import type { AsyncStore } from '../stores/remote/async-store.ts'
import type { FailurePolicy } from '../stores/remote/fallback.ts'
import type { GuardedStore } from '../stores/remote/guarded-store.ts'
import type { Health } from '../stores/remote/health.ts'
import type { SyncStore } from '../stores/store.ts'

const DEFAULT_STORE_TIMEOUT_MS = 1_000
/** A waiting call takes 2 to 6 kB. */
const DEFAULT_MAX_QUEUE = 10_000
const DEFAULT_MAX_WAITING = 25_000

interface OutageOptions {
  readonly onStoreError?: FailurePolicy
  readonly storeTimeoutMs?: number
  readonly localShare?: number
}

export function connected(store: AsyncStore, clock: Clock, options: OutageOptions, onHealth: (health: Health) => void): GuardedStore {
  const { onStoreError = 'throw', storeTimeoutMs = DEFAULT_STORE_TIMEOUT_MS, localShare = 1 } = options
  return store.connect({ clock, timeoutUs: Math.ceil(storeTimeoutMs * 1000), onStoreError, localShare, onHealth })
}

interface QueueOptions {
  readonly maxQueue?: number
  readonly maxWaiting?: number
  readonly unref?: boolean
}

/** `storeClock`: what a remote store is told of the time; undefined if it goes by its own. */
export function waitingAt(
  store: SyncStore | GuardedStore,
  clock: Clock,
  storeClock: Clock | undefined,
  maxAheadUs: number,
  { maxQueue = DEFAULT_MAX_QUEUE, maxWaiting = Math.max(DEFAULT_MAX_WAITING, maxQueue), unref = false }: QueueOptions,
): WaitQueues {
  const remote = store.mode === 'sync' ? undefined : store
  return new WaitQueues(store.queue ?? Queue, {
    clock,
    store: remote,
    storeClock: remote && storeClock,
    isShared: store.shared,
    maxQueue,
    maxWaiting,
    maxAheadUs,
    keepAlive: !unref,
  })
}

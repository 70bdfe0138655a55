/** Shared by the queues of a limiter: clock, timers, store and bounds. */
import type { Alarms } from '../../clock/alarms.ts'
import type { Clock } from '../../clock/clock.ts'
import type { GuardedStore } from '../remote/guarded-store.ts'
import type { OpenStates, Scope } from '../store.ts'
import type { Queue } from './queue.ts'
import type { Signals } from './signals.ts'

/** The host of all queues of a limiter. */
export interface Room {
  /** The clock of this process. */
  readonly clock: Clock
  /**
   * Of a remote store: the store, and what it is told of the time; undefined if it goes by its own.
   */
  readonly store: GuardedStore | undefined
  readonly storeClock: Clock | undefined
  /** Whether other processes or threads may book at the same store. */
  readonly isShared: boolean
  /** How many may wait for one key, and for all together. */
  readonly maxQueue: number
  readonly maxWaiting: number
  /** How far ahead permits may be booked. */
  readonly maxAheadUs: number
  readonly alarms: Alarms
  readonly signals: Signals
  /** Those in which a caller waits. */
  readonly queues: Map<string, Queue>
  /** How many wait in all queues. */
  waiters: number
}

/**
 * The numbers that all of one queue are decided by, and the states that a synchronous store holds
 * for them.
 */
export interface QueuePlan {
  readonly scope: Scope
  readonly states: OpenStates | undefined
}

export type QueueClass = new (room: Room, id: string, planName: string | undefined, plan: QueuePlan) => Queue

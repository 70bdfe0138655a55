/**
 * The waiting callers of one limiter: a queue for each key, one timer for all, and the ways out.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import { Alarm, Alarms } from '../../clock/alarms.ts'
import type { Part } from '../store.ts'
import type { Queue } from './queue.ts'
import type { QueueClass, QueuePlan, Room } from './room.ts'
import { Signals } from './signals.ts'
import type { Waiter } from './waiter.ts'

/** How its queues are, apart from who waits in them. */
export type WaitQueuesOptions = Omit<Room, 'alarms' | 'signals' | 'queues' | 'waiters'> & {
  /** Whether a process stays alive for its waiters. */
  readonly keepAlive: boolean
}

export class WaitQueues {
  readonly #room: Room
  readonly #Queue: QueueClass
  /** Under which a caller has waited. */
  readonly #plans = new Set<string | undefined>()

  constructor(Queue: QueueClass, options: WaitQueuesOptions) {
    const { clock, keepAlive } = options
    this.#Queue = Queue
    this.#room = { ...options, alarms: new Alarms(clock, keepAlive), signals: new Signals(), queues: new Map(), waiters: 0 }
  }

  /**
   * Waits in the queue of its keys, until it is known how that ends. It fails with the reason of
   * the signal that ends the wait, with the store's error, with that of `close`, or with what the
   * clock threw when the wait began. The promise is never rejected.
   */
  wait<W extends Waiter>(waiter: W, planName: string | undefined, plan: QueuePlan): Promise<W> {
    return new Promise((resolve) => {
      waiter.resolve = resolve
      waiter.queue = this.#queueFor(waiter.parts, planName, plan)
      this.#room.waiters += 1
      try {
        this.#begin(waiter)
      } catch (error) {
        if (waiter.state !== 'gone') waiter.giveUp(error)
      }
    })
  }

  #begin(waiter: Waiter): void {
    const { queue, deadlineUs, signals } = waiter
    const aborted = signals.find((signal) => signal.aborted)
    if (aborted === undefined) queue.enter(waiter)
    else waiter.fail(aborted.reason)
    if (waiter.state === 'gone') return
    for (const signal of signals) this.#room.signals.watch(signal, waiter)
    if (deadlineUs === Number.POSITIVE_INFINITY) return
    // The waiter has it before it is set, and stops it however its wait ends.
    waiter.alarm = new Alarm(deadlineUs, () => queue.timeOut(waiter))
    this.#room.alarms.add(waiter.alarm)
  }

  get isEmpty(): boolean {
    return this.#room.queues.size === 0
  }

  all(): Queue[] {
    return [...this.#room.queues.values()]
  }

  /** The queue of these keys under a plan, if anybody waits there. */
  queue(parts: readonly Part[], plan: string | undefined): Queue | undefined {
    return this.#room.queues.get(queueId(parts, plan))
  }

  /** The queues of these keys, under whatever plan. */
  queues(parts: readonly Part[]): Queue[] {
    return [...this.#plans].map((plan) => this.queue(parts, plan)).filter((queue) => queue !== undefined)
  }

  /** Something of a key that all limits have may be free. */
  tryAgain(key: string): void {
    for (const plan of this.#plans) this.#room.queues.get(idOf(key, plan))?.tryAgain()
  }

  /**
   * Permits that were given back serve the waiters: those booked under these numbers move up, by no
   * more than one of their calls can take; the others try again.
   */
  given(parts: readonly Part[], verdicts: readonly Verdict[], plan: string | undefined): void {
    if (this.isEmpty || verdicts[0]?.degraded) return
    const own = this.queue(parts, plan)
    // Read now: a synchronous store overwrites its verdicts with the next step.
    const costs = parts.map(({ rule }, k) => Math.min(verdicts[k]?.given ?? 0, rule.capacity))
    for (const queue of this.queues(parts)) {
      if (queue === own) queue.moveUp(costs)
      else queue.tryAgain()
    }
  }

  #queueFor(parts: readonly Part[], planName: string | undefined, plan: QueuePlan): Queue {
    const id = queueId(parts, planName)
    const known = this.#room.queues.get(id)
    if (known !== undefined) return known
    const queue = new this.#Queue(this.#room, id, planName, plan)
    this.#room.queues.set(id, queue)
    this.#plans.add(planName)
    return queue
  }
}

/**
 * One queue for each plan and key; where the limits have keys of their own, for each combination of
 * them.
 */
function queueId(parts: readonly Part[], plan: string | undefined): string {
  const [{ key }] = parts as [Part]
  if (parts.every((part) => part.key === key)) return idOf(key, plan)
  return JSON.stringify([plan ?? null, ...parts.map((part) => part.key)])
}

/** Mostly the key itself: one that looks like the others is written as they are. */
function idOf(key: string, plan: string | undefined): string {
  return plan === undefined && key[0] !== '[' ? key : JSON.stringify([plan ?? null, key])
}

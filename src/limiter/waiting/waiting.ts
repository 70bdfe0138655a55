/** Everybody who waits at one limiter: a queue for each key, one timer for all, and the ways out. */

import { type Alarm, Alarms } from '../../clock/alarms.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Part } from '../../stores/store.ts'
import type { Abortable } from '../input.ts'
import type { Desk } from './desk.ts'
import { Queue } from './queue.ts'
import { Signals } from './signals.ts'
import { type Turn, Waiter, type WaitRequest } from './waiter.ts'

export interface WaitBounds {
  /** How long the caller is willing to wait; Infinity without an end. */
  readonly timeoutUs: number
  readonly signal: Abortable | undefined
  /** What else ends the wait: nobody is there any more to be told why. */
  readonly ended: Abortable | undefined
}

export class Waiting {
  readonly #desk: Desk
  readonly #alarms: Alarms
  readonly #queues = new Map<string, Queue>()
  #signals: Signals | undefined = undefined
  readonly #maxWaiting: number
  #waiters = 0

  /** `maxWaiting`: how many may wait in all queues together. */
  constructor(desk: Desk, clock: Clock, keepAlive: boolean, maxWaiting: number) {
    this.#desk = desk
    this.#maxWaiting = maxWaiting
    this.#alarms = new Alarms(clock, keepAlive)
  }

  /** Waits in the queue of its keys. Rejects with a `WaitError` if a limit ends the wait, with the signal's reason if that does. */
  wait(request: WaitRequest, { timeoutUs, signal, ended }: WaitBounds): Promise<Turn> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted || ended?.aborted) {
        reject(reasonOf(signal, ended))
        return
      }
      const queue = this.#queueFor(request)
      const deadlineUs = this.#desk.nowUs() + timeoutUs
      let alarm: Alarm | undefined
      const abort = () => {
        this.#leave(queue, waiter, () => waiter.fail(reasonOf(signal, ended)))
        return queue
      }
      const onEnd = () => {
        this.#waiters -= 1
        if (alarm !== undefined) this.#alarms.stop(alarm)
        signal && this.#signals?.unwatch(signal, abort)
        ended && this.#signals?.unwatch(ended, abort)
        queue.endIfIdle()
      }
      const waiter = new Waiter(request, deadlineUs, { onEnd, resolve, reject })
      this.#waiters += 1
      waiter.isOneTooMany = this.#waiters > this.#maxWaiting
      queue.enter(waiter)
      if (waiter.state === 'gone') return
      if (signal !== undefined || ended !== undefined) this.#signals ??= new Signals()
      signal && this.#signals?.watch(signal, abort)
      ended && this.#signals?.watch(ended, abort)
      const timeOut = () => {
        // At the deadline is still in time, if that is when it may try again.
        queue.goOn()
        // A booked waiter is served in time: it was booked no further than its deadline, unless the event loop stood still.
        if (waiter.state === 'booked' && !queue.isBehind) return
        // Who may not wait at all is told by the answer, however long that is under way.
        waiter.isOverdue = timeoutUs === 0 && waiter.questions > 0
        if (waiter.isOverdue) return
        this.#leave(queue, waiter, () => waiter.refuse('TIMEOUT'))
        queue.goOn()
      }
      if (deadlineUs < Number.POSITIVE_INFINITY) alarm = this.#alarms.set(deadlineUs, timeOut)
    })
  }

  get isEmpty(): boolean {
    return this.#queues.size === 0
  }

  /** How many wait in all queues. */
  count(): number {
    let count = 0
    for (const { size } of this.#queues.values()) count += size
    return count
  }

  /** The queue of these keys under a plan, if anybody waits there. */
  queue(parts: readonly Part[], plan: string | undefined): Queue | undefined {
    return this.#queues.get(queueId(parts, plan))
  }

  /** The queues of these keys, under whatever plan. */
  queues(parts: readonly Part[], plans: Iterable<string>): Queue[] {
    return [undefined, ...plans].map((plan) => this.queue(parts, plan)).filter((queue) => queue !== undefined)
  }

  /** Changes the numbers: what is booked is given back under the old ones, and everybody asks anew, in order, under the new. */
  renumber(change: () => void): void {
    const queues = [...this.#queues.values()]
    for (const queue of queues) queue.unbook()
    change()
    for (const queue of queues) queue.renumber()
  }

  /** Ends every wait. */
  close(reason: () => unknown): void {
    for (const queue of [...this.#queues.values()]) queue.close(reason)
  }

  #leave(queue: Queue, waiter: Waiter, end: () => void): void {
    if (waiter.state === 'gone') return
    queue.leave(waiter)
    end()
  }

  #queueFor({ parts, plan }: WaitRequest): Queue {
    const id = queueId(parts, plan)
    const known = this.#queues.get(id)
    if (known !== undefined) return known
    // An idle queue may still hear from the store, when another has long taken its place.
    const queue: Queue = new Queue(this.#desk, plan, this.#alarms, () => {
      if (this.#queues.get(id) === queue) this.#queues.delete(id)
    })
    this.#queues.set(id, queue)
    return queue
  }
}

/** One queue for each plan and key; where the limits have keys of their own, for each combination of them. */
function queueId(parts: readonly Part[], plan: string | undefined): string {
  const [{ key }] = parts as [Part]
  const isOne = parts.every((part) => part.key === key)
  if (isOne && plan === undefined) return `=${key}`
  return JSON.stringify([plan ?? null, ...(isOne ? [key] : parts.map((part) => part.key))])
}

function reasonOf(signal: Abortable | undefined, ended: Abortable | undefined): unknown {
  return signal?.aborted ? signal.reason : ended?.reason
}

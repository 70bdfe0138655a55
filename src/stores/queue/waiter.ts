/** One call that waits, from its first question until it has got its turn, was refused, or left. */
import type { Ticket } from '../../algorithms/decide.ts'
import type { Alarm } from '../../clock/alarms.ts'
import { anyUntilReleased } from '../step.ts'
import type { Part } from '../store.ts'
import type { Line } from './line.ts'
import type { Answer } from './question.ts'
import type { Queue } from './queue.ts'
import type { Abortable } from './signals.ts'

/** Why a limit ends a wait. */
export type WaitRefusal = 'TIMEOUT' | 'IMPOSSIBLE' | 'QUEUE_FULL'

/** The result of a wait. */
export interface Turn {
  /** Undefined if its turn has come. */
  readonly refusal: WaitRefusal | 'FAILED' | undefined
  /** Why it failed. */
  readonly reason: unknown
  /** The last answer to it; undefined if it ended before one came. */
  readonly answer: Answer | undefined
  /**
   * How long after the decision its time came: maybe less than it says, because a caller before it
   * left.
   */
  readonly delayUs: number
  /** When its caller was told, by the clock of this process. */
  readonly servedUs: number
}

/** One for all limits, or one for each by name. */
type Named<Name extends string, T> = T | Readonly<Record<Name, T>>

/**
 * Of those who wait there may be many: so what a call needs when its turn has come is in this one
 * object, and in no closure.
 */
export class Waiter<Name extends string = string> {
  declare readonly key: Named<Name, string>
  declare readonly cost: Named<Name, number>
  /** What its caller wants to do with what it took. */
  declare readonly fn: ((acquired: never) => unknown) | undefined
  declare parts: readonly Part[]
  /** By the clock of this process. */
  declare readonly sinceUs: number
  declare readonly deadlineUs: number
  declare readonly signals: readonly Abortable[]
  /** Where it waits, and what tells its caller how that ended. */
  declare queue: Queue
  declare resolve: (waiter: this) => void
  /** In which order it came to its queue. */
  number = 0
  /**
   * - `asking`: the store was asked to take for it, and has not answered yet.
   * - `booked`: permits are held for it, and it waits for their time.
   * - `outside`: nothing is held for it.
   * - `gone`: got its turn, was refused, or left.
   */
  state: 'asking' | 'booked' | 'outside' | 'gone' = 'asking'
  /** The last answer to it, or to another whose permits it has now. */
  answer: Answer | undefined
  /** Whether as many as may waited at the limiter already when it came. */
  isOneTooMany = false
  /** When those before it can have had their turns, at the earliest. */
  notBeforeUs = 0
  /** In which it stands, and between whom. */
  line: Line | undefined
  before: Waiter | undefined
  behind: Waiter | undefined
  /** Rings at its deadline. */
  alarm: Alarm | undefined
  /** How many of its questions the store has not answered yet. */
  questions = 0
  /** Its place in line at each limit that has one; undefined until it has one. */
  places: readonly (Ticket | undefined)[] | undefined
  /** Its time is up, but the answer to its question may still be yes. */
  isOverdue = false
  /** How it ended. */
  turn: Turn | undefined

  constructor(
    key: Named<Name, string>,
    cost: Named<Name, number>,
    parts: readonly Part[],
    sinceUs: number,
    timeoutUs: number,
    signals: readonly Abortable[],
    fn: ((acquired: never) => unknown) | undefined,
  ) {
    this.key = key
    this.cost = cost
    this.fn = fn
    this.parts = parts
    this.sinceUs = sinceUs
    this.deadlineUs = sinceUs + timeoutUs
    this.signals = signals
  }

  /**
   * Whether it waits for others to release: then it has a place in line at the store, as soon as it
   * is the first here.
   */
  get awaitsRelease(): boolean {
    return anyUntilReleased(this.parts)
  }

  asksForTheSameAs(parts: readonly Part[]): boolean {
    return this.parts.every(({ cost }, k) => cost === parts[k]?.cost)
  }

  /** Whether others can be before it: nothing is had at once, and too much never. */
  get canBeBehindOthers(): boolean {
    return this.parts.some(({ cost }) => cost > 0) && this.parts.every(({ cost, rule }) => cost <= rule.capacity)
  }

  refuse(refusal: WaitRefusal): void {
    this.serve(0, 0, refusal)
  }

  fail(reason: unknown): void {
    this.serve(0, 0, 'FAILED', reason)
  }

  /**
   * Takes it out of its queue, for a reason that is not a limit's. If a caller's clock throws, what
   * it held drains, but it is in nobody's way.
   */
  giveUp(reason: unknown): void {
    try {
      this.queue.leave(this)
    } catch {}
    this.fail(reason)
  }

  /** The wait has ended: its caller is told in a microtask of its own. */
  serve(delayUs: number, servedUs: number, refusal?: Turn['refusal'], reason?: unknown): void {
    const { room } = this.queue
    this.state = 'gone'
    this.turn = { refusal, reason, answer: this.answer, delayUs, servedUs }
    // One that waited long is old: what it still referred to would be swept with the old only.
    this.answer = undefined
    room.waiters -= 1
    if (this.alarm !== undefined) room.alarms.stop(this.alarm)
    for (const signal of this.signals) room.signals.unwatch(signal, this)
    this.queue.endIfIdle()
    this.resolve(this)
  }
}

/**
 * Whether permits can be booked ahead: of every limit, and all of one key, so that one queue sees
 * all who wait for them.
 */
export function mayBook(parts: readonly Part[]): boolean {
  const [{ key }] = parts as [Part]
  return parts.every((part) => part.rule.algorithm.bookable && part.key === key)
}

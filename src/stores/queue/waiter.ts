/** One call that waits, from its first question until it has got its turn, was refused, or left. */
import type { Rule } from '../../algorithms/algorithm.ts'
import type { Ticket, Verdict } from '../../algorithms/decide.ts'
import type { Alarm } from '../../clock/alarms.ts'
import { anyUntilReleased } from '../step.ts'
import type { Part, Scope } from '../store.ts'
import type { HeldUp } from './claim.ts'
import type { Queue } from './queue.ts'
import type { Abortable } from './signals.ts'

/** Why a limit ends a wait. */
export type WaitRefusal = 'TIMEOUT' | 'IMPOSSIBLE' | 'QUEUE_FULL'

/** The result of a wait, unless it fails. */
export interface Turn {
  /** Undefined if its turn has come. */
  readonly refusal: WaitRefusal | undefined
  /** The last answer to it; undefined if it ended before one came. */
  answer: Answer | undefined
  /**
   * How long after the decision its time came: maybe less than it says, because a caller before it
   * left.
   */
  readonly delayUs: number
  /** When its caller was told, by the clock of this process. */
  readonly servedUs: number
}

/** The answer of a store. */
export interface Answer {
  /** The limits by which the store answered. */
  readonly limits: Scope['limits']
  readonly verdicts: readonly Verdict[]
  /**
   * When the store answered, and when the caller may then act, both by the clock of this process.
   */
  readonly answeredUs: number
  readonly bookedForUs: number
  /** Before the store was asked: what it lends counts from then at the latest. */
  readonly askedUs: number
}

/** The permits that an answer took: under which numbers, and when. */
export interface Took {
  readonly limits: readonly { readonly rule: Rule }[]
  readonly verdicts: readonly Verdict[]
}

export class Waiter {
  declare readonly queue: Queue
  declare readonly deadlineUs: number
  declare parts: readonly Part[]
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
  /** Whether it has no time to wait. */
  mayNotWait = false
  /** When those before it can have had their turns, at the earliest. */
  notBeforeUs = 0
  before: Waiter | undefined
  behind: Waiter | undefined
  /** The functions that end the wait. */
  alarm: Alarm | undefined
  signals: readonly Abortable[] = []
  /** How many of its questions the store has not answered yet. */
  questions = 0
  /** Its place in line at each limit that has one; undefined until it has one. */
  places: readonly (Ticket | undefined)[] | undefined
  /** Its time is up, but the answer to its question may still be yes. */
  isOverdue = false
  /** Where nothing can be booked: how long it has been the first and was refused. */
  heldUp: HeldUp | undefined
  /** How it ends for its caller. */
  readonly #resolve: (turn: Turn) => void
  readonly #reject: (reason: unknown) => void

  constructor(queue: Queue, parts: readonly Part[], deadlineUs: number, resolve: (turn: Turn) => void, reject: (reason: unknown) => void) {
    this.queue = queue
    this.parts = parts
    this.deadlineUs = deadlineUs
    this.#resolve = resolve
    this.#reject = reject
  }

  get mayBook(): boolean {
    return mayBook(this.parts)
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

  serve(delayUs: number, servedUs: number, refusal?: WaitRefusal): void {
    const { answer } = this
    this.#gone()
    this.#resolve({ refusal, answer, delayUs, servedUs })
  }

  refuse(refusal: WaitRefusal): void {
    this.serve(0, 0, refusal)
  }

  fail(reason: unknown): void {
    this.#gone()
    this.#reject(reason)
  }

  #gone(): void {
    const { room } = this.queue
    this.state = 'gone'
    // One that waited long is old: what it still referred to would be swept with the old only.
    this.answer = undefined
    room.waiters -= 1
    if (this.alarm !== undefined) room.alarms.stop(this.alarm)
    for (const signal of this.signals) room.signals.unwatch(signal, this)
    this.queue.endIfIdle()
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

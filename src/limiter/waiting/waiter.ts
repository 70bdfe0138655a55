/** One call that waits, from its first question until it has got its turn, was refused, or left. */
import type { Verdict } from '../../algorithms/decide.ts'
import type { Part } from '../../stores/store.ts'
import type { Decision } from '../decision.ts'
import { type Taken, takenOf } from '../taken.ts'
import { type Refusal, WaitError } from './wait-error.ts'

export interface WaitRequest {
  /** What the caller asks for. */
  readonly parts: readonly Part[]
  /** The same by the numbers that are in force now. */
  renumbered(parts: readonly Part[]): readonly Part[]
  /** Numbers to decide by: the name of a plan. */
  readonly plan: string | undefined
  /** The decision that verdicts stand for. */
  read(verdicts: readonly Verdict[]): Decision
  /** What a message says of the call. */
  readonly what: () => string
}

/** What a wait ends with. */
export interface Turn {
  readonly decision: Decision
  /** How long after the decision its time came: maybe less than it says, because somebody before left. */
  readonly delayUs: number
  /** When its caller was told, by the clock of this process. */
  readonly servedUs: number
}

/** How a wait ends for its caller. */
export interface Settle {
  onEnd(waiter: Waiter): void
  resolve(turn: Turn): void
  reject(reason: unknown): void
}

/**
 * - `asking`: the store has not answered yet.
 * - `booked`: permits are held for it, and it waits for their time.
 * - `outside`: nothing is held for it.
 * - `gone`: got its turn, was refused, or left.
 */
export type WaiterState = 'asking' | 'booked' | 'outside' | 'gone'

export class Waiter {
  readonly request: WaitRequest
  readonly deadlineUs: number
  parts: readonly Part[]
  /** In which order it came to its queue. */
  number = 0
  state: WaiterState = 'asking'
  /** When the store answered last, and when the waiter may then act, both by the clock of this process. */
  answeredUs = 0
  bookedForUs = 0
  /** What that answer took, by the store's time. */
  taken: Taken = []
  /** Its time is up, but the answer to its question may still be yes. */
  isOverdue = false
  before: Waiter | undefined = undefined
  behind: Waiter | undefined = undefined
  #decision: Decision | undefined = undefined
  readonly #settle: Settle

  constructor(request: WaitRequest, deadlineUs: number, settle: Settle) {
    this.request = request
    this.deadlineUs = deadlineUs
    this.parts = request.parts
    this.#settle = settle
  }

  /** Whether permits can be booked ahead for it: every limit can, and all are of one key, so that one queue sees all who wait for them. */
  get mayBook(): boolean {
    const [{ key }] = this.parts as [Part]
    return this.parts.every((part) => part.rule.algorithm.bookable && part.key === key)
  }

  asksForTheSameAs(parts: readonly Part[]): boolean {
    return this.parts.every(({ cost }, k) => cost === parts[k]?.cost)
  }

  /** Whether others can be before it: nothing is had at once, and too much never. */
  get canBeBehindOthers(): boolean {
    return this.parts.some(({ cost }) => cost > 0) && this.parts.every(({ cost, rule }) => cost <= rule.capacity)
  }

  answered(verdicts: readonly Verdict[], nowUs: number, bookedForUs: number): void {
    this.#decision = this.request.read(verdicts)
    this.answeredUs = nowUs
    this.bookedForUs = bookedForUs
    // What was not taken from the store is not given back to it.
    this.taken = verdicts[0]?.degraded ? [] : takenOf(verdicts)
  }

  serve(delayUs: number, nowUs: number): void {
    this.state = 'gone'
    this.#settle.onEnd(this)
    this.#settle.resolve({ decision: this.#decision as Decision, delayUs, servedUs: nowUs })
  }

  refuse(refusal: Refusal): void {
    this.fail(new WaitError(refusal, this.request.what(), this.#decision))
  }

  fail(reason: unknown): void {
    this.state = 'gone'
    this.#settle.onEnd(this)
    this.#settle.reject(reason)
  }
}

/** One call that waits, from its first question until it has got its turn, was refused, or left. */
import type { Verdict } from '../../algorithms/decide.ts'
import { type Charge, chargesOf } from '../../stores/settlement.ts'
import type { Part } from '../../stores/store.ts'
import type { Decision } from '../decision.ts'
import type { HeldUp } from './claim.ts'
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

/** A question on its way to the store. */
export interface Question {
  readonly waiter: Waiter
  readonly parts: readonly Part[]
  /** How often the numbers had changed when it was asked. */
  readonly changes: number
}

/** How a wait ends for its caller. */
export interface Settle {
  onEnd(waiter: Waiter): void
  resolve(turn: Turn): void
  reject(reason: unknown): void
}

/**
 * - `asking`: the store was asked to take for it, and has not answered yet.
 * - `booked`: permits are held for it, and it waits for their time.
 * - `outside`: nothing is held for it.
 * - `gone`: got its turn, was refused, or left.
 */
export type WaiterState = 'asking' | 'booked' | 'outside' | 'gone'

/** What a store answered, as the caller will be told of it. */
export interface Answer {
  readonly decision: Decision
  /** When the store answered, and when the caller may then act, both by the clock of this process. */
  readonly answeredUs: number
  readonly bookedForUs: number
  /** What the answer took, by the store's time; nothing if it was not the store that answered. */
  readonly taken: readonly Charge[]
}

export class Waiter {
  readonly request: WaitRequest
  readonly deadlineUs: number
  parts: readonly Part[]
  /** In which order it came to its queue. */
  number = 0
  state: WaiterState = 'asking'
  /** The last answer to it, or to another whose permits it has now. */
  answer: Answer | undefined = undefined
  /** Whether as many as may waited at the limiter already when it came. */
  isOneTooMany = false
  /** How many of its questions the store has not answered yet. */
  questions = 0
  /** When those before it can have had their turns, at the earliest. */
  notBeforeUs = 0
  /** Where nothing can be booked: how long it has been the first and was refused. */
  heldUp: HeldUp | undefined = undefined
  /** Its time is up, but the answer to its question may still be yes. */
  isOverdue = false
  before: Waiter | undefined = undefined
  behind: Waiter | undefined = undefined
  readonly #settle: Settle

  constructor(request: WaitRequest, deadlineUs: number, settle: Settle) {
    this.request = request
    this.deadlineUs = deadlineUs
    this.parts = request.parts
    this.#settle = settle
  }

  get mayBook(): boolean {
    return mayBook(this.parts)
  }

  asksForTheSameAs(parts: readonly Part[]): boolean {
    return this.parts.every(({ cost }, k) => cost === parts[k]?.cost)
  }

  /** Whether others can be before it: nothing is had at once, and too much never. */
  get canBeBehindOthers(): boolean {
    return this.parts.some(({ cost }) => cost > 0) && this.parts.every(({ cost, rule }) => cost <= rule.capacity)
  }

  /** The answer that verdicts stand for, for this waiter or for another that asks for the same. */
  read(verdicts: readonly Verdict[], answeredUs: number, bookedForUs: number): Answer {
    const taken = verdicts[0]?.degraded ? [] : chargesOf(this.parts, verdicts)
    return { decision: this.request.read(verdicts), answeredUs, bookedForUs, taken }
  }

  serve(delayUs: number, nowUs: number): void {
    this.state = 'gone'
    this.#settle.onEnd(this)
    this.#settle.resolve({ decision: (this.answer as Answer).decision, delayUs, servedUs: nowUs })
  }

  refuse(refusal: Refusal): void {
    this.fail(new WaitError(refusal, this.request.what(), this.answer?.decision))
  }

  fail(reason: unknown): void {
    this.state = 'gone'
    this.#settle.onEnd(this)
    this.#settle.reject(reason)
  }
}

/** Whether permits can be booked ahead: of every limit, and all of one key, so that one queue sees all who wait for them. */
export function mayBook(parts: readonly Part[]): boolean {
  const [{ key }] = parts as [Part]
  return parts.every((part) => part.rule.algorithm.bookable && part.key === key)
}

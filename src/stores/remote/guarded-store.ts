/**
 * A remote store behind circuit breakers, for one limiter. No step takes longer than the time it is
 * given, whatever the client is doing (deadlines.ts). The first that fails, or is not answered in
 * time, opens the breaker of the store: from then on the failure policy of each of its limiters
 * decides at once, so that an outage costs one wait and not one for each call. Meanwhile the store
 * is probed, charging nothing, until it answers; then the breaker closes.
 *
 * A store whose parts fail one by one, as the nodes of a cluster do, names them (`shardOf`), and
 * each has a breaker of its own: the policy decides for the keys of a dead one, the store for all
 * others.
 *
 * A step that was not answered may have been decided and charged all the same. It is never sent
 * again.
 */
import { emptyVerdict, type Verdict } from '../../algorithms/decide.ts'
import type { Clock } from '../../clock/clock.ts'
import { afterThisTurn } from '../../clock/turn-clock.ts'
import { SluiceError } from '../../errors.ts'
import type { QueueClass } from '../queue/room.ts'
import { SharedQueue } from '../queue/shared-queue.ts'
import { Part, type Scope, Step } from '../step.ts'
import type { Failures, StoreDriver } from '../store.ts'
import { type Breaker, FIRST_PAUSE_US } from './breaker.ts'
import { type Breakers, hasWeakSeats, type Member, type Seat, seatOf } from './breakers.ts'
import { Deadlines, Question } from './deadlines.ts'
import type { Dispatcher } from './dispatcher.ts'
import { type FailurePolicy, type Fallback, fallbackFor, type Outage } from './fallback.ts'
import { type Health, UP_SINCE_EVER } from './health.ts'

export interface Watch {
  readonly clock: Clock
  /** How long a step may take; Infinity for as long as it does. */
  readonly timeoutUs: number
  /** The policy while the store is down, and its share of the limits. */
  readonly onStoreError: FailurePolicy
  readonly localShare: number
  onHealth(health: Health): void
}

const PROBED_KEY = 'sluice-probe'
/** Of a store that does not name its parts, and of keys whose part is not known. */
const WHOLE = ''
/**
 * Answers that no store was asked for come in microtasks, and a caller that lives on them alone
 * would keep timers and sockets from being served. So one of so many comes a turn of the event loop
 * later.
 */
const MOST_IN_A_ROW = 256
/** Of an error of one decision only. */
const NO_OUTAGE: Outage = { retryUs: () => FIRST_PAUSE_US, openForUs: () => 0 }
/** What the fallback lent is its own, whenever that was. */
const EVER: Outage = { retryUs: () => FIRST_PAUSE_US, openForUs: () => Number.POSITIVE_INFINITY }

/** What a pending call needs of its store. */
interface Guard {
  failed(call: AnyCall, error: unknown): void
  /** Finishes a call that needed no store. */
  inTurn(finish: () => void): void
}

/** A pending call, whatever it makes of its verdicts. */
type AnyCall = Pick<PendingCall<unknown>, 'step' | 'closings' | 'onAnswer' | 'rejectWith'>

/** A call that waits for its verdicts: its promise, and what is made of them. */
class PendingCall<T> extends Question<readonly Verdict[]> {
  declare readonly promise: Promise<T>
  /** Whether the call has not returned yet: what is answered by then needed no store. */
  declare isAtOnce: boolean
  /** How often a breaker of the store had closed when it was asked. */
  declare readonly closings: number
  declare readonly read: (verdicts: readonly Verdict[]) => T
  declare readonly guard: Guard
  declare resolve: (answer: T) => void
  declare reject: (error: unknown) => void

  constructor(step: Step, deadlines: Deadlines, closings: number, read: (verdicts: readonly Verdict[]) => T, guard: Guard) {
    super(step, deadlines)
    this.isAtOnce = true
    this.closings = closings
    this.read = read
    this.guard = guard
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }

  onAnswer(verdicts: readonly Verdict[]): void {
    try {
      const answer = this.read(verdicts)
      if (this.isAtOnce) this.guard.inTurn(() => this.resolve(answer))
      else this.resolve(answer)
    } catch (error) {
      this.reject(error)
    }
  }

  /** The store failed: the policy decides. */
  onFailure(error: unknown): void {
    this.guard.failed(this, error)
  }

  /** There is no other answer than the error. */
  rejectWith(error: unknown): void {
    if (this.isAtOnce) this.guard.inTurn(() => this.reject(error))
    else this.reject(error)
  }
}

/** A question whether the store is well again. */
class ProbeQuestion extends Question<void> {
  readonly onAnswer: () => void
  readonly onFailure: (error: unknown) => void

  constructor(step: Step, deadlines: Deadlines, onAnswer: () => void, onFailure: (error: unknown) => void) {
    super(step, deadlines)
    this.onAnswer = onAnswer
    this.onFailure = onFailure
  }
}

export class GuardedStore {
  readonly mode = 'async'
  readonly shared: boolean
  /** How callers wait in line at it. */
  readonly queue: QueueClass = SharedQueue
  readonly #driver: StoreDriver
  readonly #dispatcher: Dispatcher
  readonly #watch: Watch
  /** Undefined: nobody decides while the store is down, the failure is thrown. */
  readonly #fallback: Fallback | undefined
  readonly #deadlines: Deadlines
  readonly #breakers: Breakers
  readonly #member: Member
  readonly #seat: Seat
  /** Those that are open. */
  readonly #scopes = new Set<Scope>()
  #health: Health = UP_SINCE_EVER
  #inARow = 0
  #isClosed = false
  readonly #guard: Guard = {
    failed: (call, error) => this.#failed(call, error),
    inTurn: (finish) => this.#inTurn(finish),
  }

  constructor(driver: StoreDriver, dispatcher: Dispatcher, breakers: Breakers, watch: Watch) {
    this.#driver = driver
    this.#dispatcher = dispatcher
    this.shared = driver.shared
    this.#watch = watch
    this.#fallback = fallbackFor(watch.onStoreError, watch.localShare)
    this.#deadlines = new Deadlines(watch.clock, watch.timeoutUs)
    this.#breakers = breakers
    this.#member = {
      clock: watch.clock,
      timeoutUs: watch.timeoutUs,
      probe: (step, withinUs, onAnswer, onIll) => this.#probe(step, withinUs, onAnswer, onIll),
      told: (error) => this.#told(error),
    }
    this.#seat = seatOf(this.#member)
    const error = breakers.errorFor(this.#member)
    if (hasWeakSeats || error !== undefined) breakers.join(this.#seat)
    if (error !== undefined) this.#beginDown(error)
  }

  /** Down while any part of it is. */
  get health(): Health {
    return this.#health
  }

  /** Whether the policy decides about these keys. */
  isDownFor(step: Step): boolean {
    return this.#openFor(step) !== undefined
  }

  /** The answer of the fallback about what it lent. It counts that also when the store is back. */
  askFallback(step: Step): readonly Verdict[] {
    const nowUs = this.#watch.clock.nowUs()
    return (this.#fallback ?? limited)(step, nowUs, EVER)
  }

  open(scope: Scope): void {
    this.#dispatcher.open(scope)
    this.#scopes.add(scope)
  }

  release(scope: Scope): void {
    this.#scopes.delete(scope)
    this.#dispatcher.release(scope)
  }

  /**
   * A promise of what `read` makes of the verdicts, which are written into the parts: no other step
   * has them.
   */
  ask<T>(step: Step, read: (verdicts: readonly Verdict[]) => T): Promise<T> {
    const known = this.#known(step)
    if (known !== undefined) return this.#atOnce(known, read)
    const call = new PendingCall(step, this.#deadlines, this.#breakers.closings, read, this.#guard)
    const open = this.#openFor(step)
    if (open?.error !== undefined) {
      this.#meet(open)
      this.#instead(call, open.error, open)
    } else {
      this.#deadlines.begin(call)
      this.#dispatcher.submit(call)
    }
    call.isAtOnce = false
    return call.promise
  }

  /** Stops looking after the store. */
  close(): void {
    if (!this.#isClosed) this.#breakers.leave(this.#seat)
    this.#isClosed = true
    this.#deadlines.close()
  }

  /**
   * The answer, where no store has to be asked for it: a cost never fits, or a refusal still holds.
   */
  #known(step: Step): readonly Verdict[] | undefined {
    if (isImpossible(step)) return impossible(step, this.#watch.clock.nowUs())
    return this.#openFor(step) === undefined ? this.#dispatcher.known(step) : undefined
  }

  #atOnce<T>(verdicts: readonly Verdict[], read: (verdicts: readonly Verdict[]) => T): Promise<T> {
    try {
      const answer = read(verdicts)
      this.#inARow += 1
      if (this.#inARow <= MOST_IN_A_ROW) return Promise.resolve(answer)
      this.#inARow = 0
      return new Promise((resolve) => afterThisTurn(() => resolve(answer)))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * Finishes a call that needed no store: now, or after this turn of the event loop if there were
   * many of them.
   */
  #inTurn(finish: () => void): void {
    this.#inARow += 1
    if (this.#inARow <= MOST_IN_A_ROW) {
      finish()
      return
    }
    this.#inARow = 0
    afterThisTurn(finish)
  }

  #failed(call: AnyCall, error: unknown): void {
    if (!isOfTheStore(error)) {
      call.rejectWith(error)
      return
    }
    const failure = asStoreError(error)
    if (!failure.isolated) this.#goDown(call, failure)
    this.#instead(call, failure, this.#openFor(call.step))
  }

  /** Answers by the failure policy. Only the store can forget a key. */
  #instead(call: AnyCall, error: SluiceError, outage: Outage = NO_OUTAGE): void {
    if (this.#fallback === undefined || call.step.op === 'forget') {
      call.rejectWith(error)
      return
    }
    call.onAnswer(this.#fallback(call.step, this.#watch.clock.nowUs(), outage))
  }

  /** The first open breaker of the parts that a step needs. */
  #openFor({ scope, parts }: Step): Breaker | undefined {
    if (this.#breakers.error === undefined) return undefined
    for (const part of parts) {
      const open = this.#breakers.openAt(this.#shardOf(scope, part), this.#member)
      if (open !== undefined) return open
    }
    return undefined
  }

  /** A driver that cannot tell now, because it throws, is taken as one whole. */
  #shardOf(scope: Scope, part: Part): string {
    try {
      return this.#driver.shardOf?.(scope, part) ?? WHOLE
    } catch {
      return WHOLE
    }
  }

  /**
   * Which of several parts failed is not known: those that are well say so to their first probe.
   */
  #goDown(call: AnyCall, error: SluiceError): void {
    const { step } = call
    if (this.#isClosed) return
    const byShard = new Map<string, Part[]>()
    for (const part of step.parts) {
      const shard = this.#shardOf(step.scope, part)
      byShard.set(shard, [...(byShard.get(shard) ?? []), part])
    }
    const { op, scope, aheadUs, ofUs, nowUs } = step
    const steps = [...byShard].map(([shard, parts]) => [shard, new Step(op, scope, parts, aheadUs, ofUs, nowUs)] as const)
    this.#breakers.join(this.#seat)
    this.#breakers.failed(new Map(steps), error, call, this.#member)
  }

  #probe(step: Step, withinUs: number, onAnswer: (isLate: boolean) => void, onIll: () => void): void {
    const deadlines = new Deadlines(this.#watch.clock, withinUs)
    const probe = new ProbeQuestion(step, deadlines, () => onAnswer(false), onIll)
    deadlines.begin(probe)
    // Its timer ends with the probe.
    deadlines.close()
    this.#probed(step).then(
      () => (probe.isUnderWay ? probe.answered() : onAnswer(true)),
      (error) => probe.failed(error),
    )
  }

  /** Rejects if the store is not well. */
  async #probed(step: Step): Promise<void> {
    try {
      if (this.#driver.probe === undefined) await this.#askAboutNothing(step)
      else await this.#driver.probe(step)
    } catch (error) {
      if (isOfTheStore(error) && !asStoreError(error).isolated) throw error
    }
  }

  /**
   * About a key of its own, which no caller uses. The scope of the step may be that of a limiter
   * that is closed, or has had other numbers since.
   */
  async #askAboutNothing(step: Step): Promise<void> {
    const [scope = step.scope] = this.#scopes
    const parts = scope.limits.map(({ name, rule }) => new Part(name, rule, PROBED_KEY, 1))
    const nowUs = step.nowUs === undefined ? undefined : this.#watch.clock.nowUs()
    const failures = (await this.#driver.apply([new Step('ask', scope, parts, -1, -1, nowUs)])) as Failures | undefined
    if (failures?.[0] !== undefined) throw failures[0]
  }

  /** A breaker is open for this limiter. */
  #meet(open: Breaker): void {
    open.asked(this.#member)
    if (hasWeakSeats || this.#health.state === 'down') return
    this.#breakers.join(this.#seat)
    this.#told(open.error)
  }

  /** Its listeners are told when the limiter has been made. */
  #beginDown(error: SluiceError): void {
    const sinceUs = this.#watch.clock.nowUs() - this.#breakers.openForUs()
    this.#health = { state: 'down', sinceMs: sinceUs / 1000, error }
    queueMicrotask(() => {
      if (!this.#isClosed && this.#health.state === 'down') this.#watch.onHealth(this.#health)
    })
  }

  #told(error: SluiceError | undefined): void {
    const state = error === undefined ? 'up' : 'down'
    const isChange = state !== this.#health.state
    const sinceMs = isChange ? this.#watch.clock.nowUs() / 1000 : this.#health.sinceMs
    if (isChange || error !== this.#health.error) this.#health = { state, sinceMs, error }
    if (isChange) this.#watch.onHealth(this.#health)
  }
}

/** Whether the store failed, and not the caller. */
function isOfTheStore(error: unknown): boolean {
  return !(error instanceof SluiceError) || error.code === 'STORE'
}

function asStoreError(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  return new SluiceError('STORE', `the store failed: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
}

/**
 * No store needs to be asked about a cost that never fits. A clock of the caller's own is a test's,
 * which wants to see the store's answer.
 */
function isImpossible({ op, parts, nowUs }: Step): boolean {
  if (nowUs !== undefined || (op !== 'take' && op !== 'ask')) return false
  for (const { cost, rule } of parts) if (cost > rule.capacity) return true
  return false
}

/** There is no fallback here, so it has lent nothing. */
function limited({ parts }: Step): Verdict[] {
  return parts.map(() => ({ ...emptyVerdict(), outcome: 'limited' }))
}

/** The permits left are not known here. */
function impossible({ parts }: Step, nowUs: number): Verdict[] {
  return parts.map(({ cost, rule }) => {
    const never = cost > rule.capacity
    return {
      outcome: never ? 'impossible' : 'allowed',
      remaining: 0,
      retryUs: never ? Number.POSITIVE_INFINITY : 0,
      resetUs: 0,
      delayUs: 0,
      atUs: nowUs,
      enteredUs: nowUs,
    }
  })
}

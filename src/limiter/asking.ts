/**
 * What all verbs stand on: the store and how it is asked, the numbers of the plans, listeners, and
 * the end of a limiter.
 */
import type { Verdict } from '../algorithms/decide.ts'
import { aheadUs, onlyKnown } from '../algorithms/rate.ts'
import { type Clock, systemClock } from '../clock/clock.ts'
import { SluiceError } from '../errors.ts'
import type { WaitQueues } from '../stores/queue/wait-queues.ts'
import type { FailurePolicy } from '../stores/remote/fallback.ts'
import type { GuardedStore } from '../stores/remote/guarded-store.ts'
import { type Health, UP_SINCE_EVER } from '../stores/remote/health.ts'
import { type Charge, settlements } from '../stores/settlement.ts'
import { type Part, type Scope, Step } from '../stores/step.ts'
import type { OpenStates, Store, SyncStore } from '../stores/store.ts'
import type { Decision } from './decision.ts'
import { checkListener, type DecisionEvent, type Listener, Listeners } from './events.ts'
import { hintToWait, promised, SETTLE_OPTIONS, VERB_OPTIONS } from './input.ts'
import type { Answer, SettleOptions, VerbOptions } from './limiter.ts'
import { noticeClosed } from './misuse.ts'
import {
  type CostOf,
  clockOf,
  DEFAULT_MAX_AHEAD_MS,
  type KeyOf,
  type LimiterOptions,
  type LimitName,
  type Limits,
  type NamedRule,
  nameOf,
  type SameLimits,
  storeOf,
} from './options.ts'
import { type Plan, Plans, partsOf, type SettlerFor } from './plans.ts'
import { Room } from './room.ts'
import { chargesIn, checkDecided, differencesOf, type Settled, type Settler } from './settling.ts'
import { connected, waitingAt } from './wiring.ts'

/** What a step does, and to whom. */
type Asked = Pick<Step, 'op' | 'parts' | 'aheadUs' | 'ofUs'>

export class AskingLimiter<L extends Limits, S extends Store, P extends string> {
  declare readonly name: string
  declare readonly store: Store
  declare readonly onStoreError: FailurePolicy | undefined
  /** The same, behind a circuit breaker if it is remote. */
  declare protected readonly guarded: SyncStore | GuardedStore
  /** The clock for the store; undefined for one with a clock of its own. */
  declare protected readonly clock: Clock | undefined
  /** The clock of this process. */
  declare protected readonly ownClock: Clock
  declare protected readonly maxAheadUs: number
  protected readonly listeners: Listeners = new Listeners()
  declare protected readonly queues: WaitQueues
  declare protected readonly plans: Plans<LimitName<L>>
  protected isClosed = false
  #room: Room | undefined = undefined

  constructor(limits: L, options: LimiterOptions<L, S, P>) {
    const store = storeOf(options.store)
    this.name = nameOf(options.name, store)
    this.store = store
    this.onStoreError = options.onStoreError
    this.clock = clockOf(options.clock, store)
    this.ownClock = this.clock ?? systemClock
    if (options.onDecision !== undefined || options.onHealth !== undefined) this.listeners.add(options as Listener)
    const onHealth = (health: Health) => this.listeners.tellHealth({ limiter: this.name, ...health })
    this.guarded = store.mode === 'sync' ? store : connected(store, this.ownClock, options, onHealth)
    this.maxAheadUs = aheadUs(options.maxAheadMs ?? DEFAULT_MAX_AHEAD_MS, 'maxAheadMs')
    this.queues = waitingAt(this.guarded, this.ownClock, this.clock, this.maxAheadUs, options)
    const { plans = {} } = options
    const { nowUs } = this.ownClock
    const settlerFor: SettlerFor<LimitName<L>> = (of, plan) => this.#settlerFor(of, plan)
    this.plans = new Plans(limits, plans, this.name, this.guarded, nowUs, this.maxAheadUs, settlerFor, (why) =>
      this.#noteFull(why, onHealth),
    )
  }

  scope(plan?: P): Scope {
    return (plan === undefined ? this.plans.base : this.plans.of(plan)).scope
  }

  listen(listener: Listener): () => void {
    checkListener(listener)
    return this.listeners.add(listener)
  }

  update(limits: SameLimits<L>, plans?: Readonly<Record<P, SameLimits<L>>>): void {
    this.checkOpen()
    const change = this.plans.changed(limits as Limits, plans)
    const queues = this.queues.all()
    // All bookings are given back under the old numbers, and the waiters ask anew, in order, under
    // the new.
    for (const queue of queues) queue.unbook()
    change()
    for (const queue of queues) queue.renumber(this.plans.still(queue.planName))
  }

  health(): Health {
    return this.guarded.mode === 'async' ? this.guarded.health : (this.#room?.health ?? UP_SINCE_EVER)
  }

  #noteFull(why: SluiceError, onHealth: (health: Health) => void): void {
    if (this.isClosed) return
    this.#room ??= new Room(this.ownClock, onHealth)
    this.#room.noteFull(why)
  }

  close(): void {
    for (const queue of this.queues.all()) queue.close(this.#closedError())
    if (this.guarded.mode === 'async') this.guarded.close()
    this.#room?.close()
    if (!this.isClosed) this.plans.close()
    noticeClosed(this)
    this.isClosed = true
  }

  [Symbol.dispose](): void {
    this.close()
  }

  protected planOf(options: VerbOptions<P> | undefined, known: readonly string[] = VERB_OPTIONS): Plan<LimitName<L>> {
    if (options === undefined) return this.plans.base
    onlyKnown(options, known, 'the options of a verb', hintToWait)
    return this.plans.of(options.plan)
  }

  settle(key: KeyOf<L>, actual: CostOf<L>, options: SettleOptions<LimitName<L>, P>): Answer<S, void> {
    const plan = this.planOf(options, SETTLE_OPTIONS)
    const { of, cost = 1 } = options ?? {}
    checkDecided(of)
    const charges = chargesIn(plan.scope.limits, of)
    this.checkOpen()
    const isTaken = of.allowed !== false && !of.degraded
    return this.#settle(plan.scope.limits, options.plan, { charges, key: isTaken ? key : undefined, cost, actual })
  }

  /**
   * What decisions by a plan are settled through. Wrong input to a store that answers later is a
   * rejection.
   */
  #settlerFor(limits: readonly NamedRule<LimitName<L>>[], planName: string | undefined): Settler {
    const settle = (settled: Settled) => this.#settle(limits, planName as P | undefined, settled as Settled<LimitName<L>>)
    return {
      chargesOf: (decision) => chargesIn(limits, decision),
      settle: (settled) => {
        if (this.guarded.mode === 'sync') return settle(settled)
        return promised(settle as (settled: Settled) => Promise<void>, undefined, settled)
      },
    }
  }

  /**
   * Charges or gives back by how much what was used differs from what was charged. Also after
   * `close`: the estimate would stay charged.
   */
  #settle(
    limits: readonly NamedRule<LimitName<L>>[],
    planName: P | undefined,
    { charges, key, cost, actual, onAccepted }: Settled<LimitName<L>>,
  ): Answer<S, void> {
    const differences = differencesOf(limits, cost, actual)
    onAccepted?.()
    const plan = this.plans.still(planName)
    if (key === undefined || differences.every((difference) => difference === 0)) return this.applyAll(plan, [])
    const parts = partsOf(plan, key, 0)
    for (let k = 0; k < parts.length; k++) (parts[k] as Part).cost = differences[k] as number
    if (!this.queues.isEmpty && this.#isTakenOver(parts, charges, planName)) return this.applyAll(plan, [])
    const steps = settlements(parts, charges)
    return this.applyAll(plan, steps, (verdicts) => {
      // What is given back before its time may lie behind what waiting callers have booked.
      const isAhead = charges.some(({ dueUs }, k) => (verdicts[k]?.atUs ?? dueUs) < dueUs)
      if (steps.length === 1 && !isAhead) this.queues.given(parts, verdicts, planName)
      else this.tryAgain(parts)
    })
  }

  /** What is given back before its time serves the callers that wait behind it, if any. */
  #isTakenOver(parts: readonly Part[], charges: readonly Charge[], planName: P | undefined): boolean {
    if (parts.some(({ cost }) => cost > 0)) return false
    const back = parts.map((part) => part.with({ cost: -part.cost }))
    return this.queues.queue(parts, planName)?.takeOver(back, charges) ?? false
  }

  /** The time, for listeners; -1, without a look at the clock, if there are none. */
  protected heardSinceUs(): number {
    return this.listeners.any ? this.ownClock.nowUs() : -1
  }

  /**
   * Of a call that began when nobody listened nobody is told. `endUs`: when a wait ended, 0 for
   * now.
   */
  protected tell(
    verb: DecisionEvent['verb'],
    key: KeyOf<L>,
    cost: CostOf<L>,
    options: VerbOptions<P> | undefined,
    decision: Decision,
    sinceUs: number,
    endUs?: number,
  ): void {
    if (!this.listeners.any || sinceUs < 0) return
    const tookMs = ((endUs || this.ownClock.nowUs()) - sinceUs) / 1000
    this.listeners.tell({ limiter: this.name, verb, key, cost, plan: options?.plan, decision, tookMs })
  }

  protected failed(error: unknown): never {
    this.listeners.tellFailure({ limiter: this.name, error })
    throw error
  }

  protected checkOpen(): void {
    if (this.isClosed) throw this.#closedError()
  }

  #closedError(): SluiceError {
    return new SluiceError('CLOSED', `limiter '${this.name}' was closed`)
  }

  protected tryAgain(parts: readonly Part[]): void {
    for (const queue of this.queues.queues(parts)) queue.tryAgain()
  }

  protected apply<T>(
    op: Step['op'],
    plan: Plan<LimitName<L>>,
    parts: readonly Part[],
    read: (verdicts: readonly Verdict[]) => T,
    aheadUs = -1,
    ofUs = -1,
  ): Answer<S, T> {
    this.checkOpen()
    return this.applyTo(plan, { op, parts, aheadUs, ofUs }, read)
  }

  /** The same for a limiter that may have been closed. */
  protected applyTo<T>({ states, scope }: Plan<LimitName<L>>, asked: Asked, read: (verdicts: readonly Verdict[]) => T): Answer<S, T> {
    const store = this.guarded
    const step = this.step(asked, scope)
    return (store.mode === 'sync' ? read(answered(states as OpenStates, step)) : this.#asked(store, step, read)) as Answer<S, T>
  }

  /** Several steps of such a limiter: done when all are. Of one, its promise is the caller's. */
  protected applyAll(
    plan: Plan<LimitName<L>>,
    steps: readonly Asked[],
    read: (verdicts: readonly Verdict[]) => void = () => {},
  ): Answer<S, void> {
    if (steps.length === 1) return this.applyTo(plan, steps[0] as Asked, read)
    const answers = steps.map((asked) => this.applyTo(plan, asked, read))
    return (this.guarded.mode === 'sync' ? undefined : Promise.all(answers).then(() => {})) as Answer<S, void>
  }

  /** One promise less where nobody wants to hear of failures. */
  #asked<T>(store: GuardedStore, step: Step, read: (verdicts: readonly Verdict[]) => T): Promise<T> {
    if (!this.listeners.hearFailures) return store.ask(step, read)
    return store.ask(step, (verdicts) => verdicts).then(read, (error) => this.failed(error))
  }

  protected step({ op, parts, aheadUs, ofUs }: Asked, scope: Scope): Step {
    return new Step(op, scope, parts, aheadUs, ofUs, this.guarded.mode === 'sync' ? undefined : this.clock?.nowUs())
  }
}

/** The verdicts of a synchronous store: they are in the parts. */
function answered(states: OpenStates, step: Step): readonly Verdict[] {
  states.apply(step, true)
  return step.op === 'forget' ? [] : step.parts.map(({ verdict }) => verdict)
}

/** A limiter turns a verb into one step for the store, and the store's verdicts into a decision. */
import type { Verdict } from '../algorithms/decide.ts'
import { aheadUs, onlyKnown } from '../algorithms/rate.ts'
import { type Clock, systemClock } from '../clock/clock.ts'
import { SluiceError, shown } from '../errors.ts'
import type { WaitQueues } from '../stores/queue/wait-queues.ts'
import type { Turn, Answer as WaitAnswer } from '../stores/queue/waiter.ts'
import type { FailurePolicy } from '../stores/remote/fallback.ts'
import type { GuardedStore } from '../stores/remote/guarded-store.ts'
import { type Health, UP_SINCE_EVER } from '../stores/remote/health.ts'
import { settlements } from '../stores/settlement.ts'
import { type Part, type Scope, Step } from '../stores/step.ts'
import { allAllowed, type OpenStates, type Store, type SyncStore } from '../stores/store.ts'
import { atItsTime, type Decision, decisionOf } from './decision.ts'
import { checkListener, type DecisionEvent, type Listener, Listeners } from './events.ts'
import {
  type Abortable,
  ACQUIRE_OPTIONS,
  type Cost,
  checkSignal,
  instantUs,
  type Key,
  promised,
  REFUND_OPTIONS,
  RESERVE_OPTIONS,
  SETTLE_OPTIONS,
  spanUs,
  TIMED_OPTIONS,
  timeoutUs,
  usedOf,
  VERB_OPTIONS,
} from './input.ts'
import type {
  Acquired,
  AcquireOptions,
  Answer,
  AtOnceOptions,
  Limiter,
  RefundOptions,
  Reservation,
  ReserveOptions,
  Settleable,
  SettleOptions,
  TimedOptions,
  VerbOptions,
  WaitOptions,
} from './limiter.ts'
import {
  type CostOf,
  clockOf,
  DEFAULT_MAX_AHEAD_MS,
  type DecisionOf,
  type KeyOf,
  type LimiterOptions,
  type LimitName,
  type Limits,
  type NamedRule,
  nameOf,
  type SameLimits,
  storeOf,
} from './options.ts'
import { type AnyFunction, type PaceOptions, paced, type Wrapped, wrapped } from './pacing.ts'
import { filled, filledWithUsed, type Plan, Plans, partsOf } from './plans.ts'
import { Reserved } from './reserved.ts'
import { chargesIn, checkDecided, differencesOf, type Settled, type Settler } from './settling.ts'
import { WaitError } from './wait-error.ts'
import { connected, waitingAt } from './wiring.ts'

/** What a step does, and to whom. */
type Asked = Pick<Step, 'op' | 'parts' | 'aheadUs' | 'ofUs'>

const NO_SIGNALS: readonly Abortable[] = []

/** A decision that took something. */
type Taken<L extends Limits, S> = DecisionOf<L> & Settleable<LimitName<L>, S>

export class StoreLimiter<L extends Limits, S extends Store, P extends string> implements Limiter<L, S, P> {
  declare readonly name: string
  declare readonly store: Store
  declare readonly onStoreError: FailurePolicy
  /** The same, behind a circuit breaker if it is remote. */
  declare protected readonly guarded: SyncStore | GuardedStore
  /** The clock for the store; undefined for one with a clock of its own. */
  readonly #clock: Clock | undefined
  /** The clock of this process. */
  declare protected readonly ownClock: Clock
  readonly #maxAheadUs: number
  protected readonly listeners: Listeners = new Listeners()
  declare protected readonly queues: WaitQueues
  declare protected readonly plans: Plans<LimitName<L>>
  #lastWanted: { readonly plan: unknown; readonly key: string; readonly cost: number; readonly parts: readonly Part[] } | undefined =
    undefined
  #closed = false

  constructor(limits: L, options: LimiterOptions<L, S, P>) {
    const store = storeOf(options.store)
    this.name = nameOf(options.name, store)
    this.store = store
    this.onStoreError = options.onStoreError ?? 'throw'
    this.#clock = clockOf(options.clock, store)
    this.ownClock = this.#clock ?? systemClock
    if (options.onDecision !== undefined || options.onHealth !== undefined) this.listeners.add(options as Listener)
    const onHealth = (health: Health) => this.listeners.tellHealth({ limiter: this.name, ...health })
    this.guarded = store.mode === 'sync' ? store : connected(store, this.ownClock, options, onHealth)
    this.#maxAheadUs = aheadUs(options.maxAheadMs ?? DEFAULT_MAX_AHEAD_MS, 'maxAheadMs')
    this.queues = waitingAt(this.guarded, this.ownClock, this.#clock, this.#maxAheadUs, options)
    const plans = options.plans === undefined ? {} : options.plans
    this.plans = new Plans(limits, plans, this.name, this.guarded, this.ownClock.nowUs, (of, plan) => this.#settlerFor(of, plan))
  }

  tryAcquire(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> | undefined, options: TimedOptions<P>): Promise<boolean>
  tryAcquire(key: Key<LimitName<L>>, cost?: Cost<LimitName<L>>, options?: AtOnceOptions<P>): Answer<S, boolean>
  tryAcquire(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> | undefined, options: WaitOptions<P>): Answer<S, boolean> | Promise<boolean>
  tryAcquire(
    key: Key<LimitName<L>>,
    cost: Cost<LimitName<L>> = 1,
    options?: VerbOptions<P> | TimedOptions<P>,
  ): Answer<S, boolean> | Promise<boolean> {
    const { base } = this.plans
    if (options !== undefined || base.states === undefined || this.#closed || this.listeners.any)
      return this.#tryAcquireWith(key, cost, options)
    return base.states.apply(filled(base, key, cost), false) as Answer<S, boolean>
  }

  /** With options, on a store that answers later, for listeners, or after `close`. */
  #tryAcquireWith(
    key: Key<LimitName<L>>,
    cost: Cost<LimitName<L>>,
    options: VerbOptions<P> | TimedOptions<P> | undefined,
  ): Answer<S, boolean> | Promise<boolean> {
    if (options !== undefined && isTimed(options)) return this.#tryToWait(key, cost, options)
    const plan = this.planOf(options, TIMED_OPTIONS)
    if (plan.states === undefined) {
      if (this.listeners.any) return this.#consumeLater('tryAcquire', plan, key, cost, options, ({ allowed }) => allowed)
      return this.#apply('take', plan, partsOf(plan, key, cost), allAllowed)
    }
    if (this.listeners.any) return this.#consumeNow('tryAcquire', plan, plan.states, key, cost, options).allowed as Answer<S, boolean>
    this.checkOpen()
    return plan.states.apply(filled(plan, key, cost), false) as Answer<S, boolean>
  }

  consume(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> = 1, options?: VerbOptions<P>): Answer<S, Taken<L, S>> {
    const plan = options === undefined ? this.plans.base : this.planOf(options)
    if (plan.states === undefined) return this.#consumeLater('consume', plan, key, cost, options, (decision) => decision as Taken<L, S>)
    return this.#consumeNow('consume', plan, plan.states, key, cost, options) as Answer<S, Taken<L, S>>
  }

  peek(key: KeyOf<L>, cost: CostOf<L> = 1, options?: VerbOptions<P>): Answer<S, DecisionOf<L>> {
    const plan = this.planOf(options)
    return this.#apply('ask', plan, partsOf(plan, key, cost), (verdicts) => decisionOf(plan.scope.limits, verdicts))
  }

  reserve(key: KeyOf<L>, cost: CostOf<L> = 1, options: ReserveOptions<P> = {}): Answer<S, Taken<L, S> & Reservation<S>> {
    const plan = this.planOf(options, RESERVE_OPTIONS)
    const maxWaitUs = options.maxWaitMs === undefined ? this.#maxAheadUs : spanUs(options.maxWaitMs, 'maxWaitMs')
    const parts = partsOf(plan, key, cost)
    const sinceUs = this.heardSinceUs()
    const read = (verdicts: readonly Verdict[]) => {
      const reserved = new Reserved(parts, verdicts, this.#clock === undefined ? this.ownClock.nowUs() : undefined)
      const cancel = () => this.#cancel(reserved, options.plan)
      const settler = reserved.settledBy(plan.settler)
      const decision = Object.assign(decisionOf(plan.scope.limits, verdicts, settler, key, cost), { cancel })
      this.tell('reserve', key, cost, options, decision, sinceUs)
      return decision as unknown as Taken<L, S> & Reservation<S>
    }
    return this.#apply('take', plan, parts, read, Math.min(maxWaitUs, this.#maxAheadUs))
  }

  acquire(key: KeyOf<L>, options: AcquireOptions<LimitName<L>, P> = {}): Promise<Acquired<LimitName<L>, S>> {
    return promised(this.acquireAnd<Acquired<LimitName<L>, S>>, this, key, options, undefined, (acquired) => acquired)
  }

  /** `ended`: what else ends the wait, besides the signal among the options. `act`: what is done with what was acquired. */
  protected acquireAnd<T>(
    key: KeyOf<L>,
    options: AcquireOptions<LimitName<L>, P>,
    ended: Abortable | undefined,
    act: (acquired: Acquired<LimitName<L>, S>) => T | Promise<T>,
  ): Promise<T> {
    onlyKnown(options, ACQUIRE_OPTIONS, 'the options of a verb')
    const { cost = 1, timeoutMs, signal, plan } = options
    if (timeoutMs === undefined && signal === undefined && plan === undefined && this.goesAtOnce()) {
      const decision = this.consume(key, cost) as Taken<L, S>
      if (decision.allowed) return Promise.resolve(act(Object.assign(decision, { waitedMs: 0 })))
    }
    return this.#wait('acquire', key, cost, options, ended, act as (acquired: Acquired<LimitName<L>, S> | WaitError) => T | Promise<T>)
  }

  /** Whether a call that is allowed now need not stand in a queue: nobody waits, nothing is spaced out, nobody is to be told of a wait. */
  protected goesAtOnce(): boolean {
    return this.guarded.mode === 'sync' && this.queues.isEmpty && !this.listeners.any && !this.plans.base.spaced
  }

  wrap<Fn extends AnyFunction>(
    key: KeyOf<L> | ((...args: Parameters<Fn>) => KeyOf<L>),
    fn: Fn,
    options: PaceOptions<LimitName<L>, P, Parameters<Fn>> = {},
  ): Wrapped<Fn> {
    return wrapped<LimitName<L>, P, Fn>(
      (of, cost, bounds, act) => {
        const isTaken = bounds === undefined && this.goesAtOnce() && this.tryAcquire(of, cost)
        return isTaken ? act() : this.acquireAnd(of, { ...bounds, cost }, undefined, act)
      },
      key,
      fn,
      options,
    )
  }

  pace<Item>(
    key: KeyOf<L> | ((item: Item) => KeyOf<L>),
    source: Iterable<Item> | AsyncIterable<Item>,
    options: PaceOptions<LimitName<L>, P, [item: Item]> = {},
  ): AsyncGenerator<Item, void, undefined> {
    return paced((of, bounds, ended) => this.acquireAnd(of, bounds, ended, (acquired) => acquired), key, source, options)
  }

  scope(plan?: P): Scope {
    return (plan === undefined ? this.plans.base : this.plans.of(plan)).scope
  }

  waiting(key?: KeyOf<L>): number {
    if (key === undefined) return this.queues.count()
    return this.queues.queues(partsOf(this.plans.base, key, 0)).reduce((count, { size }) => count + size, 0)
  }

  charge(key: KeyOf<L>, cost: CostOf<L> = 1, options?: VerbOptions<P>): Answer<S, DecisionOf<L>> {
    const plan = this.planOf(options)
    if (plan.states === undefined) return this.#chargeLater(plan, key, cost, options)
    const sinceUs = this.heardSinceUs()
    this.checkOpen()
    plan.states.apply(filledWithUsed(plan, key, cost), true)
    const decision = decisionOf(plan.scope.limits, plan.verdicts)
    if (sinceUs >= 0) this.tell('charge', key, cost, options, decision, sinceUs)
    return decision as Answer<S, DecisionOf<L>>
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

  refund(key: KeyOf<L>, cost: CostOf<L> = 1, options: RefundOptions<P> = {}): Answer<S, void> {
    const plan = this.planOf(options, REFUND_OPTIONS)
    const ofUs = options.atMs === undefined ? -1 : instantUs(options.atMs, 'atMs')
    const parts = partsOf(plan, key, cost)
    return this.#apply('give', plan, parts, (verdicts) => this.queues.given(parts, verdicts, options.plan), -1, ofUs)
  }

  reset(key: KeyOf<L>): Answer<S, void> {
    const parts = partsOf(this.plans.base, key, 0)
    return this.#apply('forget', this.plans.base, parts, () => {
      for (const queue of this.queues.queues(parts)) queue.startAnew()
    })
  }

  listen(listener: Listener): () => void {
    checkListener(listener)
    return this.listeners.add(listener)
  }

  update(limits: SameLimits<L>, plans?: Readonly<Record<P, SameLimits<L>>>): void {
    this.checkOpen()
    const change = this.plans.changed(limits as Limits, plans)
    const queues = this.queues.all()
    // All bookings are given back under the old numbers, and the waiters ask anew, in order, under the new.
    for (const queue of queues) queue.unbook()
    change()
    for (const queue of queues) queue.renumber(this.plans.still(queue.planName))
  }

  health(): Health {
    return this.guarded.mode === 'async' ? this.guarded.health : UP_SINCE_EVER
  }

  close(): void {
    for (const queue of this.queues.all()) queue.close(this.#closedError())
    if (this.guarded.mode === 'async') this.guarded.close()
    if (!this.#closed) this.plans.close()
    this.#closed = true
  }

  [Symbol.dispose](): void {
    this.close()
  }

  protected planOf(options: VerbOptions<P> | undefined, known: readonly string[] = VERB_OPTIONS): Plan<LimitName<L>> {
    if (options === undefined) return this.plans.base
    onlyKnown(options, known, 'the options of a verb')
    return this.plans.of(options.plan)
  }

  /** What decisions by a plan are settled through. Wrong input to a store that answers later is a rejection. */
  #settlerFor(limits: readonly NamedRule<LimitName<L>>[], planName: string | undefined): Settler {
    const settle = (settled: Settled) => this.#settle(limits, planName as P | undefined, settled as Settled<LimitName<L>>)
    return {
      chargesOf: (decision) => chargesIn(limits, decision),
      settle: (settled) => (this.guarded.mode === 'sync' ? settle(settled) : new Promise((resolve) => resolve(settle(settled)))),
    }
  }

  /** Charges or gives back by how much what was used differs from what was charged. Also after `close`: the estimate would stay charged. */
  #settle(
    limits: readonly NamedRule<LimitName<L>>[],
    planName: P | undefined,
    { charges, key, cost, actual, onAccepted }: Settled<LimitName<L>>,
  ): Answer<S, void> {
    const isSync = this.guarded.mode === 'sync'
    const done = (isSync ? undefined : Promise.resolve()) as Answer<S, void>
    const differences = differencesOf(limits, cost, actual)
    onAccepted?.()
    if (key === undefined || differences.every((difference) => difference === 0)) return done
    const plan = this.plans.still(planName)
    const parts = partsOf(plan, key, 0).map((part, k) => part.with({ cost: differences[k] as number }))
    const steps = settlements(parts, charges)
    const answers = steps.map((settlement) =>
      this.applyTo(plan, settlement, (verdicts) => {
        if (steps.length === 1) this.queues.given(parts, verdicts, planName)
        else this.tryAgain(parts)
      }),
    )
    return isSync ? done : (Promise.all(answers).then(() => undefined) as Answer<S, void>)
  }

  /** Takes, and tells the listeners. By itself, because a function with a closure in it makes room for what that refers to at each call. */
  #consumeNow(
    verb: DecisionEvent['verb'],
    plan: Plan<LimitName<L>>,
    states: OpenStates,
    key: Key<LimitName<L>>,
    cost: Cost<LimitName<L>>,
    options: VerbOptions<P> | undefined,
  ): Decision<LimitName<L>> {
    const sinceUs = this.heardSinceUs()
    this.checkOpen()
    states.apply(filled(plan, key, cost), true)
    const decision = decisionOf(plan.scope.limits, plan.verdicts, plan.settler, key, cost)
    if (sinceUs >= 0) this.tell(verb, key, cost, options, decision, sinceUs)
    return decision
  }

  /** The same on a store that answers later. */
  #consumeLater<T>(
    verb: DecisionEvent['verb'],
    plan: Plan<LimitName<L>>,
    key: Key<LimitName<L>>,
    cost: Cost<LimitName<L>>,
    options: VerbOptions<P> | undefined,
    answer: (decision: Decision<LimitName<L>>) => T,
  ): Answer<S, T> {
    const sinceUs = this.heardSinceUs()
    return this.#apply('take', plan, partsOf(plan, key, cost), (verdicts) => {
      const decision = decisionOf(plan.scope.limits, verdicts, plan.settler, key, cost)
      this.tell(verb, key, cost, options, decision, sinceUs)
      return answer(decision)
    })
  }

  #chargeLater(plan: Plan<LimitName<L>>, key: KeyOf<L>, cost: CostOf<L>, options: VerbOptions<P> | undefined): Answer<S, DecisionOf<L>> {
    const sinceUs = this.heardSinceUs()
    return this.#apply('charge', plan, partsOf(plan, key, cost, usedOf), (verdicts) => {
      const decision = decisionOf(plan.scope.limits, verdicts)
      this.tell('charge', key, cost, options, decision, sinceUs)
      return decision
    })
  }

  /** The time, for listeners; -1, without a look at the clock, if there are none. */
  protected heardSinceUs(): number {
    return this.listeners.any ? this.ownClock.nowUs() : -1
  }

  /** Of a call that began when nobody listened nobody is told. `endUs`: when a wait ended, 0 for now. */
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
    this.listeners.tell({ limiter: this.name, verb, key, cost, plan: options?.plan, decision, waits: endUs !== undefined, tookMs })
  }

  #failed(error: unknown): never {
    this.listeners.tellFailure({ limiter: this.name, error })
    throw error
  }

  protected checkOpen(): void {
    if (this.#closed) throw this.#closedError()
  }

  #closedError(): SluiceError {
    return new SluiceError('CLOSED', `limiter '${this.name}' was closed`)
  }

  async #tryToWait(key: KeyOf<L>, cost: CostOf<L>, options: WaitOptions<P>): Promise<boolean> {
    onlyKnown(options, TIMED_OPTIONS, 'the options of a verb')
    return this.#wait('tryAcquire', key, cost, options, undefined, (acquired) => !(acquired instanceof WaitError))
  }

  /**
   * Waits its turn, and acts then. If a limit ended the wait, `acquire` rejects with the error, and `tryAcquire` acts on it. One promise from the queue to the
   * caller: of those who wait there may be many.
   */
  #wait<T>(
    verb: 'acquire' | 'tryAcquire',
    key: KeyOf<L>,
    cost: CostOf<L>,
    options: WaitOptions<P>,
    ended: Abortable | undefined,
    act: (acquired: Acquired<LimitName<L>, S> | WaitError) => T | Promise<T>,
  ): Promise<T> {
    const plan = this.planOf(options, ACQUIRE_OPTIONS)
    const planName = options.plan
    const parts = this.#wantedParts(plan, key, cost)
    const withinUs = timeoutUs(options.timeoutMs)
    const { signal } = options
    checkSignal(signal)
    this.checkOpen()
    const sinceUs = this.ownClock.nowUs()
    const signals = signal === undefined && ended === undefined ? NO_SIGNALS : [signal, ended].filter((each) => each !== undefined)
    this.waits(key)
    return this.queues.wait(parts, planName, plan, withinUs, signals).then(
      (turn) => {
        this.waitEnded(key)
        return act(this.#turnOf(verb, key, cost, planName, parts, sinceUs, turn))
      },
      (error) => {
        this.waitEnded(key)
        return this.#failed(error)
      },
    )
  }

  /** Mostly many wait for the same. Queues only read these parts, and ask by copies, so all of them can have the same. */
  #wantedParts(plan: Plan<LimitName<L>>, key: KeyOf<L>, cost: CostOf<L>): readonly Part[] {
    const last = this.#lastWanted
    if (last !== undefined && last.plan === plan && last.key === key && last.cost === cost) return last.parts
    const parts = partsOf(plan, key, cost)
    // What a caller passed by name, the caller may change.
    if (typeof key === 'string' && typeof cost === 'number') this.#lastWanted = { plan, key, cost, parts }
    return parts
  }

  /** Told of every call that waits. */
  protected waits(_key: KeyOf<L>): void {}

  /** And when it waits no longer, however that ended. */
  protected waitEnded(_key: KeyOf<L>): void {}

  #turnOf(
    verb: 'acquire' | 'tryAcquire',
    key: KeyOf<L>,
    cost: CostOf<L>,
    planName: P | undefined,
    parts: readonly Part[],
    sinceUs: number,
    { refusal, answer, delayUs, servedUs }: Turn,
  ): Acquired<LimitName<L>, S> | WaitError {
    const settler = this.plans.still(planName).settler
    const decision =
      answer && (decisionOf(answer.limits as readonly NamedRule<LimitName<L>>[], answer.verdicts, settler, key, cost) as DecisionOf<L>)
    const tell = (told: Decision) => this.tell(verb, key, cost, { plan: planName }, told, sinceUs, servedUs)
    if (refusal !== undefined) {
      const error = new WaitError(refusal, `a cost of ${shown(cost)} for key ${shown(key)}`, decision)
      // A booking from before a change of numbers is no decision on a wait that ended.
      if (decision?.allowed !== false) this.listeners.tellFailure({ limiter: this.name, error })
      else tell(decision)
      if (verb === 'tryAcquire') return error
      throw error
    }
    const isBooked = parts.every(({ rule }) => rule.algorithm.bookable)
    const acquired = atItsTime(decision as DecisionOf<L>, delayUs, isBooked)
    const waitedMs = (servedUs - sinceUs) / 1000
    return this.acquired(acquired, waitedMs, answer as WaitAnswer, parts, planName, key, () => tell(acquired))
  }

  /** The result of a wait. `tell`: calls the listeners, one of which may throw. */
  protected acquired(
    decision: Decision<LimitName<L>>,
    waitedMs: number,
    _answer: WaitAnswer,
    _parts: readonly Part[],
    _planName: P | undefined,
    _key: KeyOf<L>,
    tell: () => void,
  ): Acquired<LimitName<L>, S> {
    tell()
    return Object.assign(decision, { waitedMs }) as unknown as Acquired<LimitName<L>, S>
  }

  /** Gives a reservation back if its time has not come: to waiters, or to the store. Also after `close`: others would stand behind it. */
  #cancel(reserved: Reserved, planName: P | undefined): Answer<S, void> {
    const { parts } = reserved
    const isSync = this.guarded.mode === 'sync'
    const done = (isSync ? undefined : Promise.resolve()) as Answer<S, void>
    if (!reserved.end(this.ownClock.nowUs()) || this.queues.queue(parts, planName)?.takeOver(parts, reserved.booked)) return done
    // The plan's numbers may have been updated since, or the plan dropped.
    const plan = this.plans.still(planName)
    const answers = reserved
      .given(this.plans.renumbered(parts, planName))
      .map((given) => this.applyTo(plan, given, () => this.tryAgain(parts)))
    return isSync ? done : (Promise.all(answers).then(() => undefined) as Answer<S, void>)
  }

  protected tryAgain(parts: readonly Part[]): void {
    for (const queue of this.queues.queues(parts)) queue.tryAgain()
  }

  #apply<T>(
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

  /** One promise less where nobody wants to hear of failures. */
  #asked<T>(store: GuardedStore, step: Step, read: (verdicts: readonly Verdict[]) => T): Promise<T> {
    if (!this.listeners.hearFailures) return store.ask(step, read)
    return store.ask(step, (verdicts) => verdicts).then(read, (error) => this.#failed(error))
  }

  protected step({ op, parts, aheadUs, ofUs }: Asked, scope: Scope): Step {
    return new Step(op, scope, parts, aheadUs, ofUs, this.guarded.mode === 'sync' ? undefined : this.#clock?.nowUs())
  }
}

/** Whether the options make `tryAcquire` wait. They may be anything that a caller passes. */
function isTimed<P extends string>(options: WaitOptions<P> | null): boolean {
  return options?.timeoutMs !== undefined || options?.signal !== undefined
}

/** The verdicts of a synchronous store: they are in the parts. */
function answered(states: OpenStates, step: Step): readonly Verdict[] {
  states.apply(step, true)
  return step.op === 'forget' ? [] : step.parts.map(({ verdict }) => verdict)
}

/** A limiter turns a verb into one step for the store, and the store's verdicts into a decision. */
import type { Verdict } from '../algorithms/decide.ts'
import { aheadUs, onlyKnown } from '../algorithms/rate.ts'
import { type Clock, systemClock } from '../clock/clock.ts'
import { SluiceError, shown } from '../errors.ts'
import type { AsyncStore } from '../stores/remote/async-store.ts'
import type { GuardedStore } from '../stores/remote/guarded-store.ts'
import { type Health, UP_SINCE_EVER } from '../stores/remote/health.ts'
import type { FailurePolicy } from '../stores/remote/substitute.ts'
import { settlements } from '../stores/settlement.ts'
import { Part, type Scope, Step } from '../stores/step.ts'
import { allAllowed, type OpenStates, type Store, type SyncStore } from '../stores/store.ts'
import { atItsTime, type Decision, decisionOf } from './decision.ts'
import { checkListener, type DecisionEvent, type Listener, Listeners } from './events.ts'
import { type Abortable, type Cost, checkSignal, instantUs, type Key, spanUs, timeoutUs } from './input.ts'
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
import { clockOf, type LimiterOptions, type LimitName, type Limits, type NamedRule, nameOf, type SameLimits, storeOf } from './options.ts'
import { type AnyFunction, isIterable, type PaceOptions, paced, type Wrapped, wrapped } from './pacing.ts'
import { filled, type Plan, Plans, partsOf, usedPartsOf } from './plans.ts'
import { Reserved } from './reserved.ts'
import { chargesIn, checkDecided, differencesOf, type Settled } from './settling.ts'
import type { Verb } from './waiting/desk.ts'
import type { Queue } from './waiting/queue.ts'
import { WaitError } from './waiting/wait-error.ts'
import type { Turn } from './waiting/waiter.ts'
import { Waiting } from './waiting/waiting.ts'

const DEFAULT_MAX_AHEAD_MS = 60_000
const DEFAULT_STORE_TIMEOUT_MS = 1_000
/** A waiting call takes 2 to 6 kB. */
const DEFAULT_MAX_QUEUE = 10_000
const DEFAULT_MAX_WAITING = 25_000

const VERB_OPTIONS = ['plan']
const RESERVE_OPTIONS = ['plan', 'maxWaitMs']
const SETTLE_OPTIONS = ['plan', 'of', 'cost']
const REFUND_OPTIONS = ['plan', 'atMs']
const TIMED_OPTIONS = ['plan', 'timeoutMs', 'signal']
const ACQUIRE_OPTIONS = ['cost', ...TIMED_OPTIONS]

const TAKE: Verb = { op: 'take', aheadUs: -1, ofUs: -1 }
const ASK: Verb = { op: 'ask', aheadUs: -1, ofUs: -1 }
const GIVE: Verb = { op: 'give', aheadUs: -1, ofUs: -1 }
const CHARGE: Verb = { op: 'charge', aheadUs: -1, ofUs: -1 }
const FORGET: Verb = { op: 'forget', aheadUs: -1, ofUs: -1 }

/** A decision that can be settled. */
type Taken<L extends Limits, S> = Decision<LimitName<L>> & Settleable<LimitName<L>, S>

export class StoreLimiter<L extends Limits, S extends Store, P extends string> implements Limiter<L, S, P> {
  readonly name: string
  readonly store: Store
  readonly onStoreError: FailurePolicy
  /** The same, behind a circuit breaker if it is remote. */
  readonly #store: SyncStore | GuardedStore
  /** What is told to the store; undefined for one with a clock of its own. */
  readonly #clock: Clock | undefined
  /** What this process goes by. */
  readonly #ownClock: Clock
  readonly #maxAheadUs: number
  readonly #listeners = new Listeners()
  readonly #waiting: Waiting
  readonly #plans: Plans<LimitName<L>>
  #closed = false

  constructor(limits: L, options: LimiterOptions<L, S, P>) {
    const store = storeOf(options.store)
    this.name = nameOf(options.name, store)
    this.store = store
    this.onStoreError = options.onStoreError ?? 'throw'
    this.#clock = clockOf(options.clock, store)
    this.#ownClock = this.#clock ?? systemClock
    if (options.onDecision !== undefined || options.onHealth !== undefined) this.#listeners.add(options as Listener)
    this.#store = store.mode === 'sync' ? store : this.#connected(store, options)
    this.#maxAheadUs = aheadUs(options.maxAheadMs ?? DEFAULT_MAX_AHEAD_MS, 'maxAheadMs')
    this.#waiting = this.#waitingRoom(options)
    const plans = options.plans === undefined ? {} : options.plans
    this.#plans = new Plans(limits, plans, {
      open: (opened, name) => this.#plan(opened, name),
      release: ({ scope, states }) => (this.#store.mode === 'sync' ? states?.close() : this.#store.release(scope)),
    })
  }

  tryAcquire(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> | undefined, options: TimedOptions<P>): Promise<boolean>
  tryAcquire(key: Key<LimitName<L>>, cost?: Cost<LimitName<L>>, options?: AtOnceOptions<P>): Answer<S, boolean>
  tryAcquire(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> | undefined, options: WaitOptions<P>): Answer<S, boolean> | Promise<boolean>
  tryAcquire(
    key: Key<LimitName<L>>,
    cost: Cost<LimitName<L>> = 1,
    options?: VerbOptions<P> | TimedOptions<P>,
  ): Answer<S, boolean> | Promise<boolean> {
    const { base } = this.#plans
    if (options !== undefined || base.states === undefined || this.#closed || this.#listeners.any)
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
    const plan = this.#planOf(options, TIMED_OPTIONS)
    if (this.#listeners.any) return this.#consume('tryAcquire', plan, key, cost, options, ({ allowed }) => allowed)
    if (plan.states === undefined) return this.#apply(TAKE, plan, partsOf(plan, key, cost), allAllowed)
    this.#checkOpen()
    return plan.states.apply(filled(plan, key, cost), false) as Answer<S, boolean>
  }

  consume(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> = 1, options?: VerbOptions<P>): Answer<S, Taken<L, S>> {
    const plan = options === undefined ? this.#plans.base : this.#planOf(options)
    return this.#consume('consume', plan, key, cost, options, (decision) => decision as Taken<L, S>)
  }

  peek(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> = 1, options?: VerbOptions<P>): Answer<S, Decision<LimitName<L>>> {
    const plan = this.#planOf(options)
    return this.#apply(ASK, plan, partsOf(plan, key, cost), (verdicts) => decisionOf(plan.scope.limits, verdicts))
  }

  reserve(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> = 1, options: ReserveOptions<P> = {}): Answer<S, Taken<L, S> & Reservation<S>> {
    const plan = this.#planOf(options, RESERVE_OPTIONS)
    const maxWaitUs = options.maxWaitMs === undefined ? this.#maxAheadUs : spanUs(options.maxWaitMs, 'maxWaitMs')
    const parts = partsOf(plan, key, cost)
    const verb: Verb = { op: 'take', aheadUs: Math.min(maxWaitUs, this.#maxAheadUs), ofUs: -1 }
    const sinceUs = this.#heardSinceUs()
    return this.#apply(verb, plan, parts, (verdicts) => {
      const reserved = new Reserved(parts, verdicts, this.#clock === undefined ? this.#ownClock.nowUs() : undefined)
      const cancel = () => this.#cancel(reserved, options.plan)
      const decided = decisionOf(plan.scope.limits, verdicts, reserved.settledBy(plan.settler), key, cost)
      const decision = Object.assign(decided, { cancel })
      this.#tell('reserve', key, cost, options, decision, sinceUs)
      return decision as Taken<L, S> & typeof decision
    })
  }

  acquire(key: Key<LimitName<L>>, options: AcquireOptions<LimitName<L>, P> = {}): Promise<Acquired<LimitName<L>, S>> {
    return this.#acquire(key, options, undefined)
  }

  /** `ended`: what else ends the wait, besides the signal among the options. */
  async #acquire(
    key: Key<LimitName<L>>,
    options: AcquireOptions<LimitName<L>, P>,
    ended: Abortable | undefined,
  ): Promise<Acquired<LimitName<L>, S>> {
    onlyKnown(options, ACQUIRE_OPTIONS, 'the options of a verb')
    const { cost = 1, timeoutMs, signal, plan } = options
    if (timeoutMs === undefined && signal === undefined && plan === undefined && this.#goesAtOnce()) {
      const decision = this.consume(key, cost) as Taken<L, S>
      if (decision.allowed) return Object.assign(decision, { waitedMs: 0 })
    }
    return this.#wait('acquire', key, cost, options, ended)
  }

  /** Whether a call that is allowed now need not stand in a queue: nobody waits, nothing is spaced out, nobody is to be told of a wait. */
  #goesAtOnce(): boolean {
    return this.#store.mode === 'sync' && this.#waiting.isEmpty && !this.#listeners.any && !this.#plans.base.spaced
  }

  wrap<Fn extends AnyFunction>(
    key: Key<LimitName<L>> | ((...args: Parameters<Fn>) => Key<LimitName<L>>),
    fn: Fn,
    options: PaceOptions<LimitName<L>, P, Parameters<Fn>> = {},
  ): Wrapped<Fn> {
    if (typeof fn !== 'function') throw new SluiceError('CONFIG', `what wrap is given, ${shown(fn)}, must be a function`)
    onlyKnown(options, ACQUIRE_OPTIONS, 'the options of wrap')
    const takesAtOnce = (of: Key<LimitName<L>>, cost: Cost<LimitName<L>>) => this.#goesAtOnce() && (this.tryAcquire(of, cost) as boolean)
    return wrapped(this, takesAtOnce, key, fn, options)
  }

  pace<Item>(
    key: Key<LimitName<L>> | ((item: Item) => Key<LimitName<L>>),
    source: Iterable<Item> | AsyncIterable<Item>,
    options: PaceOptions<LimitName<L>, P, [item: Item]> = {},
  ): AsyncGenerator<Item, void, undefined> {
    if (!isIterable(source))
      throw new SluiceError('CONFIG', `what pace is given, ${shown(source)}, must be an iterable or an async iterable`)
    onlyKnown(options, ACQUIRE_OPTIONS, 'the options of pace')
    return paced((of, bounds, ended) => this.#acquire(of, bounds, ended), key, source, options)
  }

  scope(plan?: P): Scope {
    return (plan === undefined ? this.#plans.base : this.#plans.of(plan)).scope
  }

  waiting(key?: Key<LimitName<L>>): number {
    if (key === undefined) return this.#waiting.count()
    return this.#queuesOf(partsOf(this.#plans.base, key, 0)).reduce((count, { size }) => count + size, 0)
  }

  charge(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> = 1, options?: VerbOptions<P>): Answer<S, Decision<LimitName<L>>> {
    const plan = this.#planOf(options)
    const sinceUs = this.#heardSinceUs()
    return this.#apply(CHARGE, plan, usedPartsOf(plan, key, cost), (verdicts) => {
      const decision = decisionOf(plan.scope.limits, verdicts)
      this.#tell('charge', key, cost, options, decision, sinceUs)
      return decision
    })
  }

  settle(key: Key<LimitName<L>>, actual: Cost<LimitName<L>>, options: SettleOptions<LimitName<L>, P>): Answer<S, void> {
    const plan = this.#planOf(options, SETTLE_OPTIONS)
    const { of, cost = 1 } = options
    checkDecided(of)
    const charges = chargesIn(plan.scope.limits, of)
    this.#checkOpen()
    const isTaken = of.allowed !== false && !of.degraded
    return this.#settle(plan.scope.limits, options.plan, { charges, key: isTaken ? key : undefined, cost, actual })
  }

  /** Charges or gives back by how much what was used differs from what was charged. Also after `close`: the estimate would stay charged. */
  #settle(
    limits: readonly NamedRule<LimitName<L>>[],
    planName: P | undefined,
    { charges, key, cost, actual, onAccepted }: Settled<LimitName<L>>,
  ): Answer<S, void> {
    const isSync = this.#store.mode === 'sync'
    const done = (isSync ? undefined : Promise.resolve()) as Answer<S, void>
    const differences = differencesOf(limits, cost, actual)
    onAccepted?.()
    if (key === undefined || differences.every((difference) => difference === 0)) return done
    const plan = this.#plans.still(planName)
    const parts = partsOf(plan, key, 0).map((part, k) => part.with({ cost: differences[k] as number }))
    const steps = settlements(parts, charges)
    const answers = steps.map((settlement) =>
      this.#applyTo(plan, this.#step(settlement, plan.scope, settlement.parts), (verdicts) => {
        if (steps.length === 1) this.#given(parts, verdicts, planName)
        else this.#tryAgain(parts)
      }),
    )
    return isSync ? done : (Promise.all(answers).then(() => undefined) as Answer<S, void>)
  }

  refund(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> = 1, options: RefundOptions<P> = {}): Answer<S, void> {
    const plan = this.#planOf(options, REFUND_OPTIONS)
    const ofUs = options.atMs === undefined ? -1 : instantUs(options.atMs, 'atMs')
    const parts = partsOf(plan, key, cost)
    return this.#apply({ ...GIVE, ofUs }, plan, parts, (verdicts) => this.#given(parts, verdicts, options.plan))
  }

  reset(key: Key<LimitName<L>>): Answer<S, void> {
    const parts = partsOf(this.#plans.base, key, 0)
    return this.#apply(FORGET, this.#plans.base, parts, () => {
      for (const queue of this.#queuesOf(parts)) queue.startAnew()
    })
  }

  listen(listener: Listener): () => void {
    checkListener(listener)
    return this.#listeners.add(listener)
  }

  update(limits: SameLimits<L>, plans?: Readonly<Record<P, SameLimits<L>>>): void {
    this.#checkOpen()
    this.#waiting.renumber(this.#plans.changed(limits as Limits, plans))
  }

  health(): Health {
    return this.#store.mode === 'async' ? this.#store.health : UP_SINCE_EVER
  }

  close(): void {
    this.#waiting.close(() => this.#closedError())
    if (this.#store.mode === 'async') this.#store.close()
    if (!this.#closed) this.#plans.close()
    this.#closed = true
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #connected(store: AsyncStore, options: LimiterOptions<L, S, P>): GuardedStore {
    const { storeTimeoutMs = DEFAULT_STORE_TIMEOUT_MS, localShare = 1 } = options
    return store.connect({
      clock: this.#ownClock,
      timeoutUs: Math.ceil(storeTimeoutMs * 1000),
      onStoreError: this.onStoreError,
      localShare,
      onHealth: (health) => this.#listeners.tellHealth({ limiter: this.name, ...health }),
    })
  }

  #plan(limits: readonly NamedRule<LimitName<L>>[], name: string | undefined): Plan<LimitName<L>> {
    const scope = { name: this.name, limits }
    const store = this.#store
    const states = store.mode === 'sync' ? store.open(scope, this.#ownClock.nowUs) : store.open(scope)
    const spaced = limits.some(({ rule }) => rule.algorithm.spaced)
    const parts = limits.map(({ name, rule }) => new Part(name, rule, '', 0))
    return {
      scope,
      spaced,
      states: states as OpenStates | undefined,
      step: new Step('take', scope, parts, -1, -1, undefined),
      verdicts: parts.map(({ verdict }) => verdict),
      settler: {
        chargesOf: (decision) => chargesIn(limits, decision),
        settle: (settled) => this.#answer(() => this.#settle(limits, name as P, settled as Settled<LimitName<L>>)),
      },
    }
  }

  #planOf(options: VerbOptions<P> | undefined, known: readonly string[] = VERB_OPTIONS): Plan<LimitName<L>> {
    if (options === undefined) return this.#plans.base
    onlyKnown(options, known, 'the options of a verb')
    return this.#plans.of(options.plan)
  }

  /** Takes, and tells the listeners. */
  #consume<T>(
    verb: DecisionEvent['verb'],
    plan: Plan<LimitName<L>>,
    key: Key<LimitName<L>>,
    cost: Cost<LimitName<L>>,
    options: VerbOptions<P> | undefined,
    answer: (decision: Decision<LimitName<L>>) => T,
  ): Answer<S, T> {
    const sinceUs = this.#heardSinceUs()
    if (plan.states === undefined) {
      return this.#apply(TAKE, plan, partsOf(plan, key, cost), (verdicts) => {
        const decision = decisionOf(plan.scope.limits, verdicts, plan.settler, key, cost)
        this.#tell(verb, key, cost, options, decision, sinceUs)
        return answer(decision)
      })
    }
    this.#checkOpen()
    plan.states.apply(filled(plan, key, cost), true)
    const decision = decisionOf(plan.scope.limits, plan.verdicts, plan.settler, key, cost)
    this.#tell(verb, key, cost, options, decision, sinceUs)
    return answer(decision) as Answer<S, T>
  }

  /** The time, for whoever listens; -1, without a look at the clock, if nobody does. */
  #heardSinceUs(): number {
    return this.#listeners.any ? this.#ownClock.nowUs() : -1
  }

  /** Of a call that began when nobody listened nobody is told. `endUs`: when a wait ended, 0 for now. */
  #tell(
    verb: DecisionEvent['verb'],
    key: Key<LimitName<L>>,
    cost: Cost<LimitName<L>>,
    options: VerbOptions<P> | undefined,
    decision: Decision,
    sinceUs: number,
    endUs?: number,
  ): void {
    if (!this.#listeners.any || sinceUs < 0) return
    const tookMs = ((endUs || this.#ownClock.nowUs()) - sinceUs) / 1000
    this.#listeners.tell({ limiter: this.name, verb, key, cost, plan: options?.plan, decision, waits: endUs !== undefined, tookMs })
  }

  #failed(error: unknown): never {
    this.#listeners.tellFailure({ limiter: this.name, error })
    throw error
  }

  #checkOpen(): void {
    if (this.#closed) throw this.#closedError()
  }

  #closedError(): SluiceError {
    return new SluiceError('CLOSED', `limiter '${this.name}' was closed`)
  }

  #waitingRoom({ maxQueue = DEFAULT_MAX_QUEUE, maxWaiting, unref = false }: LimiterOptions<L, S, P>): Waiting {
    const clock = this.#ownClock
    const desk = {
      maxQueue,
      maxAheadUs: this.#maxAheadUs,
      isShared: this.store.shared,
      nowUs: () => clock.nowUs(),
      apply: (verb: Verb, plan: string | undefined, parts: readonly Part[]) => {
        const store = this.#store
        const { scope, states } = this.#plans.still(plan)
        const step = this.#step(verb, scope, parts)
        if (store.mode === 'sync') return answered(states as OpenStates, step)
        // What the store was charged is not given back to who stands in for it.
        if ((verb.op === 'give' || verb.op === 'settle') && store.isDownFor(step)) return []
        return store.apply(step)
      },
    }
    return new Waiting(desk, clock, !unref, maxWaiting ?? Math.max(DEFAULT_MAX_WAITING, maxQueue))
  }

  async #tryToWait(key: Key<LimitName<L>>, cost: Cost<LimitName<L>>, options: WaitOptions<P>): Promise<boolean> {
    onlyKnown(options, TIMED_OPTIONS, 'the options of a verb')
    try {
      await this.#wait('tryAcquire', key, cost, options, undefined)
      return true
    } catch (error) {
      if (error instanceof WaitError) return false
      throw error
    }
  }

  async #wait(
    verb: 'acquire' | 'tryAcquire',
    key: Key<LimitName<L>>,
    cost: Cost<LimitName<L>>,
    options: WaitOptions<P>,
    ended: Abortable | undefined,
  ): Promise<Acquired<LimitName<L>, S>> {
    const parts = partsOf(this.#planOf(options, ACQUIRE_OPTIONS), key, cost)
    const bounds = { timeoutUs: timeoutUs(options.timeoutMs), signal: options.signal, ended }
    checkSignal(options.signal)
    this.#checkOpen()
    const sinceUs = this.#ownClock.nowUs()
    const plan = options.plan
    const request = {
      plan,
      parts,
      renumbered: (old: readonly Part[]) => this.#plans.renumbered(old, plan),
      read: (verdicts: readonly Verdict[]) => {
        const { scope, settler } = this.#plans.still(plan)
        return decisionOf(scope.limits, verdicts, settler, key, cost)
      },
      what: () => `a cost of ${shown(cost)} for key ${shown(key)}`,
    }
    const tell = (decision: Decision, endUs: number) => this.#tell(verb, key, cost, options, decision, sinceUs, endUs)
    let turn: Turn
    try {
      turn = await this.#waiting.wait(request, bounds)
    } catch (error) {
      // What was booked once, before the numbers changed, is no decision on a wait that ended.
      if (!(error instanceof WaitError) || error.decision?.allowed !== false) return this.#failed(error)
      tell(error.decision, 0)
      throw error
    }
    const { servedUs } = turn
    const isBooked = parts.every(({ rule }) => rule.algorithm.bookable)
    const acquired = atItsTime(turn.decision, turn.delayUs, isBooked)
    tell(acquired, servedUs)
    return Object.assign(acquired, { waitedMs: (servedUs - sinceUs) / 1000 }) as unknown as Acquired<LimitName<L>, S>
  }

  /** The queues of a key, under whatever plan. */
  #queuesOf(parts: readonly Part[]): Queue[] {
    return this.#waiting.queues(parts, this.#plans.names)
  }

  /** Gives a reservation back if its time has not come: to those who wait, or to the store. Also after `close`: others would stand behind it. */
  #cancel(reserved: Reserved, planName: P | undefined): Answer<S, void> {
    const { parts } = reserved
    const isSync = this.#store.mode === 'sync'
    const done = (isSync ? undefined : Promise.resolve()) as Answer<S, void>
    if (!reserved.end(this.#ownClock.nowUs()) || this.#waiting.queue(parts, planName)?.takeOver(parts, reserved.booked)) return done
    // The plan's numbers may have been updated since, or the plan dropped.
    const plan = this.#plans.still(planName)
    const answers = reserved
      .given(this.#plans.renumbered(parts, planName))
      .map((given) => this.#applyTo(plan, this.#step(given, plan.scope, given.parts), () => this.#tryAgain(parts)))
    return isSync ? done : (Promise.all(answers).then(() => undefined) as Answer<S, void>)
  }

  /**
   * What was given back serves those who wait: who is booked under these numbers moves up, by no more than one call of theirs can have taken; the
   * others try again.
   */
  #given(parts: readonly Part[], verdicts: readonly Verdict[], plan: P | undefined): void {
    if (verdicts[0]?.degraded) return
    const own = this.#waiting.queue(parts, plan)
    // Read now: a synchronous store overwrites its verdicts with the next step.
    const costs = parts.map(({ rule }, k) => Math.min(verdicts[k]?.given ?? 0, rule.capacity))
    for (const queue of this.#queuesOf(parts)) {
      if (queue === own) queue.moveUp(costs)
      else queue.tryAgain()
    }
  }

  #tryAgain(parts: readonly Part[]): void {
    for (const queue of this.#queuesOf(parts)) queue.tryAgain()
  }

  /** Wrong input to a store that answers later is a rejection. */
  #answer<T>(act: () => Answer<S, T>): Answer<S, T> {
    return this.#store.mode === 'sync' ? act() : (new Promise((resolve) => resolve(act())) as Answer<S, T>)
  }

  #apply<T>(verb: Verb, plan: Plan<LimitName<L>>, parts: readonly Part[], read: (verdicts: readonly Verdict[]) => T): Answer<S, T> {
    this.#checkOpen()
    return this.#applyTo(plan, this.#step(verb, plan.scope, parts), read)
  }

  /** The same for a limiter that may have been closed. */
  #applyTo<T>({ states }: Plan<LimitName<L>>, step: Step, read: (verdicts: readonly Verdict[]) => T): Answer<S, T> {
    const store = this.#store
    return (store.mode === 'sync' ? read(answered(states as OpenStates, step)) : this.#asked(store, step, read)) as Answer<S, T>
  }

  /** One promise less where nobody wants to hear of failures. */
  #asked<T>(store: GuardedStore, step: Step, read: (verdicts: readonly Verdict[]) => T): Promise<T> {
    if (!this.#listeners.hearFailures) return store.ask(step, read)
    return store.apply(step).then(read, (error) => this.#failed(error))
  }

  #step({ op, aheadUs, ofUs }: Verb, scope: Scope, parts: readonly Part[]): Step {
    return new Step(op, scope, parts, aheadUs, ofUs, this.#store.mode === 'sync' ? undefined : this.#clock?.nowUs())
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

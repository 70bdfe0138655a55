/**
 * The limiter of limits that are in use until they are released: its decisions are permits (permit.ts), and it renews their leases (leases.ts). The rest is
 * that of store-limiter.ts, which knows nothing of permits: a limiter without such a limit pays nothing for them.
 */
import { emptyVerdict, type Verdict } from '../algorithms/decide.ts'
import { onlyKnown } from '../algorithms/rate.ts'
import { SluiceError, shown } from '../errors.ts'
import type { Answer as WaitAnswer } from '../stores/queue/waiter.ts'
import type { GuardedStore } from '../stores/remote/guarded-store.ts'
import { Part, type Scope, Step } from '../stores/step.ts'
import type { OpenStates, Store } from '../stores/store.ts'
import { type Decision, decisionOf } from './decision.ts'
import type { ReleaseOutcome } from './events.ts'
import { Inflight } from './inflight.ts'
import { promised, RESERVE_OPTIONS } from './input.ts'
import { Leases, type OnRenewed } from './leases.ts'
import type {
  Acquired,
  AcquireOptions,
  Answer,
  Permit,
  RefundOptions,
  Reservation,
  ReserveOptions,
  Settleable,
  SettleOptions,
  VerbOptions,
} from './limiter.ts'
import type { CostOf, DecisionOf, KeyOf, LimiterOptions, LimitName, Limits, NamedRule } from './options.ts'
import { type AnyFunction, type PaceOptions, type Wrapped, wrapped } from './pacing.ts'
import { type Entrusted, HeldDecision, type Lender, type Loan } from './permit.ts'
import { filled, type Plan, partsOf } from './plans.ts'
import { StoreLimiter } from './store-limiter.ts'

type Taken<L extends Limits, S> = DecisionOf<L> & Settleable<LimitName<L>, S>

/** Limiters at which callers wait, by the memory they were given: another limiter of the same name may hold what they wait for. */
const waitingAtStores = new WeakMap<Store, Set<PermitLimiter<Limits, Store, string>>>()

function waitingAtStore(store: Store): Set<PermitLimiter<Limits, Store, string>> {
  const known = waitingAtStores.get(store) ?? new Set()
  waitingAtStores.set(store, known)
  return known
}

export class PermitLimiter<L extends Limits, S extends Store, P extends string> extends StoreLimiter<L, S, P> {
  readonly #isSync: boolean
  readonly #leases: Leases
  readonly #lender: Lender
  readonly #inflight = new Inflight()
  /** Undefined where no other limiter has the same memory. */
  readonly #waitingAtStore: Set<PermitLimiter<Limits, Store, string>> | undefined
  /** Permits whose holders are in other processes, by each of their loans. */
  readonly #entrusted = new Map<string, HeldDecision>()
  /** Whether limits have had keys of their own: then a release may concern any queue. */
  #hasKeysByName = false
  /** The step of the last release, by its plan and limit. */
  #giving: Giving | undefined = undefined

  constructor(limits: L, options: LimiterOptions<L, S, P>) {
    super(limits, options)
    this.#isSync = this.store.mode === 'sync'
    this.#waitingAtStore = options.store === undefined || this.store.shared ? undefined : waitingAtStore(this.store)
    const leases = new Leases(this.ownClock, {
      leaseUs: (plan, limit) => leaseOf(this.plans.still(plan).scope, limit),
      renew: (plan, loan, tokens, cost, onRenewed) => this.#renew(plan, loan, tokens, cost, onRenewed),
      release: (plan, loan, onReleased) => this.#releaseLoan(plan, loan, onReleased),
    })
    this.#leases = leases
    this.#lender = {
      nowUs: this.ownClock.nowUs,
      wallUs: () => leases.wallUs(),
      release: (permit, outcome) => this.#release(permit, outcome),
      lost: (permit) => {
        this.#end(permit, 'ignored')
        this.#tellQueues(permit)
      },
    }
  }

  override tryAcquire(): never {
    const error = unreleasable('tryAcquire')
    if (this.#isSync) throw error
    return Promise.reject(error) as never
  }

  override pace(): never {
    throw unreleasable('pace')
  }

  override consume(key: KeyOf<L>, cost: CostOf<L> = 1, options?: VerbOptions<P>): Answer<S, Taken<L, S>> {
    const taken = this.#isSync
      ? this.#consume(key, cost, options)
      : promised(this.#consume as (...args: unknown[]) => Promise<HeldDecision>, this, key, cost, options)
    return taken as unknown as Answer<S, Taken<L, S>>
  }

  override peek(key: KeyOf<L>, cost?: CostOf<L>, options?: VerbOptions<P>): Answer<S, DecisionOf<L>> {
    return this.#answer(() => super.peek(key, cost, options)) as Answer<S, DecisionOf<L>>
  }

  /** Nothing of it can be booked ahead: it is `consume`. */
  override reserve(key: KeyOf<L>, cost: CostOf<L> = 1, options: ReserveOptions<P> = {}): Answer<S, Taken<L, S> & Reservation<S>> {
    return this.#answer(() => {
      onlyKnown(options, RESERVE_OPTIONS, 'the options of a verb')
      const taken = this.#consume(key, cost, { plan: options.plan })
      const cancellable = (permit: HeldDecision) => Object.assign(permit, { cancel: () => permit.release({ outcome: 'ignored' }) })
      return taken instanceof HeldDecision ? cancellable(taken) : taken.then(cancellable)
    }) as Answer<S, Taken<L, S> & Reservation<S>>
  }

  /** Runs a function that holds a permit until what it promises has settled. */
  run<T>(
    key: KeyOf<L>,
    fn: (permit: Acquired<LimitName<L>, S> & Permit<S>) => T,
    options?: AcquireOptions<LimitName<L>, P>,
  ): Promise<Awaited<T>> {
    try {
      if (typeof fn !== 'function') throw new SluiceError('CONFIG', `what run is given, ${shown(fn)}, must be a function`)
      const permit = options === undefined ? this.#heldAtOnce(key) : undefined
      if (permit !== undefined) return this.#runWith(permit, fn as (permit: unknown) => T)
      return this.acquireAnd(key, options ?? {}, undefined, (held) =>
        this.#runWith(held as unknown as HeldDecision, fn as (permit: unknown) => T),
      )
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #runWith<T>(permit: HeldDecision, fn: (permit: unknown) => T): Promise<Awaited<T>> {
    let outcome: ReleaseOutcome = 'dropped'
    try {
      const result = await fn(permit)
      outcome = 'ok'
      return result
    } finally {
      // Never earlier than the work has ended, whatever was aborted or timed out meanwhile.
      const released = permit.release({ outcome })
      if (!this.#isSync) await released
    }
  }

  override wrap<Fn extends AnyFunction>(
    key: KeyOf<L> | ((...args: Parameters<Fn>) => KeyOf<L>),
    fn: Fn,
    options: PaceOptions<LimitName<L>, P, Parameters<Fn>> = {},
  ): Wrapped<Fn> {
    return wrapped<LimitName<L>, P, Fn>((of, cost, bounds, act) => this.run(of, act, { ...bounds, cost }), key, fn, options)
  }

  /** How many permits this limiter holds in this process: for a key, or at all. */
  inflight(key?: KeyOf<L>): number {
    return key === undefined ? this.#inflight.total : this.#inflight.of(this.#inflightKey(key))
  }

  override charge(key: KeyOf<L>, cost: CostOf<L> = 1, options?: VerbOptions<P>): Answer<S, DecisionOf<L>> {
    return this.#answer(() => super.charge(key, this.#ofTheOthers('charge', cost), options)) as Answer<S, DecisionOf<L>>
  }

  override settle(key: KeyOf<L>, actual: CostOf<L>, options: SettleOptions<LimitName<L>, P>): Answer<S, void> {
    return this.#answer(() => super.settle(key, actual, options)) as Answer<S, void>
  }

  override refund(key: KeyOf<L>, cost: CostOf<L> = 1, options: RefundOptions<P> = {}): Answer<S, void> {
    return this.#answer(() => super.refund(key, this.#ofTheOthers('refund', cost), options)) as Answer<S, void>
  }

  override reset(key: KeyOf<L>): Answer<S, void> {
    return this.#answer(() => {
      const done = super.reset(key)
      this.#tellOtherQueues(key)
      return done
    }) as Answer<S, void>
  }

  /** From now on the holder is in another process, and renews it there. Here it counts as in flight until it is given back here, or its lease is over. */
  entrust(permit: HeldDecision): Entrusted & { readonly leaseMs: number } {
    const { loans, plan, sinceUs } = HeldDecision.lent(permit)
    // Places that a fallback lent end with their lease, too: this process does not see that the holder has died.
    for (const loan of loans) if (loan.leaseUs > 0 && loan.degraded) this.#leases.add(permit, loan, sinceUs)
    this.#leases.leave(permit)
    for (const loan of loans) this.#entrusted.set(loanId(loan), permit)
    return { plan, loans, leaseMs: this.#leaseMs({ plan, loans }) }
  }

  /** Releases it, whichever process it was lent by. Answers whether it was held. */
  async giveBack({ plan, loans }: Entrusted): Promise<boolean> {
    const given = await Promise.all(loans.map((loan) => this.#askedFor('give', plan, loan)))
    const permit = this.#entrustedWith(loans)
    if (permit !== undefined) this.#end(permit, 'ok')
    this.#tellQueuesOf((loans[0] as Loan).key as KeyOf<L>)
    return given.some(({ outcome }) => outcome === 'allowed')
  }

  /** Lets its lease run anew. Answers for how many milliseconds it is held from now on: 0 if it is held no longer. */
  async renewFor({ plan, loans }: Entrusted): Promise<number> {
    const askedUs = this.ownClock.nowUs()
    const askedWallUs = this.#leases.wallUs()
    const renewed = await Promise.all(loans.map((loan) => this.#askedFor('renew', plan, loan)))
    const isHeld = renewed.every(({ given }) => given === 1)
    const permit = this.#entrustedWith(loans)
    if (permit !== undefined) {
      this.#leases.renewed(permit, askedUs, askedWallUs)
      if (!isHeld) HeldDecision.lose(permit)
    }
    return isHeld ? this.#leaseMs({ plan, loans }) : 0
  }

  #leaseMs({ plan, loans }: Entrusted): number {
    const { scope } = this.plans.still(plan)
    return Math.min(...loans.map(({ limit }) => leaseOf(scope, limit))) / 1000
  }

  #entrustedWith(loans: Entrusted['loans']): HeldDecision | undefined {
    return this.#entrusted.get(loanId(loans[0] as Loan))
  }

  /** The store's own answer: one in its place helps only those who were lent by it, and those it helps as long as it decides. */
  async #askedFor(op: 'give' | 'renew', plan: string | undefined, loan: Entrusted['loans'][number]): Promise<Verdict> {
    const { limit, key, cost, token, degraded } = loan
    const { rule } = limitOf(this.plans.still(plan).scope, limit)
    const part =
      op === 'give'
        ? new Part(limit, rule, key, cost)
        : new Part(limit, rule, key, 0, { numbers: rule.numbers, words: Float64Array.of(token) })
    if (degraded && !this.#isDown(part)) return { ...emptyVerdict(), outcome: 'limited' }
    return new Promise((resolve, reject) => {
      this.#send(op, plan, part, op === 'give' ? token : -1, (verdict, error) => {
        if (verdict === undefined) reject(error)
        else if (verdict.degraded && !degraded) reject(new SluiceError('STORE', 'the store did not answer'))
        else resolve({ ...verdict })
      })
    })
  }

  protected override waits(key: KeyOf<L>): void {
    if (typeof key === 'object') this.#hasKeysByName = true
    this.#waitingAtStore?.add(this as unknown as PermitLimiter<Limits, Store, string>)
  }

  /** However a wait ends, its place in line does too: those behind it in other queues, of other plans or keys by name, are next. */
  protected override waitEnded(key: KeyOf<L>): void {
    if (this.queues.isEmpty) this.#waitingAtStore?.delete(this as unknown as PermitLimiter<Limits, Store, string>)
    this.#tellOtherQueues(key)
  }

  protected override acquired(
    decision: Decision<LimitName<L>>,
    waitedMs: number,
    { verdicts, limits, askedUs }: WaitAnswer,
    parts: readonly Part[],
    plan: P | undefined,
    key: KeyOf<L>,
    tell: () => void,
  ): Acquired<LimitName<L>, S> {
    return told(this.#permit(decision, limits, parts, verdicts, key, plan, askedUs, waitedMs), tell) as unknown as Acquired<LimitName<L>, S>
  }

  #answer<T>(act: () => T): T {
    return this.#isSync ? act() : (promised(act as () => Promise<unknown>, this) as T)
  }

  #consume(key: KeyOf<L>, cost: CostOf<L>, options: VerbOptions<P> | undefined, waitedMs = -1): HeldDecision | Promise<HeldDecision> {
    const plan = this.planOf(options)
    const sinceUs = this.heardSinceUs()
    this.checkOpen()
    if (plan.states !== undefined) {
      plan.states.apply(filled(plan, key, cost), true)
      const askedUs = (plan.verdicts[0] as Verdict).atUs
      return this.#decided(plan, plan.step.parts, plan.verdicts, key, cost, options, sinceUs, askedUs, waitedMs)
    }
    const askedUs = this.ownClock.nowUs()
    const parts = partsOf(plan, key, cost)
    return this.applyTo(plan, { op: 'take', parts, aheadUs: -1, ofUs: -1 }, (verdicts) =>
      this.#decided(plan, parts, verdicts, key, cost, options, sinceUs, askedUs, waitedMs),
    ) as Promise<HeldDecision>
  }

  #decided(
    plan: Plan<LimitName<L>>,
    parts: readonly Part[],
    verdicts: readonly Verdict[],
    key: KeyOf<L>,
    cost: CostOf<L>,
    options: VerbOptions<P> | undefined,
    sinceUs: number,
    askedUs: number,
    waitedMs: number,
  ): HeldDecision {
    const { limits } = plan.scope
    const decision = decisionOf(limits, verdicts, plan.settler, key, cost)
    const permit = this.#permit(decision, limits, parts, verdicts, key, options?.plan, askedUs, waitedMs)
    if (sinceUs >= 0) told(permit, () => this.tell('consume', key, cost, options, decision, sinceUs))
    return permit
  }

  /** A permit, if nobody has to wait for it. */
  #heldAtOnce(key: KeyOf<L>): HeldDecision | undefined {
    if (!this.goesAtOnce()) return undefined
    const permit = this.#consume(key, 1, undefined, 0) as HeldDecision
    return permit.allowed ? permit : undefined
  }

  #permit(
    decision: Decision<LimitName<L>>,
    limits: Scope['limits'],
    parts: readonly Part[],
    verdicts: readonly Verdict[],
    key: KeyOf<L>,
    plan: P | undefined,
    askedUs: number,
    waitedMs: number,
  ): HeldDecision {
    if (typeof key === 'object') this.#hasKeysByName = true
    const loans = decision.allowed ? loansOf(limits, parts, verdicts) : NO_LOANS
    const permit = new HeldDecision(this.#lender, decision, { loans, key, plan, sinceUs: askedUs }, waitedMs)
    if (loans.length > 0) this.#lend(permit, loans, askedUs)
    return permit
  }

  #lend(permit: HeldDecision, loans: readonly Loan[], askedUs: number): void {
    const { key, cost } = loans[0] as Loan
    this.#inflight.add(key, cost)
    // Permits of a fallback are not known to the store, and not renewed there.
    for (const loan of loans) if (loan.leaseUs > 0 && !loan.degraded) this.#leases.add(permit, loan, askedUs)
  }

  #release(permit: HeldDecision | undefined, outcome: ReleaseOutcome): unknown {
    const isSync = this.#isSync
    if (permit === undefined) return isSync ? undefined : Promise.resolve()
    this.#end(permit, outcome)
    const ended = isSync ? this.#releaseNow(permit) : this.#releaseLater(permit)
    this.#tellQueues(permit)
    return ended
  }

  async #releaseLater(permit: HeldDecision): Promise<void> {
    const { loans, plan } = HeldDecision.lent(permit)
    await Promise.all(loans.map((loan) => new Promise<void>((resolve) => this.#leases.release(plan, loan, resolve))))
  }

  /** It is held no longer: released or lost. */
  #end(permit: HeldDecision, outcome: ReleaseOutcome): void {
    const { loans, key, plan, sinceUs } = HeldDecision.lent(permit)
    if (loans.length === 0) return
    this.#leases.remove(permit)
    if (this.#entrusted.size > 0) for (const loan of loans) this.#entrusted.delete(loanId(loan))
    const { key: first, cost } = loans[0] as Loan
    const inflight = this.#inflight.add(first, -cost)
    if (!this.listeners.hearReleases) return
    const heldMs = (this.ownClock.nowUs() - sinceUs) / 1000
    this.listeners.tellRelease({ limiter: this.name, key, plan, heldMs, outcome, inflight })
  }

  /** Callers that wait for its place are next. */
  #tellQueues(permit: HeldDecision): void {
    this.#tellQueuesOf(HeldDecision.lent(permit).key as KeyOf<L>)
  }

  #tellQueuesOf(key: KeyOf<L>): void {
    this.#tellOwnQueues(key)
    this.#tellOtherLimiters()
  }

  /** Those that may wait for what is free of a key. */
  #tellOwnQueues(key: KeyOf<L>): void {
    if (this.queues.isEmpty) return
    if (!this.#hasKeysByName && typeof key === 'string') this.queues.tryAgain(key)
    else for (const queue of this.queues.all()) queue.tryAgain()
  }

  /** Those of the same name that have the same memory: a limiter that is made again waits for what the one before it holds. */
  #tellOtherLimiters(): void {
    if (this.#waitingAtStore === undefined) return
    for (const other of this.#waitingAtStore) {
      if (other.name === this.name && other.queues !== this.queues) for (const queue of other.queues.all()) queue.tryAgain()
    }
  }

  /** Permits may be free for waiters in other queues than the one that has seen it. */
  #tellOtherQueues(key: KeyOf<L>): void {
    if (this.#hasOtherQueues) this.#tellQueuesOf(key)
  }

  /** Whether calls of one key may wait in several queues. Where others share the store, all of them look again and again. */
  get #hasOtherQueues(): boolean {
    const { areSeveral, base } = this.plans
    return !this.store.shared && (areSeveral || this.#waitingAtStore !== undefined || base.scope.limits.length > 1)
  }

  #inflightKey(key: KeyOf<L>): string {
    const parts = partsOf(this.plans.base, key, 0)
    return (parts.find(({ rule }) => rule.algorithm.untilReleased) as Part).key
  }

  #renew(plan: string | undefined, { limit, key }: Loan, tokens: readonly number[], cost: number, onRenewed: OnRenewed): void {
    const { rule } = limitOf(this.plans.still(plan).scope, limit)
    const part = new Part(limit, rule, key, cost, { numbers: rule.numbers, words: Float64Array.from(tokens) })
    this.#send('renew', plan, part, -1, (verdict) => onRenewed(verdict?.degraded ? undefined : verdict?.given))
  }

  #releaseLoan(plan: string | undefined, { limit, key, cost, token, degraded }: Loan, onReleased: (isTold: boolean) => void): void {
    const { rule } = limitOf(this.plans.still(plan).scope, limit)
    const part = new Part(limit, rule, key, cost)
    // Permits of a fallback go back to it, as long as it decides.
    if (degraded && !this.#isDown(part)) onReleased(true)
    else this.#send('give', plan, part, token, (verdict) => onReleased(verdict !== undefined && (degraded || !verdict.degraded)))
  }

  /** Whether a fallback decides in place of the store. */
  #isDown(part: Part): boolean {
    return (this.guarded as GuardedStore).isDownFor(new Step('give', this.scope(), [part], -1, -1, undefined))
  }

  /** One limit's share of what permits ask of the store. It may have been closed since. Told undefined, and the error, if the store failed. */
  #send(
    op: 'renew' | 'give',
    planName: string | undefined,
    part: Part,
    ofUs: number,
    onVerdict: (verdict: Verdict | undefined, error?: unknown) => void,
  ): void {
    const plan: Plan<LimitName<L>> = this.plans.still(planName)
    const step = this.step({ op, parts: [part], aheadUs: -1, ofUs }, plan.scope)
    const store = this.guarded
    if (store.mode === 'async') {
      store.ask(step, ([verdict]) => verdict).then(onVerdict, (error) => onVerdict(undefined, error))
      return
    }
    try {
      ;(plan.states as OpenStates).apply(step, true)
    } catch (error) {
      // It may be a timer that sends, and nobody catches what that throws.
      onVerdict(undefined, error)
      return
    }
    onVerdict(part.verdict)
  }

  #releaseNow(permit: HeldDecision): void {
    const { loans, plan: planName } = HeldDecision.lent(permit)
    const plan = this.plans.still(planName)
    for (let k = 0; k < loans.length; k++) {
      const loan = loans[k] as Loan
      const { part, step } = this.#givingTo(plan, loan.limit)
      part.key = loan.key
      part.cost = loan.cost
      step.ofUs = loan.token
      try {
        ;(plan.states as OpenStates).apply(step, false)
      } catch (error) {
        // Without a lease nothing but the caller could try again.
        if (loan.lease === undefined) throw error
        this.#leases.releaseAgain(planName, loan, loan.lease)
      }
    }
  }

  /** Where the store answers at once: a step that is filled in for each release, so that nothing has to be made. */
  #givingTo(plan: Plan<LimitName<L>>, limit: string): Giving {
    const known = this.#giving
    if (known !== undefined && known.plan === plan && known.part.limit === limit) return known
    const part = new Part(limit, limitOf(plan.scope, limit).rule, '', 0)
    this.#giving = { plan, part, step: new Step('give', plan.scope, [part], -1, -1, undefined) }
    return this.#giving
  }

  /** A cost of nothing for what is released. */
  #ofTheOthers(verb: string, cost: CostOf<L>): CostOf<L> {
    const { limits } = this.plans.base.scope
    if (limits.every(({ rule }) => rule.algorithm.untilReleased)) throw unreleasable(verb)
    const given = typeof cost === 'object' && cost !== null ? cost : Object.fromEntries(limits.map(({ name }) => [name, cost]))
    const released = limits.filter(({ rule }) => rule.algorithm.untilReleased).map(({ name }) => [name, 0])
    return { ...given, ...Object.fromEntries(released) } as CostOf<L>
  }
}

const NO_LOANS: readonly Loan[] = []

interface Giving {
  readonly plan: unknown
  readonly part: Part
  readonly step: Step
}

function limitOf({ limits }: Scope, name: string): Scope['limits'][number] {
  return limits.find((limit) => limit.name === name) as Scope['limits'][number]
}

function loanId({ limit, key, token }: Pick<Loan, 'limit' | 'key' | 'token'>): string {
  return `${limit}\n${token}\n${key}`
}

function leaseOf(scope: Scope, name: string): number {
  const { rule } = limitOf(scope, name)
  return rule.endless ? Number.POSITIVE_INFINITY : rule.windowUs
}

function loansOf(limits: Scope['limits'], parts: readonly Part[], verdicts: readonly Verdict[]): readonly Loan[] {
  let loans = NO_LOANS
  for (let k = 0; k < parts.length; k++) {
    const { limit, key, cost } = parts[k] as Part
    const { rule } = limits[k] as NamedRule
    if (cost === 0 || !rule.algorithm.untilReleased) continue
    const { enteredUs: token, degraded = false } = verdicts[k] as Verdict
    const loan: Loan = { limit, key, cost, token, degraded, leaseUs: rule.endless ? 0 : rule.windowUs, lease: undefined }
    // Mostly one: an array that grows leaves room for many more.
    loans = loans.length === 0 ? [loan] : loans.concat(loan)
  }
  return loans
}

/** If a listener throws, the caller does not get the permit: nobody would release it. */
function told(permit: HeldDecision, tell: () => void): HeldDecision {
  try {
    tell()
    return permit
  } catch (error) {
    void permit.release({ outcome: 'ignored' })
    throw error
  }
}

function unreleasable(verb: string): SluiceError {
  const instead = verb === 'refund' ? 'a permit is given back by its release()' : 'use consume, acquire or run, whose permits are released'
  return new SluiceError('UNSUPPORTED', `${verb} cannot be used where a limit is held until it is released: ${instead}`)
}

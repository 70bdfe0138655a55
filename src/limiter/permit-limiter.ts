/**
 * The limiter of limits that are in use until they are released: its decisions are permits
 * (permit.ts), and it renews their leases (leases.ts). The rest is that of store-limiter.ts, which
 * knows nothing of permits: a limiter without such a limit pays nothing for them.
 */
import type { Verdict } from '../algorithms/decide.ts'
import { MAX_PERMITS, onlyKnown } from '../algorithms/rate.ts'
import { SluiceError, shown } from '../errors.ts'
import type { Answer as WaitAnswer } from '../stores/queue/question.ts'
import type { Waiter } from '../stores/queue/waiter.ts'
import type { Part } from '../stores/step.ts'
import type { Store } from '../stores/store.ts'
import { type Decision, decisionOf } from './decision.ts'
import { EntrustedPermits } from './entrusted.ts'
import type { ReleaseOutcome } from './events.ts'
import { Inflight } from './inflight.ts'
import { promised, RESERVE_OPTIONS } from './input.ts'
import { Leases } from './leases.ts'
import type { Acquired, AcquireOptions, Answer, Permit, ReserveOptions, Settleable, SettleOptions, VerbOptions } from './limiter.ts'
import { Loans, loansOf } from './loans.ts'
import { NextInLine } from './next-in-line.ts'
import type { CostOf, DecisionOf, KeyOf, LimiterOptions, LimitName, Limits } from './options.ts'
import { type AnyFunction, type PaceOptions, type Wrapped, wrapped } from './pacing.ts'
import { type Entrusted, HeldDecision, type Lender, type Loan, NO_LOANS } from './permit.ts'
import { filled, type Plan, type Plans, partsOf } from './plans.ts'
import { StoreLimiter } from './store-limiter.ts'

type Taken<L extends Limits, S> = DecisionOf<L> & Settleable<LimitName<L>, S>

export class PermitLimiter<L extends Limits, S extends Store, P extends string> extends StoreLimiter<L, S, P> {
  readonly #isSync: boolean
  readonly #loans: Loans<LimitName<L>>
  readonly #leases: Leases
  readonly #entrusted: EntrustedPermits
  readonly #next: NextInLine
  readonly #inflight = new Inflight()
  readonly #lender: Lender

  constructor(limits: L, options: LimiterOptions<L, S, P>) {
    super(limits, options)
    const plans = this.plans as unknown as Plans<string>
    this.#isSync = this.store.mode === 'sync'
    this.#loans = new Loans(this.plans, this.guarded, (op, { scope }, part, ofUs) =>
      this.step({ op, parts: [part], aheadUs: -1, ofUs }, scope),
    )
    this.#leases = new Leases(this.ownClock, this.#loans)
    this.#entrusted = new EntrustedPermits(this.ownClock, this.#loans as unknown as Loans<string>, this.#leases)
    this.#next = new NextInLine(this.name, this.queues, plans, this.store, options.store !== undefined)
    this.#lender = {
      nowUs: this.ownClock.nowUs,
      wallUs: () => this.#leases.wallUs(),
      release: (permit, outcome) => this.#release(permit, outcome),
      lost: (permit) => {
        this.#end(permit, 'ignored')
        this.#next.tell(HeldDecision.key(permit))
      },
    }
  }

  override tryAcquire(): never {
    throw unreleasable('tryAcquire')
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
  override reserve(key: KeyOf<L>, cost: CostOf<L> = 1, options: ReserveOptions<P> = {}): Answer<S, Taken<L, S>> {
    return this.#answer(() => {
      onlyKnown(options, RESERVE_OPTIONS, 'the options of a verb')
      return this.#consume(key, cost, { plan: options.plan })
    }) as unknown as Answer<S, Taken<L, S>>
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
      return permit === undefined ? this.acquireAnd(key, options ?? {}, undefined, fn) : runWith(permit, fn)
    } catch (error) {
      return Promise.reject(error)
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

  override refund(key: KeyOf<L>, cost: CostOf<L> = 1, options?: VerbOptions<P>): Answer<S, void> {
    return this.#answer(() => super.refund(key, this.#ofTheOthers('refund', cost), options)) as Answer<S, void>
  }

  override reset(key: KeyOf<L>): Answer<S, void> {
    return this.#answer(() => {
      const done = super.reset(key)
      this.#next.tellOthers(key)
      return done
    }) as Answer<S, void>
  }

  /** Another process holds it from now on, and renews it: see entrusted.ts. */
  entrust(permit: HeldDecision): Entrusted & { readonly leaseMs: number } {
    return this.#entrusted.add(permit)
  }

  async giveBack(lent: Entrusted): Promise<boolean> {
    const isGiven = await this.#entrusted.giveBack(lent)
    const permit = this.#entrusted.permitOf(lent)
    if (permit !== undefined && HeldDecision.end(permit)) this.#end(permit, 'ok')
    this.#next.tell((lent.loans[0] as Loan).key)
    return isGiven
  }

  renewFor(lent: Entrusted): Promise<number> {
    return this.#entrusted.renew(lent)
  }

  protected override acted(acquired: unknown, fn: AnyFunction | undefined): unknown {
    return fn === undefined ? acquired : runWith(acquired, fn)
  }

  protected override waits(key: KeyOf<L>): void {
    this.#next.waits(key)
  }

  protected override waitEnded(key: KeyOf<L>): void {
    this.#next.waitEnded(key)
  }

  protected override acquired(
    call: Waiter<LimitName<L>>,
    decision: DecisionOf<L>,
    { verdicts, limits, askedUs, askedWallUs }: WaitAnswer,
    servedUs: number,
  ): Acquired<LimitName<L>, S> {
    const { key, cost, parts, sinceUs, queue } = call
    const plan = queue.planName as P | undefined
    const permit = this.#asked(key, plan, askedUs, askedWallUs)
    this.#lend(permit, decision, loansOf(limits, parts, verdicts), (servedUs - sinceUs) / 1000)
    this.tell('acquire', key, cost, { plan }, decision, sinceUs, servedUs)
    return permit as unknown as Acquired<LimitName<L>, S>
  }

  #answer<T>(act: () => T): T {
    return this.#isSync ? act() : (promised(act as () => Promise<unknown>, this) as T)
  }

  #consume(key: KeyOf<L>, cost: CostOf<L>, options: VerbOptions<P> | undefined, waitedMs = -1): HeldDecision | Promise<HeldDecision> {
    const plan = this.planOf(options)
    const sinceUs = this.heardSinceUs()
    this.checkOpen()
    if (plan.states === undefined) return this.#consumeLater(plan, key, cost, options, sinceUs)
    const { take, verdicts } = plan
    plan.states.apply(filled(plan, take, key, cost, MAX_PERMITS), true)
    const permit = this.#asked(key, options?.plan, (verdicts[0] as Verdict).atUs)
    const decision = this.#decided(permit, plan, take.parts, verdicts, cost, waitedMs)
    if (sinceUs >= 0) this.tell('consume', key, cost, options, decision, sinceUs)
    return permit
  }

  #consumeLater(
    plan: Plan<LimitName<L>>,
    key: KeyOf<L>,
    cost: CostOf<L>,
    options: VerbOptions<P> | undefined,
    sinceUs: number,
  ): Promise<HeldDecision> {
    const parts = partsOf(plan, key, cost)
    const permit = this.#asked(key, options?.plan, this.ownClock.nowUs(), this.#leases.wallUs())
    return this.applyTo(plan, { op: 'take', parts, aheadUs: -1, ofUs: -1 }, (verdicts) => {
      const decision = this.#decided(permit, plan, parts, verdicts, cost, -1)
      this.tell('consume', key, cost, options, decision, sinceUs)
      return permit
    }) as Promise<HeldDecision>
  }

  #decided(
    permit: HeldDecision,
    { scope: { limits }, settler }: Plan<LimitName<L>>,
    parts: readonly Part[],
    verdicts: readonly Verdict[],
    cost: CostOf<L>,
    waitedMs: number,
  ): Decision<LimitName<L>> {
    const decision = decisionOf(limits, verdicts, settler, HeldDecision.key(permit) as KeyOf<L>, cost)
    this.#lend(permit, decision, decision.allowed ? loansOf(limits, parts, verdicts) : NO_LOANS, waitedMs)
    return decision
  }

  /** A permit, if nobody has to wait for it. */
  #heldAtOnce(key: KeyOf<L>): HeldDecision | undefined {
    if (!this.goesAtOnce()) return undefined
    const permit = this.#consume(key, 1, undefined, 0) as HeldDecision
    return permit.allowed ? permit : undefined
  }

  /** A permit that the store has yet to decide on. */
  #asked(key: KeyOf<L>, plan: P | undefined, askedUs: number, askedWallUs?: number): HeldDecision {
    this.#next.uses(key)
    return new HeldDecision(this.#lender, key, plan, askedUs, askedWallUs)
  }

  /** The store has decided: what it granted is held from now on. */
  #lend(permit: HeldDecision, decision: Decision, granted: readonly Loan[], waitedMs: number): void {
    HeldDecision.decide(permit, decision, granted, waitedMs)
    const first = granted[0]
    if (first === undefined) return
    this.#inflight.add(first.key, first.cost)
    try {
      for (const loan of granted) if (loan.leaseUs > 0) this.#leases.add(permit, loan)
    } catch (error) {
      // A caller's clock threw, and the caller does not get the permit.
      void permit.release({ outcome: 'ignored' })
      throw error
    }
  }

  #release(permit: HeldDecision | undefined, outcome: ReleaseOutcome): unknown {
    const isSync = this.#isSync
    if (permit === undefined) return isSync ? undefined : Promise.resolve()
    this.#end(permit, outcome)
    const ended = isSync ? this.#releaseNow(permit) : this.#releaseLater(permit)
    this.#next.tell(HeldDecision.key(permit))
    return ended
  }

  #releaseNow(permit: HeldDecision): void {
    const plan = HeldDecision.plan(permit)
    for (const loan of HeldDecision.loans(permit)) {
      try {
        this.#loans.releaseNow(plan, loan)
      } catch (error) {
        // Without a lease nothing but the caller could try again.
        if (loan.lease === undefined) throw error
        this.#leases.releaseAgain(plan, loan, loan.lease)
      }
    }
  }

  #releaseLater(permit: HeldDecision): Promise<void> {
    const plan = HeldDecision.plan(permit)
    const loans = HeldDecision.loans(permit)
    const release = (loan: Loan) => new Promise<void>((resolve) => this.#leases.release(plan, loan, resolve))
    // Mostly one: a promise of many takes as many promises more.
    return loans.length === 1 ? release(loans[0] as Loan) : Promise.all(loans.map(release)).then(() => undefined)
  }

  /** It is held no longer: released or lost. */
  #end(permit: HeldDecision, outcome: ReleaseOutcome): void {
    const loans = HeldDecision.loans(permit)
    if (loans.length === 0) return
    this.#leases.remove(permit)
    this.#entrusted.remove(loans)
    const { key, cost } = loans[0] as Loan
    const inflight = this.#inflight.add(key, -cost)
    if (this.listeners.hearReleases) this.#tellRelease(permit, outcome, inflight)
  }

  #tellRelease(permit: HeldDecision, outcome: ReleaseOutcome, inflight: number): void {
    const heldMs = (this.ownClock.nowUs() - HeldDecision.askedUs(permit)) / 1000
    const key = HeldDecision.key(permit)
    const plan = HeldDecision.plan(permit)
    this.listeners.tellRelease({ limiter: this.name, key, plan, heldMs, outcome, inflight })
  }

  #inflightKey(key: KeyOf<L>): string {
    const parts = partsOf(this.plans.base, key, 0)
    return (parts.find(({ rule }) => rule.algorithm.untilReleased) as Part).key
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

async function runWith<T>(permit: unknown, fn: (permit: never) => T): Promise<Awaited<T>> {
  let outcome: ReleaseOutcome = 'dropped'
  try {
    const result = await fn(permit as never)
    outcome = 'ok'
    return result
  } finally {
    // Never earlier than the work has ended, whatever was aborted or timed out meanwhile.
    const released = (permit as HeldDecision).release({ outcome })
    // A store that answers at once has released it by now.
    if (released !== undefined) await released
  }
}

function unreleasable(verb: string): SluiceError {
  const instead = verb === 'refund' ? 'a permit is given back by its release()' : 'use consume, acquire or run, whose permits are released'
  return new SluiceError('UNSUPPORTED', `${verb} cannot be used where a limit is held until it is released: ${instead}`)
}

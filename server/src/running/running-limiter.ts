/**
 * One limiter of the configuration at work: its numbers can be changed, and it can be replaced,
 * while callers wait at it.
 */
import { DEFAULT_MAX_QUEUE, type LimiterConfig, type NamedLimits, type SignalName, titleOf } from '../config/config.ts'
import type { Journal } from '../journal.ts'
import type { LimiterMetrics } from '../metrics/metrics.ts'
import type { Tally } from '../metrics/tally.ts'
import {
  boundedKey,
  type Clock,
  type Cost,
  checkNames,
  costFor,
  type Decision,
  type Entrusted,
  type Health,
  type Key,
  keyFor,
  type Listener,
  type LoadSignal,
  limitsNow,
  MAX_PERMITS,
  opened,
  RULE,
  type Scope,
  SluiceError,
  type Store,
  shown,
  spanUs,
  WaitError,
} from '../sluice.ts'
import { Follower } from './follower.ts'
import { permitIn, permitText } from './permit-text.ts'
import type {
  AcquireRequest,
  Answer,
  ChargeRequest,
  DecisionRequest,
  MaybePromise,
  Refunded,
  Released,
  Renewed,
  Settled,
  SettleRequest,
  Verb,
} from './request.ts'

/** The library's limiter as the service sees it: limits and plans are known only at run time. */
interface AnyLimiter {
  consume(key: Key<string>, cost: Cost<string>, options?: object): MaybePromise<Decision>
  peek(key: Key<string>, cost: Cost<string>, options?: object): MaybePromise<Decision>
  reserve(key: Key<string>, cost: Cost<string>, options?: object): MaybePromise<Decision>
  refund(key: Key<string>, cost: Cost<string>, options?: object): MaybePromise<undefined>
  charge(key: Key<string>, cost: Cost<string>, options?: object): MaybePromise<Decision>
  settle(key: Key<string>, actual: Cost<string>, options: object): MaybePromise<undefined>
  acquire(key: Key<string>, options: object): Promise<Decision & { waitedMs: number }>
  reset(key: Key<string>): MaybePromise<void>
  scope(): Scope
  update(limits: NamedLimits, plans: Readonly<Record<string, NamedLimits>>): void
  waiting(): number
  /** These are there only where a limit is held until it is released. */
  inflight?(): number
  entrust?(permit: Decision): Entrusted & { readonly leaseMs: number }
  giveBack?(lent: Entrusted): Promise<boolean>
  renewFor?(lent: Entrusted): Promise<number>
  health(): Health
  listen(listener: Listener): () => void
  close(): void
}

/** Where and when: a clock is only given by tests. */
export interface Ground {
  readonly store: Store
  readonly clock: Clock | undefined
  /** Called with every key that is refused; undefined: there is no listener. */
  readonly onRefused: ((limiter: string, key: string) => void) | undefined
  readonly waiters: Waiters
  readonly journal: Journal
  readonly signals: Signals
}

/** What rates follow. */
export type Signals = Readonly<Record<SignalName, () => LoadSignal>>

/** How many wait at all limiters, and how many may. */
export interface Waiters {
  count: number
  max: number
}

/** With less than this part of its limit left, a key is near it: a fifth. */
const NEAR = 5

export class RunningLimiter {
  /** What it has done. */
  readonly tally: Tally
  readonly #onRefused: Ground['onRefused']
  readonly #limiter: AnyLimiter
  readonly #waiters: Waiters
  /** Whether keys are kept in the memory of this process: then long ones are kept as digests. */
  readonly #inMemory: boolean
  readonly #follower: Follower
  #config: LimiterConfig
  #names: readonly { readonly name: string }[]
  #waits = 0
  #retired = false

  constructor(config: LimiterConfig, ground: Ground, { tally, listener }: LimiterMetrics) {
    const { store, clock, onRefused, waiters, journal } = ground
    this.#config = config
    this.#names = namesOf(config)
    this.tally = tally
    this.#onRefused = onRefused
    this.#waiters = waiters
    this.#inMemory = store.mode === 'sync'
    // Not by createLimiter: that others of its name have other numbers is as it should be.
    this.#limiter = opened(config.limits, {
      name: config.name,
      store,
      plans: config.plans,
      maxQueue: DEFAULT_MAX_QUEUE,
      ...config.options,
      ...(clock === undefined ? {} : { clock }),
    } as object) as AnyLimiter
    this.#limiter.listen(this.#hearing(listener, journal))
    this.#follower = new Follower(this.#limiter, ground, tally)
    this.#follower.begin(config)
  }

  get config(): LimiterConfig {
    return this.#config
  }

  get health(): Health {
    return this.#limiter.health()
  }

  get scope(): Scope {
    return this.#limiter.scope()
  }

  get waiting(): number {
    return this.#limiter.waiting()
  }

  /** How many permits are held that this process has lent; undefined where nothing is held. */
  get inflight(): number | undefined {
    return this.#limiter.inflight?.()
  }

  /** What its limits are now that are held until they are released, or follow the load. */
  get limitsNow(): Map<string, number> {
    return limitsNow(this.#limiter)
  }

  /**
   * Whether another version of its configuration only changes numbers, which it can do without
   * being made anew.
   */
  canBecome({ limits, options }: LimiterConfig): boolean {
    const sameNames = Object.keys(limits).sort().join() === Object.keys(this.#config.limits).sort().join()
    return sameNames && JSON.stringify(sorted(options)) === JSON.stringify(sorted(this.#config.options))
  }

  become(config: LimiterConfig): void {
    this.#limiter.update(this.#follower.end(config), config.plans)
    this.#follower.begin(config)
    this.#config = config
    this.#names = namesOf(config)
  }

  /** Throws what is wrong with a request, and touches nothing. */
  check({ verb, key, cost, plan, maxWaitMs }: Omit<DecisionRequest, 'verb'> & { readonly verb?: Verb }): void {
    if (verb === 'refund') this.#checkGivesBack('refund')
    checkNames(key, cost, this.#names)
    for (const { name } of this.#names) {
      keyFor(key, name)
      costFor(cost, name, MAX_PERMITS)
    }
    if (plan !== undefined && !Object.hasOwn(this.#config.plans, plan)) {
      const plans = Object.keys(this.#config.plans).join(', ') || 'none'
      throw new SluiceError('CONFIG', `plan ${shown(plan)} is not one of the plans of limiter '${this.#config.name}' (${plans})`)
    }
    if (maxWaitMs !== undefined) spanUs(maxWaitMs, 'maxWaitMs')
  }

  /** Throws what is wrong with a permit, and touches nothing. */
  checkLent({ loans }: Entrusted): void {
    if (loans.length > this.#names.length) {
      throw new SluiceError(
        'CONFIG',
        `limiter '${this.#config.name}' lends no permit of ${loans.length} limits: it has ${this.#names.length}`,
      )
    }
    for (const { limit, key, cost } of loans) {
      if (!this.#isHeld(limit)) throw new SluiceError('CONFIG', `limiter '${this.#config.name}' has no limit ${shown(limit)} that is held`)
      keyFor(key, limit)
      costFor(cost, limit, MAX_PERMITS)
    }
  }

  /** At once where the store is the memory of this process, else promised. */
  decide(request: DecisionRequest): MaybePromise<Answer | Refunded> {
    const made = this.#make(request)
    return made instanceof Promise ? made.then((decision) => this.#answer(request, decision)) : this.#answer(request, made)
  }

  /** Refuses no call: the cost was used already. */
  charge({ key, cost, plan }: ChargeRequest): MaybePromise<Answer> {
    this.#checkGivesBack('charge')
    const charged = this.#limiter.charge(this.#keptAs(key), cost, planned(plan))
    return charged instanceof Promise ? charged.then((decision) => this.#told(decision)) : this.#told(charged)
  }

  async settle({ key, cost, actual, of, plan }: SettleRequest): Promise<Settled> {
    await this.#limiter.settle(this.#keptAs(key), actual, { of, cost, ...planned(plan) })
    return { limiter: this.#config.name, settled: true }
  }

  /** Of a permit of this limiter, whichever instance of the service has lent it. */
  async release(lent: Entrusted): Promise<Released> {
    return { limiter: this.#config.name, released: (await this.#limiter.giveBack?.(lent)) === true }
  }

  async renew(lent: Entrusted): Promise<Renewed> {
    const leaseMs = (await this.#limiter.renewFor?.(lent)) ?? 0
    return { limiter: this.#config.name, renewed: leaseMs > 0, leaseMs }
  }

  /** Waits. In shadow no call waits: one that would have waited is let through. */
  async acquire({ key, cost, plan, timeoutMs, signal }: AcquireRequest): Promise<Answer & { readonly waitedMs: number }> {
    if (this.#config.shadow) {
      const request = { verb: 'consume', key, cost, plan, maxWaitMs: undefined } as const
      return { ...((await this.decide(request)) as Answer), waitedMs: 0 }
    }
    const waiters = this.#waiters
    const places = waiters.count < waiters.max ? 1 : 0
    waiters.count += places
    this.#waits += 1
    try {
      // A call without a place to wait has its turn only if that can be at once.
      const options = { cost, timeoutMs: places === 0 ? 0 : timeoutMs, signal, ...planned(plan) }
      const decision = await this.#limiter.acquire(this.#keptAs(key), options)
      this.#note(key, decision)
      const answer = this.#withPermit(decision)
      if (signal.aborted) await this.#releaseUnanswered(answer)
      return { ...answer, waitedMs: decision.waitedMs }
    } catch (error) {
      if (!(error instanceof WaitError)) throw error
      this.#refused(key, error.decision)
      throw places === 0 && timeoutMs > 0 && error.code === 'TIMEOUT' ? noPlace(waiters, error) : error
    } finally {
      waiters.count -= places
      this.#waits -= 1
      this.#closeIfDone()
    }
  }

  /** The caller hung up when its turn had come, and does not know what it holds. */
  async #releaseUnanswered({ permit }: Answer): Promise<void> {
    const held = permitIn(permit)
    if (held !== undefined) await this.release(held.lent)
  }

  async reset(key: string): Promise<void> {
    await this.#limiter.reset(this.#keptAs(key))
  }

  /** It gets no more calls; waiting ones are served. */
  retire(): void {
    this.#follower.end(this.#config)
    this.#retired = true
    this.#closeIfDone()
  }

  /** Ends every wait. */
  close(): void {
    this.#follower.end(this.#config)
    this.#limiter.close()
  }

  /** One listener and not two: it is told of every decision. */
  #hearing({ onDecision, onFailure, onHealth }: Listener, journal: Journal): Listener {
    const title = titleOf(this.#config)
    const { decided } = journal
    const told: Listener['onDecision'] = (event) => {
      onDecision?.(event)
      decided?.(title, event, this.#config.shadow)
    }
    return {
      ...(decided === undefined ? { onDecision } : { onDecision: told }),
      onFailure(event) {
        onFailure?.(event)
        const { error } = event
        if (error instanceof SluiceError && error.isolated) journal.decisionFailed(title, error)
      },
      onHealth(event) {
        onHealth?.(event)
        journal.limiterChanged(title, event)
      },
    } as Listener
  }

  #closeIfDone(): void {
    if (this.#retired && this.#waits === 0) this.#limiter.close()
  }

  #keptAs(key: Key<string>): Key<string> {
    if (!this.#inMemory) return key
    if (typeof key === 'string') return boundedKey(key)
    return Object.fromEntries(Object.entries(key).map(([name, each]) => [name, boundedKey(each)]))
  }

  #make({ verb, key: asked, cost, plan, maxWaitMs }: DecisionRequest): MaybePromise<Decision | undefined> {
    const limiter = this.#limiter
    const key = this.#keptAs(asked)
    if (verb === 'consume') return plan === undefined ? limiter.consume(key, cost) : limiter.consume(key, cost, { plan })
    if (verb === 'peek') return limiter.peek(key, cost, planned(plan))
    if (verb === 'reserve') return limiter.reserve(key, cost, { ...planned(plan), ...(maxWaitMs === undefined ? {} : { maxWaitMs }) })
    return limiter.refund(key, cost, planned(plan))
  }

  #answer({ verb, key }: DecisionRequest, decision: Decision | undefined): Answer | Refunded {
    if (decision === undefined) return { limiter: this.#config.name, refunded: true }
    // A question decides nothing.
    if (verb === 'peek') return this.#told(decision)
    this.#note(key, decision)
    return this.#withPermit(decision)
  }

  /**
   * What is told of a decision that took. The text says all that is needed to renew and to release
   * it, here or at another copy.
   */
  #withPermit(decision: Decision): Answer {
    const told = this.#told(decision)
    const lent = decision.allowed ? this.#limiter.entrust?.(decision) : undefined
    const [first] = lent?.loans ?? []
    if (lent === undefined || first === undefined) return told
    return { ...told, permit: permitText({ limiter: this.#config.name, lent }), token: first.token, leaseMs: lent.leaseMs }
  }

  /** What is held is taken with a permit and released by it, and by nothing else. */
  #checkGivesBack(verb: 'refund' | 'charge'): void {
    if (!this.#names.every(({ name }) => this.#isHeld(name))) return
    throw new SluiceError(
      'CONFIG',
      `${verb} is nothing for limiter '${this.#config.name}', whose limits are held until they are released: see /v1/release`,
    )
  }

  #isHeld(limit: string): boolean {
    const { limits } = this.#config
    return Object.hasOwn(limits, limit) && limits[limit]?.[RULE].algorithm.untilReleased === true
  }

  /** What the library's listeners do not count. */
  #note(key: Key<string>, decision: Decision): void {
    if (!decision.allowed) this.#refused(key, decision)
    else if (decision.remaining * NEAR < decision.limit) this.tally.nearLimit += 1
  }

  /** In shadow it is let through. Of several keys it is the one of the limit that refused. */
  #refused(key: Key<string>, decision: Decision | undefined): void {
    if (this.#config.shadow) {
      this.tally.shadowed += 1
      return
    }
    const limit = decision?.policy ?? (this.#names[0] as { name: string }).name
    this.#onRefused?.(titleOf(this.#config), typeof key === 'string' ? key : (key[limit] as string))
  }

  #told(decision: Decision): Answer {
    const { outcome, allowed, limit, remaining, retryAfterMs, resetAfterMs, delayMs, atMs, policy, parts, degraded } = decision
    const { name, shadow } = this.#config
    return {
      limiter: name,
      allowed: allowed || shadow,
      outcome,
      limit,
      remaining,
      retryAfterMs,
      resetAfterMs,
      delayMs,
      atMs,
      policy,
      parts,
      degraded,
      ...(decision.allowed ? {} : { reason: decision.reason }),
      shadow,
    }
  }
}

function namesOf({ limits }: LimiterConfig): { readonly name: string }[] {
  return Object.keys(limits).map((name) => ({ name }))
}

function noPlace({ max }: Waiters, { decision }: WaitError): WaitError {
  return Object.assign(new WaitError('QUEUE_FULL', 'the call', decision), {
    message: `the call may not wait: ${max} wait at this service already, as many as maxWaiters allows`,
  })
}

function planned(plan: string | undefined): { plan?: string } {
  return plan === undefined ? {} : { plan }
}

function sorted(options: object): [string, unknown][] {
  return Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1))
}

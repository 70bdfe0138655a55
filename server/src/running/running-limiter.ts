/** One limiter of the configuration at work: its numbers can be changed, and it can be replaced, while callers wait at it. */
import type { LimiterConfig, NamedLimits } from '../config/config.ts'
import type { Counts } from '../metrics/counts.ts'
import type { LimiterMetrics } from '../metrics/metrics.ts'
import {
  type Clock,
  type Cost,
  costFor,
  createLimiter,
  type Decision,
  type Health,
  instantUs,
  type Key,
  keyFor,
  SluiceError,
  type Store,
  shown,
  spanUs,
  WaitError,
} from '../sluice.ts'
import type { AcquireRequest, Answer, DecisionRequest, MaybePromise, Refunded } from './request.ts'

/** The library's limiter as the service sees it: limits and plans are known only at run time. */
interface AnyLimiter {
  consume(key: Key<string>, cost: Cost<string>, options?: object): MaybePromise<Decision>
  peek(key: Key<string>, cost: Cost<string>, options?: object): MaybePromise<Decision>
  reserve(key: Key<string>, cost: Cost<string>, options?: object): MaybePromise<Decision>
  refund(key: Key<string>, cost: Cost<string>, options?: object): MaybePromise<undefined>
  acquire(key: Key<string>, options: object): Promise<Decision & { waitedMs: number }>
  reset(key: Key<string>): MaybePromise<void>
  update(limits: NamedLimits, plans: Readonly<Record<string, NamedLimits>>): void
  waiting(): number
  health(): Health
  close(): void
}

/** Where and when: a clock is only given by tests. */
export interface Ground {
  readonly store: Store
  readonly clock: Clock | undefined
  /** Told of every key that is refused; undefined: nobody wants to know. */
  readonly onRefused: ((limiter: string, key: string) => void) | undefined
}

export class RunningLimiter {
  readonly #metrics: LimiterMetrics
  readonly #onRefused: Ground['onRefused']
  readonly #limiter: AnyLimiter
  #config: LimiterConfig
  #names: readonly { readonly name: string }[]
  #waits = 0
  #retired = false

  constructor(config: LimiterConfig, { store, clock, onRefused }: Ground, metrics: LimiterMetrics) {
    this.#config = config
    this.#names = namesOf(config)
    this.#metrics = metrics
    this.#onRefused = onRefused
    this.#limiter = createLimiter(config.limits, {
      name: config.name,
      store,
      plans: config.plans,
      ...config.options,
      ...(clock === undefined ? {} : { clock }),
      onHealth: ({ state }: Health) => metrics.storeIs(state),
    } as object) as unknown as AnyLimiter
  }

  get config(): LimiterConfig {
    return this.#config
  }

  get health(): Health {
    return this.#limiter.health()
  }

  get waiting(): number {
    return this.#limiter.waiting()
  }

  get counts(): Counts {
    return this.#metrics.counts
  }

  /** Whether another version of its configuration only changes numbers, which it can do without being made anew. */
  canBecome({ limits, options }: LimiterConfig): boolean {
    const sameNames = Object.keys(limits).sort().join() === Object.keys(this.#config.limits).sort().join()
    return sameNames && JSON.stringify(sorted(options)) === JSON.stringify(sorted(this.#config.options))
  }

  become(config: LimiterConfig): void {
    this.#limiter.update(config.limits, config.plans)
    this.#config = config
    this.#names = namesOf(config)
  }

  /** Throws what is wrong with a request, and touches nothing. */
  check({ key, cost, plan, maxWaitMs, atMs }: Omit<DecisionRequest, 'verb'>): void {
    for (const { name } of this.#names) {
      keyFor(key, name, this.#names)
      costFor(cost, name, this.#names)
    }
    if (plan !== undefined && !Object.hasOwn(this.#config.plans, plan)) {
      const plans = Object.keys(this.#config.plans).join(', ') || 'none'
      throw new SluiceError('CONFIG', `plan ${shown(plan)} is not one of the plans of limiter '${this.#config.name}' (${plans})`)
    }
    if (maxWaitMs !== undefined) spanUs(maxWaitMs, 'maxWaitMs')
    if (atMs !== undefined) instantUs(atMs, 'atMs')
  }

  /** At once where the store is the memory of this process, else promised. */
  decide(request: DecisionRequest): MaybePromise<Answer | Refunded> {
    const startMs = performance.now()
    try {
      const made = this.#make(request)
      if (!(made instanceof Promise)) return this.#answer(request, made, startMs)
      return made.then(
        (decision) => this.#answer(request, decision, startMs),
        (error) => this.#failed(error),
      )
    } catch (error) {
      return this.#failed(error)
    }
  }

  /** Waits. In shadow nobody does: who would have waited is let through. */
  async acquire({ key, cost, plan, timeoutMs, signal }: AcquireRequest): Promise<Answer & { readonly waitedMs: number }> {
    if (this.#config.shadow) {
      const request = { verb: 'consume', key, cost, plan, maxWaitMs: undefined, atMs: undefined } as const
      return { ...((await this.decide(request)) as Answer), waitedMs: 0 }
    }
    const startMs = performance.now()
    this.#waits += 1
    try {
      const decision = await this.#limiter.acquire(key, { cost, timeoutMs, signal, ...planned(plan) })
      this.#metrics.waited(decision.waitedMs)
      return { ...this.#decided(key, decision, startMs), waitedMs: decision.waitedMs }
    } catch (error) {
      if (error instanceof WaitError) {
        this.#metrics.decided(error.code === 'IMPOSSIBLE' ? 'impossible' : 'limited', false, performance.now() - startMs)
        this.#refused(key, error.decision)
      }
      if (signal.aborted) throw error
      return this.#failed(error)
    } finally {
      this.#waits -= 1
      this.#closeIfDone()
    }
  }

  async reset(key: string): Promise<void> {
    try {
      await this.#limiter.reset(key)
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Nobody is sent here any more; who waits here is served. */
  retire(): void {
    this.#retired = true
    this.#closeIfDone()
  }

  /** Ends every wait. */
  close(): void {
    this.#limiter.close()
  }

  #closeIfDone(): void {
    if (this.#retired && this.#waits === 0) this.#limiter.close()
  }

  #make({ verb, key, cost, plan, maxWaitMs, atMs }: DecisionRequest): MaybePromise<Decision | undefined> {
    const limiter = this.#limiter
    if (verb === 'consume') return plan === undefined ? limiter.consume(key, cost) : limiter.consume(key, cost, { plan })
    if (verb === 'peek') return limiter.peek(key, cost, planned(plan))
    if (verb === 'reserve') return limiter.reserve(key, cost, { ...planned(plan), ...(maxWaitMs === undefined ? {} : { maxWaitMs }) })
    return limiter.refund(key, cost, { ...planned(plan), ...(atMs === undefined ? {} : { atMs }) })
  }

  #answer({ verb, key }: DecisionRequest, decision: Decision | undefined, startMs: number): Answer | Refunded {
    if (decision === undefined) return { limiter: this.#config.name, refunded: true }
    // A question decides nothing.
    return verb === 'peek' ? this.#told(decision) : this.#decided(key, decision, startMs)
  }

  #decided(key: Key<string>, decision: Decision, startMs: number): Answer {
    const { shadow } = this.#config
    this.#metrics.decided(decision.outcome, shadow, performance.now() - startMs)
    if (!decision.allowed && !shadow) this.#refused(key, decision)
    return this.#told(decision)
  }

  /** Of several keys, the one of the limit that refused. */
  #refused(key: Key<string>, decision: Decision | undefined): void {
    const limit = decision?.policy ?? (this.#names[0] as { name: string }).name
    this.#onRefused?.(this.#config.name, typeof key === 'string' ? key : (key[limit] as string))
  }

  #told({ outcome, allowed, limit, remaining, retryAfterMs, resetAfterMs, delayMs, atMs, policy, parts, degraded }: Decision): Answer {
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
      shadow,
    }
  }

  #failed(error: unknown): never {
    if (error instanceof SluiceError && error.code === 'STORE') this.#metrics.storeFailed()
    throw error
  }
}

function namesOf({ limits }: LimiterConfig): { readonly name: string }[] {
  return Object.keys(limits).map((name) => ({ name }))
}

function planned(plan: string | undefined): { plan?: string } {
  return plan === undefined ? {} : { plan }
}

function sorted(options: object): [string, unknown][] {
  return Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1))
}

/** All limiters at work, by a configuration that can be exchanged. */
import { type Bounds, type DescriptorRule, type DomainConfig, type LimiterConfig, type ServiceConfig, titleOf } from '../config/config.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { FailurePolicy } from '../sluice.ts'
import { type Ground, RunningLimiter, type Waiters } from './running-limiter.ts'

/** The changes of another configuration, by the titles of limiters and rules. */
export interface Changes {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
}

export class Limiters {
  readonly #ground: Ground
  readonly #waiters: Waiters
  readonly #metrics: Metrics
  /** Limiters and rules of domains, by the name under which they count. */
  #running: ReadonlyMap<string, RunningLimiter> = new Map()
  #config: ServiceConfig
  /** The limiter that was last asked for a limit that a caller brought along, by domain. */
  readonly #unlisted = new Map<string, RunningLimiter>()
  /** What was ever counted here, and how. A limit that left the file may come back. */
  readonly #algorithms = new Map<string, string>()

  constructor(config: ServiceConfig, ground: Omit<Ground, 'waiters'>, metrics: Metrics) {
    this.#waiters = { count: 0, max: config.bounds.maxWaiters }
    this.#ground = { ...ground, waiters: this.#waiters }
    this.#metrics = metrics
    this.#config = config
    this.use(config)
    metrics.watch(this)
  }

  /** The limiter that a caller names. Rules of domains are not for them. */
  get(name: string): RunningLimiter | undefined {
    return this.#config.limiters.has(name) ? this.#running.get(name) : undefined
  }

  /** The limiter of a rule of the present configuration. */
  ofRule({ name }: LimiterConfig): RunningLimiter {
    return this.#running.get(name) as RunningLimiter
  }

  /** One that no file names, on the same store. The caller closes it. */
  unlisted(config: LimiterConfig): RunningLimiter {
    return new RunningLimiter(config, this.#ground, this.#metrics.of(titleOf(config)))
  }

  /** Shown in place of all others that no file names of this domain: they count under one name. */
  usedUnlisted(domain: string, limiter: RunningLimiter): void {
    this.#unlisted.set(domain, limiter)
  }

  /** A refusal by a rule that lets nothing pass. */
  countDenied({ title, shadow }: DescriptorRule, key: string): void {
    const { tally } = this.#metrics.of(title)
    tally.decided('limited')
    if (shadow) tally.shadowed += 1
    else this.#ground.onRefused?.(title, key)
  }

  named(): RunningLimiter[] {
    return [...this.#config.limiters.keys()].map((name) => this.#running.get(name) as RunningLimiter)
  }

  *all(): Iterable<RunningLimiter> {
    yield* this.#running.values()
    for (const [domain, limiter] of this.#unlisted) if (this.#config.domains.has(domain)) yield limiter
  }

  /** Of all limiters, and of all rules that deny. */
  titles(): Set<string> {
    const denied = [...this.#config.domains.values()].flatMap(({ descriptors }) => descriptors.flatMap(deniedIn))
    return new Set([...[...this.all()].map(({ config }) => titleOf(config)), ...denied])
  }

  get domains(): ReadonlyMap<string, DomainConfig> {
    return this.#config.domains
  }

  domain(name: string): DomainConfig | undefined {
    return this.#config.domains.get(name)
  }

  /** No call is refused, not even by limits that callers bring along. */
  get shadow(): boolean {
    return this.#config.shadow
  }

  get bounds(): Bounds {
    return this.#config.bounds
  }

  get isShared(): boolean {
    return this.#ground.store.shared
  }

  algorithmOf(limiter: string, limit: string): string | undefined {
    return this.#algorithms.get(JSON.stringify([limiter, limit]))
  }

  /** What each of them does when the store is down. */
  failurePolicies(): FailurePolicy[] {
    return [...this.#running.values()].map(({ config }) => config.options.onStoreError ?? 'throw')
  }

  /**
   * Goes over to another configuration. What keys have used is in the store, under the names of
   * limiter and limit, and stays there.
   */
  use(config: ServiceConfig): Changes {
    const known = new Map([...this.#running.values()].map(({ config }) => [titleOf(config), JSON.stringify(config)]))
    const next = new Map<string, RunningLimiter>()
    for (const wanted of limitersIn(config)) next.set(wanted.name, this.#made(wanted))
    const before = this.#running
    this.#running = next
    this.#config = config
    this.#waiters.max = config.bounds.maxWaiters
    for (const [name, limiter] of before) if (next.get(name) !== limiter) limiter.retire()
    return changesFrom(
      known,
      [...next.values()].map((limiter) => limiter.config),
    )
  }

  close(): void {
    for (const limiter of this.#running.values()) limiter.close()
  }

  #made(wanted: LimiterConfig): RunningLimiter {
    for (const [limit, { type }] of Object.entries(wanted.limits)) this.#algorithms.set(JSON.stringify([wanted.name, limit]), type)
    const known = this.#running.get(wanted.name)
    if (!known?.canBecome(wanted)) return new RunningLimiter(wanted, this.#ground, this.#metrics.of(titleOf(wanted)))
    known.become(wanted)
    return known
  }
}

function changesFrom(before: ReadonlyMap<string, string>, now: readonly LimiterConfig[]): Changes {
  const titles = now.map(titleOf)
  return {
    added: titles.filter((title) => !before.has(title)),
    removed: [...before.keys()].filter((title) => !titles.includes(title)),
    changed: now.filter((config) => before.has(titleOf(config)) && before.get(titleOf(config)) !== JSON.stringify(config)).map(titleOf),
  }
}

function limitersIn({ limiters, domains }: ServiceConfig): LimiterConfig[] {
  return [...limiters.values(), ...[...domains.values()].flatMap(({ descriptors }) => descriptors.flatMap(limitersOf))]
}

function deniedIn({ title, denied, descriptors }: DescriptorRule): string[] {
  return [...(denied ? [title] : []), ...descriptors.flatMap(deniedIn)]
}

function limitersOf({ limiter, descriptors }: DescriptorRule): LimiterConfig[] {
  return [...(limiter === undefined ? [] : [limiter]), ...descriptors.flatMap(limitersOf)]
}

/** All limiters at work, by a configuration that can be exchanged. */
import type { Bounds, DescriptorRule, DomainConfig, LimiterConfig, ServiceConfig } from '../config/config.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Health } from '../sluice.ts'
import { type Ground, RunningLimiter, type Waiters } from './running-limiter.ts'

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

  /** One that no file names, on the same store. Whoever asks for it closes it. */
  unlisted(config: LimiterConfig): RunningLimiter {
    return new RunningLimiter(config, this.#ground, this.#metrics.of(config.name))
  }

  /** Shown in place of all others that no file names of this domain: they count under one name. */
  usedUnlisted(domain: string, limiter: RunningLimiter): void {
    this.#unlisted.set(domain, limiter)
  }

  named(): RunningLimiter[] {
    return [...this.#config.limiters.keys()].map((name) => this.#running.get(name) as RunningLimiter)
  }

  *all(): Iterable<RunningLimiter> {
    yield* this.#running.values()
    for (const [domain, limiter] of this.#unlisted) if (this.#config.domains.has(domain)) yield limiter
  }

  domain(name: string): DomainConfig | undefined {
    return this.#config.domains.get(name)
  }

  get bounds(): Bounds {
    return this.#config.bounds
  }

  algorithmOf(limiter: string, limit: string): string | undefined {
    return this.#algorithms.get(JSON.stringify([limiter, limit]))
  }

  /** A store that is down, where nobody decides in its place. */
  whyNotReady(): Health['error'] {
    for (const { config, health } of this.#running.values()) {
      if (health.error !== undefined && (config.options.onStoreError ?? 'throw') === 'throw') return health.error
    }
    return undefined
  }

  /** Goes over to another configuration. What keys have used is in the store, under the names of limiter and limit, and stays there. */
  use(config: ServiceConfig): void {
    const next = new Map<string, RunningLimiter>()
    for (const wanted of limitersIn(config)) next.set(wanted.name, this.#made(wanted))
    const before = this.#running
    this.#running = next
    this.#config = config
    this.#waiters.max = config.bounds.maxWaiters
    for (const [name, limiter] of before) if (next.get(name) !== limiter) limiter.retire()
  }

  close(): void {
    for (const limiter of this.#running.values()) limiter.close()
  }

  #made(wanted: LimiterConfig): RunningLimiter {
    for (const [limit, { type }] of Object.entries(wanted.limits)) this.#algorithms.set(JSON.stringify([wanted.name, limit]), type)
    const known = this.#running.get(wanted.name)
    if (!known?.canBecome(wanted)) return new RunningLimiter(wanted, this.#ground, this.#metrics.of(wanted.name))
    known.become(wanted)
    return known
  }
}

function limitersIn({ limiters, domains }: ServiceConfig): LimiterConfig[] {
  return [...limiters.values(), ...[...domains.values()].flatMap(({ descriptors }) => descriptors.flatMap(limitersOf))]
}

function limitersOf({ limiter, descriptors }: DescriptorRule): LimiterConfig[] {
  return [...(limiter === undefined ? [] : [limiter]), ...descriptors.flatMap(limitersOf)]
}

/** The service as a whole: opened, running, and stopped without losing a caller. */
import type { ServiceConfig } from './config/config.ts'
import { HealthService } from './grpc/health.ts'
import { Overrides } from './grpc/overrides.ts'
import { type GrpcBounds, grpcServer } from './grpc/server.ts'
import { Uncharged } from './grpc/uncharged.ts'
import { HeldBytes } from './held-bytes.ts'
import { namesFor } from './http/origin.ts'
import { type HttpBounds, httpServer } from './http/server.ts'
import type { Journal } from './journal.ts'
import { listening } from './listening.ts'
import { LiveHub } from './live/hub.ts'
import { snapshot } from './live/snapshot.ts'
import { TopRefused } from './live/top-refused.ts'
import { Metrics } from './metrics/metrics.ts'
import type { Page } from './page/page.ts'
import { Limiters } from './running/limiters.ts'
import { Readiness } from './running/readiness.ts'
import type { Signals } from './running/running-limiter.ts'
import { type StoreState, StoreWatch } from './running/store-watch.ts'
import { type Clock, cpu, eventLoopDelay, eventLoopUtilization, heap, type Store, systemClock } from './sluice.ts'
import type { Tls } from './tls.ts'
import type { Tokens } from './tokens.ts'

export interface ServiceOptions {
  readonly config: ServiceConfig
  readonly store: Store
  /** Only given by tests. */
  readonly clock: Clock | undefined
  readonly host: string
  /** Names that it answers to besides. */
  readonly allowHosts: readonly string[]
  /** 0: whichever is free. */
  readonly httpPort: number
  readonly grpcPort: number
  /** Plain HTTP, for supervisors: they have no certificates. Undefined: none of their own. */
  readonly healthPort: number | undefined
  /** Of both other ports; undefined: none. */
  readonly tls: Tls | undefined
  /** How long a gRPC connection lives; 0: for ever. */
  readonly grpcMaxAgeMs: number
  /** The tokens that may write; undefined: all callers may. */
  readonly tokens: Tokens | undefined
  /** The tokens that may only read; undefined: all callers may. */
  readonly readTokens?: Tokens | undefined
  /** Undefined: there is none. */
  readonly page: Page | undefined
  /** How many of the keys that are refused most are told; undefined: none are kept. */
  readonly topRefused: number | undefined
  readonly journal: Journal
  /** Only given by tests. */
  readonly signals?: Signals | undefined
  /** Only given by tests. */
  readonly httpBounds?: Partial<HttpBounds> | undefined
  /** Only given by tests. */
  readonly grpcBounds?: Partial<GrpcBounds> | undefined
}

/** How loaded this process is. */
const SIGNALS: Signals = { eventLoopDelay, eventLoopUtilization, cpu, heap }

export interface Service {
  readonly limiters: Limiters
  readonly metrics: Metrics
  readonly hub: LiveHub
  readonly held: HeldBytes
  /** As the service itself asks the store. */
  readonly storeState: StoreState
  readonly httpPort: number
  readonly grpcPort: number
  readonly healthPort: number | undefined
  /**
   * Says for `drainMs` that it is no longer ready, and with every answer that its connection ends;
   * then stops accepting, lets requests under way finish, ends calls that still wait after
   * `graceMs`, and closes. Without the first, a request on a kept connection may meet its end.
   */
  stop(graceMs: number, drainMs?: number): Promise<void>
}

export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, store, clock, page, tokens, readTokens, journal, httpBounds, signals = SIGNALS } = options
  const metrics = new Metrics(store)
  const top = options.topRefused === undefined ? undefined : new TopRefused(clock ?? systemClock)
  const limiters = new Limiters(config, { store, clock, onRefused: top?.refused.bind(top), journal, signals }, metrics)
  // People read it beside their own clocks: the time of the day, which may be set, unlike the
  // system clock of the limiters.
  const nowMs = clock === undefined ? Date.now : () => clock.nowUs() / 1000
  const refusals = top === undefined ? undefined : { top, shown: options.topRefused as number }
  const watched = { limiters, store, startedAtMs: nowMs(), nowMs, refusals }
  const hub = new LiveHub(clock ?? systemClock, () => snapshot(watched))
  const storeWatch = new StoreWatch(store, clock, (state) => {
    journal.storeChanged(state)
    readiness.storeWasAsked()
  })
  const readiness = new Readiness(limiters, storeWatch)
  const hostNames = namesFor(options.host, options.allowHosts)
  const held = new HeldBytes()
  const counting = { limiters, overrides: new Overrides(limiters), uncharged: new Uncharged(journal) }
  const http = { limiters, counting, metrics, hub, held, readiness, page, tokens, readTokens, hostNames, journal, httpBounds }
  const server = httpServer(http, options.tls)
  await storeWatch.start()
  readiness.storeWasAsked()
  const httpPort = await listening(server, options.httpPort, options.host)
  const healthServer = options.healthPort === undefined ? undefined : httpServer({ ...http, isForSupervisors: true })
  const health = new HealthService(readiness, clock ?? systemClock)
  const opening = Promise.all([
    grpcServer({ counting, held, health }, options),
    healthServer === undefined ? undefined : listening(healthServer, options.healthPort as number, options.host),
  ])
  const [grpc, healthPort] = await opening.catch((error) => {
    // Half a service would keep the process alive.
    server.close()
    healthServer?.close()
    storeWatch.close()
    throw error
  })
  return {
    limiters,
    metrics,
    hub,
    held,
    get storeState() {
      return storeWatch.state
    },
    httpPort,
    grpcPort: grpc.port,
    healthPort,
    async stop(graceMs, drainMs = 0) {
      readiness.stop()
      hub.close()
      if (drainMs > 0) await new Promise((resolve) => setTimeout(resolve, drainMs))
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      // Also those of listeners that have not taken all that was sent.
      server.closeIdleConnections()
      const impatience = setTimeout(() => limiters.close(), graceMs)
      await Promise.all([closed, grpc.stop()])
      // Health is answered until the end.
      healthServer?.close()
      healthServer?.closeAllConnections()
      clearTimeout(impatience)
      limiters.close()
      storeWatch.close()
    },
  }
}

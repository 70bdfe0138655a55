/** The service as a whole: opened, running, and stopped without losing anybody. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ServiceConfig } from './config/config.ts'
import { grpcServer } from './grpc/server.ts'
import { httpServer } from './http/server.ts'
import { Metrics } from './metrics/metrics.ts'
import { Limiters } from './running/limiters.ts'
import type { Ground } from './running/running-limiter.ts'
import type { Tokens } from './tokens.ts'

export interface ServiceOptions extends Ground {
  readonly config: ServiceConfig
  readonly host: string
  /** 0: whichever is free. */
  readonly httpPort: number
  readonly grpcPort: number
  /** Who may do more than look; undefined: everybody. */
  readonly tokens: Tokens | undefined
  onFailure(error: unknown): void
}

export interface Service {
  readonly limiters: Limiters
  readonly metrics: Metrics
  readonly httpPort: number
  readonly grpcPort: number
  /**
   * Says for `drainMs` that it is no longer ready, and with every answer that its connection ends; then stops accepting, lets who is being served
   * finish, ends whoever still waits after `graceMs`, and closes. Without the first, a request on a kept connection may meet its end.
   */
  stop(graceMs: number, drainMs?: number): Promise<void>
}

export async function startService(options: ServiceOptions): Promise<Service> {
  const metrics = new Metrics(options.store)
  const limiters = new Limiters(options.config, options, metrics)
  let stopping = false
  const server = httpServer({ limiters, metrics, tokens: options.tokens, isStopping: () => stopping, onFailure: options.onFailure })
  await listening(server, options.httpPort, options.host)
  const grpc = await grpcServer(limiters, options).catch((error) => {
    // Half a service would keep the process alive.
    server.close()
    throw error
  })
  return {
    limiters,
    metrics,
    httpPort: (server.address() as AddressInfo).port,
    grpcPort: grpc.port,
    async stop(graceMs, drainMs = 0) {
      stopping = true
      if (drainMs > 0) await new Promise((resolve) => setTimeout(resolve, drainMs))
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeIdleConnections()
      const impatience = setTimeout(() => limiters.close(), graceMs)
      await Promise.all([closed, grpc.stop()])
      clearTimeout(impatience)
      limiters.close()
    },
  }
}

function listening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

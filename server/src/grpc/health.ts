/**
 * grpc.health.v1: the answer of /readyz, over gRPC. The library grpc-health-check was tried: it
 * keeps every name that it was ever asked for, and any client may ask.
 */
import { type ServerUnaryCall, type ServerWritableStream, type sendUnaryData, status } from '@grpc/grpc-js'
import type { Readiness } from '../running/readiness.ts'
import type { Clock } from '../sluice.ts'

interface HealthRequest {
  readonly service: string
}

interface HealthAnswer {
  readonly status: 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN'
}

type Watcher = ServerWritableStream<HealthRequest, HealthAnswer>

/** The empty name is the server as a whole. */
const SERVICES = ['', 'envoy.service.ratelimit.v3.RateLimitService']
const PERIOD_US = 1_000_000
export const MAX_WATCHERS = 100

export class HealthService {
  readonly #readiness: Readiness
  readonly #clock: Clock
  /** With what each was told last. */
  readonly #watchers = new Map<Watcher, HealthAnswer['status']>()
  #stopTimer: () => void = () => undefined

  constructor(readiness: Readiness, clock: Clock) {
    this.#readiness = readiness
    this.#clock = clock
  }

  readonly handlers = {
    Check: ({ request }: ServerUnaryCall<HealthRequest, HealthAnswer>, answer: sendUnaryData<HealthAnswer>): void => {
      const told = this.#statusOf(request.service)
      if (told === 'SERVICE_UNKNOWN') answer({ code: status.NOT_FOUND, details: 'there is no such service here' })
      else answer(null, { status: told })
    },
    Watch: (call: Watcher): void => {
      if (this.#watchers.size >= MAX_WATCHERS) {
        call.emit('error', { code: status.RESOURCE_EXHAUSTED, details: `${MAX_WATCHERS} watch already` })
        return
      }
      call.on('cancelled', () => this.#leave(call))
      this.#tell(call)
      if (this.#watchers.size === 1) this.#tick()
    },
  }

  /** Ends every stream. */
  close(): void {
    for (const call of this.#watchers.keys()) {
      this.#tell(call)
      call.end()
    }
    this.#watchers.clear()
    this.#stopTimer()
  }

  #statusOf(service: string): HealthAnswer['status'] {
    if (!SERVICES.includes(service)) return 'SERVICE_UNKNOWN'
    return this.#readiness.isReady ? 'SERVING' : 'NOT_SERVING'
  }

  #tick(): void {
    for (const call of this.#watchers.keys()) this.#tell(call)
    this.#stopTimer = this.#clock.setTimer(() => this.#tick(), PERIOD_US, false)
  }

  #tell(call: Watcher): void {
    const told = this.#statusOf(call.request.service)
    if (this.#watchers.get(call) === told) return
    this.#watchers.set(call, told)
    call.write({ status: told })
  }

  #leave(call: Watcher): void {
    if (this.#watchers.delete(call) && this.#watchers.size === 0) this.#stopTimer()
  }
}

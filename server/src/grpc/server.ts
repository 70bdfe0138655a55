/** The gRPC side: Envoy's rate limit service, and nothing else. */
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import {
  type GrpcObject,
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceClientConstructor,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import type { Held } from '../held.ts'
import { problemOf } from '../http/problem.ts'
import type { Journal } from '../journal.ts'
import { listening } from '../listening.ts'
import type { Limiters } from '../running/limiters.ts'
import type { Tokens } from '../tokens.ts'
import { guard, MAX_MESSAGE_BYTES } from './guard.ts'
import { InvalidRequest } from './invalid-request.ts'
import type { RateLimitRequest, RateLimitResponse } from './messages.ts'
import { Overrides } from './overrides.ts'
import { shouldRateLimit } from './should-rate-limit.ts'

const MAX_CONNECTIONS = 1_000

const BOUNDS = {
  'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
  /** Calls at once on one connection. Envoy opens another for more. */
  'grpc.max_concurrent_streams': 100,
  /** A connection without calls is ended in peace, and one whose other end is gone is found out. */
  'grpc.max_connection_idle_ms': 300_000,
  'grpc.keepalive_time_ms': 60_000,
  'grpc.keepalive_timeout_ms': 20_000,
  /** Megabytes that Node may keep for one connection; grpc-js would set no bound. */
  'grpc-node.max_session_memory': 10,
  /** It keeps a history of what nobody here looks at. */
  'grpc.enable_channelz': 0,
}

export interface GrpcOptions {
  readonly host: string
  readonly grpcPort: number
  readonly tokens: Tokens | undefined
  readonly journal: Journal
}

export interface GrpcServer {
  readonly port: number
  /** Lets who is being served finish. */
  stop(): Promise<void>
}

/** The service as rls.proto describes it; for clients too. */
export function rateLimitService(): ServiceClientConstructor {
  const file = fileURLToPath(new URL('./rls.proto', import.meta.url))
  // 64-bit numbers as text: they may be larger than a number can say.
  const definition = loadSync(file, { keepCase: true, longs: String, enums: String, defaults: true })
  const loaded = loadPackageDefinition(definition) as unknown as { envoy: { service: { ratelimit: { v3: GrpcObject } } } }
  return loaded.envoy.service.ratelimit.v3.RateLimitService as ServiceClientConstructor
}

export async function grpcServer(limiters: Limiters, held: Held, { host, grpcPort, tokens, journal }: GrpcOptions): Promise<GrpcServer> {
  const overrides = new Overrides(limiters)
  const server = new Server({ ...BOUNDS, interceptors: [guard(tokens, held)] })
  server.addService(rateLimitService().service, {
    ShouldRateLimit({ request }: ServerUnaryCall<RateLimitRequest, RateLimitResponse>, answer: sendUnaryData<RateLimitResponse>) {
      shouldRateLimit(limiters, overrides, request).then(
        (response) => answer(null, response),
        (error) => answer(grpcError(error, journal)),
      )
    },
  })
  // A listener of our own, because that of grpc-js takes any number of connections.
  const connections = server.createConnectionInjector(ServerCredentials.createInsecure())
  const listener = createServer((socket) => connections.injectConnection(socket))
  listener.maxConnections = MAX_CONNECTIONS
  const port = await listening(listener, grpcPort, host)
  return {
    port,
    stop: () =>
      new Promise((resolve) => {
        listener.close()
        server.tryShutdown(() => resolve())
      }),
  }
}

/** Never an answer with the code UNKNOWN: Envoy would let it pass or not, by settings that have nothing to do with ours. */
function grpcError(error: unknown, journal: Journal): { code: status; details: string } {
  if (error instanceof InvalidRequest) return { code: status.INVALID_ARGUMENT, details: error.message }
  const problem = problemOf(error)
  if (problem.status === 503) return { code: status.UNAVAILABLE, details: problem.detail }
  journal.failed(error)
  return { code: status.INTERNAL, details: problemOf(undefined).detail }
}

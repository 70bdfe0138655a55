/** The gRPC side: Envoy's rate limit service, and nothing else. */
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
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
import { Connections } from '../connections.ts'
import type { HeldBytes } from '../held-bytes.ts'
import { problemOf } from '../http/problem.ts'
import type { Journal } from '../journal.ts'
import { listening } from '../listening.ts'
import type { Tls } from '../tls.ts'
import type { Tokens } from '../tokens.ts'
import { CALL_TIMEOUT_MS, guard, MAX_MESSAGE_BYTES } from './guard.ts'
import type { HealthService } from './health.ts'
import { InvalidRequest } from './invalid-request.ts'
import type { RateLimitRequest, RateLimitResponse } from './messages.ts'
import { type Counting, shouldRateLimit } from './should-rate-limit.ts'

/** Of a connection, unless a test sets others. */
export interface GrpcBounds {
  readonly maxConnections: number
  readonly prefaceTimeoutMs: number
}

const GRPC_BOUNDS: GrpcBounds = { maxConnections: 1_000, prefaceTimeoutMs: 10_000 }
/** With which every HTTP/2 connection begins: 24, and the settings of the client. */
const PREFACE_BYTES = 33

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
  /** It keeps a history that is not used here. */
  'grpc.enable_channelz': 0,
}

/**
 * Only the whole of a connection; the calls that are under way when it is over have as long as
 * calls may take.
 */
export const DEFAULT_MAX_AGE = '30min'

export interface GrpcOptions {
  readonly host: string
  readonly grpcPort: number
  readonly tokens: Tokens | undefined
  readonly journal: Journal
  readonly tls: Tls | undefined
  /** 0: for ever. */
  readonly grpcMaxAgeMs: number
  readonly grpcBounds?: Partial<GrpcBounds> | undefined
}

export interface GrpcServer {
  readonly port: number
  /** Lets who is being served finish. */
  stop(): Promise<void>
}

/** The service as rls.proto describes it; for clients too. */
export function rateLimitService(): ServiceClientConstructor {
  const { envoy } = loaded('rls.proto') as unknown as { envoy: { service: { ratelimit: { v3: GrpcObject } } } }
  return envoy.service.ratelimit.v3.RateLimitService as ServiceClientConstructor
}

/** The same of health.proto. */
export function healthService(): ServiceClientConstructor {
  const { grpc } = loaded('health.proto') as unknown as { grpc: { health: { v1: GrpcObject } } }
  return grpc.health.v1.Health as ServiceClientConstructor
}

function loaded(name: string): GrpcObject {
  const file = fileURLToPath(new URL(name, import.meta.url))
  // 64-bit numbers as text: they may be larger than a number can say.
  return loadPackageDefinition(loadSync(file, { keepCase: true, longs: String, enums: String, defaults: true }))
}

/** What a call is answered from. */
export interface GrpcParts {
  readonly counting: Counting
  readonly held: HeldBytes
  readonly health: HealthService
}

export async function grpcServer(
  { counting, held, health }: GrpcParts,
  { host, grpcPort, tokens, journal, tls, grpcMaxAgeMs, grpcBounds }: GrpcOptions,
): Promise<GrpcServer> {
  const age = grpcMaxAgeMs === 0 ? {} : { 'grpc.max_connection_age_ms': grpcMaxAgeMs, 'grpc.max_connection_age_grace_ms': CALL_TIMEOUT_MS }
  const { maxConnections, prefaceTimeoutMs } = { ...GRPC_BOUNDS, ...grpcBounds }
  // A listener of our own, because that of grpc-js takes any number of connections, and no other
  // certificate while it listens.
  const listener = tls === undefined ? createServer() : createTlsServer({ ...tls.options, ALPNProtocols: ['h2'] })
  const connections = new Connections(listener, maxConnections)
  const server = new Server({ ...BOUNDS, ...age, interceptors: [guard(tokens, held, connections)] })
  server.addService(healthService().service, health.handlers)
  server.addService(rateLimitService().service, {
    ShouldRateLimit({ request }: ServerUnaryCall<RateLimitRequest, RateLimitResponse>, answer: sendUnaryData<RateLimitResponse>) {
      shouldRateLimit(counting, request).then(
        (response) => answer(null, response),
        (error) => answer(grpcError(error, journal)),
      )
    },
  })
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure())
  listener.on(tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    endIfSilent(socket, prefaceTimeoutMs)
    injector.injectConnection(socket)
  })
  tls?.add(listener)
  const port = await listening(listener, grpcPort, host)
  return {
    port,
    stop: () =>
      new Promise((resolve) => {
        listener.close()
        health.close()
        server.tryShutdown(() => resolve())
      }),
  }
}

/** grpc-js waits for a client that says nothing until its own pings find no answer. */
function endIfSilent(socket: Socket, timeoutMs: number): void {
  const timer = setTimeout(() => {
    if (socket.bytesRead < PREFACE_BYTES) socket.destroy()
  }, timeoutMs)
  timer.unref()
  socket.once('close', () => clearTimeout(timer))
}

/**
 * Never an answer with the code UNKNOWN: Envoy would let it pass or not, by settings that have
 * nothing to do with ours.
 */
function grpcError(error: unknown, journal: Journal): { code: status; details: string } {
  if (error instanceof InvalidRequest) return { code: status.INVALID_ARGUMENT, details: error.message }
  const problem = problemOf(error)
  if (problem.status === 503) return { code: status.UNAVAILABLE, details: problem.detail }
  journal.failed(error)
  return { code: status.INTERNAL, details: problemOf(undefined).detail }
}

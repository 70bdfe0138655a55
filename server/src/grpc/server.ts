/** The gRPC side: Envoy's rate limit service, and nothing else. */
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
import type { Limiters } from '../running/limiters.ts'
import { SluiceError } from '../sluice.ts'
import type { Tokens } from '../tokens.ts'
import { InvalidRequest } from './invalid-request.ts'
import type { RateLimitRequest, RateLimitResponse } from './messages.ts'
import { Overrides } from './overrides.ts'
import { shouldRateLimit } from './should-rate-limit.ts'

const MAX_MESSAGE_BYTES = 1_048_576

export interface GrpcOptions {
  readonly host: string
  readonly grpcPort: number
  readonly tokens: Tokens | undefined
  onFailure(error: unknown): void
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

export async function grpcServer(limiters: Limiters, { host, grpcPort, tokens, onFailure }: GrpcOptions): Promise<GrpcServer> {
  const overrides = new Overrides(limiters)
  const server = new Server({ 'grpc.max_receive_message_length': MAX_MESSAGE_BYTES })
  server.addService(rateLimitService().service, {
    ShouldRateLimit({ request, metadata }: ServerUnaryCall<RateLimitRequest, RateLimitResponse>, answer: sendUnaryData<RateLimitResponse>) {
      if (tokens?.accept(metadata.get('authorization')[0]?.toString()) === false) {
        answer({ code: status.UNAUTHENTICATED, details: 'authorization must be Bearer and one of the tokens of the service' })
        return
      }
      shouldRateLimit(limiters, overrides, request).then(
        (response) => answer(null, response),
        (error) => answer(grpcError(error, onFailure)),
      )
    },
  })
  const port = await bound(server, `${host.includes(':') ? `[${host}]` : host}:${grpcPort}`)
  return { port, stop: () => new Promise((resolve) => server.tryShutdown(() => resolve())) }
}

function bound(server: Server, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => (error ? reject(error) : resolve(port)))
  })
}

/** Never an answer with the code UNKNOWN: Envoy would let it pass or not, by settings that have nothing to do with ours. */
function grpcError(error: unknown, onFailure: (error: unknown) => void): { code: status; details: string } {
  if (error instanceof InvalidRequest) return { code: status.INVALID_ARGUMENT, details: error.message }
  if (error instanceof SluiceError && (error.code === 'STORE' || error.code === 'CLOSED')) {
    return { code: status.UNAVAILABLE, details: error.message }
  }
  onFailure(error)
  return { code: status.INTERNAL, details: 'the service failed: its log says why' }
}

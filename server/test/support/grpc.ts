/** A real grpc-js client of the service. */
import { type Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import { rateLimitService } from '../../src/grpc/server.ts'

export type RlsAnswer = Record<string, unknown> & {
  readonly overall_code: string
  readonly statuses: readonly Record<string, unknown>[]
  readonly response_headers_to_add: readonly { readonly key: string; readonly value: string }[]
}

export function connected({ grpcPort }: { readonly grpcPort: number }): Client {
  return new (rateLimitService())(`127.0.0.1:${grpcPort}`, credentials.createInsecure())
}

/** Rejects with what gRPC says. What is not answered within a minute is a hang. */
export function shouldRateLimit(client: Client, request: object, metadata = new Metadata()): Promise<RlsAnswer> {
  const method = (client as unknown as Record<string, (...args: unknown[]) => void>).ShouldRateLimit as (...args: unknown[]) => void
  return new Promise((resolve, reject) => {
    const deadline = Date.now() + 60_000
    method.call(client, request, metadata, { deadline }, (error: ServiceError | null, answer: RlsAnswer) =>
      error ? reject(error) : resolve(answer),
    )
  })
}

/**
 * The guard of a gRPC call, on a real server: by the HTTP/2 stream, and where grpc-js does not show
 * it.
 */
import { once } from 'node:events'
import { connect } from 'node:http2'
import { createServer } from 'node:net'
import { Metadata, Server, ServerCredentials, ServerInterceptingCall, type ServerInterceptor, status } from '@grpc/grpc-js'
import { expect, test } from 'vitest'
import { Connections } from '../src/connections.ts'
import { guard, MAX_MESSAGE_BYTES, MAX_METADATA_BYTES } from '../src/grpc/guard.ts'
import { rateLimitService } from '../src/grpc/server.ts'
import { HeldBytes } from '../src/held-bytes.ts'
import { Tokens } from '../src/tokens.ts'
import { connected, shouldRateLimit } from './support/grpc.ts'
import { until } from './support/service.ts'

const TOKEN = 'a-token-of-the-test'
const ASK = { domain: 'edge', descriptors: [] }
const METHOD = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
/** Room for one call that counts as the largest there may be, and not for two. */
const ROOM = 1.5 * (2 * MAX_MESSAGE_BYTES + MAX_METADATA_BYTES)

/** The stream is a secret of the innermost call. */
const hiding: ServerInterceptor = (_method, call) => new ServerInterceptingCall(call)

async function serving(...before: readonly ServerInterceptor[]) {
  const held = new HeldBytes(ROOM)
  const server = new Server({ interceptors: [...before, guard(new Tokens([TOKEN]), held, new Connections(createServer(), 10))] })
  const seenBytes: number[] = []
  server.addService(rateLimitService().service, {
    ShouldRateLimit(_call: unknown, answer: (error: null, response: object) => void) {
      seenBytes.push(held.bytes)
      answer(null, { overall_code: 'OK' })
    },
  })
  const grpcPort = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => (error ? reject(error) : resolve(port))),
  )
  return { held, server, seenBytes, grpcPort }
}

function withToken(): Metadata {
  const metadata = new Metadata()
  metadata.set('authorization', `Bearer ${TOKEN}`)
  return metadata
}

test.each([
  ['by its stream', []],
  ['without its stream', [hiding]],
] as const)('%s: a call is held until it is answered, and no longer', async (_, before) => {
  const { held, server, seenBytes, grpcPort } = await serving(...before)
  const client = connected({ grpcPort })
  for (let k = 0; k < 3; k++) expect(await shouldRateLimit(client, ASK, withToken())).toMatchObject({ overall_code: 'OK' })
  await expect(shouldRateLimit(client, ASK)).rejects.toMatchObject({ code: status.UNAUTHENTICATED })
  expect(seenBytes.length).toBe(3)
  for (const bytes of seenBytes) expect(bytes > 2 * MAX_MESSAGE_BYTES).toBe(before.length > 0)
  await until(() => held.bytes === 0)
  client.close()
  server.forceShutdown()
})

test('without its stream a call that sends nothing makes room for others, and one that is given up leaves', async () => {
  const { held, server, grpcPort } = await serving(hiding)
  const session = connect(`http://127.0.0.1:${grpcPort}`)
  const headers = {
    ':method': 'POST',
    ':path': METHOD,
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${TOKEN}`,
  }
  const stalled = session.request(headers)
  await until(() => held.bytes > 0)
  const client = connected({ grpcPort })
  const [response] = await Promise.all([once(stalled, 'response'), shouldRateLimit(client, ASK, withToken())])
  expect(response[0]).toMatchObject({ 'grpc-status': `${status.RESOURCE_EXHAUSTED}` })
  await until(() => held.bytes === 0)
  const given = session.request(headers)
  await until(() => held.bytes > 0)
  given.close()
  await until(() => held.bytes === 0)
  client.close()
  session.destroy()
  server.forceShutdown()
})

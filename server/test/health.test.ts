/** grpc.health.v1 through a real grpc-js client, and how long connections live. */
import { once } from 'node:events'
import { connect } from 'node:http2'
import { type Client, type ClientReadableStream, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { afterEach, describe, expect, test } from 'vitest'
import { MAX_WATCHERS } from '../src/grpc/health.ts'
import { healthService } from '../src/grpc/server.ts'
import { Tokens } from '../src/tokens.ts'
import { connected, shouldRateLimit } from './support/grpc.ts'
import { CONFIG, expectNoFailure, serviceOn, type TestService, until } from './support/service.ts'

const RLS = 'envoy.service.ratelimit.v3.RateLimitService'

interface HealthAnswer {
  readonly status: string
}

let service: TestService
let client: Client | undefined

afterEach(async () => {
  client?.close()
  client = undefined
  await service.stop(0)
  expectNoFailure(service)
})

function asking(): Client & Record<string, (...args: unknown[]) => unknown> {
  client = new (healthService())(`127.0.0.1:${service.grpcPort}`, credentials.createInsecure(), {
    'grpc.use_local_subchannel_pool': 1,
  })
  return client as ReturnType<typeof asking>
}

function check(name: string, by = asking()): Promise<HealthAnswer> {
  return new Promise((resolve, reject) =>
    by.Check?.({ service: name }, new Metadata(), { deadline: Date.now() + 30_000 }, (error: ServiceError | null, told: HealthAnswer) =>
      error ? reject(error) : resolve(told),
    ),
  )
}

function watched(name: string, by = asking()): { told: string[]; ended: Promise<void>; stream: ClientReadableStream<HealthAnswer> } {
  const stream = by.Watch?.({ service: name }) as ClientReadableStream<HealthAnswer>
  const told: string[] = []
  stream.on('data', (next: HealthAnswer) => told.push(next.status))
  const ended = new Promise<void>((resolve) => {
    stream.on('end', resolve).on('error', () => resolve())
  })
  return { told, ended, stream }
}

describe('health', () => {
  test('is told of the server and of its service, without a token', async () => {
    service = await serviceOn(CONFIG, undefined, new Tokens(['a-token-that-is-long-enough']))
    for (const name of ['', RLS]) expect(await check(name)).toEqual({ status: 'SERVING' })
    await expect(check('other')).rejects.toMatchObject({ code: status.NOT_FOUND })
    await expect(shouldRateLimit(connected(service), {})).rejects.toMatchObject({ code: status.UNAUTHENTICATED })
  })

  test('is told to watchers when it changes, and a stop ends their streams', async () => {
    service = await serviceOn()
    const by = asking()
    const [known, unknown] = [watched(RLS, by), watched('other', by)]
    await until(() => known.told.length === 1 && unknown.told.length === 1)
    service.clock.advanceMs(5_000)
    const stopped = service.stop(0)
    await Promise.all([known.ended, unknown.ended, stopped])
    expect(known.told).toEqual(['SERVING', 'NOT_SERVING'])
    expect(unknown.told).toEqual(['SERVICE_UNKNOWN'])
    // Nobody is told any more.
    expect(service.clock.timers).toBe(0)
  })

  test('is watched by so many at once, and one that leaves makes room', async () => {
    service = await serviceOn()
    // A connection has 100 streams.
    const clients = [asking(), asking()]
    const watchers = Array.from({ length: MAX_WATCHERS }, (_, k) => watched('', clients[k % 2] as ReturnType<typeof asking>))
    await until(() => watchers.every(({ told }) => told.length === 1))
    const more = watched('', clients[0] as ReturnType<typeof asking>)
    const [error] = (await once(more.stream, 'error')) as [ServiceError]
    expect(error.code).toBe(status.RESOURCE_EXHAUSTED)
    watchers[0]?.stream.cancel()
    await watchers[0]?.ended
    for (;;) {
      const next = watched('', clients[1] as ReturnType<typeof asking>)
      await Promise.race([next.ended, once(next.stream, 'data')])
      if (next.told.length === 1) break
    }
    for (const each of clients) each.close()
  })
})

test('a connection is ended in peace when it is old: calls go on over the next one', async () => {
  service = await serviceOn(`${CONFIG}domains:\n  edge: { descriptors: [{ key: ip, unlimited: true }] }\n`, undefined, undefined, {
    grpcMaxAgeMs: 200,
  })
  const session = connect(`http://127.0.0.1:${service.grpcPort}`)
  const [code] = (await once(session, 'goaway')) as [number]
  expect(code).toBe(0)
  await once(session, 'close')
  const caller = connected(service)
  const ask = { domain: 'edge', descriptors: [{ entries: [{ key: 'ip', value: '1.1.1.1' }] }] }
  const startMs = performance.now()
  // Several connections come and go meanwhile.
  while (performance.now() - startMs < 700) expect(await shouldRateLimit(caller, ask)).toMatchObject({ overall_code: 'OK' })
  caller.close()
})

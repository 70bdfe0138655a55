/** Limits on the connections of the gRPC port, as on those for HTTP. Over real sockets. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, credentials, type ServiceError, status } from '@grpc/grpc-js'
import { afterEach, expect, test, vi } from 'vitest'
import { healthService } from '../src/grpc/server.ts'
import type { ServiceOptions } from '../src/service.ts'
import { connected, shouldRateLimit } from './support/grpc.ts'
import { startedProcess } from './support/process.ts'
import { expectNoFailure, serviceOn, type TestService, until } from './support/service.ts'

const CONFIG = 'domains: { edge: { descriptors: [{ key: ip, limit: { type: gcra, rate: 1000/s, burst: 1000 } }] } }\n'
const ASK = { domain: 'edge', descriptors: [{ entries: [{ key: 'ip', value: '1.1.1.1' }] }] }
const CALL = {
  ':method': 'POST',
  ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  'content-type': 'application/grpc',
  te: 'trailers',
}

let service: TestService | undefined
const opened: (Socket | ClientHttp2Session | Client)[] = []

afterEach(async () => {
  vi.useRealTimers()
  for (const each of opened.splice(0)) 'destroy' in each ? each.destroy() : each.close()
  if (service === undefined) return
  await service.stop(0)
  expectNoFailure(service)
  service = undefined
})

async function start(grpcBounds: ServiceOptions['grpcBounds']): Promise<TestService> {
  service = await serviceOn(CONFIG, undefined, undefined, { grpcBounds })
  return service
}

async function silent(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
    .on('error', () => undefined)
    .resume()
  opened.push(socket)
  await once(socket, 'connect')
  return socket
}

/** A new client each time: one of grpc-js shares the connection of others to the same address. */
function client(grpcPort: number): Client {
  const made = connected({ grpcPort })
  opened.push(made)
  return made
}

/** Over a connection of its own. */
function health(grpcPort: number): Promise<string> {
  const options = { 'grpc.use_local_subchannel_pool': 1 }
  const asking = new (healthService())(`127.0.0.1:${grpcPort}`, credentials.createInsecure(), options)
  opened.push(asking)
  const deadline = Date.now() + 60_000
  return new Promise((resolve, reject) => {
    asking.Check?.({}, { deadline }, (error: ServiceError | null, answer: { status: string }) =>
      error === null ? resolve(answer.status) : reject(error),
    )
  })
}

/** A session whose only call begins, and goes no further. */
function stalled(port: number): { session: ClientHttp2Session; stream: ClientHttp2Stream } {
  const session = connectHttp2(`http://127.0.0.1:${port}`).on('error', () => undefined)
  opened.push(session)
  const stream = session.request(CALL)
  stream.on('error', () => undefined).resume()
  return { session, stream }
}

test('1,100 connections that say nothing keep out neither a new client nor the health check', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-grpc-'))
  writeFileSync(join(folder, 'sluice.yaml'), CONFIG)
  const { process, grpcPort } = await startedProcess(join(folder, 'sluice.yaml'))
  try {
    for (let k = 0; k < 11; k++) await Promise.all(Array.from({ length: 100 }, () => silent(grpcPort)))
    expect(await shouldRateLimit(client(grpcPort), ASK)).toMatchObject({ overall_code: 'OK' })
    expect(await health(grpcPort)).toBe('SERVING')
  } finally {
    process.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  }
})

test('asking for health is no use of a connection: those that only watch it make room', async () => {
  const { grpcPort } = await start({ maxConnections: 3 })
  const watching = await Promise.all(
    [1, 2, 3].map(async () => {
      const session = connectHttp2(`http://127.0.0.1:${grpcPort}`).on('error', () => undefined)
      opened.push(session)
      // Its only call: begun, and no message of it ever comes.
      session.request({ ...CALL, ':path': '/grpc.health.v1.Health/Watch' }).on('error', () => undefined)
      await once(session, 'remoteSettings')
      return session
    }),
  )
  await until(() => (service?.held.bytes ?? 0) >= 3 * 16_384)
  expect(await shouldRateLimit(client(grpcPort), ASK)).toMatchObject({ overall_code: 'OK' })
  expect(watching.filter(({ destroyed }) => destroyed)).toHaveLength(1)
})

test('the connection that has been without a call for the longest makes room', async () => {
  const { grpcPort } = await start({ maxConnections: 4 })
  const used = stalled(grpcPort)
  await until(() => (service?.held.bytes ?? 0) > 0)
  const silents: Socket[] = []
  for (let k = 0; k < 3; k++) silents.push(await silent(grpcPort))
  const ended: number[] = []
  for (const [k, socket] of silents.entries()) socket.once('close', () => ended.push(k))
  await silent(grpcPort)
  await until(() => ended.length === 1)
  // The call of the oldest is over: now it has been used last.
  used.stream.close(constants.NGHTTP2_CANCEL)
  await until(() => service?.held.bytes === 0)
  for (let k = 0; k < 2; k++) await silent(grpcPort)
  await until(() => ended.length === 3)
  expect(ended).toEqual([0, 1, 2])
  expect(used.session.destroyed).toBe(false)
})

test('when all have a call under way, health is still answered, and others are told to come back', async () => {
  const { grpcPort } = await start({ maxConnections: 3 })
  const busy = [1, 2, 3].map(() => stalled(grpcPort))
  await until(() => (service?.held.bytes ?? 0) >= 3 * 16_384)
  expect(await health(grpcPort)).toBe('SERVING')
  const late = stalled(grpcPort)
  const [answer] = (await once(late.stream, 'response')) as [Record<string, string>]
  expect(answer).toMatchObject({
    'grpc-status': `${status.UNAVAILABLE}`,
    'grpc-message': 'all%20connections%20of%20the%20service%20are%20taken',
  })
  // Its connection goes with it: on another there may be room.
  await once(late.session, 'close')
  expect(busy.map(({ stream }) => stream.closed)).toEqual([false, false, false])
  busy[0]?.stream.close(constants.NGHTTP2_CANCEL)
  await vi.waitFor(async () => expect(await shouldRateLimit(client(grpcPort), ASK)).toMatchObject({ overall_code: 'OK' }), {
    timeout: 30_000,
  })
})

test('a call that is taken back at once leaves its connection without one', async () => {
  const { grpcPort } = await start({ maxConnections: 1 })
  const { session, stream } = stalled(grpcPort)
  stream.close(constants.NGHTTP2_CANCEL)
  for (let k = 0; k < 200; k++)
    session
      .request(CALL)
      .on('error', () => undefined)
      .close(constants.NGHTTP2_CANCEL)
  await new Promise((resolve) => session.ping(resolve))
  await until(() => service?.held.bytes === 0)
  await silent(grpcPort)
  await once(session, 'close')
})

test('a connection that has not begun to speak HTTP/2 in time is ended', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const { grpcPort } = await start({})
  const says = async (bytes: string) => {
    const socket = await silent(grpcPort)
    socket.write(bytes)
    return socket
  }
  const late = [await silent(grpcPort), await says('PRI * HTTP/2.0\r\n'), await says('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')]
  const ended = late.map((socket) => once(socket, 'close'))
  const { session, stream } = stalled(grpcPort)
  await until(() => (service?.held.bytes ?? 0) > 0)
  stream.close(constants.NGHTTP2_CANCEL)
  await until(() => service?.held.bytes === 0)
  vi.advanceTimersByTime(9_999)
  expect(late.map(({ closed }) => closed)).toEqual([false, false, false])
  vi.advanceTimersByTime(1)
  await Promise.all(ended)
  expect(session.destroyed).toBe(false)
})

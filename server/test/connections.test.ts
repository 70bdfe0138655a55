/**
 * Limits on connections: how much a client may take of the service, and the answers to a supervisor
 * meanwhile. Over real sockets.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import type { HttpBounds } from '../src/http/server.ts'
import { call } from './support/client.ts'
import { CONFIG, expectNoFailure, serviceOn, type TestService, until } from './support/service.ts'

let service: TestService
let sockets: Socket[] = []

afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  sockets = []
  await service.stop(0)
  expectNoFailure(service)
})

async function start(httpBounds: Partial<HttpBounds>): Promise<void> {
  service = await serviceOn(CONFIG, undefined, undefined, { httpBounds })
}

async function opened(text = ''): Promise<Socket> {
  const socket = connect(service.httpPort, '127.0.0.1').on('error', () => undefined)
  sockets.push(socket)
  await once(socket, 'connect')
  if (text !== '') socket.write(text)
  return socket
}

/** On a connection of its own. */
async function asked(path: string): Promise<string> {
  const socket = await opened(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
  const [piece] = (await once(socket, 'data')) as [Buffer]
  return piece.toString()
}

const ACQUIRE = '{"limiter":"shaped","key":"k","cost":4,"timeoutMs":600000}'
const acquire = (key: string) => {
  const body = ACQUIRE.replace('"k"', JSON.stringify(key))
  return `POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

test('when all connections are taken by clients that say nothing, the one that has been silent for the longest makes room', async () => {
  await start({ maxConnections: 5 })
  const silent: Socket[] = []
  for (let k = 0; k < 5; k++) silent.push(await opened())
  const ended = silent.map(() => false)
  for (const [k, socket] of silent.entries()) {
    socket.once('close', () => {
      ended[k] = true
    })
  }
  expect(await asked('/healthz')).toMatch(/^HTTP\/1.1 200 /)
  await until(() => ended[0] === true)
  expect(ended).toEqual([true, false, false, false, false])
  // One that has been used lately stays, and those that were silent before it go.
  expect(await asked('/v1/limiters')).toMatch(/^HTTP\/1.1 200 /)
})

test('when all connections have a request under way, supervisors are answered, others are told to come back', async () => {
  await start({ maxConnections: 5 })
  for (let k = 0; k < 5; k++) await call(service.url, 'POST', '/v1/decide', { limiter: 'shaped', key: `k${k}`, cost: 4 })
  // Whatever fetch has kept is idle, and makes room.
  for (let k = 0; k < 5; k++) await opened(acquire(`k${k}`))
  await until(() => service.limiters.get('shaped')?.waiting === 5)
  for (const path of ['/healthz', '/readyz', '/metrics']) {
    const answer = await asked(path)
    expect(answer).toMatch(/^HTTP\/1.1 200 /)
    expect(answer.toLowerCase()).toContain('connection: close')
  }
  const refused = await asked('/v1/limiters')
  expect(refused).toMatch(/^HTTP\/1.1 503 .*"code":"BUSY"/s)
  expect(refused.toLowerCase()).toContain('retry-after: 1')
  // Those who wait are still there, also after more silent connections than there are spare ones.
  for (let k = 0; k < 150; k++) await opened()
  expect(await asked('/healthz')).toMatch(/^HTTP\/1.1 200 /)
  expect(service.limiters.get('shaped')?.waiting).toBe(5)
})

test('headers and bodies that do not come in time end the connection, within a second of what the guide says', async () => {
  await start({ headersTimeoutMs: 200, requestTimeoutMs: 3_000 })
  // So far apart that no pause of the machine lets both be found out at once.
  const order: string[] = []
  const ends = (socket: Socket, name: string) =>
    new Promise<void>((resolve) => {
      socket.resume().once('close', () => {
        order.push(name)
        resolve()
      })
    })
  const startMs = performance.now()
  const body = ends(await opened(acquire('k').slice(0, -5)), 'body')
  const headers = ends(await opened('GET /healthz HTTP/1.1\r\nhost: lo'), 'headers')
  await headers
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(200)
  await body
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(3_000)
  expect(order).toEqual(['headers', 'body'])
})

/**
 * What strangers can make the built service write: at most a tenth of what they send, whatever they
 * send, on standard output and standard error together.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2, constants, type OutgoingHttpHeaders } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { journalIn } from '../src/journal.ts'
import { connected, shouldRateLimit } from './support/grpc.ts'
import { type ServiceProcess, startedProcess } from './support/process.ts'

const CONFIG = `
limiters:
  api: { limits: { type: gcra, rate: 1/h, burst: 1 } }
  slow: { limits: { type: fixedWindow, limit: 500, window: 5min, anchor: first } }
domains:
  edge: { descriptors: [{ key: ip, limit: { type: gcra, rate: 1000/s, burst: 1000 } }] }
`
const WARN = 40

let folder: string
let service: ServiceProcess

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-log-flood-'))
  writeFileSync(join(folder, 'sluice.yaml'), CONFIG)
})

afterEach(() => {
  service.process.kill('SIGKILL')
  rmSync(folder, { recursive: true })
})

async function start(...args: string[]): Promise<void> {
  service = await startedProcess(join(folder, 'sluice.yaml'), '--log-level', 'info', ...args)
}

function posted(path: string, body: string, type = 'application/json'): string {
  return `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

const decide = (body: object) => posted('/v1/decide', JSON.stringify(body))
const WAIT = posted('/v1/acquire', '{"limiter":"slow","key":"k","timeoutMs":600000}')

/** Resolves with the bytes that were sent, when the service has ended the connection. */
async function flood(text: string | Buffer, port = service.httpPort): Promise<number> {
  const socket: Socket = connect(port, '127.0.0.1').on('error', () => undefined)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.end(text)
  socket.resume()
  await closed
  return Buffer.byteLength(text)
}

async function floods(count: number, text: string | Buffer, port?: number): Promise<number> {
  let bytes = 0
  for (let k = 0; k < count; k++) bytes += await flood(text, port)
  return bytes
}

/** Posts all that the service has to do before it answers. Its log is written by then. */
async function settled(): Promise<void> {
  await vi.waitFor(
    async () => {
      const { limiters } = (await (await fetch(`${service.url}/v1/limiters`)).json()) as { limiters: { waiting: number }[] }
      expect(limiters.map(({ waiting }) => waiting)).toEqual([0, 0])
    },
    { timeout: 20_000 },
  )
  service.process.kill('SIGTERM')
  await service.ended
}

const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'

/** Calls with a message of these bytes, on one connection. */
async function calls(count: number, message: Buffer, headers: OutgoingHttpHeaders = {}, cancels = false): Promise<number> {
  const session = connectHttp2(`http://127.0.0.1:${service.grpcPort}`).on('error', () => undefined)
  const closes: Promise<unknown>[] = []
  for (let k = 0; k < count; k++) {
    const stream = session.request({ ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc', te: 'trailers', ...headers })
    stream.on('error', () => undefined).resume()
    closes.push(new Promise((resolve) => stream.once('close', resolve)))
    const prefix = Buffer.alloc(5)
    prefix.writeUInt32BE(message.length, 1)
    if (cancels) stream.close(constants.NGHTTP2_CANCEL)
    else stream.end(Buffer.concat([prefix, message]))
    if (k % 50 === 49) await Promise.all(closes)
  }
  await Promise.all(closes)
  session.destroy()
  return count * (message.length + 60)
}

/** Each limit is brought along twice: asked for no hits, then for too many. */
async function overridden(): Promise<number> {
  const client = connected(service)
  let bytes = 0
  for (let call = 0; call < 20; call++) {
    const descriptors = Array.from({ length: 200 }, (_, k) =>
      [0, 1_000_000].map((value) => ({
        entries: [{ key: 'ip', value: '1' }],
        limit: { requests_per_unit: 1 + call * 200 + k, unit: 'YEAR' },
        hits_addend: { value },
      })),
    ).flat()
    await shouldRateLimit(client, { domain: 'edge', descriptors })
    bytes += descriptors.length * 24
  }
  client.close()
  return bytes
}

test('what is answered, refused, broken off or never was a request is not told of', async () => {
  await start()
  const before = service.written()
  await floods(50, WAIT)
  await floods(50, WAIT.slice(0, -5))
  await floods(20, decide({ limiter: 'api', key: 'k' }).repeat(90))
  await floods(50, 'x\r\n\r\n')
  await floods(20, `GET / HTTP/1.1\r\nhost: ${'a'.repeat(20_000)}\r\n\r\n`)
  for (const request of [
    posted('/v1/decide', '{'),
    posted('/v1/decide', '{"limiter":"nobody\\u0000\\n","key":"\\ud800","cost":1e308}'),
    posted('/v1/decide', `${'['.repeat(20_000)}${']'.repeat(20_000)}`),
    posted('/v1/decide', '{}', 'text/plain'),
    posted('/v1/release', '{"permit":"W10"}'),
    posted('/json', '{"domain":"edge","descriptors":[{"entries":[{"key":"\\u0000"}]}]}'),
    posted('/%zz%00', '{}'),
    'GET /v1/limiters/api/keys/%ff HTTP/1.1\r\nhost: localhost\r\n\r\n',
    'BREW /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n',
  ]) {
    await floods(20, request)
  }
  await floods(50, 'GET / HTTP/1.1\r\n\r\n', service.grpcPort)
  await floods(50, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nand then something else', service.grpcPort)
  await calls(200, Buffer.from([0x12, 0x00]))
  await calls(200, Buffer.from([0xff, 0xff, 0xff]))
  await calls(20, Buffer.alloc(100_000, 0x0b))
  await calls(200, Buffer.alloc(0), { ':path': '/x/Y' })
  await calls(200, Buffer.alloc(0), {}, true)
  await settled()
  expect(service.written() - before - stopLines()).toBe(0)
})

test.each([
  ['waits that are pipelined', () => floods(20, WAIT.repeat(120))],
  ['questions that are pipelined', () => floods(50, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(101))],
  ['limits that calls bring along', overridden],
] as const)('%s are told of in a tenth of their bytes at most', async (_, send) => {
  await start()
  const before = service.written()
  const sent = await send()
  await settled()
  expect(service.written() - before - stopLines()).toBeLessThanOrEqual(sent / 10)
})

/** Bytes of the lines that tell of the stop. */
function stopLines(): number {
  const lines = service.lines.filter((line) => /"msg":"stopp/.test(line))
  return lines.reduce((bytes, line) => bytes + line.length + 1, 0)
}

test('handshakes that fail are not told of', async () => {
  const certificate = (name: string) => fileURLToPath(new URL(`./support/certificates/${name}`, import.meta.url))
  await start('--tls-cert', certificate('server.pem'), '--tls-key', certificate('server.key'))
  const before = service.written()
  for (const port of [service.httpPort, service.grpcPort]) await floods(200, 'GET / HTTP/1.1\r\n\r\n', port)
  expect(service.written()).toBe(before)
})

test('a flood is told of as a warning, with its address, and not as a failure', async () => {
  await start()
  await floods(20, WAIT.repeat(120))
  await settled()
  const told = service.lines.map((line) => JSON.parse(line) as { level: number; msg: string }).filter(({ level }) => level >= WARN)
  expect(told).toMatchObject([{ level: WARN, address: '127.0.0.1', msg: 'a connection was refused: it had too many unanswered requests' }])
})

test('an outage is told of once for all limits that calls bring along', () => {
  const lines: string[] = []
  const write = (_: object, msg: string) => lines.push(msg)
  const journal = journalIn({ warn: write, info: write, isLevelEnabled: () => false } as never)
  for (const state of ['down', 'up', 'down'] as const)
    for (let k = 0; k < 100; k++) journal.limiterChanged('edge: limits in requests', { state, error: undefined } as never)
  expect(lines).toEqual(['has no answer', 'has answers', 'has no answer'].map((text) => expect.stringContaining(text)))
})

test('what clients can cause is told once in ten seconds, with how often it happened since', () => {
  let nowMs = 0
  const lines: object[] = []
  const write = (line: object, msg: string) => lines.push({ ...line, msg })
  const log = { warn: write, error: write, isLevelEnabled: () => false }
  const journal = journalIn(log as never, () => nowMs)
  for (const _ of [1, 2, 3]) {
    for (let k = 0; k < 100; k++) journal.flooded('192.0.2.1')
    for (let k = 0; k < 100; k++) journal.failed(new TypeError(`x is undefined: ${nowMs} ${k}`))
    nowMs += 9_999
    journal.flooded('192.0.2.1')
    nowMs += 1
  }
  expect(lines.map((line) => ({ ...line, err: undefined }))).toMatchObject([
    { address: '192.0.2.1' },
    { msg: 'a request failed by our fault' },
    { address: '192.0.2.1', more: 100 },
    { msg: 'a request failed by our fault', more: 99 },
    { address: '192.0.2.1', more: 100 },
    { msg: 'a request failed by our fault', more: 99 },
  ])
})

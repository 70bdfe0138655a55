/**
 * Floods against the built service with a small heap: each is refused clearly, others are served
 * meanwhile, and the memory of the process stays below a stated number. A comment beside each says
 * how much memory the flood would take without its bound.
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Metadata, status } from '@grpc/grpc-js'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { CALL_TIMEOUT_MS, MAX_MESSAGE_BYTES } from '../src/grpc/guard.ts'
import { MAX_BODY_BYTES } from '../src/http/body.ts'
import { ANSWER_TIMEOUT_MS } from '../src/http/server.ts'
import { MAX_LISTENERS, SURE_OF_PLACE_US } from '../src/live/hub.ts'
import { Tokens } from '../src/tokens.ts'
import { call } from './support/client.ts'
import { connected, shouldRateLimit } from './support/grpc.ts'
import { watching } from './support/live-client.ts'
import { type ServiceProcess, startedWith } from './support/process.ts'
import { expectNoFailure, serviceOn, until } from './support/service.ts'

const MAX_WAITERS = 300
const CONFIG = `
bounds: { maxWaiters: ${MAX_WAITERS} }
limiters:
  api: { limits: { type: gcra, rate: 1/h, burst: 1 } }
  slow: { limits: { type: fixedWindow, limit: 500, window: 5min, anchor: first } }
domains:
  edge: { descriptors: [{ key: ip, limit: { type: gcra, rate: 1000/s, burst: 1000 } }] }
`
const TOKEN = 'a-token-of-the-test'
/**
 * What the process takes when it has started, 100 MB, and twice its heap. Buffers are not in the
 * heap.
 */
const MOST_RSS_MB = 350

let folder: string
let service: ServiceProcess
let sockets: (Socket | ClientHttp2Session)[]

beforeEach(() => {
  sockets = []
  folder = mkdtempSync(join(tmpdir(), 'sluice-flood-'))
  writeFileSync(join(folder, 'sluice.yaml'), CONFIG)
  writeFileSync(join(folder, 'tokens'), TOKEN)
})

afterEach(() => {
  vi.useRealTimers()
  for (const socket of sockets) socket.destroy()
  service?.process.kill('SIGKILL')
  rmSync(folder, { recursive: true })
})

async function start(heapMb: number, ...args: string[]): Promise<void> {
  service = await startedWith([`--max-old-space-size=${heapMb}`], join(folder, 'sluice.yaml'), '--log-level', 'info', ...args)
}

function opened(port: number): Socket {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  sockets.push(socket)
  return socket
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

function rssMb(): number {
  const { pid } = service.process
  if (process.platform !== 'linux') return Number(execFileSync('ps', ['-o', 'rss=', '-p', `${pid}`])) / 1_000
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_000
}

const post = (path: string, body: object) => call(service.url, 'POST', path, body)
const waiting = async () => (await call(service.url, 'GET', '/v1/limiters')).body.limiters[1].waiting as number

function httpRequest(path: string, body: string, length = body.length): string {
  return `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`
}

describe('over HTTP', () => {
  test('waits that are pipelined are refused with their connection', async () => {
    await start(256)
    // Nobody has a turn before five minutes are over.
    await post('/v1/decide', { limiter: 'slow', key: 'k', cost: 500 })
    const ask = httpRequest('/v1/acquire', JSON.stringify({ limiter: 'slow', key: 'k', timeoutMs: 600_000 }))
    const polite = opened(service.httpPort)
    polite.write(ask.repeat(101))
    const [answer] = (await once(polite, 'data')) as [Buffer]
    expect(answer.toString()).toMatch(/^HTTP\/1.1 429 .*"code":"PIPELINE"/s)
    await closed(polite)
    // 60,000 waits of 9 KB would be 540 MB. A client that goes on sending may not hear why it is
    // cut off.
    const flood = opened(service.httpPort).resume()
    flood.write(ask.repeat(60_000))
    await closed(flood)
    await vi.waitFor(async () => expect(await waiting()).toBe(0), { timeout: 20_000 })
    expect(await post('/v1/decide', { limiter: 'api', key: 'k' })).toMatchObject({ status: 200, body: { allowed: true } })
    expect(rssMb()).toBeLessThan(MOST_RSS_MB)
  })

  test('waits on many connections are refused beyond the bound, and who hangs up gives back all places', async () => {
    await start(256)
    await post('/v1/decide', { limiter: 'slow', key: 'k', cost: 500 })
    const ask = httpRequest('/v1/acquire', JSON.stringify({ limiter: 'slow', key: 'k', timeoutMs: 600_000 }))
    const floods = Array.from({ length: 60 }, () => opened(service.httpPort))
    for (const flood of floods) flood.write(ask.repeat(50))
    await vi.waitFor(async () => expect(await waiting()).toBe(MAX_WAITERS), { timeout: 20_000 })
    const refused = await post('/v1/acquire', { limiter: 'slow', key: 'k', timeoutMs: 600_000 })
    expect(refused).toMatchObject({
      status: 429,
      body: { code: 'QUEUE_FULL', detail: expect.stringContaining('300 wait at this service') },
    })
    expect(await post('/v1/acquire', { limiter: 'slow', key: 'other' })).toMatchObject({ status: 200 })
    expect(await post('/v1/decide', { limiter: 'api', key: 'k' })).toMatchObject({ status: 200, body: { allowed: true } })
    expect(rssMb()).toBeLessThan(MOST_RSS_MB)
    // Also those of requests whose turn to be answered had not come.
    for (const flood of floods) flood.destroy()
    await vi.waitFor(async () => expect(await waiting()).toBe(0), { timeout: 20_000 })
  })

  test('bodies that do not come to their end make room for those that do', async () => {
    await start(256)
    const piece = '"'.padEnd(900_000)
    // 300 of 900 KB would be 270 MB.
    const answers = Array.from({ length: 300 }, async () => {
      const socket = opened(service.httpPort)
      socket.write(httpRequest('/v1/decide', piece, 1_000_000))
      const [answer] = (await once(socket, 'data')) as [Buffer]
      return answer.toString()
    })
    for (const answer of answers) answer.catch(() => undefined)
    const first = await Promise.race(answers)
    expect(first).toMatch(/^HTTP\/1.1 503 /)
    expect(first).toContain('"code":"BUSY"')
    expect(await post('/v1/decide', { limiter: 'api', key: 'k' })).toMatchObject({ status: 200, body: { allowed: true } })
    await Promise.race(answers.slice(100))
    expect(rssMb()).toBeLessThan(MOST_RSS_MB)
  })

  test.each([
    ['brackets', '/v1/decide', '['.repeat(MAX_BODY_BYTES), /at most 8 levels of lists and objects: byte 9 /],
    ['brackets that are closed', '/json', '['.repeat(MAX_BODY_BYTES / 2) + ']'.repeat(MAX_BODY_BYTES / 2), /at most 8 levels/],
    ['small objects', '/v1/decide', `[${'{},'.repeat(349_000)}1]`, /at most 32768 values: byte 49151 /],
    ['brackets within a permit', '/v1/release', `{"permit":"${'W1tb'.repeat(262_000)}"}`, /must be the permit of a decision/],
  ])('a megabyte of %s is refused before it is parsed', async (_, path, body, detail) => {
    await start(64)
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${service.url}${path}`, { method: 'POST', headers, body })
    expect(await answer.json()).toMatchObject({ status: 400, detail: expect.stringMatching(detail) })
  })

  test('answers that are not taken are counted, and not kept for long', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const inProcess = await serviceOn(CONFIG)
    const decisions = JSON.stringify({ decisions: Array(1_000).fill({ limiter: 'api', key: 'k', verb: 'peek' }) })
    const flood = opened(inProcess.httpPort).pause()
    // Answers of 300 KB, of which the system takes some.
    flood.write(httpRequest('/v1/decide', decisions).repeat(40))
    let same = 0
    for (let bytes = 0; same < 1_000; bytes = inProcess.held.bytes) {
      await new Promise((resolve) => setImmediate(resolve))
      same = bytes > 0 && bytes === inProcess.held.bytes ? same + 1 : 0
    }
    vi.advanceTimersByTime(ANSWER_TIMEOUT_MS)
    await until(() => inProcess.held.bytes === 0)
    vi.useRealTimers()
    await closed(flood.resume())
    await inProcess.stop(0)
    expectNoFailure(inProcess)
  })

  test('long keys cost what short ones cost', async () => {
    await start(64)
    // 36,000 of 2 KB would be 72 MB.
    const batch = async (k: number) => {
      const key = (n: number) => `${'\u0101'.repeat(990)}${k}-${n}`
      const decisions = Array.from({ length: 400 }, (_, n) => ({ limiter: 'api', key: key(n) }))
      // Not held against the document: that would take longer than all else.
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(`${service.url}/v1/decide`, { method: 'POST', headers, body: JSON.stringify({ decisions }) })
      expect((await response.text()).match(/"allowed":true/g)).toHaveLength(400)
    }
    for (let k = 0; k < 90; k += 6) await Promise.all(Array.from({ length: 6 }, (_, n) => batch(k + n)))
    expect(await post('/v1/decide', { limiter: 'api', key: `${'\u0101'.repeat(990)}0-0` })).toMatchObject({ body: { allowed: false } })
  })
})

test.each([
  ['deny', false],
  ['allow', true],
])('of new keys beyond maxKeys none is held, and with onFull: %s each is allowed: %s', async (onFull, isAllowed) => {
  writeFileSync(join(folder, 'sluice.yaml'), CONFIG.replace('bounds: {', `bounds: { maxKeys: 50, onFull: ${onFull},`))
  await start(64)
  const decisions = Array.from({ length: 60 }, (_, n) => ({ limiter: 'api', key: `k${n}` }))
  const { body } = await post('/v1/decide', { decisions })
  const allowed = body.decisions.map((each: { allowed: boolean }) => each.allowed)
  expect(allowed).toEqual(decisions.map((_, n) => n < 50 || isAllowed))
  expect(await post('/v1/decide', decisions[0] as object)).toMatchObject({ body: { allowed: false } })
})

describe('over gRPC', () => {
  const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
  const HEADERS = { ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc', te: 'trailers' }
  const ASK = { domain: 'edge', descriptors: [{ entries: [{ key: 'ip', value: '1.1.1.1' }] }] }

  /**
   * Sends so much of a message of so many bytes, and stops. Resolves with the status; undefined if
   * the connection ended without one.
   */
  function stalled(session: ClientHttp2Session, bytes: number, sent: number): Promise<number | undefined> {
    const stream: ClientHttp2Stream = session.request(HEADERS)
    const prefix = Buffer.alloc(5)
    prefix.writeUInt32BE(bytes, 1)
    stream.write(prefix)
    stream.write(Buffer.alloc(sent))
    stream.on('error', () => undefined).resume()
    return new Promise((resolve) => {
      stream.on('response', (headers) => resolve(headers['grpc-status'] === undefined ? undefined : Number(headers['grpc-status'])))
      stream.on('close', () => resolve(undefined))
    })
  }

  function sessions(count: number, port: number): ClientHttp2Session[] {
    return Array.from({ length: count }, () => {
      const session = connectHttp2(`http://127.0.0.1:${port}`, { maxSessionMemory: 1_000 })
      session.on('error', () => undefined)
      sockets.push(session)
      return session
    })
  }

  test('without a token nothing is received', async () => {
    await start(256, '--tokens-file', join(folder, 'tokens'))
    // 20 x 100 x 120 KB would be 240 MB.
    const all = sessions(20, service.grpcPort)
    const codes = await Promise.all(all.flatMap((session) => Array.from({ length: 100 }, () => stalled(session, 125_000, 120_000))))
    expect(new Set(codes)).toEqual(new Set([status.UNAUTHENTICATED]))
    expect(rssMb()).toBeLessThan(MOST_RSS_MB)
    const metadata = new Metadata()
    metadata.set('authorization', `Bearer ${TOKEN}`)
    const client = connected(service)
    expect(await shouldRateLimit(client, ASK, metadata)).toMatchObject({ overall_code: 'OK' })
    client.close()
  })

  test('messages that do not come to their end make room for those that do', async () => {
    await start(256)
    // 20 x 100 x 120 KB would be 240 MB.
    const codes = sessions(20, service.grpcPort).flatMap((session) => Array.from({ length: 100 }, () => stalled(session, 125_000, 120_000)))
    expect(await Promise.race(codes)).toBe(status.RESOURCE_EXHAUSTED)
    const client = connected(service)
    expect(await shouldRateLimit(client, ASK)).toMatchObject({ overall_code: 'OK' })
    client.close()
    // So many cannot have had room.
    const ended = await firstOf(codes, 1_000)
    // On a machine that is slow to send them the time of some is up before.
    const inVain = [status.RESOURCE_EXHAUSTED, status.DEADLINE_EXCEEDED]
    for (const code of ended) expect(inVain).toContain(code)
    expect(ended).toContain(status.RESOURCE_EXHAUSTED)
    expect(rssMb()).toBeLessThan(MOST_RSS_MB)
  })

  test('a message that is too long, or comes byte by byte, is refused', async () => {
    await start(256)
    const [session] = sessions(1, service.grpcPort) as [ClientHttp2Session]
    expect(await stalled(session, MAX_MESSAGE_BYTES + 1, 10)).toBe(status.RESOURCE_EXHAUSTED)
    const stream: ClientHttp2Stream = session.request(HEADERS)
    stream.on('error', () => undefined)
    const answered = once(stream, 'response')
    stream.resume().write(Buffer.from([0, 0, 1, 0xe8, 0x48]))
    for (let k = 0; k < 2_000 && !stream.closed; k++) await Promise.race([new Promise((resolve) => stream.write('x', resolve)), answered])
    expect((await answered)[0]['grpc-status']).toBe(`${status.RESOURCE_EXHAUSTED}`)
    await until(() => stream.closed)
  })

  test('a call that is not over in time is ended, and its stream closed', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const inProcess = await serviceOn(CONFIG)
    const [session] = sessions(1, inProcess.grpcPort) as [ClientHttp2Session]
    const code = stalled(session, 125_000, 100_000)
    await until(() => inProcess.held.bytes > 100_000)
    vi.advanceTimersByTime(CALL_TIMEOUT_MS - 1)
    expect(inProcess.held.bytes).toBeGreaterThan(100_000)
    vi.advanceTimersByTime(1)
    expect(await code).toBe(status.DEADLINE_EXCEEDED)
    await until(() => inProcess.held.bytes === 0)
    vi.useRealTimers()
    session.destroy()
    await inProcess.stop(0)
    expectNoFailure(inProcess)
  })

  test('an answer that the client leaves no room for is not waited for', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const inProcess = await serviceOn(CONFIG, undefined, new Tokens([TOKEN]))
    const session = connectHttp2(`http://127.0.0.1:${inProcess.grpcPort}`, { settings: { initialWindowSize: 0 } })
    sockets.push(session)
    const stream = session.request({ ...HEADERS, authorization: `Bearer ${TOKEN}` })
    stream.on('error', () => undefined)
    // An empty message: its domain is empty too.
    const closed = new Promise((resolve) => stream.on('close', () => resolve(stream.rstCode)))
    const message = Buffer.from('\u0000\u0000\u0000\u0000\u0017\n\u0004edge\u0012\u000f\n\r\n\u0002ip\u0012\u00071.1.1.1')
    stream.end(message)
    await once(stream, 'response')
    expect(inProcess.held.bytes).toBeGreaterThan(0)
    vi.advanceTimersByTime(CALL_TIMEOUT_MS)
    expect(await closed).toBe(8)
    expect(inProcess.held.bytes).toBe(0)
    vi.useRealTimers()
    session.destroy()
    await inProcess.stop(0)
    expectNoFailure(inProcess)
  })
})

test('listeners that never read do not keep others out', async () => {
  const inProcess = await serviceOn(CONFIG)
  for (let k = 0; k < MAX_LISTENERS; k++) opened(inProcess.httpPort).pause().write('GET /v1/live HTTP/1.1\r\nhost: localhost\r\n\r\n')
  await until(() => inProcess.hub.listeners === MAX_LISTENERS)
  inProcess.clock.advanceMs(SURE_OF_PLACE_US / 1000)
  const reader = await watching(inProcess.url)
  expect(await reader.event(0)).toMatchObject({ limiters: [{ name: 'api' }, {}, {}] })
  inProcess.clock.advanceMs(1000)
  await reader.event(1)
  expect(inProcess.hub.listeners).toBe(MAX_LISTENERS)
  reader.leave()
  await inProcess.stop(0)
  expectNoFailure(inProcess)
})

/** The values of those that come first. */
function firstOf<T>(promises: readonly Promise<T>[], count: number): Promise<T[]> {
  return new Promise((resolve) => {
    const values: T[] = []
    for (const promise of promises) void promise.then((value) => values.push(value) === count && resolve(values))
  })
}

/**
 * The log of the built service: outages of a real Redis, what comes after them, reloads and
 * decisions.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type RedisServer, startServer } from '../../test/support/redis-servers.ts'
import { connected, shouldRateLimit } from './support/grpc.ts'
import { type ServiceProcess, startedProcess } from './support/process.ts'

const CONFIG = `
limiters:
  api: { limits: { type: gcra, rate: 1/h, burst: 2 }, storeTimeoutMs: 1500 }
  quiet: { limits: { type: fixedWindow, limit: 1, window: 1h }, shadow: true }
domains:
  edge: { descriptors: [{ key: ip, limit: { type: gcra, rate: 1/h, burst: 1 }, storeTimeoutMs: 1500 }] }
`

let folder: string
let file: string
let service: ServiceProcess
let redis: RedisServer | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-log-'))
  file = join(folder, 'sluice.yaml')
  writeFileSync(file, CONFIG)
})

afterEach(async () => {
  service.process.kill('SIGKILL')
  await service.ended
  redis?.signal('SIGCONT')
  await redis?.kill()
  redis = undefined
  rmSync(folder, { recursive: true })
})

interface Line {
  readonly level: number
  readonly msg: string
  readonly limiter?: string
  readonly downMs?: number
}

const WARN = 40
const lines = (): Line[] => service.lines.map((line) => JSON.parse(line) as Line)
const told = (text: string, limiter?: string) =>
  lines().filter(({ msg, limiter: of }) => msg.includes(text) && (limiter === undefined || of === limiter))
const times = (text: string, count: number, limiter?: string) =>
  vi.waitFor(() => expect(told(text, limiter)).toHaveLength(count), { timeout: 30_000, interval: 50 })

async function decide(body: object): Promise<number> {
  const headers = { 'content-type': 'application/json' }
  return (await fetch(`${service.url}/v1/decide`, { method: 'POST', headers, body: JSON.stringify(body) })).status
}

describe('outages', () => {
  test('are told each time, with their ends: of a Redis that stands still, twice, without a caller', async () => {
    redis = await startServer()
    service = await startedProcess(file, '--redis', `redis://127.0.0.1:${redis.port}`)
    for (const count of [1, 2]) {
      redis.signal('SIGSTOP')
      await times('the store does not answer', count)
      redis.signal('SIGCONT')
      await times('the store answers again', count)
    }
    expect(told('the store does not answer').every(({ level }) => level === WARN)).toBe(true)
    for (const { downMs } of told('the store answers again')) expect(downMs).toBeGreaterThan(0)
  })

  test('are told of every limiter that notices, by its name or its rule', async () => {
    redis = await startServer()
    service = await startedProcess(file, '--redis', `redis://127.0.0.1:${redis.port}`)
    expect(await decide({ limiter: 'api', key: 'u1' })).toBe(200)
    redis.signal('SIGSTOP')
    const client = connected(service)
    const ask = { domain: 'edge', descriptors: [{ entries: [{ key: 'ip', value: '1.1.1.1' }] }] }
    await Promise.allSettled([decide({ limiter: 'api', key: 'u1' }), shouldRateLimit(client, ask)])
    client.close()
    for (const limiter of ['api', 'edge: ip']) await times('has no answer from the store', 1, limiter)
    redis.signal('SIGCONT')
    for (const limiter of ['api', 'edge: ip']) await times('has answers from the store again', 1, limiter)
  })

  test('in which the connection is lost say why, once in each', async () => {
    redis = await startServer()
    const { port } = redis
    service = await startedProcess(file, '--redis', `redis://127.0.0.1:${port}`)
    for (const count of [1, 2]) {
      await redis.kill()
      await times('the store does not answer', count)
      await vi.waitFor(() => expect(told('the store cannot be reached').length).toBeGreaterThanOrEqual(count), { timeout: 10_000 })
      redis = await startServer([], port)
      await times('the store answers again', count)
    }
  })
})

test('a key that something else has written to is told, though nobody else fails', async () => {
  redis = await startServer()
  service = await startedProcess(file, '--redis', `redis://127.0.0.1:${redis.port}`)
  await redis.command('LPUSH', 'sluice:api:{u1}', 'x')
  expect(await decide({ limiter: 'api', key: 'u1' })).toBe(503)
  await times('the store failed at a decision', 1, 'api')
  expect(await decide({ limiter: 'api', key: 'u2' })).toBe(200)
  expect(told('has no answer')).toEqual([])
})

test('a reload says which limiters and rules it changes', async () => {
  service = await startedProcess(file)
  writeFileSync(file, CONFIG.replace('burst: 2', 'burst: 3').replace('  quiet:', '  loud:').replace('key: ip', 'key: path'))
  expect(JSON.parse(await service.line('the configuration was reloaded'))).toMatchObject({
    added: ['loud', 'edge: path'],
    removed: ['quiet', 'edge: ip'],
    changed: ['api'],
  })
})

describe('decisions', () => {
  const three = async () => {
    for (const limiter of ['api', 'quiet', 'quiet']) await decide({ limiter, key: 'u1' })
  }

  test('are written down at debug', async () => {
    service = await startedProcess(file, '--log-level', 'debug')
    await three()
    await times('decided', 3)
    expect(told('decided')).toMatchObject([
      { limiter: 'api', verb: 'consume', key: 'u1', cost: 1, outcome: 'allowed', remaining: 1, shadow: false },
      { limiter: 'quiet', outcome: 'allowed', shadow: true },
      { limiter: 'quiet', outcome: 'limited', policy: 'default', shadow: true },
    ])
  })

  test('and keys are not otherwise', async () => {
    service = await startedProcess(file)
    await three()
    service.process.kill('SIGTERM')
    await service.ended
    expect(service.lines.join('')).not.toContain('u1')
    expect(told('stopped')).toHaveLength(1)
  })
})

test('a service that other machines can reach without a token says so', async () => {
  service = await startedProcess(file, '--host', '0.0.0.0')
  expect(JSON.parse(await service.line('no token is needed'))).toMatchObject({ level: WARN, host: '0.0.0.0' })
})

test('the figures of Node and of the process, and its version, are among the metrics', async () => {
  service = await startedProcess(file)
  const metrics = await (await fetch(`${service.url}/metrics`)).text()
  for (const name of ['process_resident_memory_bytes', 'process_cpu_seconds_total', 'nodejs_eventloop_lag_p99_seconds']) {
    expect(metrics).toMatch(new RegExp(`^${name} [\\d.e+-]+$`, 'm'))
  }
  expect(metrics).toMatch(/^sluice_build_info\{version="\d+\.\d+\.\d+",node="\d+\.\d+\.\d+"\} 1$/m)
})

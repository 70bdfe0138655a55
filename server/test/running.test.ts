/** The built service at work: how it stops, and tokens that change. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type ServiceProcess, startedIn, startedProcess } from './support/process.ts'

const [FIRST, SECOND] = ['the-first-token-of-all', 'the-second-token-of-all'] as const

let folder: string
let service: ServiceProcess

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-run-'))
})

afterEach(async () => {
  service.process.kill('SIGKILL')
  await service.ended
  rmSync(folder, { recursive: true })
})

async function decide(token?: string): Promise<number> {
  const headers = { 'content-type': 'application/json', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) }
  return (await fetch(`${service.url}/v1/decide`, { method: 'POST', headers, body: '{"limiter":"api","key":"k"}' })).status
}

test('for as long as it drains it is not ready, and serves requests that still come', async () => {
  // For longer than a busy machine takes for the few requests.
  const drainMs = 6_000
  service = await startedProcess('--drain', `${drainMs}ms`, '--grace', '0s')
  const startMs = performance.now()
  service.process.kill('SIGTERM')
  await vi.waitFor(async () => expect((await fetch(`${service.url}/readyz`)).status).toBe(503), { timeout: drainMs })
  for (let k = 0; k < 10; k++) {
    // A connection of its own each time: every answer ends one.
    expect(await decide()).toBe(200)
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200)
  }
  expect(await service.ended).toEqual([0, null])
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(drainMs)
})

test('tokens that change are taken up while it runs, and at SIGHUP; a file without good ones is not', async () => {
  const file = join(folder, 'tokens')
  writeFileSync(file, `${FIRST}\n`)
  service = await startedProcess('--tokens-file', file)
  expect([await decide(), await decide(FIRST), await decide(SECOND)]).toEqual([401, 200, 401])
  writeFileSync(file, `${SECOND}\n${FIRST}\n`)
  expect(JSON.parse(await service.line('the tokens were reloaded'))).toMatchObject({ count: 2 })
  expect([await decide(), await decide(FIRST), await decide(SECOND)]).toEqual([401, 200, 200])
  writeFileSync(file, 'short\n')
  const refused = await service.line('the new tokens cannot be used')
  expect(JSON.parse(refused).reason).toContain('token 1 of')
  expect(refused).not.toContain('short')
  expect([await decide(), await decide(FIRST), await decide(SECOND)]).toEqual([401, 200, 200])
  writeFileSync(file, `${SECOND}\n`)
  service.process.kill('SIGHUP')
  await vi.waitFor(async () => expect(await decide(FIRST)).toBe(401), { timeout: 10_000 })
  expect(await decide(SECOND)).toBe(200)
})

test('options can be variables; what Kubernetes puts into one of the same name is none', async () => {
  const file = join(folder, 'sluice.yaml')
  writeFileSync(file, 'limiters: { mine: { limits: { type: gcra, rate: 1/s, burst: 1 } } }\n')
  writeFileSync(join(folder, 'tokens'), FIRST)
  const env = {
    SLUICE_PORT: '0',
    SLUICE_GRPC_PORT: '0',
    SLUICE_HEALTH_PORT: '0',
    SLUICE_TOKENS_FILE: join(folder, 'tokens'),
    SLUICE_LOG_LEVEL: 'debug',
    // Of a Service that is called sluice-allow-host, which nobody has.
    SLUICE_ALLOW_HOST: 'tcp://10.0.0.1:8080',
    SLUICE_DRAIN: '0s',
  }
  service = await startedIn(env, [], [file])
  const { healthPort } = JSON.parse(await service.line('sluice is serving')) as { healthPort: number }
  expect((await fetch(`http://127.0.0.1:${healthPort}/readyz`)).status).toBe(200)
  expect(await decide()).toBe(401)
})

/**
 * Two built copies of the service on one file: they hold one limit, through the kill of one, a
 * restart, and a lock that another program holds.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { postDecide, type ServiceProcess, startedProcess } from './support/process.ts'

const LIMIT = 200
const CONFIG = `limiters:
  api:
    limits: { type: fixedWindow, limit: ${LIMIT}, window: 366d, anchor: first }
`

let folder: string
let started: ServiceProcess[]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-file-'))
  writeFileSync(join(folder, 'sluice.yaml'), CONFIG)
  started = []
})
afterEach(async () => {
  for (const { process, ended } of started) {
    process.kill('SIGKILL')
    await ended
  }
  rmSync(folder, { recursive: true })
})

async function copy(): Promise<ServiceProcess> {
  const service = await startedProcess(join(folder, 'sluice.yaml'), '--sqlite', join(folder, 'limits.db'), '--no-page')
  started.push(service)
  return service
}

/** How many of so many calls, all at once, were allowed. */
async function allowedOf(calls: number, { url }: ServiceProcess): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const posted = await Promise.all(Array.from({ length: calls }, () => postDecide(url, agent, { limiter: 'api', key: 'u1' })))
  agent.destroy()
  return posted.filter(({ body }) => (body as { allowed: boolean }).allowed).length
}

test('together they admit the limit, whatever becomes of one of them', async () => {
  const [first, second] = [await copy(), await copy()]
  const early = await Promise.all([allowedOf(40, first), allowedOf(40, second)])
  expect(early).toEqual([40, 40])
  first.process.kill('SIGKILL')
  await first.ended
  const third = await copy()
  const late = await Promise.all([allowedOf(100, second), allowedOf(100, third)])
  expect(late[0] + late[1]).toBe(LIMIT - 80)
})

test('while another program holds the lock it says 503, takes nothing, and goes on afterwards', async () => {
  const service = await copy()
  const other = new Database(join(folder, 'limits.db'))
  other.exec('BEGIN IMMEDIATE')
  const agent = new Agent()
  const { status, body } = await postDecide(service.url, agent, { limiter: 'api', key: 'u1' })
  expect([status, (body as { code: string }).code]).toEqual([503, 'STORE'])
  other.exec('COMMIT')
  other.close()
  expect(await allowedOf(LIMIT + 1, service)).toBe(LIMIT)
})

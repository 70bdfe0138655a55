/** Several copies of the service on one real Postgres. */
import { randomUUID } from 'node:crypto'
import { expect, inject, test } from 'vitest'
import { openPostgres } from '../src/postgres-store.ts'
import { call } from './support/client.ts'
import { expectNoFailure, serviceOn, type TestService } from './support/service.ts'

test('two copies of the service hold one limit exactly, and make their table', async () => {
  const name = `svc-${randomUUID()}`
  const config = `limiters:\n  ${name}: { limits: { type: fixedWindow, limit: 100, window: 366d, anchor: first } }\n`
  const opened = await Promise.all([0, 1].map(() => openPostgres(inject('postgresUrl'), () => undefined)))
  const copies = await Promise.all(opened.map(({ store }) => serviceOn(config, store)))
  const question = { limiter: name, key: 'u1' }
  const calls = Array.from({ length: 150 }, (_, k) => call((copies[k % 2] as TestService).url, 'POST', '/v1/decide', question))
  const decisions = (await Promise.all(calls)).map(({ body }) => body) as { allowed: boolean; degraded: boolean }[]
  expect(decisions.filter(({ degraded }) => degraded)).toEqual([])
  expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(100)
  for (const copy of copies) {
    await copy.stop(0)
    expectNoFailure(copy)
  }
  for (const { close } of opened) close()
})

test('the log names no password', async () => {
  const { description, close } = await openPostgres('postgres://me:se@cret@db.example/limits?password=x', () => undefined)
  expect(description).toBe('postgres://db.example/limits')
  close()
})

test.each(['nonsense', 'redis://localhost', 'me:secret@db.example'])('%j is no URL of a Postgres', async (url) => {
  const error: Error = await openPostgres(url, () => undefined).then(
    () => new Error('it was opened'),
    (reason) => reason,
  )
  expect(error.message).toMatch(/must be such as postgres:\/\//)
  expect(error.message).not.toContain('secret')
})

/** Reloading the configuration file while the service runs. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ConfigFiles, type ReloadReport } from '../src/running/reload.ts'
import { call } from './support/client.ts'
import { expectNoFailure, serviceOn, type TestService } from './support/service.ts'

const withBurst = (burst: number) => `limiters:\n  api:\n    limits: { type: gcra, rate: 1/s, burst: ${burst} }\n`

let folder: string
let file: string
let service: TestService
let config: ConfigFiles
let reports: ReloadReport[]
let onReport: () => void

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  file = join(folder, 'sluice.yaml')
  reports = []
  onReport = () => undefined
  writeFileSync(file, withBurst(3))
  service = await serviceOn(withBurst(3))
  config = new ConfigFiles([file], [{ file, text: withBurst(3) }], service.limiters, (report) => {
    reports.push(report)
    onReport()
  })
  await call(service.url, 'POST', '/v1/decide', { limiter: 'api', key: 'u1', cost: 2 })
})

afterEach(async () => {
  config.close()
  await service.stop(0)
  rmSync(folder, { recursive: true })
  expectNoFailure(service)
})

async function standing(): Promise<{ limit: number; remaining: number }> {
  const { limit, remaining } = (await call(service.url, 'GET', '/v1/limiters/api/keys/u1')).body
  return { limit, remaining }
}

test('a good file changes the numbers and keeps what keys have used', async () => {
  writeFileSync(file, withBurst(10))
  config.reload()
  expect(reports).toEqual([{ result: 'ok', reason: undefined, changes: { added: [], removed: [], changed: ['api'] } }])
  expect(await standing()).toEqual({ limit: 10, remaining: 8 })
})

test('a bad file changes nothing, and says where it is wrong', async () => {
  writeFileSync(file, withBurst(-1))
  config.reload()
  expect(reports).toEqual([{ result: 'refused', reason: expect.stringMatching(/sluice\.yaml:3:45: gcra burst -1 must be a whole number/) }])
  expect(await standing()).toEqual({ limit: 3, remaining: 1 })
  writeFileSync(file, withBurst(5))
  config.reload()
  expect(await standing()).toEqual({ limit: 5, remaining: 3 })
})

test('a folder is one configuration: files that come, change and go are taken up', async () => {
  const more = join(folder, 'more.yaml')
  const inFolder = new ConfigFiles([folder], [{ file, text: withBurst(3) }], service.limiters, (report) => reports.push(report))
  const names = async () => (await call(service.url, 'GET', '/v1/limiters')).body.limiters.map(({ name }: { name: string }) => name)
  writeFileSync(more, 'limiters: { login: { limits: { type: slidingLog, limit: 5, window: 1min } } }\n')
  writeFileSync(join(folder, 'notes.txt'), 'not: [a configuration')
  writeFileSync(join(folder, '.hidden.yaml'), 'not: [a configuration')
  inFolder.reload()
  expect(reports).toEqual([{ result: 'ok', reason: undefined, changes: { added: ['login'], removed: [], changed: [] } }])
  expect(await names()).toEqual(['login', 'api'])
  writeFileSync(more, withBurst(9))
  inFolder.reload()
  expect(reports[1]).toEqual({ result: 'refused', reason: `${file}:2:3: limiter "api" stands in ${more} already` })
  rmSync(more)
  inFolder.reload()
  expect(await names()).toEqual(['api'])
  expect(await standing()).toEqual({ limit: 3, remaining: 1 })
  rmSync(file)
  inFolder.reload()
  expect(reports.at(-1)?.reason).toBe(`${folder} cannot be read: there is no .yaml, .yml or .json file in it`)
})

test('the whole service goes into shadow and comes back, and keeps what keys have used', async () => {
  const domain = 'domains: { edge: { descriptors: [{ key: ip, denied: true }] } }\n'
  const decide = async (cost: number) => (await call(service.url, 'POST', '/v1/decide', { limiter: 'api', key: 'u1', cost })).body
  /** By a rule, and by limits that the caller brings along. */
  const denied = async () => {
    const entries = [{ key: 'ip', value: '1.1.1.1' }]
    const limits = [
      undefined,
      { requestsPerUnit: 0, unit: 'SECOND' },
      { requestsPerUnit: 1, unit: 'DAY' },
      { requestsPerUnit: 1, unit: 'DAY' },
    ]
    const descriptors = limits.map((limit) => ({ entries, limit }))
    return (await call(service.url, 'POST', '/json', { domain: 'edge', descriptors })).body.statuses.map(
      ({ code }: { code: string }) => code,
    )
  }
  writeFileSync(file, `${withBurst(3)}${domain}shadow: true\n`)
  config.reload()
  expect(await decide(2)).toMatchObject({ allowed: true, outcome: 'limited', shadow: true })
  expect(await denied()).toEqual(['OK', 'OK', 'OK', 'OK'])
  writeFileSync(file, `${withBurst(3)}${domain}`)
  config.reload()
  expect(await decide(2)).toMatchObject({ allowed: false, outcome: 'limited', shadow: false })
  expect(await denied()).toEqual(['OVER_LIMIT', 'OVER_LIMIT', 'OVER_LIMIT', 'OVER_LIMIT'])
  expect(await standing()).toEqual({ limit: 3, remaining: 1 })
})

test('another algorithm under the same name is refused: it could not know what was used', async () => {
  writeFileSync(file, 'limiters:\n  api:\n    limits: { type: slidingLog, limit: 1, window: 1s }\n')
  config.reload()
  expect(reports[0]?.reason).toContain(
    'sluice.yaml:3:13: limit "default" of limiter "api" is a running gcra: to make it a slidingLog, give it another name',
  )
  expect(await standing()).toEqual({ limit: 3, remaining: 1 })
})

test('a bound on waiters holds at once; one on keys wants another start', async () => {
  writeFileSync(file, `bounds: { maxWaiters: 0 }\n${withBurst(3)}`)
  config.reload()
  expect(reports).toMatchObject([{ result: 'ok', reason: undefined }])
  await call(service.url, 'POST', '/v1/acquire', { limiter: 'api', key: 'u1' })
  const refused = await call(service.url, 'POST', '/v1/acquire', { limiter: 'api', key: 'u1' })
  expect(refused).toMatchObject({ status: 429, body: { code: 'QUEUE_FULL', retryAfterMs: 1000 } })
  writeFileSync(file, `bounds: { maxKeys: 5 }\n${withBurst(3)}`)
  config.reload()
  expect(reports[1]?.reason).toContain('sluice.yaml:1:20: maxKeys 5 is 100000 in the running service: start it anew')
})

test('a file that is gone changes nothing', async () => {
  rmSync(file)
  config.reload()
  expect(reports).toEqual([{ result: 'refused', reason: expect.stringContaining('cannot be read') }])
  expect(await standing()).toEqual({ limit: 3, remaining: 1 })
})

test('a file that says the same is not read again', () => {
  config.reload()
  expect(reports).toEqual([])
})

test.each([
  ['written in place', (text: string) => writeFileSync(file, text)],
  [
    'put in its place',
    (text: string) => {
      writeFileSync(`${file}.new`, text)
      renameSync(`${file}.new`, file)
    },
  ],
])('a file that is %s is noticed', async (_, write) => {
  config.watch()
  const told = new Promise<void>((resolve) => {
    onReport = resolve
  })
  write(withBurst(7))
  await told
  expect(reports).toEqual([{ result: 'ok', reason: undefined, changes: { added: [], removed: [], changed: ['api'] } }])
  expect(await standing()).toEqual({ limit: 7, remaining: 5 })
})

/** Requests of browsers: those of our own page are answered, those of other pages are not. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { call, sent } from './support/client.ts'
import { CONFIG, expectNoFailure, serviceOn, type TestService } from './support/service.ts'

const ask = { limiter: 'api', key: 'u1' }
let service: TestService

beforeEach(async () => {
  service = await serviceOn()
})

afterEach(async () => {
  await service.stop(0)
  expectNoFailure(service)
})

async function untouched(): Promise<boolean> {
  return (await call(service.url, 'GET', '/v1/limiters/api/keys/u1')).body.remaining === 3
}

const json = { 'content-type': 'application/json' }
const send = (headers: object) => sent(service.url, 'POST', '/v1/decide', { ...json, ...headers }, JSON.stringify(ask))

test.each([
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
  { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' },
  { origin: 'http://elsewhere.example' },
  { origin: 'null' },
  // Of this machine, but of another program.
  { origin: 'http://127.0.0.1:1' },
])('%j is a page of another origin, and is refused', async (headers) => {
  expect(await send(headers)).toMatchObject({ status: 403, body: { code: 'ORIGIN' } })
  expect(await untouched()).toBe(true)
})

test('our own page, and programs that are no browsers, are answered', async () => {
  const own = { origin: `http://127.0.0.1:${service.httpPort}` }
  for (const headers of [{}, own, { 'sec-fetch-site': 'same-origin' }, { 'sec-fetch-site': 'none' }]) {
    expect((await send(headers)).status).toBe(200)
  }
})

test('a link from anywhere may be followed', async () => {
  const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }
  expect((await sent(service.url, 'GET', '/v1/limiters', link)).status).toBe(200)
  expect((await sent(service.url, 'GET', '/v1/limiters', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' })).status).toBe(403)
})

test('a name that leads to this machine is not ours, unless it was allowed', async () => {
  expect(await send({ host: 'rebound.example' })).toMatchObject({ status: 403, body: { code: 'HOST' } })
  expect(await untouched()).toBe(true)
  for (const host of ['localhost', 'sluice.localhost:8080', '[::1]:8080', '10.0.0.7']) expect((await send({ host })).status).toBe(200)
  const named = await serviceOn(CONFIG, undefined, undefined, { allowHosts: ['Limits.example'] })
  for (const [host, status] of [
    ['limits.example:443', 200],
    ['other.example', 403],
  ] as const) {
    expect((await sent(named.url, 'GET', '/healthz', { host })).status).toBe(status)
  }
  await named.stop(0)
})

test('where it listens to other machines, it answers to every name', async () => {
  const open = await serviceOn(CONFIG, undefined, undefined, { host: '0.0.0.0' })
  expect((await sent(open.url, 'GET', '/healthz', { host: 'sluice.default.svc' })).status).toBe(200)
  await open.stop(0)
})

/**
 * Clients that people use, in front of a server of ours: told when to come back, they come back
 * then. A client that came earlier would be refused a second time, so what is counted is refusals,
 * not time.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import axios from 'axios'
import axiosRetry from 'axios-retry'
import got from 'got'
import ky from 'ky'
import { Agent, RetryAgent, request as undiciRequest } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rateLimit } from '../../src/adapters/node.ts'
import { limitedFetch } from '../../src/client/index.ts'
import type { HeaderStyle } from '../../src/http/headers.ts'
import { createLimiter, gcra } from '../../src/index.ts'

const STYLES: readonly HeaderStyle[] = ['draft-11', 'draft-7', 'draft-6', 'legacy']
/** Each gets the address and returns the last status. */
const CLIENTS: Readonly<Record<string, (url: string) => Promise<number>>> = {
  'undici RetryAgent': async (url) => {
    const dispatcher = new RetryAgent(new Agent(), { maxRetries: 3, minTimeout: 1 })
    const { statusCode, body } = await undiciRequest(url, { dispatcher })
    await body.text()
    await dispatcher.close()
    return statusCode
  },
  got: async (url) => (await got(url, { retry: { limit: 3, backoffLimit: 60_000 } })).statusCode,
  ky: async (url) => (await ky.get(url, { retry: { limit: 3, delay: () => 1 } })).status,
  'axios with axios-retry': async (url) => {
    const client = axios.create()
    axiosRetry(client, { retries: 3, retryDelay: (count, error) => axiosRetry.exponentialDelay(count, error, 1) })
    return (await client.get(url)).status
  },
  limitedFetch: async (url) => {
    const polite = limitedFetch(fetch, { limit: gcra({ rate: '1000/s', burst: 1000 }), retries: 3 })
    return (await polite(url)).status
  },
}

describe.each(STYLES)('with the headers of %s', (headers) => {
  let server: Server
  let url: string
  const refused = new Map<string, number>()

  beforeAll(async () => {
    const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }))
    const key = (request: { url?: string }) => request.url as string
    const onLimited = (request: { url?: string }) => refused.set(request.url as string, (refused.get(request.url as string) ?? 0) + 1)
    server = createServer(rateLimit({ limiter, key, headers, onLimited } as never)((_request, response) => response.end('ok')) as never)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })

  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  test.concurrent.each(Object.keys(CLIENTS))('%s comes back when it was asked to', async (name) => {
    const path = `/${name.replaceAll(' ', '-')}`
    const call = CLIENTS[name] as (url: string) => Promise<number>
    // The second is refused, unless this machine stood still for a second between the two.
    for (let k = 0; k < 10 && !refused.has(path); k++) expect(await call(url + path)).toBe(200)
    expect(refused.get(path)).toBe(1)
  })
})

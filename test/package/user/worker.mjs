/** A worker of Cloudflare. Its limiters are made where no request is under way, and time is 0. */
import * as sluice from 'sluice'
import { rateLimit, rateLimitOf } from 'sluice/fetch'
import { redisStore } from 'sluice/redis'
import { story } from './story.mjs'

const paced = sluice.createLimiter(sluice.gcra({ rate: '20/s', burst: 1 }))
const places = sluice.createLimiter(sluice.concurrency({ max: 1 }))
const limited = rateLimit({
  limit: sluice.gcra({ rate: '1/h', burst: 2 }),
  address: (request) => request.headers.get('cf-connecting-ip'),
})((request) => new Response(`${rateLimitOf(request).remaining} left`))

/** Redis over HTTP, and what tells how much was used, wherever the request says that they are. */
let services
const overHttp = {
  async send(args) {
    const response = await fetch(services, { method: 'POST', body: JSON.stringify(args) })
    if (!response.ok) throw new Error(await response.text())
    return response.json()
  },
}
const settled = rateLimit({
  limit: sluice.fixedWindow({ limit: 100, window: '1h' }),
  limiterOptions: { name: 'worker', store: redisStore(overHttp), onStoreError: 'throw' },
  key: (request) => new URL(request.url).searchParams.get('key'),
  cost: 50,
  settle: async () => Number(await (await fetch(`${services}/usage`)).text()),
})((request) => new Response(`${rateLimitOf(request).remaining} left`))

const ROUTES = {
  '/limited': limited,
  '/object': (request, { PLACES }) => PLACES.get(PLACES.idFromName('one')).fetch(request),
  '/settled': (request, env, lifetime) => {
    services = new URL(request.url).searchParams.get('services')
    return settled(request, env, lifetime)
  },
  '/story': () => new Response(story(sluice).join('\n')),
  // Calls of one request wait for each other.
  '/wait': async () => {
    const waited = await Promise.all([1, 2, 3].map(() => paced.acquire('key')))
    const ran = await Promise.all([1, 2, 3].map((n) => places.run('key', async () => n)))
    return Response.json({ waitedMs: waited.map(({ waitedMs }) => waitedMs), ran, inflight: places.inflight() })
  },
}

/** Its requests may wait for each other. */
export class Places {
  #limiter = sluice.createLimiter(sluice.concurrency({ max: 1 }))
  #most = 0

  async fetch() {
    await this.#limiter.run('key', async () => {
      this.#most = Math.max(this.#most, this.#limiter.waiting('key'))
      await new Promise((resolve) => setTimeout(resolve, 20))
    })
    return new Response(`${this.#most}`)
  }
}

export default { fetch: (request, env, lifetime) => ROUTES[new URL(request.url).pathname](request, env, lifetime) }

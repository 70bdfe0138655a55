/** The headers of a reply of Fastify are set as an application sets its own. */
import fastify, { type FastifyReply } from 'fastify'
import { expect, test } from 'vitest'
import { rateLimit } from '../../src/adapters/fastify.ts'
import { createLimiter, gcra } from '../../src/index.ts'

test('an application that wraps reply.header sees ours, and may take them away', async () => {
  const app = fastify()
  const seen: string[] = []
  app.addHook('onRequest', async (_request, reply: FastifyReply) => {
    const { header } = reply
    reply.header = function (this: FastifyReply, name: string, value: unknown) {
      seen.push(name)
      return header.call(this, name, value)
    } as typeof reply.header
  })
  await app.register(rateLimit({ limiter: createLimiter(gcra({ rate: '1/s', burst: 2 })), key: () => 'k' }))
  app.addHook('preHandler', async (_request, reply: FastifyReply) => void reply.removeHeader('ratelimit-policy'))
  app.get('/', async () => 'hello')
  const { headers } = await app.inject('/')
  expect(seen).toEqual(expect.arrayContaining(['ratelimit', 'ratelimit-policy']))
  expect(headers).toHaveProperty('ratelimit')
  expect(headers).not.toHaveProperty('ratelimit-policy')
  await app.close()
})

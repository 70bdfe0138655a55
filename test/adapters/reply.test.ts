/** Where the headers of a reply of Fastify are written: into what the reply keeps for itself only if that is certain. */
import fastify, { type FastifyReply } from 'fastify'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { FastifyReplyLike, setReplyHeaders } from '../../src/adapters/reply.ts'

const HEADERS = ['ratelimit-policy', '1;w=1', 'ratelimit', 'limit=1']
const BY_NAME = { 'ratelimit-policy': '1;w=1', ratelimit: 'limit=1' }

let set: typeof setReplyHeaders

// It remembers what it found out about the first reply.
beforeEach(async () => {
  vi.resetModules()
  set = (await import('../../src/adapters/reply.ts')).setReplyHeaders
})

/** A reply that keeps its headers under a symbol, as Fastify's does, in `begins`; `header` sets them in what `own` makes of that. */
function replyOf(place: symbol, begins: object | undefined, own: (headers: object | undefined) => object) {
  const reply = {
    [place]: begins,
    told: [] as string[],
    header(name: string, value: string) {
      reply.told.push(name)
      reply[place] = Object.assign(own(reply[place] as object | undefined), { [name]: value })
    },
  }
  return reply as typeof reply & FastifyReplyLike & Record<symbol, object>
}

const itself = (headers: object | undefined) => headers as object
const copied = (headers: object | undefined) => ({ ...headers })

describe('the headers of a reply of Fastify', () => {
  it('are what the application sees of them, in every reply', async () => {
    const app = fastify()
    const seen: unknown[] = []
    app.addHook('onRequest', async (_request, reply: FastifyReply) => {
      reply.header('x-other', 'kept')
      set(reply as unknown as FastifyReplyLike, HEADERS)
      seen.push(reply.getHeaders())
      reply.removeHeader('ratelimit')
    })
    app.get('/', async () => 'hello')
    for (let k = 0; k < 3; k++) {
      const { headers } = await app.inject('/')
      expect(headers).toMatchObject({ 'x-other': 'kept', 'ratelimit-policy': '1;w=1' })
      expect(headers).not.toHaveProperty('ratelimit')
    }
    expect(seen).toEqual(Array.from({ length: 3 }, () => ({ 'x-other': 'kept', ...BY_NAME })))
  })

  it('are written where that of the first reply was seen to go', () => {
    const place = Symbol('headers')
    const [first, second] = [replyOf(place, {}, itself), replyOf(place, {}, itself)]
    for (const reply of [first, second]) set(reply, HEADERS)
    expect([first.told, second.told]).toEqual([['ratelimit-policy', 'ratelimit'], []])
    expect([first[place], second[place]]).toEqual([BY_NAME, BY_NAME])
  })

  it.each([
    ['share the object they begin with', {}],
    ['begin without one', undefined],
  ])('are left to replies that %s', (_what, begins) => {
    const place = Symbol('headers')
    for (let k = 0; k < 3; k++) {
      const reply = replyOf(place, begins, copied)
      set(reply, HEADERS)
      expect(reply.told).toEqual(['ratelimit-policy', 'ratelimit'])
      expect(reply[place]).toEqual(BY_NAME)
    }
    expect(begins ?? {}).toEqual({})
  })

  it('are left to a reply of another copy of Fastify', () => {
    set(replyOf(Symbol('headers'), {}, itself), HEADERS)
    const other = replyOf(Symbol('headers'), {}, itself)
    set(other, HEADERS)
    expect(other.told).toEqual(['ratelimit-policy', 'ratelimit'])
  })

  it('tell nothing of the place if the first was set already', () => {
    const place = Symbol('headers')
    for (let k = 0; k < 2; k++) {
      const reply = replyOf(place, { ...BY_NAME }, copied)
      set(reply, HEADERS)
      expect(reply.told).toEqual(['ratelimit-policy', 'ratelimit'])
    }
  })
})

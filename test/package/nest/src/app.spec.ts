/**
 * Run by Jest with the configuration of a Nest project, against the packed package: see
 * nest-project.ts.
 */
import type { AddressInfo } from 'node:net'
import type { INestApplication } from '@nestjs/common'
import { Module } from '@nestjs/common'
import { WsAdapter } from '@nestjs/platform-ws'
import { Test } from '@nestjs/testing'
import { createLimiter, gcra, SluiceError } from 'sluice'
import { Limit, RateLimitModule } from 'sluice/nest'
import { fakeClock } from 'sluice/testing'
import { AppModule } from './app'

describe('a Nest application', () => {
  let app: INestApplication
  const warned: string[] = []

  beforeAll(async () => {
    jest.spyOn(process, 'emitWarning').mockImplementation(((message: string) => void warned.push(String(message))) as never)
    const testing = await Test.createTestingModule({ imports: [AppModule] }).compile()
    app = testing.createNestApplication()
    app.useWebSocketAdapter(new WsAdapter(app))
    await app.listen(0, '127.0.0.1')
  })

  afterAll(() => app.close())

  const url = (path: string) => `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}/${path}`
  const get = async (path: string, user: string) => (await fetch(url(path), { headers: { 'x-user': user } })).status

  it('counts whom the guard before has signed in', async () => {
    expect([await get('mine', 'ann'), await get('mine', 'ann'), await get('mine', 'bob'), await get('mine', 'ann')]).toEqual([
      200, 200, 200, 429,
    ])
  })

  it('counts by the numbers of a handler', async () => {
    expect([await get('strict', 'ann'), await get('strict', 'bob'), await get('health', 'ann')]).toEqual([200, 429, 200])
  })

  const query = async (text: string) => {
    const body = JSON.stringify({ query: text })
    const response = await fetch(url('graphql'), { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    return { status: response.status, ratelimit: response.headers.get('ratelimit'), answer: (await response.json()) as Answer }
  }
  interface Answer {
    data: { hello?: string } | null
    errors?: { message: string }[]
  }

  it('limits the queries of GraphQL, each of several in one request', async () => {
    expect(await query('{ hello }')).toMatchObject({
      status: 200,
      ratelimit: expect.stringMatching(/^"graphql";r=2;t=/),
      answer: { data: { hello: 'hello' } },
    })
    expect((await query('{ a: hello b: hello }')).answer.errors).toBeUndefined()
    const refused = await query('{ hello }')
    expect(refused.answer.errors?.map(({ message }) => message)).toEqual(['Too Many Requests'])
    expect((await query('{ free }')).answer.errors).toBeUndefined()
  })

  it('tells at the start which handlers are not limited', () => {
    expect(warned.filter((message) => message.includes('not those of WebSockets'))).toEqual([
      expect.stringContaining('(Routes.orders, Chat.say)'),
    ])
  })

  it('refuses a limit that does not exist, at the start', async () => {
    @Limit('logn')
    class Wrong {
      login(): string {
        return 'login'
      }
    }
    @Module({ imports: [RateLimitModule.forRoot({ limit: gcra({ rate: '1/s', burst: 1 }) })], providers: [Wrong] })
    class Root {}
    const testing = await Test.createTestingModule({ imports: [Root] }).compile()
    const error: unknown = await testing
      .createNestApplication()
      .init()
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(SluiceError)
    expect(error).toMatchObject({ code: 'CONFIG', message: '@Limit("logn") on Wrong: there is no such limit, there is default' })
  })
})

it('the library answers by the clock of the tests', () => {
  const clock = fakeClock()
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { clock })
  expect([limiter.tryAcquire('k'), limiter.tryAcquire('k')]).toEqual([true, false])
  clock.advanceMs(1_000)
  expect(limiter.tryAcquire('k')).toBe(true)
})

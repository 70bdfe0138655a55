/** The network of ours does to bytes what it says, and nothing else. */
import { createClient } from 'redis'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Fates, type FaultProxy, once, startProxy } from '../support/fault-proxy.ts'
import { type RedisServer, startServer, until } from '../support/redis-servers.ts'

let server: RedisServer
let proxy: FaultProxy
beforeEach(async () => {
  server = await startServer()
  proxy = await startProxy(server.port)
})
afterEach(async () => {
  await proxy.close()
  await server.kill()
})

const ofIncr =
  (fate: ReturnType<Fates>): Fates =>
  ([name]) =>
    name === 'INCR' ? fate : undefined

/** A client that tries once, and what it has been told. */
async function open() {
  const client = createClient({ socket: { host: proxy.host, port: proxy.port, reconnectStrategy: false } })
  client.on('error', () => undefined)
  await client.connect()
  return { incr: () => client.sendCommand(['INCR', 'n']), close: () => client.destroy() }
}

const count = async () => Number(await server.command('GET', 'n'))
const failed = (promise: Promise<unknown>) =>
  promise.then(
    () => false,
    () => true,
  )

test('bytes without a fault pass, in order, and are counted', async () => {
  const client = await open()
  const { requests, replies } = proxy
  const answers = await Promise.all(Array.from({ length: 100 }, () => client.incr()))
  expect(answers).toEqual(Array.from({ length: 100 }, (_, k) => k + 1))
  expect([proxy.requests - requests, proxy.replies - replies, proxy.struck]).toEqual([100, 100, 0])
  client.close()
})

test('large values and values in pieces are whole', async () => {
  const client = createClient({ socket: { host: proxy.host, port: proxy.port }, RESP: 3 })
  await client.connect()
  const large = 'x\r\n$3'.repeat(100_000)
  await client.set('large', large)
  expect(await client.get('large')).toBe(large)
  await client.hSet('map', { a: '1', b: '2' })
  expect({ ...(await client.hGetAll('map')) }).toEqual({ a: '1', b: '2' })
  client.destroy()
})

describe.each([0, 1, 2])('after %i bytes', (afterBytes) => {
  test('a request that is cut is not done', async () => {
    const client = await open()
    await client.incr()
    proxy.strike(once(ofIncr({ cut: 'request', afterBytes })))
    expect(await failed(client.incr())).toBe(true)
    expect([await count(), proxy.struck]).toEqual([1, 1])
  })

  test('a request whose reply is cut is done', async () => {
    const client = await open()
    await client.incr()
    proxy.strike(once(ofIncr({ cut: 'reply', afterBytes })))
    expect(await failed(client.incr())).toBe(true)
    expect([await count(), proxy.struck]).toEqual([2, 1])
  })
})

test('a lost request is never done, a lost reply is; neither is answered until the connection ends', async () => {
  for (const [drop, done] of [
    ['request', 0],
    ['reply', 1],
  ] as const) {
    const client = await open()
    const before = await count()
    proxy.strike(ofIncr({ drop }))
    let answered = false
    const call = failed(client.incr()).finally(() => {
      answered = true
    })
    await until(async () => (await count()) === before + done && proxy.struck > 0)
    expect(answered).toBe(false)
    proxy.heal()
    expect(await call).toBe(true)
    client.close()
  }
})

test('a lost reply that the server has yet to make ends its connection when everything passes again', async () => {
  const client = await open()
  server.signal('SIGSTOP')
  proxy.strike(ofIncr({ drop: 'reply' }))
  const call = failed(client.incr())
  await until(async () => proxy.struck > 0)
  proxy.heal()
  server.signal('SIGCONT')
  expect(await call).toBe(true)
  client.close()
})

test('late bytes arrive, and keep those behind them in order', async () => {
  const client = await open()
  for (const delay of ['request', 'reply'] as const) {
    proxy.strike(once(ofIncr({ delay, ms: 30 })))
    const order: number[] = []
    await Promise.all(Array.from({ length: 5 }, (_, k) => client.incr().then(() => order.push(k))))
    expect(order).toEqual([0, 1, 2, 3, 4])
  }
  expect([await count(), proxy.struck]).toEqual([10, 2])
  client.close()
})

test('an answer of ours comes in its turn, and the server has not seen the request', async () => {
  const client = await open()
  let n = 0
  proxy.strike(([name]) => (name === 'INCR' && ++n === 2 ? { answer: '-LOADING not yet\r\n' } : undefined))
  const answers = await Promise.allSettled([client.incr(), client.incr(), client.incr()])
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(await count()).toBe(2)
  client.close()
})

test('while it refuses nobody gets through; then everybody does, also to another server', async () => {
  proxy.refuse()
  expect(await failed(open())).toBe(true)
  proxy.heal()
  const client = await open()
  expect(await client.incr()).toBe(1)
  const other = await startServer()
  proxy.leadTo(other.port)
  proxy.cutAll()
  const next = await open()
  await next.incr()
  expect([await count(), Number(await other.command('GET', 'n'))]).toEqual([1, 1])
  next.close()
  await other.kill()
})

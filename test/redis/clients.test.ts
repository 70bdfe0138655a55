/** Which clients redisStore takes, and what it says of the others before anything is sent. */
import { Redis } from 'ioredis'
import { expect, inject, test } from 'vitest'
import { createLimiter, gcra } from '../../src/index.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'

test('a client of redis 3, whose commands take callbacks, is refused with what to install', () => {
  // Both names are one function there. (The package is not installed here.)
  const sendCommand = (_command: string, _args: string[], _callback: () => void) => true
  const redis3 = { sendCommand, send_command: sendCommand, internal_send_command: sendCommand } as unknown as RedisClient
  expect(() => redisStore(redis3)).toThrow(
    expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(/redis 3.*install redis 4 or later/) }),
  )
})

test.each([undefined, null, 'redis://localhost', {}, () => undefined])('%o is no client', (client) => {
  expect(() => redisStore(client as unknown as RedisClient)).toThrow(
    expect.objectContaining({
      code: 'CONFIG',
      message: expect.stringMatching(/must be a client of redis 4 or later, .*\{ send: \(args\) =>/),
    }),
  )
})

const command = async () => 'OK'
test.each<[name: string, client: object]>([
  ["Deno's, whose sendCommand takes a name and a list", { sendCommand: command, get: command, eval: command, evalsha: command }],
  ['redis-on-workers, whose send takes words', { send: command, sendRaw: command, sendOnce: command }],
  [
    'one with commands of its own beside send',
    new (class {
      send = command
      get = command
    })(),
  ],
  ['a REST client', { get: command, eval: command, evalsha: command, pipeline: command }],
])('%s is refused with how to give it', (_name, client) => {
  expect(() => redisStore(client as RedisClient)).toThrow(
    expect.objectContaining({
      code: 'CONFIG',
      message: expect.stringMatching(/give redisStore \{ send: \(args\) => .* promise of its reply$/),
    }),
  )
})

test('a keyPrefix of the client stands before every key', async () => {
  const client = new Redis({ host: '127.0.0.1', port: inject('redisPort'), maxRetriesPerRequest: 0, keyPrefix: 'app:' })
  try {
    await createLimiter(gcra({ rate: '1/h', burst: 2 }), { name: 'prefixed', store: redisStore(client) }).consume('k')
    expect(await client.pttl('sluice:prefixed:{k}')).toBeGreaterThan(0)
  } finally {
    client.disconnect()
  }
})

/**
 * Users of Redis that may run all but one of the commands that Sluice needs: a call may fail then,
 * but no state is lost, and none stays for ever.
 */

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createClient } from 'redis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type AsyncStore,
  createLimiter,
  fixedWindow,
  gcra,
  type Limits,
  leakyBucket,
  type SluiceError,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { type RedisServer, startServer } from '../support/redis-servers.ts'
import { keysWithoutExpiry } from './watch.ts'

const CAPACITY = 5
const BEFORE = 3

const LIMITS: Readonly<Record<string, Limits>> = {
  gcra: gcra({ rate: '5/h', burst: CAPACITY }),
  tokenBucket: tokenBucket({ refill: '5/h', capacity: CAPACITY }),
  leakyBucket: leakyBucket({ leak: '5/h', capacity: CAPACITY }),
  fixedWindow: fixedWindow({ limit: CAPACITY, window: '1h', anchor: 'first' }),
  slidingWindow: slidingWindow({ limit: CAPACITY, window: '1h' }),
  slidingLog: slidingLog({ limit: CAPACITY, window: '1h' }),
  'several limits': {
    one: gcra({ rate: '5/h', burst: CAPACITY }),
    two: slidingLog({ limit: CAPACITY, window: '1h' }),
    three: tokenBucket({ refill: '5/h', capacity: CAPACITY }),
  },
}

/** The rights of the page, so that it stays true. */
const page = readFileSync(fileURLToPath(new URL('../../docs/reference/redis-keys.md', import.meta.url)), 'utf8')
const COMMANDS = (/^ACL SETUSER .*$/m.exec(page)?.[0].match(/\+(\w+)/g) ?? []).map((right) => right.slice(1))
/** What can be done without, at a cost. */
const SPARE = ['evalsha', 'mget', 'pttl']

let server: RedisServer
const closers: (() => unknown)[] = []
beforeAll(async () => {
  server = await startServer()
})
afterAll(async () => {
  for (const close of closers) close()
  await server.kill()
})

/**
 * A store on a connection of a user who may not run this command, but on the keys that match one of
 * the patterns.
 */
async function storeWithout(command: string, ...patterns: string[]): Promise<AsyncStore> {
  const username = `without-${command}-${closers.length}`
  const rights = COMMANDS.filter((each) => each !== command).map((each) => `+${each}`)
  const selectors = patterns.map((pattern) => `(+${command} ~${pattern})`)
  await server.command('ACL', 'SETUSER', username, 'on', '>secret', '~sluice:*', ...rights, ...selectors)
  const client = createClient({ username, password: 'secret', socket: { host: server.host, port: server.port } })
  client.on('error', () => undefined)
  await client.connect()
  closers.push(() => client.destroy())
  return redisStore(client, { denialCache: false })
}

test('with the rights of the page everything works', async () => {
  expect(COMMANDS).toContain('evalsha')
  const store = await storeWithout('none')
  for (const [name, limits] of Object.entries(LIMITS)) {
    const limiter = createLimiter(limits, { name: `all-${name.replace(' ', '-')}`, store })
    for (let k = 0; k < CAPACITY; k++) expect((await limiter.consume('k')).allowed).toBe(true)
    expect((await limiter.consume('k')).allowed).toBe(false)
    await limiter.refund('k')
    await limiter.peek('k')
    await limiter.reset('k')
  }
})

test.each(COMMANDS)('without %s', async (command) => {
  const [all, less] = [await storeWithout('none'), await storeWithout(command)]
  const told: string[] = []
  for (const [limit, limits] of Object.entries(LIMITS)) {
    const name = `${command}-${limit.replace(' ', '-')}`
    const [limiter, restricted] = [createLimiter(limits, { name, store: all }), createLimiter(limits, { name, store: less })]
    await limiter.consume('old', BEFORE)
    for (const [key, before] of [
      ['old', BEFORE],
      ['new', 0],
    ] as const) {
      const failure = await restricted.consume(key).then(
        () => undefined,
        (error: SluiceError) => error,
      )
      if (failure !== undefined)
        expect(failure).toMatchObject({ code: 'STORE', isolated: true, message: expect.stringMatching(/redis-keys\.md/) })
      if (SPARE.includes(command)) expect(failure).toBeUndefined()
      const { remaining } = await limiter.peek(key)
      told.push(`${limit} ${key}: ${CAPACITY - remaining - before} taken, ${failure === undefined ? 'allowed' : 'failed'}`)
    }
    // Nor by the other verbs.
    await Promise.allSettled([restricted.refund('old'), restricted.peek('old'), restricted.reserve('old', 9)])
    expect((await limiter.peek('old')).remaining).toBeLessThanOrEqual(CAPACITY - BEFORE + 1)
    limiter.close()
    restricted.close()
  }
  expect(told.filter((line) => !/1 taken, allowed|0 taken, failed/.test(line))).toEqual([])
  expect(await keysWithoutExpiry([server])).toEqual([])
})

test.each(['set', 'setrange', 'pexpire'])('without %s on one of two keys nothing is charged on the other', async (command) => {
  const name = `two-${command}`
  const store = await storeWithout(command, `sluice:${name}:{k}`)
  const few = gcra({ rate: '5/h', burst: CAPACITY })
  // Written as a whole by SET, or in place by the others.
  const other = command === 'set' ? few : slidingLog({ limit: 500, window: '1h' })
  const limits = { few, other }
  const [limiter, restricted, reversed] = [
    createLimiter(limits, { name, store: await storeWithout('none') }),
    createLimiter(limits, { name, store }),
    createLimiter({ other, few }, { name, store }),
  ]
  const before = command === 'set' ? 1 : 40
  for (let k = 0; k < before; k++) await limiter.consume({ few: 'k', other: 'l' }, { few: 0, other: 1 })
  for (const each of [restricted, reversed]) {
    await expect(each.consume({ few: 'k', other: 'l' })).rejects.toMatchObject({ code: 'STORE', isolated: true })
    const { parts } = await limiter.peek({ few: 'k', other: 'l' })
    expect([parts.few.remaining, parts.other.limit - parts.other.remaining]).toEqual([CAPACITY, before])
  }
})

test('without get a reset fails, and forgets nothing of the other limits', async () => {
  const limits = { few: gcra({ rate: '5/h', burst: CAPACITY }), other: gcra({ rate: '1/h', burst: CAPACITY }) }
  const all = createLimiter(limits, { name: 'reset-get', store: await storeWithout('none') })
  const restricted = createLimiter({ few: limits.few }, { name: 'reset-get', store: await storeWithout('get') })
  await all.consume('k')
  await expect(restricted.reset('k')).rejects.toMatchObject({ code: 'STORE', isolated: true })
  expect((await all.peek('k')).parts.other.remaining).toBe(CAPACITY - 1)
})

test('without get a reset of a key that the same call has emptied fails too', async () => {
  const few = gcra({ rate: '5/h', burst: CAPACITY })
  const restricted = createLimiter(few, { name: 'reset-twice', store: await storeWithout('get') })
  await createLimiter(few, { name: 'reset-twice', store: await storeWithout('none') }).consume('k')
  // The first of a turn is sent alone; the others are read by MGET.
  const ended = await Promise.allSettled(['other', 'k', 'k'].map((key) => restricted.reset(key)))
  expect(ended.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected'])
})

test('without del on some keys their resets fail, and no others of the call', async () => {
  const limits = { few: gcra({ rate: '5/h', burst: CAPACITY }), other: gcra({ rate: '1/h', burst: CAPACITY }) }
  const store = await storeWithout('del', 'sluice:reset-del:{k}', 'sluice:reset-del:{l}')
  const restricted = createLimiter(limits, { name: 'reset-del', store })
  const ended = await Promise.allSettled([
    restricted.peek('the first is sent alone'),
    restricted.reset({ few: 'k', other: 'l' }),
    restricted.reset({ few: 'm', other: 'n' }),
    restricted.reset({ few: 'l', other: 'k' }),
    restricted.reset({ few: 'k', other: 'n' }),
    restricted.consume({ few: 'k', other: 'l' }),
    restricted.reset('m'),
    restricted.reset('k'),
    restricted.consume('m'),
  ])
  const [F, R] = ['fulfilled', 'rejected']
  expect(ended.map(({ status }) => status)).toEqual([F, F, R, F, R, F, R, F, F])
})

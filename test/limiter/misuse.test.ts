/** Set-ups that look right and limit nothing, or less than they say, are told of once. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { fixedWindow, gcra, memoryStore } from '../../src/index.ts'
import { asyncStore } from '../../src/stores/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

const limit = gcra({ rate: '1/s', burst: 1 })
const faster = gcra({ rate: '5/s', burst: 1 })

interface Warning extends Error {
  readonly code: string
}

let warnings: Warning[]
const listener = (warning: Error) => warnings.push(warning as Warning)
beforeEach(() => {
  warnings = []
  // Each is told once in a process: each test begins with a copy of the library that has told none.
  vi.resetModules()
  process.on('warning', listener)
})
afterEach(() => {
  process.off('warning', listener)
})

const fresh = () => import('../../src/index.ts')

/** Warnings are emitted at the end of a turn. */
async function codes(): Promise<string[]> {
  await new Promise(setImmediate)
  return warnings.map(({ code }) => code)
}

/** What a server answers whose handler begins so. */
async function answersOf(requests: number, isAllowed: () => boolean | Promise<boolean>): Promise<number[]> {
  const server = createServer(async (_request, response) => {
    response.statusCode = (await isAllowed()) ? 200 : 429
    response.end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  try {
    const answers: number[] = []
    for (let k = 0; k < requests; k++) answers.push((await fetch(`http://127.0.0.1:${port}`)).status)
    return answers
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** What nothing holds any more is gone. */
async function collected(): Promise<void> {
  await new Promise(setImmediate)
  collect()
}

type Library = Awaited<ReturnType<typeof fresh>>

test.each<[where: string, isAllowed: (library: Library) => boolean | Promise<boolean>]>([
  ['in a handler', ({ createLimiter }) => createLimiter(limit).tryAcquire('ann')],
  [
    'in a handler that awaits before it asks',
    async ({ createLimiter }) => {
      const limiter = createLimiter(limit)
      const user = await Promise.resolve('ann')
      return limiter.tryAcquire(user)
    },
  ],
  [
    'in a handler, with its store',
    ({ createLimiter, memoryStore }) => createLimiter(limit, { name: 'api', store: memoryStore() }).tryAcquire('ann'),
  ],
])('a limiter made %s, which refuses nobody', async (_where, isAllowed) => {
  const library = await fresh()
  const answers = await answersOf(100, () => isAllowed(library))
  expect(answers.every((status) => status === 200)).toBe(true)
  await collected()
  await answersOf(1, () => isAllowed(library))
  expect(await codes()).toEqual(['SLUICE_LIMITER_PER_REQUEST'])
  expect(warnings[0]?.message).toContain('Make it once, outside of the handler')
})

test('also beside calls that are under way', async () => {
  const { createLimiter } = await fresh()
  const underWay: unknown[] = []
  await answersOf(100, () => createLimiter(limit).tryAcquire('ann'))
  await answersOf(40, () => {
    const limiter = createLimiter(limit)
    underWay.push(limiter)
    return limiter.tryAcquire('ann')
  })
  await collected()
  await answersOf(1, () => createLimiter(limit).tryAcquire('ann'))
  expect(underWay).toHaveLength(40)
  expect(await codes()).toEqual(['SLUICE_LIMITER_PER_REQUEST'])
})

test('not limiters that are held, that share a store, of tests, or of what runs at once', async () => {
  const { concurrency, createLimiter } = await fresh()
  const store = memoryStore()
  const byTenant: unknown[] = []
  const makers: readonly (() => unknown)[] = [
    () => byTenant.push(createLimiter(limit)),
    () => createLimiter(limit, { name: 'api', store }).tryAcquire('ann'),
    () => createLimiter(limit, { clock: fakeClock() }).tryAcquire('ann'),
    () => createLimiter(concurrency({ max: 2 })).run('batch', () => 'done'),
  ]
  for (const make of makers) for (let k = 0; k < 150; k++) await make()
  await collected()
  for (const make of makers) await make()
  expect(byTenant).toHaveLength(151)
  expect(await codes()).toEqual([])
})

test('two open limiters of one name with other numbers on one store', async () => {
  const library = await fresh()
  const store = asyncStore({ shared: true, apply: async () => [] })
  library.createLimiter(limit, { name: 'api', store })
  library.createLimiter(limit, { name: 'api', store })
  library.createLimiter(faster, { name: 'api', store: memoryStore() })
  library.createLimiter(faster, { name: 'other', store })
  expect(await codes()).toEqual([])
  library.createLimiter(faster, { name: 'api', store })
  library.createLimiter(fixedWindow({ limit: 1, window: '1s' }), { name: 'api', store })
  expect(await codes()).toEqual(['SLUICE_SAME_NAME'])
  expect(warnings[0]?.message).toMatch(/^Two open limiters of one name and one store .* \(api\)$/)
  // Of a thousand tenants one is enough.
  library.createLimiter(limit, { name: 'other', store })
  expect(await codes()).toEqual(['SLUICE_SAME_NAME'])
})

test('not one that was closed, updated, or made for the numbers of a request', async () => {
  const library = await fresh()
  const store = memoryStore()
  library.createLimiter(limit, { name: 'closed', store }).close()
  library.createLimiter(faster, { name: 'closed', store })
  library.createLimiter(limit, { name: 'updated', store }).update(faster)
  library.createLimiter(faster, { name: 'updated', store })
  const { rateLimit } = await import('../../src/adapters/fetch.ts')
  const middleware = rateLimit({
    limit: ({ url }: Request) => (url.endsWith('pro') ? faster : limit),
    limiterOptions: { name: 'by-request', store },
    key: () => 'ann',
  })
  const handler = middleware(() => new Response())
  for (const path of ['free', 'pro', 'free']) await handler(new Request(`http://api.test/${path}`))
  expect(await codes()).toEqual([])
})

/** Set-ups that look right and limit nothing, or less than they say, are told of once. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
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
async function answersOf(requests: number, isAllowed: () => boolean): Promise<number[]> {
  const server = createServer((_request, response) => {
    response.statusCode = isAllowed() ? 200 : 429
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

test('a limiter made in a handler, which refuses nobody', async () => {
  const library = await fresh()
  const answers = await answersOf(20, () => library.createLimiter(limit).tryAcquire('ann'))
  expect(answers.every((status) => status === 200)).toBe(true)
  expect(await codes()).toEqual(['SLUICE_LIMITER_PER_REQUEST'])
  expect(warnings[0]?.message).toContain('Make it once, outside of the handler')
})

test('not a limiter made once, nor one whose clock or store is given', async () => {
  const library = await fresh()
  const limiter = library.createLimiter(limit)
  await answersOf(20, () => limiter.tryAcquire('ann'))
  const store = memoryStore()
  for (let k = 0; k < 20; k++) {
    library.createLimiter(limit, { clock: fakeClock() }).tryAcquire('ann')
    library.createLimiter(limit, { name: 'api', store }).tryAcquire('ann')
  }
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
  expect(warnings[0]?.message).toMatch(/use one limiter in both places\. \(api\)$/)
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

/** The headers, read back by parsers that are not ours. */
import fc from 'fast-check'
import { type Item, parseList } from 'structured-headers'
import { describe, expect, test } from 'vitest'
import { preferredForm } from '../../src/http/accept.ts'
import type { Entry } from '../../src/http/entry.ts'
import { sfBytes, sfString } from '../../src/http/fields.ts'
import { Gate } from '../../src/http/gate.ts'
import {
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  type Limiter,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

const SEED = { seed: 20_261_115, numRuns: 1_000 }
const noConnection = () => undefined
const http = { address: '203.0.113.9', header: () => undefined }

/** So short a wait that none is served by it. */
const NO_WAIT = { maxWaitMs: 0.001 }

/** The headers of one request, by name. A leaky bucket is refused where no request would wait. */
async function told(options: {
  readonly limiter: Pick<Limiter, 'scope'>
  readonly [choice: string]: unknown
}): Promise<Record<string, string>> {
  const isLeaky = options.limiter.scope().limits.some(({ rule }) => rule.algorithm.type === 'leakyBucket')
  const entry = new Gate(isLeaky ? { ...options, ...NO_WAIT } : options, noConnection).enter(undefined, http, undefined)
  if (entry instanceof Promise && !isLeaky) throw new Error('it should be known at once')
  return headersOf(await entry)
}

function headersOf(entry: Entry): Record<string, string> {
  const headers = (entry.refusal ?? entry).headers
  return Object.fromEntries(Array.from({ length: headers.length / 2 }, (_, k) => [headers[2 * k], headers[2 * k + 1]]))
}

describe('RateLimit and RateLimit-Policy', () => {
  const atOnce = [
    fc.record({ burst: fc.integer({ min: 1, max: 1e6 }) }).map(({ burst }) => gcra({ rate: { permits: burst, per: '1h' }, burst })),
    fc.integer({ min: 1, max: 1e9 }).map((capacity) => tokenBucket({ capacity, refill: '7/s' })),
    fc
      .tuple(fc.integer({ min: 1, max: 1e9 }), fc.integer({ min: 1, max: 1e9 }))
      .map(([limit, ms]) => fixedWindow({ limit, window: `${ms}ms` })),
    fc
      .tuple(fc.integer({ min: 1, max: 1e9 }), fc.integer({ min: 10, max: 1e9 }))
      .map(([limit, ms]) => slidingWindow({ limit, window: `${ms}ms` })),
    fc
      .tuple(fc.integer({ min: 1, max: 1e5 }), fc.integer({ min: 1, max: 1e9 }))
      .map(([limit, ms]) => slidingLog({ limit, window: `${ms}ms` })),
  ]
  const leaky = fc.integer({ min: 1, max: 1e6 }).map((capacity) => leakyBucket({ capacity, leak: { permits: capacity, per: '10min' } }))
  const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
  const limitsOf = (...kinds: fc.Arbitrary<Limit>[]) =>
    fc.dictionary(name, fc.oneof(...kinds), { minKeys: 1, maxKeys: 4, noNullPrototype: true })

  test('are lists of strings with whole numbers, one item for each limit', async () => {
    await fc.assert(
      fc.asyncProperty(
        limitsOf(...atOnce, leaky),
        fc.integer({ min: 0, max: 2 ** 40 }),
        fc.integer({ min: 0, max: 3 }),
        fc.option(fc.string()),
        async (limits, startMs, cost, partition) => {
          const limiter = createLimiter(limits, { clock: fakeClock(startMs) })
          const options = partition === null ? {} : { partitionKey: () => partition }
          const decision = limiter.peek('ip:203.0.113.9', cost)
          const headers = await told({ limiter, cost, ...options })
          const policies = parseList(headers['ratelimit-policy'] as string) as Item[]
          const items = parseList(headers.ratelimit as string) as Item[]
          expect(policies.map(([value]) => value)).toEqual(Object.keys(limits))
          expect(items.map(([value]) => value)).toEqual(Object.keys(limits))
          for (const [k, [value, parameters]] of items.entries()) {
            const { limit, remaining, outcome } = decision.parts[value as string] as never as {
              limit: number
              remaining: number
              outcome: string
            }
            const policy = (policies[k] as Item)[1]
            expect(policy.get('q')).toBe(limit)
            expect(policy.get('w')).toBeGreaterThanOrEqual(1)
            expect(parameters.get('r')).toBe(decision.allowed ? remaining - cost : remaining)
            expect(parameters.get('t')).toBeGreaterThanOrEqual(outcome === 'limited' ? 1 : 0)
            for (const each of [policy, parameters]) {
              if (partition === null) expect(each.has('pk')).toBe(false)
              else
                expect(new TextDecoder().decode(each.get('pk') as unknown as ArrayBuffer)).toBe(
                  new TextDecoder().decode(new TextEncoder().encode(partition)),
                )
            }
          }
        },
      ),
      SEED,
    )
  })

  test('never say a window longer than Retry-After of the limit that refuses', async () => {
    await fc.assert(
      fc.asyncProperty(limitsOf(...atOnce), fc.integer({ min: 0, max: 2 ** 40 }), async (limits, startMs) => {
        const limiter = createLimiter(limits, { clock: fakeClock(startMs) })
        const most = Math.min(...limiter.scope().limits.map(({ rule }) => rule.capacity))
        limiter.consume('ip:203.0.113.9', most)
        const headers = await told({ limiter })
        const items = parseList(headers.ratelimit as string) as Item[]
        const refusing = items
          .filter(([value]) => limiter.peek('ip:203.0.113.9').parts[value as string]?.outcome === 'limited')
          .map(([, parameters]) => Number(parameters.get('t')))
        expect(Number(headers['retry-after'])).toBe(Math.max(1, ...refusing))
      }),
      SEED,
    )
  })
})

test('strings are escaped, and read back what was written', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme-ascii' }), (text) => {
      expect(parseList(sfString(text))[0]?.[0]).toBe(text)
    }),
    SEED,
  )
  expect(sfString('é"\\\n')).toBe('"?\\"\\\\?"')
})

test('bytes are read back what was written', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      expect(new TextDecoder().decode(parseList(sfBytes(text))[0]?.[0] as unknown as ArrayBuffer)).toBe(text)
    }),
    SEED,
  )
})

test.each([
  [2_000, 0, '2'],
  [2_000, 0.001, '2'],
  [2_000, 999, '2'],
  [2_000, 1_000, '1'],
  [2_000, 1_000.001, '1'],
  [500, 0, '1'],
])('a window of %d ms, asked %d ms into it, is to be tried again after %s s', async (windowMs, atMs, expected) => {
  const clock = fakeClock(0)
  const limiter = createLimiter(fixedWindow({ limit: 1, window: `${windowMs}ms` }), { clock })
  limiter.consume('ip:203.0.113.9')
  clock.setMs(atMs)
  expect((await told({ limiter }))['retry-after']).toBe(expected)
})

describe('the form that the accept header prefers', () => {
  test.each([
    [undefined, 'json'],
    ['', 'json'],
    ['*/*', 'json'],
    ['application/json', 'json'],
    ['application/problem+json', 'json'],
    ['text/plain', 'text'],
    ['text/*', 'text'],
    ['text/html', 'html'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8', 'html'],
    ['text/html;q=0.5, application/json', 'json'],
    ['text/html;q=0.5, text/plain;q=0.6, */*;q=0.1', 'text'],
    ['TEXT/HTML', 'html'],
    ['image/png', 'json'],
    ['text/html;q=2, text/plain;q=0.1', 'text'],
    ['application/problem+json;q=0, text/plain;q=0.1', 'text'],
    [',;=,;q=,', 'json'],
    [`${'a/b,'.repeat(10_000)}text/html`, 'json'],
  ])('%j: %s', (accept, expected) => {
    expect(preferredForm(accept)).toBe(expected)
  })

  test('any accept header is answered', () => {
    fc.assert(
      fc.property(fc.string(), (accept) => {
        expect(['json', 'text', 'html']).toContain(preferredForm(accept))
      }),
      SEED,
    )
  })
})

/**
 * Any message that can be written: answered, or refused for a reason that the message shows, and
 * then nothing was touched.
 */
import { type ServiceError, status } from '@grpc/grpc-js'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore, type OpenStates, type Scope, type SyncStore } from '../src/sluice.ts'
import { connected, shouldRateLimit } from './support/grpc.ts'
import { expectNoFailure, serviceOn } from './support/service.ts'

const CONFIG = `
domains:
  edge:
    headers: draft-11
    descriptors:
      - { key: ip, limit: { type: gcra, rate: 10/s, burst: 2 } }
      - { key: path, value: /a*, limit: { type: fixedWindow, limit: 3, window: 1d } }
      - { key: path, limit: { type: slidingLog, limit: 4, window: 7d } }
      - { key: free, unlimited: true }
      - { key: quiet, shadow: true, limit: { type: leakyBucket, capacity: 1, leak: 1/s } }
      - key: tenant
        descriptors:
          - { key: verb, value: write, limit: { type: tokenBucket, capacity: 5, refill: 1/s } }
`

const MAX_PERMITS = 1_000_000_000
const UNITS = ['SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK']

const text = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('ip', 'path', 'free', 'quiet', 'tenant', 'verb', 'write', '/a/b', '') },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
  { weight: 1, arbitrary: fc.constantFrom('x'.repeat(500), '\u0000', '\ufeff', '😀', '__proto__', 'constructor', '*', '/a*') },
)
const key = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom('ip', 'path', 'free', 'quiet', 'tenant', 'verb') },
  { weight: 1, arbitrary: text },
)
const entry = fc.record({ key, value: text })
const small = fc.constantFrom(0, 1, 2, 5)
const uint32 = fc.oneof(
  { weight: 9, arbitrary: small },
  { weight: 1, arbitrary: fc.constantFrom(MAX_PERMITS, MAX_PERMITS + 1, 2 ** 32 - 1) },
)
const uint64 = fc.oneof(
  { weight: 9, arbitrary: small.map(String) },
  { weight: 1, arbitrary: fc.bigInt(0n, 2n ** 64n - 1n).map(String) },
  { weight: 1, arbitrary: fc.constantFrom(`${MAX_PERMITS}`, '9007199254740993', '18446744073709551615') },
)
const unit = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom<string | number>(...UNITS) },
  { weight: 1, arbitrary: fc.constantFrom<string | number>(0, 8, 99, -1, 2 ** 31 - 1) },
)
const descriptor = fc.record({
  entries: fc.oneof(
    { weight: 19, arbitrary: fc.array(entry, { minLength: 1, maxLength: 3 }) },
    { weight: 1, arbitrary: fc.constant<{ key: string; value: string }[]>([]) },
  ),
  limit: fc.option(fc.record({ requests_per_unit: uint32, unit }), { freq: 2 }),
  hits_addend: fc.option(fc.record({ value: uint64 }), { freq: 2 }),
  is_negative_hits: fc.boolean(),
})
const ofNumber = (count: number) => fc.array(descriptor, { minLength: count, maxLength: count })
const requests = fc.record({
  domain: fc.oneof({ weight: 9, arbitrary: fc.constant('edge') }, { weight: 1, arbitrary: text }),
  descriptors: fc.oneof(
    { weight: 30, arbitrary: fc.array(descriptor, { minLength: 1, maxLength: 3 }) },
    { weight: 1, arbitrary: fc.oneof(ofNumber(0), ofNumber(1_001)) },
  ),
  hits_addend: uint32,
})

type Request = typeof requests extends fc.Arbitrary<infer T> ? T : never

/** Read off the message alone, in the words of the guide. */
function isBad({ domain, descriptors, hits_addend }: Request): boolean {
  if (domain === '' || descriptors.length === 0 || descriptors.length > 1_000) return true
  return descriptors.some(({ entries, limit, hits_addend: own }) => {
    if (entries.length === 0 || entries.some((each) => each.key === '')) return true
    if (BigInt(own === null ? hits_addend : own.value) > MAX_PERMITS) return true
    // In a domain that nobody knows nothing is limited, whatever it says.
    return domain === 'edge' && limit !== null && (limit.requests_per_unit > MAX_PERMITS || !UNITS.includes(limit.unit as string))
  })
}

/** Every step that reaches the store, a look included. */
function watched(): SyncStore & { steps: number } {
  const inner = memoryStore()
  const store = {
    mode: 'sync' as const,
    shared: false,
    steps: 0,
    open(scope: Scope, nowUs: () => number): OpenStates {
      const states = inner.open(scope, nowUs)
      return {
        apply(step, isTold) {
          store.steps += 1
          return states.apply(step, isTold)
        },
        close: () => states.close(),
      }
    },
  }
  return store
}

test('every message is answered or refused with a reason, and what is refused touched nothing', async () => {
  const store = watched()
  const service = await serviceOn(CONFIG, store)
  const client = connected(service)
  const seen = new Map<string, number>()
  const note = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1)

  async function check(request: Request): Promise<void> {
    const before = store.steps
    const answer = await shouldRateLimit(client, request).catch((error: ServiceError) => error)
    if (answer instanceof Error) {
      note('refused')
      expect({ code: answer.code, bad: isBad(request) }).toEqual({ code: status.INVALID_ARGUMENT, bad: true })
      expect(answer.details).not.toBe('')
      expect(store.steps).toBe(before)
      return
    }
    note(answer.overall_code)
    expect(isBad(request)).toBe(false)
    const codes = answer.statuses.map(({ code }) => code)
    expect(codes).toHaveLength(request.descriptors.length)
    expect(codes.filter((code) => code !== 'OK' && code !== 'OVER_LIMIT')).toEqual([])
    expect(answer.overall_code).toBe(codes.includes('OVER_LIMIT') ? 'OVER_LIMIT' : 'OK')
    for (const { key, value } of answer.response_headers_to_add) expect(`${key}: ${value}`).toMatch(/^[a-z-]+: [\x20-\x7e]+$/)
  }

  await fc.assert(fc.asyncProperty(requests, check), { numRuns: 1_000, seed: 9 })
  client.close()
  await service.stop(0)
  expectNoFailure(service)
  expect([...seen.keys()].sort(), 'each kind of end was seen').toEqual(['OK', 'OVER_LIMIT', 'refused'])
  for (const [what, count] of seen) expect(count, what).toBeGreaterThan(100)
})

/** The limits under which the adapters are tested, by name. */

import { fixedWindow } from '../../src/algorithms/fixed-window/fixed-window.ts'
import { gcra } from '../../src/algorithms/gcra/gcra.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/leaky-bucket.ts'
import { byIp } from '../../src/http/by-ip.ts'
import { everyone } from '../../src/http/keys.ts'
import { concurrency } from '../../src/limiter/concurrency.ts'
import type { Limits } from '../../src/limiter/options.ts'
import { asyncStore } from '../../src/stores/index.ts'

type Header = (native: unknown, name: string) => string | undefined

export interface Setup {
  readonly limits: Limits
  readonly limiterOptions?: object
  /** `header` reads a header of a framework's own request. */
  readonly choices?: (header: Header) => object
  /** Limits of a second middleware behind the first. */
  readonly behind?: Limits
}

/** Ten tokens are charged at first. What was used is in a header, and if it is not, unknown. */
const REQUESTS_AND_TOKENS = { requests: fixedWindow({ limit: 6, window: '1min' }), tokens: fixedWindow({ limit: 100, window: '1h' }) }
const settling = (header: Header) => ({
  cost: { requests: 1, tokens: 10 },
  settle: async (_outcome: object, native: unknown) => {
    const used = header(native, 'x-used')
    return used === undefined ? undefined : { requests: 1, tokens: Number(used) }
  },
})

/** `settle` tells the tests when a response has ended. */
const TWO_AT_ONCE = { requests: fixedWindow({ limit: 100, window: '1min' }), inflight: concurrency({ max: 2 }) }
const holding = () => ({ status: 503, settle: () => undefined })

const THREE = gcra({ rate: '1/s', burst: 3 })

/**
 * A store of another author that does not answer: it keeps to the contract, which allows for
 * failing.
 */
const brokenStore = asyncStore({ shared: true, apply: () => Promise.reject(new Error('the store is down')) })

const SETUPS_BY_NAME = {
  plain: { limits: THREE },
  'draft-7': { limits: THREE, choices: () => ({ headers: 'draft-7' }) },
  'draft-6': { limits: THREE, choices: () => ({ headers: 'draft-6' }) },
  legacy: { limits: THREE, choices: () => ({ headers: 'legacy' }) },
  both: { limits: THREE, choices: () => ({ headers: ['draft-11', 'legacy'] }) },
  'no-headers': { limits: THREE, choices: () => ({ headers: 'none' }) },
  partition: { limits: THREE, choices: () => ({ partitionKey: (key: string) => key }) },
  several: {
    limits: { user: gcra({ rate: '1/s', burst: 2 }), 'all.users': fixedWindow({ limit: 3, window: '1min' }) },
    choices: (header: Header) => ({ key: { user: (native: unknown) => header(native, 'x-user') ?? 'nobody', 'all.users': everyone } }),
  },
  cost: { limits: THREE, choices: (header: Header) => ({ cost: (native: unknown) => Number(header(native, 'x-cost') ?? 1) }) },
  plans: {
    limits: THREE,
    limiterOptions: { plans: { pro: gcra({ rate: '10/s', burst: 30 }) } },
    choices: (header: Header) => ({ plan: async (native: unknown) => header(native, 'x-plan') }),
  },
  'failures-only': { limits: THREE, choices: () => ({ refundWhen: ({ status }: { status: number }) => status < 400 }) },
  settle: { limits: REQUESTS_AND_TOKENS, choices: settling },
  'settle-or-refund': {
    limits: REQUESTS_AND_TOKENS,
    choices: (header: Header) => ({ ...settling(header), refundWhen: ({ status }: { status: number }) => status >= 500 }),
  },
  'settle-waiting': { limits: leakyBucket({ capacity: 5, leak: '1/s' }), choices: () => ({ maxWaitMs: 1_500, cost: 3, settle: () => 1 }) },
  'settle-throws': {
    limits: THREE,
    choices: () => ({
      settle: () => {
        throw new Error('no usage')
      },
    }),
  },
  'settle-rejects': { limits: THREE, choices: () => ({ settle: () => Promise.reject(new Error('no usage')) }) },
  'settle-wrong': { limits: THREE, choices: () => ({ settle: () => 1.5 }) },
  hold: { limits: TWO_AT_ONCE, choices: holding },
  // The handler of a stream never returns on Node: then this is all that frees its place.
  'hold-briefly': { limits: TWO_AT_ONCE, choices: () => ({ ...holding(), maxHoldMs: 1 }) },
  'hold-waiting': { limits: { inflight: concurrency({ max: 1 }) }, choices: () => ({ maxWaitMs: 60_000 }) },
  skip: { limits: THREE, choices: (header: Header) => ({ skip: (native: unknown) => header(native, 'x-skip') === 'yes' }) },
  shadow: { limits: THREE, choices: () => ({ shadow: true }) },
  'key-throws': {
    limits: THREE,
    choices: () => ({
      key: () => {
        throw new Error('no key')
      },
    }),
  },
  'key-throws-null': {
    limits: THREE,
    choices: () => ({
      key: () => {
        throw null
      },
    }),
  },
  'key-throws-route': {
    limits: THREE,
    choices: () => ({
      key: () => {
        throw 'route'
      },
    }),
  },
  'key-rejects-undefined': { limits: THREE, choices: () => ({ key: () => Promise.reject() }) },
  'late-key': {
    limits: THREE,
    choices: () => ({
      key: () => new Promise((resolve) => setTimeout(resolve, 50, 'ann')),
      refundWhen: ({ status }: { status: number }) => status < 400,
    }),
  },
  'key-and-cost-fail': {
    limits: THREE,
    choices: () => ({
      key: () => Promise.reject(new Error('no key')),
      cost: () => {
        throw new Error('no cost')
      },
    }),
  },
  'shadow-fails': { limits: THREE, choices: () => ({ shadow: true, key: () => Promise.reject(new Error('no key')) }) },
  'key-rejects': { limits: THREE, choices: () => ({ key: () => Promise.reject(new Error('no key')) }) },
  queue: { limits: leakyBucket({ capacity: 2, leak: '1/s' }), choices: () => ({ maxWaitMs: 1_500 }) },
  thousand: { limits: gcra({ rate: '1/h', burst: 100 }), choices: () => ({ headers: 'draft-6' }) },
  address: { limits: THREE, choices: () => ({ key: byIp({ trustProxy: 1 }) }) },
  'own-answer': { limits: THREE, choices: () => ({ status: 420, body: { error: 'calm down' } }) },
  'other-answer': {
    limits: THREE,
    choices: (header: Header) => ({
      answer: async (native: unknown, { retryAfterMs }: { retryAfterMs: number }) => {
        await new Promise((resolve) => setImmediate(resolve))
        const wanted = header(native, 'x-want')
        const xml = { 'Content-Type': 'application/xml', 'ratelimit-policy': undefined }
        if (wanted === 'xml') return { headers: xml, body: `<wait seconds="${retryAfterMs / 1000}"/>` }
        if (wanted === 'redirect') return { status: 303, headers: { location: '/slow-down' } }
        return wanted === 'json' ? { body: { wait: retryAfterMs } } : undefined
      },
    }),
  },
  'answer-throws': {
    limits: THREE,
    choices: () => ({
      answer: () => {
        throw new Error('too many requests')
      },
    }),
  },
  stacked: { limits: { outer: gcra({ rate: '1/s', burst: 5 }) }, behind: { inner: gcra({ rate: '1/s', burst: 2 }) } },
  'stacked-draft-6': {
    limits: gcra({ rate: '1/s', burst: 5 }),
    behind: gcra({ rate: '1/s', burst: 2 }),
    choices: () => ({ headers: 'draft-6' }),
  },
  'stacked-outer-less': { limits: THREE, behind: gcra({ rate: '1/s', burst: 9 }), choices: () => ({ headers: 'draft-6' }) },
  numbers: {
    limits: THREE,
    choices: (header: Header) => ({
      limiter: undefined,
      limit: async (native: unknown) => {
        const burst = header(native, 'x-burst')
        return burst === 'none' ? undefined : gcra({ rate: '1/s', burst: Number(burst) })
      },
    }),
  },
  near: { limits: THREE, choices: () => ({ nearLimit: 0.6 }) },
  'store-throws': { limits: THREE, limiterOptions: { store: brokenStore, clock: undefined, onStoreError: 'throw' } },
  'store-allows': { limits: THREE, limiterOptions: { store: brokenStore, clock: undefined, onStoreError: 'allow' } },
  'store-denies': { limits: THREE, limiterOptions: { store: brokenStore, clock: undefined, onStoreError: 'deny' } },
  'store-local': { limits: THREE, limiterOptions: { store: brokenStore, clock: undefined, onStoreError: 'local' } },
} satisfies Record<string, Setup>

export type SetupName = keyof typeof SETUPS_BY_NAME
export const SETUPS: Readonly<Record<SetupName, Setup>> = SETUPS_BY_NAME

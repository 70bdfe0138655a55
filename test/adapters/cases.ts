/**
 * The cases that every adapter must pass, over a real socket: one list, run against each framework.
 */
import { type ClientRequest, request as httpRequest } from 'node:http'
import { expect } from 'vitest'
import type { Served } from './frameworks.ts'
import type { SetupName } from './setups.ts'

export interface Case {
  readonly name: string
  readonly setup: SetupName
  /** Why it cannot be run yet. */
  readonly skip?: string | undefined
  run(served: Served, framework: string): Promise<void>
}

interface Told {
  readonly status: number
  /** The fields that tell about limits, in the order of their names. */
  readonly fields: Readonly<Record<string, string>>
  readonly type: string | undefined
  readonly caching: string | null
  readonly location: string | null
  readonly body: string
}

const OF_LIMITS = /^(ratelimit|x-ratelimit|retry-after)/

export async function get({ url }: Served, headers: Record<string, string> = {}): Promise<Told> {
  const response = await fetch(url, { headers, redirect: 'manual' })
  const fields = Object.fromEntries([...response.headers].filter(([name]) => OF_LIMITS.test(name)).sort())
  // Fastify adds a charset to JSON, which has only one.
  const type = response.headers.get('content-type')?.replace(/json; charset=utf-8$/, 'json')
  const [caching, location] = ['cache-control', 'location'].map((name) => response.headers.get(name)) as [string | null, string | null]
  return { status: response.status, fields, type, caching, location, body: await response.text() }
}

/** The same request so many times, one after the other. */
async function times(count: number, served: Served, headers: Record<string, string> = {}): Promise<Told[]> {
  const answers: Told[] = []
  for (let k = 0; k < count; k++) answers.push(await get(served, headers))
  return answers
}

/** Asks until it is so. Nothing here depends on how long that takes. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve))
}

/** Sends a request and does not read its answer to the end. */
export function begun({ url }: Served, headers: Record<string, string>): ClientRequest {
  const request = httpRequest(url, { headers })
  request.on('error', () => {})
  request.end()
  return request
}

export function firstPiece(request: ClientRequest): Promise<string> {
  return new Promise((resolve) => request.once('response', (response) => response.once('data', (piece) => resolve(String(piece)))))
}

const statuses = (answers: readonly Told[]) => answers.map(({ status }) => status)

const POLICY = '"default";q=3;w=3'

export const CASES: readonly Case[] = [
  {
    name: 'admits what the limit admits and says how much is left',
    setup: 'plain',
    async run(served) {
      const answers = await times(3, served)
      expect(statuses(answers)).toEqual([200, 200, 200])
      expect(answers.map(({ fields }) => fields)).toEqual([
        { ratelimit: '"default";r=2;t=1', 'ratelimit-policy': POLICY },
        { ratelimit: '"default";r=1;t=2', 'ratelimit-policy': POLICY },
        { ratelimit: '"default";r=0;t=3', 'ratelimit-policy': POLICY },
      ])
      expect(await served.ask('reached')).toBe(3)
    },
  },
  {
    name: 'refuses with a problem, says when to come back, and admits then',
    setup: 'plain',
    async run(served) {
      await times(3, served)
      await served.ask('advance', '400')
      const refused = await get(served)
      expect(refused).toEqual({
        status: 429,
        fields: { ratelimit: '"default";r=0;t=1', 'ratelimit-policy': POLICY, 'retry-after': '1' },
        type: 'application/problem+json',
        caching: 'no-store',
        location: null,
        body: JSON.stringify({
          type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
          title: 'Request cannot be satisfied as assigned quota has been exceeded',
          status: 429,
          detail: 'Too many requests. Please try again in 1 second.',
          'violated-policies': ['default'],
          retryAfterMs: 600,
        }),
      })
      expect(await served.ask('reached')).toBe(3)
      expect(await served.ask('limited')).toEqual(['limited default'])
      await served.ask('advance', '1000')
      expect((await get(served)).status).toBe(200)
    },
  },
  {
    name: 'answers in text or HTML where that is what the client reads',
    setup: 'plain',
    async run(served) {
      await times(3, served)
      const text = await get(served, { accept: 'text/plain' })
      expect(text).toMatchObject({ status: 429, type: 'text/plain; charset=utf-8' })
      expect(text.body).toBe('Too many requests. Please try again in 1 second.\n')
      const html = await get(served, { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' })
      expect(html).toMatchObject({ status: 429, type: 'text/html; charset=utf-8' })
      expect(html.body).toContain('<h1>Too many requests</h1><p>Please try again in 1 second.</p>')
    },
  },
  {
    name: 'answers with a status and a body of the user’s own',
    setup: 'own-answer',
    async run(served) {
      await times(3, served)
      expect(await get(served)).toMatchObject({ status: 420, type: 'application/json', body: '{"error":"calm down"}' })
    },
  },
  {
    name: 'answers as the user says, some time later: another type, another status, headers more and fewer',
    setup: 'other-answer',
    async run(served) {
      await times(3, served)
      const xml = await get(served, { 'x-want': 'xml' })
      expect(xml).toMatchObject({ status: 429, type: 'application/xml', caching: 'no-store', body: '<wait seconds="1"/>' })
      expect(xml.fields).toEqual({ ratelimit: '"default";r=0;t=1', 'retry-after': '1' })
      const away = await get(served, { 'x-want': 'redirect' })
      expect(away).toMatchObject({ status: 303, location: '/slow-down', caching: 'no-store', body: '' })
      expect(await get(served, { 'x-want': 'json' })).toMatchObject({ status: 429, type: 'application/json', body: '{"wait":1000}' })
      expect(await get(served)).toMatchObject({ status: 429, type: 'application/problem+json' })
      expect(await served.ask('reached')).toBe(3)
    },
  },
  {
    name: 'leaves a refusal to the framework’s error handler, where that is wanted',
    setup: 'answer-throws',
    async run(served) {
      expect(statuses(await times(4, served))).toEqual([200, 200, 200, 500])
      expect(await served.ask('reached')).toBe(3)
    },
  },
  {
    name: 'tells of both limiters, where one stands behind another',
    setup: 'stacked',
    async run(served) {
      expect((await get(served)).fields).toEqual({
        ratelimit: '"outer";r=4;t=1,"inner";r=1;t=1',
        'ratelimit-policy': '"outer";q=5;w=5,"inner";q=2;w=2',
      })
      await get(served)
      const byInner = await get(served)
      expect(byInner.status).toBe(429)
      expect(byInner.fields).toEqual({
        ratelimit: '"outer";r=2;t=3,"inner";r=0;t=1',
        'ratelimit-policy': '"outer";q=5;w=5,"inner";q=2;w=2',
        'retry-after': '1',
      })
      // The outer limiter was charged for what the inner one refused.
      expect(statuses(await times(3, served))).toEqual([429, 429, 429])
      expect((await get(served)).fields).toEqual({
        ratelimit: '"outer";r=0;t=1',
        'ratelimit-policy': '"outer";q=5;w=5',
        'retry-after': '1',
      })
      expect(await served.ask('reached')).toBe(2)
    },
  },
  {
    name: 'tells of the limiter that leaves less, where there is room for one',
    setup: 'stacked-draft-6',
    async run(served) {
      const [first, , refused] = await times(3, served)
      expect(first?.fields).toEqual({ 'ratelimit-limit': '2', 'ratelimit-remaining': '1', 'ratelimit-reset': '1' })
      expect(refused?.fields).toMatchObject({ 'ratelimit-limit': '2', 'ratelimit-remaining': '0', 'retry-after': '1' })
    },
  },
  {
    name: 'tells of the outer limiter, where that leaves less',
    setup: 'stacked-outer-less',
    async run(served) {
      expect((await get(served)).fields).toEqual({ 'ratelimit-limit': '3', 'ratelimit-remaining': '2', 'ratelimit-reset': '1' })
    },
  },
  {
    name: 'decides by numbers that it finds from the request, and keeps what was used when they change',
    setup: 'numbers',
    async run(served) {
      const of = (burst: string) => get(served, { 'x-user': 'ann', 'x-burst': burst })
      expect((await of('3')).fields).toEqual({ ratelimit: '"default";r=2;t=1', 'ratelimit-policy': '"default";q=3;w=3' })
      expect((await of('10')).fields).toEqual({ ratelimit: '"default";r=8;t=2', 'ratelimit-policy': '"default";q=10;w=10' })
      expect(statuses([await of('3'), await of('3'), await of('10')])).toEqual([200, 429, 200])
      expect((await of('none')).status).toBe(500)
    },
  },
  {
    name: 'tells of keys that are near their limit, and of none that is refused',
    setup: 'near',
    async run(served) {
      await times(4, served)
      expect(await served.ask('near')).toEqual(['1 of 3', '0 of 3'])
    },
  },
  {
    name: 'hands the decision to the handler',
    setup: 'plain',
    async run(served) {
      expect(JSON.parse((await get(served)).body)).toEqual({ allowed: true, remaining: 2, policy: 'default' })
    },
  },
  {
    name: 'writes the headers of draft 7',
    setup: 'draft-7',
    async run(served) {
      const [first, , , refused] = await times(4, served)
      expect(first?.fields).toEqual({ ratelimit: 'limit=3, remaining=2, reset=1', 'ratelimit-policy': '3;w=3' })
      expect(refused?.fields).toEqual({ ratelimit: 'limit=3, remaining=0, reset=1', 'ratelimit-policy': '3;w=3', 'retry-after': '1' })
    },
  },
  {
    name: 'writes the headers of draft 6',
    setup: 'draft-6',
    async run(served) {
      const [first, , , refused] = await times(4, served)
      expect(first?.fields).toEqual({ 'ratelimit-limit': '3', 'ratelimit-remaining': '2', 'ratelimit-reset': '1' })
      expect(refused?.fields).toMatchObject({ 'ratelimit-remaining': '0', 'ratelimit-reset': '1', 'retry-after': '1' })
    },
  },
  {
    name: 'writes the legacy headers, with the time since 1970',
    setup: 'legacy',
    async run(served) {
      expect((await get(served)).fields).toEqual({
        'x-ratelimit-limit': '3',
        'x-ratelimit-remaining': '2',
        'x-ratelimit-reset': '1000000001',
      })
    },
  },
  {
    name: 'writes a draft and the legacy headers side by side',
    setup: 'both',
    async run(served) {
      const names = ['ratelimit', 'ratelimit-policy', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']
      expect(Object.keys((await get(served)).fields)).toEqual(names)
    },
  },
  {
    name: 'writes no headers but Retry-After where none are wanted',
    setup: 'no-headers',
    async run(served) {
      const answers = await times(4, served)
      expect(answers.map(({ fields }) => fields)).toEqual([{}, {}, {}, { 'retry-after': '1' }])
    },
  },
  {
    name: 'names the partition where it is asked to',
    setup: 'partition',
    async run(served) {
      expect((await get(served, { 'x-user': 'ann' })).fields).toEqual({
        ratelimit: '"default";r=2;t=1;pk=:YW5u:',
        'ratelimit-policy': '"default";q=3;w=3;pk=:YW5u:',
      })
    },
  },
  {
    name: 'keeps users apart',
    setup: 'plain',
    async run(served) {
      expect(statuses(await times(4, served, { 'x-user': 'ann' }))).toEqual([200, 200, 200, 429])
      expect((await get(served, { 'x-user': 'bob' })).status).toBe(200)
    },
  },
  {
    name: 'decides several limits as one, and tells of all of them',
    setup: 'several',
    async run(served) {
      const policy = '"user";q=2;w=2,"all.users";q=3;w=60'
      expect((await get(served, { 'x-user': 'ann' })).fields).toEqual({
        ratelimit: '"user";r=1;t=1,"all.users";r=2;t=20',
        'ratelimit-policy': policy,
      })
      expect(statuses(await times(2, served, { 'x-user': 'ann' }))).toEqual([200, 429])
      // The refused call took nothing from the limit of all.
      expect(statuses(await times(2, served, { 'x-user': 'bob' }))).toEqual([200, 429])
      const refused = await get(served, { 'x-user': 'bob' })
      expect(refused.fields).toEqual({
        ratelimit: '"user";r=1;t=1,"all.users";r=0;t=20',
        'ratelimit-policy': policy,
        'retry-after': '20',
      })
      expect(JSON.parse(refused.body)['violated-policies']).toEqual(['all.users'])
    },
  },
  {
    name: 'takes what a request costs, and says of a cost that can never fit that no wait helps',
    setup: 'cost',
    async run(served) {
      expect((await get(served, { 'x-cost': '2' })).fields.ratelimit).toBe('"default";r=1;t=2')
      expect((await get(served, { 'x-cost': '2' })).fields).toMatchObject({ ratelimit: '"default";r=1;t=1', 'retry-after': '1' })
      const impossible = await get(served, { 'x-cost': '4' })
      expect(impossible.status).toBe(429)
      expect(impossible.fields).toEqual({ ratelimit: '"default";r=1;t=2', 'ratelimit-policy': POLICY })
      expect(await served.ask('limited')).toEqual(['limited default', 'impossible default'])
    },
  },
  {
    name: 'decides by the plan of the caller',
    setup: 'plans',
    async run(served) {
      const paid = await get(served, { 'x-user': 'ann', 'x-plan': 'pro' })
      expect(paid.fields).toEqual({ ratelimit: '"default";r=29;t=1', 'ratelimit-policy': '"default";q=30;w=3' })
      expect((await get(served, { 'x-user': 'bob' })).fields['ratelimit-policy']).toBe(POLICY)
      expect((await get(served, { 'x-user': 'bob', 'x-plan': 'gold' })).status).toBe(500)
    },
  },
  {
    name: 'gives back what successes took, where only failures count',
    setup: 'failures-only',
    async run(served) {
      const remaining = async () => served.ask('remaining', 'ann')
      const ann = { 'x-user': 'ann' }
      for (let k = 0; k < 5; k++) {
        expect((await get(served, ann)).status).toBe(200)
        await until(async () => (await remaining()) === 3)
      }
      expect(statuses(await times(4, served, { ...ann, 'x-status': '401' }))).toEqual([401, 401, 401, 429])
      expect(await remaining()).toBe(0)
    },
  },
  {
    name: 'lets through what is to be skipped, uncounted',
    setup: 'skip',
    async run(served) {
      const skipped = await get(served, { 'x-skip': 'yes' })
      expect(skipped).toMatchObject({ status: 200, fields: {} })
      expect(JSON.parse(skipped.body)).toEqual({})
      expect((await get(served)).fields.ratelimit).toBe('"default";r=2;t=1')
    },
  },
  {
    name: 'refuses nobody in shadow, but tells who would be',
    setup: 'shadow',
    async run(served) {
      const answers = await times(5, served)
      expect(statuses(answers)).toEqual([200, 200, 200, 200, 200])
      expect(answers.map(({ fields }) => fields)).toEqual([{}, {}, {}, {}, {}])
      expect(JSON.parse(answers[3]?.body as string)).toEqual({ allowed: false, remaining: 0, policy: 'default' })
      expect(await served.ask('limited')).toEqual(['limited default', 'limited default'])
    },
  },
  {
    name: 'does not take a client that leaves before the answer for one that was answered well',
    setup: 'failures-only',
    async run(served) {
      const leaving = httpRequest(served.url, { headers: { 'x-user': 'ann', 'x-hold': 'yes' } })
      leaving.on('error', () => {})
      leaving.end()
      await until(async () => (await served.ask('reached')) === 1)
      leaving.destroy()
      await until(async () => ((await served.ask('outcomes')) as object[]).length === 1)
      expect(await served.ask('outcomes')).toEqual([{ status: 499, aborted: true }])
      expect(await served.ask('remaining', 'ann')).toBe(2)
    },
  },
  {
    name: 'does nothing for a client that left while its key was looked for',
    setup: 'late-key',
    async run(served) {
      const leaving = httpRequest(served.url)
      leaving.on('error', () => {})
      leaving.end()
      await until(async () => (await served.ask('asked')) === 1)
      leaving.destroy()
      await until(async () => ((await served.ask('outcomes')) as object[]).length === 1)
      expect(await served.ask('outcomes')).toEqual([{ status: 499, aborted: true }])
      expect(await served.ask('reached')).toBe(0)
    },
  },
  {
    name: 'refuses nobody in shadow, whatever fails',
    setup: 'shadow-fails',
    async run(served) {
      expect(statuses(await times(4, served))).toEqual([200, 200, 200, 200])
    },
  },
  ...(['key-throws', 'key-rejects', 'key-throws-null', 'key-throws-route', 'key-rejects-undefined', 'key-and-cost-fail'] as const).map(
    (setup) => ({
      name: `leaves an error of the key to the framework: ${setup}`,
      setup,
      async run(served: Served) {
        expect((await get(served)).status).toBe(500)
        expect(await served.ask('reached')).toBe(0)
      },
    }),
  ),
  {
    name: 'leaves a failing store to the framework',
    setup: 'store-throws',
    async run(served) {
      expect((await get(served)).status).toBe(500)
      expect(await served.ask('reached')).toBe(0)
    },
  },
  {
    name: 'admits while the store fails, where that is the policy',
    setup: 'store-allows',
    async run(served) {
      const answers = await times(5, served)
      expect(statuses(answers)).toEqual([200, 200, 200, 200, 200])
      expect(answers[0]?.fields).toEqual({})
    },
  },
  {
    name: 'answers 503 while the store fails, where the policy is to deny',
    setup: 'store-denies',
    async run(served) {
      const refused = await get(served)
      expect(refused).toMatchObject({ status: 503, type: 'application/problem+json' })
      expect(JSON.parse(refused.body)).toMatchObject({
        type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
        status: 503,
      })
      expect(await served.ask('reached')).toBe(0)
    },
  },
  {
    name: 'limits by itself while the store fails, where that is the policy',
    setup: 'store-local',
    async run(served) {
      expect(statuses(await times(5, served))).toEqual([200, 200, 200, 429, 429])
    },
  },
  {
    name: 'holds a request until its turn, and refuses at once what would wait too long',
    setup: 'queue',
    async run(served) {
      expect((await get(served)).status).toBe(200)
      const held = get(served)
      await until(async () => (await served.ask('waiting')) === 1)
      expect((await get(served)).status).toBe(429)
      expect(await served.ask('reached')).toBe(1)
      await served.ask('advance', '1000')
      expect((await held).status).toBe(200)
      expect(await served.ask('waiting')).toBe(0)
    },
  },
  {
    name: 'gives back the place of a client that leaves while it waits',
    setup: 'queue',
    async run(served) {
      expect((await get(served)).status).toBe(200)
      const leaving = httpRequest(served.url)
      leaving.on('error', () => {})
      leaving.end()
      await until(async () => (await served.ask('waiting')) === 1)
      leaving.destroy()
      await until(async () => (await served.ask('waiting')) === 0)
      const next = get(served)
      await until(async () => (await served.ask('waiting')) === 1)
      await served.ask('advance', '1000')
      expect((await next).status).toBe(200)
      expect(await served.ask('reached')).toBe(2)
    },
  },
  {
    name: 'knows a client by the address that the trusted proxy appended',
    setup: 'address',
    async run(served) {
      const through = (chain: string) => get(served, { 'x-forwarded-for': chain })
      for (let k = 0; k < 3; k++) expect((await through(`10.0.0.${k}, 203.0.113.9`)).status).toBe(200)
      expect((await through('10.9.9.9, 203.0.113.9:4711')).status).toBe(429)
      expect((await through('203.0.113.9, 203.0.113.10')).status).toBe(200)
      expect(statuses(await times(4, served))).toEqual([200, 200, 200, 429])
      expect(await served.ask('remaining', 'ip:127.0.0.1')).toBe(0)
    },
  },
  {
    name: 'admits exactly the limit of a thousand requests at once',
    setup: 'thousand',
    async run(served) {
      const answers = await Promise.all(Array.from({ length: 1000 }, () => get(served)))
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(100)
      expect(answers.filter(({ status }) => status === 429)).toHaveLength(900)
      expect(await served.ask('reached')).toBe(100)
    },
  },
]

/**
 * A fetch that keeps its pace and does as it is told, on a clock that stands still until it is
 * moved.
 */
import { describe, expect, test } from 'vitest'
import { limitedFetch } from '../../src/client/index.ts'
import { gcra, type SluiceError } from '../../src/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'

const START_MS = Date.parse('2026-11-15T12:00:00Z')

interface Called {
  readonly url: string
  readonly atMs: number
}

/** A server that is told what to answer: `script` gives the answer to the k-th call. */
function server(clock: FakeClock, script: (k: number, call: Called) => { status?: number; headers?: Record<string, string> } | Error) {
  const calls: Called[] = []
  const fetch = async (input: string | URL, _init?: object) => {
    const call = { url: String(input), atMs: clock.nowUs() / 1000 - START_MS }
    const answer = script(calls.push(call) - 1, call)
    await Promise.resolve()
    if (answer instanceof Error) throw answer
    return new Response(null, { status: answer.status ?? 200, headers: answer.headers ?? {} })
  }
  return { calls, fetch, times: () => calls.map(({ atMs }) => atMs) }
}

/** Lets everything happen that needs no time. */
async function settle(): Promise<void> {
  for (let k = 0; k < 50; k++) await Promise.resolve()
}

/** Moves the clock in small steps, letting everything happen that is due at each. */
async function pass(clock: FakeClock, ms: number, stepMs = 50): Promise<void> {
  for (let k = 0; k < ms; k += stepMs) {
    await settle()
    clock.advanceMs(stepMs)
  }
  await settle()
}

const fast = gcra({ rate: '1000/s', burst: 1000 })

describe('limitedFetch', () => {
  test('of limits that are all used up, the one that lasts longest counts', async () => {
    for (const ratelimit of ['"a";r=0;t=1,"b";r=0;t=3', '"b";r=0;t=3,"a";r=0;t=1']) {
      const clock = fakeClock(START_MS)
      const { fetch, times } = server(clock, (k) => (k === 0 ? { headers: { ratelimit } } : {}))
      const polite = limitedFetch(fetch, { limit: fast, clock })
      await polite('https://a/')
      const next = polite('https://a/')
      await pass(clock, 4_000)
      await next
      expect(times()).toEqual([0, 3_000])
    }
  })

  test.each<[string, () => Promise<Response>]>([
    [
      'a fetch that throws at once',
      () => {
        throw new TypeError('no address')
      },
    ],
    ['a fetch that rejects', () => Promise.reject(new TypeError('no connection'))],
    ['an answer without headers', () => Promise.resolve({ status: 200 } as Response)],
  ])('the line goes on after %s', async (_name, failing) => {
    const clock = fakeClock(START_MS)
    let calls = 0
    const fetch = (_url: string) => {
      calls += 1
      // The first makes the host careful: then one call goes ahead, and the others wait for what
      // becomes of it.
      if (calls === 1) return Promise.resolve(new Response(null, { status: 429, headers: { 'retry-after': '1' } }))
      return calls === 2 ? failing() : Promise.resolve(new Response('ok'))
    }
    const polite = limitedFetch(fetch, { limit: fast, clock })
    await polite('https://a/')
    const [failed, next] = [polite('https://a/'), polite('https://a/')].map((call) => call.catch((error: Error) => error.name))
    await pass(clock, 2_000)
    expect(await failed).toBe('TypeError')
    expect(await next).toMatchObject({ status: 200 })
  })

  test('paces the calls to each host by themselves, in order', async () => {
    const clock = fakeClock(START_MS)
    const { fetch, calls } = server(clock, () => ({}))
    const polite = limitedFetch(fetch, { limit: gcra({ rate: '10/s', burst: 1 }), clock })
    const answers = ['a/1', 'a/2', 'b/1', 'a/3', 'b/2'].map((path) => polite(`https://${path}`))
    await pass(clock, 300)
    await Promise.all(answers)
    expect(calls.map(({ url, atMs }) => `${url.slice(8)} ${atMs}`)).toEqual(['a/1 0', 'b/1 0', 'a/2 100', 'b/2 100', 'a/3 200'])
  })

  test.each([
    ['seconds', { 'retry-after': '2' }],
    ['a date', { date: 'Sun, 15 Nov 2026 12:00:00 GMT', 'retry-after': 'Sun, 15 Nov 2026 12:00:02 GMT' }],
    ['draft 11', { ratelimit: '"x";r=0;t=2' }],
    ['draft 7', { ratelimit: 'limit=5, remaining=0, reset=2' }],
    ['draft 6', { 'ratelimit-remaining': '0', 'ratelimit-reset': '2' }],
    ['legacy, since 1970', { date: 'Sun, 15 Nov 2026 12:00:00 GMT', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1794744002' }],
    ['legacy, from now', { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '2' }],
  ])('stays away from a host that refuses, as long as it says: %s', async (_name, headers) => {
    const clock = fakeClock(START_MS)
    const { fetch, times } = server(clock, (k) => (k === 0 ? { status: 429, headers: headers as Record<string, string> } : {}))
    const polite = limitedFetch(fetch, { limit: fast, clock })
    expect((await polite('https://a/')).status).toBe(429)
    const next = polite('https://a/')
    const other = polite('https://b/')
    await settle()
    expect((await other).status).toBe(200)
    await pass(clock, 2_500)
    expect((await next).status).toBe(200)
    expect(times()).toEqual([0, 0, 2_000])
  })

  test('does not stampede after a pause: one goes ahead, the others follow when it is answered, at their pace', async () => {
    const clock = fakeClock(START_MS)
    let isDown = true
    const { fetch, times } = server(clock, () => (isDown ? { status: 503, headers: { 'retry-after': '1' } } : {}))
    const polite = limitedFetch(fetch, { limit: gcra({ rate: '10/s', burst: 1 }), clock, retries: 5 })
    const answers = Array.from({ length: 5 }, () => polite('https://a/'))
    await pass(clock, 2_500)
    const scouts = times()
    expect(scouts).toEqual([0, 1_000, 2_000])
    isDown = false
    await pass(clock, 2_000)
    await Promise.all(answers)
    const after = times().slice(scouts.length)
    expect(after).toHaveLength(5)
    for (const [k, atMs] of after.entries()) if (k > 0) expect(atMs - (after[k - 1] as number)).toBeGreaterThanOrEqual(100)
  })

  test('uses up what the host says is left, and then waits for more', async () => {
    const clock = fakeClock(START_MS)
    let left = 3
    const { fetch, times } = server(clock, (_k, { atMs }) => {
      if (atMs >= 10_000 && left === 0) left = 3
      left -= 1
      return { headers: { ratelimit: `"x";r=${left};t=${Math.ceil((10_000 - (atMs % 10_000)) / 1000)}` } }
    })
    const polite = limitedFetch(fetch, { limit: fast, clock })
    for (let k = 0; k < 3; k++) await polite('https://a/')
    const held = polite('https://a/')
    await pass(clock, 12_000)
    await held
    expect(times()).toEqual([0, 0, 0, 10_000])
  })

  test('a late answer to an earlier call does not end the caution', async () => {
    const clock = fakeClock(START_MS)
    const pending: ((response: Response) => void)[] = []
    const times: number[] = []
    const fetch = (_input: string) => {
      times.push(clock.nowUs() / 1000 - START_MS)
      return new Promise<Response>((resolve) => pending.push(resolve))
    }
    const polite = limitedFetch(fetch, { limit: fast, clock })
    const calls = [polite('https://a/'), polite('https://a/')]
    await settle()
    pending[0]?.(new Response(null, { status: 429, headers: { 'retry-after': '1' } }))
    await settle()
    pending[1]?.(new Response(null))
    await settle()
    calls.push(polite('https://a/'), polite('https://a/'), polite('https://a/'))
    await pass(clock, 3_000)
    expect(times).toEqual([0, 0, 1_000])
    pending[2]?.(new Response(null))
    await settle()
    expect(times).toEqual([0, 0, 1_000, 3_000, 3_000])
    for (const resolve of pending) resolve(new Response(null))
    await Promise.all(calls)
  })

  test('a call that fails lets the next go ahead', async () => {
    const clock = fakeClock(START_MS)
    const { fetch, times } = server(clock, (k) => [{ status: 429, headers: { 'retry-after': '1' } }, new Error('reset by peer')][k] ?? {})
    const polite = limitedFetch(fetch, { limit: fast, clock })
    await polite('https://a/')
    const failing = expect(polite('https://a/')).rejects.toThrow('reset by peer')
    const next = polite('https://a/')
    await pass(clock, 1_500)
    await failing
    expect((await next).status).toBe(200)
    expect(times()).toEqual([0, 1_000, 1_000])
  })

  test('repeats what was refused, if asked to, but not a body that is gone', async () => {
    const clock = fakeClock(START_MS)
    const { fetch, times } = server(clock, (k) => (k < 2 ? { status: 429, headers: { 'retry-after': '1' } } : {}))
    const polite = limitedFetch(fetch, { limit: fast, clock, retries: 1 })
    const stream = polite('https://a/', { method: 'POST', body: new ReadableStream(), duplex: 'half' })
    expect((await stream).status).toBe(429)
    const repeated = polite('https://a/', { method: 'POST', body: 'text' })
    await pass(clock, 3_000)
    expect((await repeated).status).toBe(200)
    expect(times()).toEqual([0, 1_000, 2_000])
  })

  test('gives up at once on what cannot be in time, and leaves when it is told to', async () => {
    const clock = fakeClock(START_MS)
    const { fetch, times } = server(clock, (k) => (k === 0 ? { status: 429, headers: { 'retry-after': '60' } } : {}))
    const polite = limitedFetch(fetch, { limit: fast, clock, timeoutMs: 5_000 })
    await polite('https://a/')
    await expect(polite('https://a/')).rejects.toMatchObject({ code: 'TIMEOUT' } satisfies Partial<SluiceError>)
    const patient = limitedFetch(fetch, { limit: fast, clock })
    await patient('https://b/')
    expect(times()).toEqual([0, 0])
  })

  test('an aborted call leaves the line, and nobody behind it waits longer', async () => {
    const clock = fakeClock(START_MS)
    const { fetch, times } = server(clock, (k) => (k === 0 ? { status: 429, headers: { 'retry-after': '2' } } : {}))
    const polite = limitedFetch(fetch, { limit: fast, clock })
    await polite('https://a/')
    const controller = new AbortController()
    const leaving = expect(polite('https://a/', { signal: controller.signal })).rejects.toThrow('enough')
    const staying = polite('https://a/')
    await settle()
    controller.abort(new Error('enough'))
    await leaving
    await pass(clock, 2_500)
    expect((await staying).status).toBe(200)
    expect(times()).toEqual([0, 2_000])
    expect(clock.timers).toBe(0)
  })

  test('a pause is bounded, whatever a host asks for', async () => {
    const clock = fakeClock(START_MS)
    const { fetch, times } = server(clock, (k) => (k === 0 ? { status: 503, headers: { 'retry-after': '31536000' } } : {}))
    const polite = limitedFetch(fetch, { limit: fast, clock, maxPauseMs: 1_000 })
    await polite('https://a/')
    const next = polite('https://a/')
    await pass(clock, 1_500)
    await next
    expect(times()).toEqual([0, 1_000])
  })

  test('meets thousands of hosts that refuse, and still keeps away from those that asked for it', async () => {
    const clock = fakeClock(START_MS)
    const { fetch, calls } = server(clock, () => ({ status: 429, headers: { 'retry-after': '1' } }))
    const polite = limitedFetch(fetch, { limit: fast, clock })
    for (let k = 0; k < 1_500; k++) await polite(`https://host-${k}/`)
    clock.advanceMs(2_000)
    for (let k = 0; k < 1_500; k++) await polite(`https://other-${k}/`)
    expect(calls).toHaveLength(3_000)
    const held = polite('https://other-7/')
    await settle()
    expect(calls).toHaveLength(3_000)
    await pass(clock, 1_000)
    expect((await held).status).toBe(429)
  })

  test.each<[unknown, object, string]>([
    [undefined, { limit: fast }, 'fetch undefined must be a function'],
    [fetch, {}, 'limit undefined or `limiter`'],
    [fetch, { limit: fast, retries: -1 }, 'retries -1 must be a whole number'],
    [fetch, { limit: fast, timeoutMs: Number.NaN }, 'timeoutMs NaN must be milliseconds'],
    [fetch, { limit: fast, key: 'a' }, 'key "a" must be a function'],
    [fetch, { limit: fast, retry: 1 }, 'is not an option'],
  ])('refuses bad options: %#', (given, options, message) => {
    expect(() => limitedFetch(given as typeof fetch, options)).toThrow(message)
  })
})

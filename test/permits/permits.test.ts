/**
 * Permits in the memory of one process: what is taken is held until it is released, and who waits
 * is next.
 */
import { describe, expect, test } from 'vitest'
import { concurrency, createLimiter, gcra, memoryStore, type ReleaseEvent, SluiceError } from '../../src/index.ts'
import { asyncStore } from '../../src/stores/index.ts'
import type { Step } from '../../src/stores/step.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'

const START_MS = 1_700_000_000_000
const places = (max: number, lease?: '30s') => concurrency(lease === undefined ? { max } : { max, lease })
/** Lets everything run that needs no time. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** What became of promises so far. */
function watched<T>(promises: readonly Promise<T>[]): string[] {
  const states = promises.map(() => 'waits')
  promises.forEach((promise, k) => {
    promise.then(
      () => (states[k] = 'has it'),
      (error) => (states[k] = (error as SluiceError).code ?? String(error)),
    )
  })
  return states
}

function abortable(): { signal: AbortSignal; abort(): void } {
  const controller = new AbortController()
  return { signal: controller.signal, abort: () => controller.abort(Object.assign(new Error('left'), { code: 'LEFT' })) }
}

describe('a permit', () => {
  test('of run says how long it was waited for, also where nobody was before it', async () => {
    const clock = fakeClock(START_MS)
    const limiter = createLimiter(places(1), { clock })
    let end: (() => void) | undefined
    const first = limiter.run('key', (permit) => {
      expect(permit.waitedMs).toBe(0)
      return new Promise<void>((resolve) => {
        end = resolve
      })
    })
    const second = limiter.run('key', ({ waitedMs }) => waitedMs)
    const third = limiter.run('key', ({ waitedMs }) => waitedMs, { cost: 1 })
    await turn()
    clock.advanceMs(250)
    end?.()
    await first
    expect([await second, await third]).toEqual([250, 250])
  })

  test('counts for its key alone, whichever keys are taken and released in between', () => {
    const limiter = createLimiter(places(1_000))
    const held = { a: [], b: [], c: [] } as Record<string, { cost: number; release(): void }[]>
    const inflight = (permits: { cost: number }[]) => permits.reduce((sum, { cost }) => sum + cost, 0)
    for (let k = 0; k < 600; k++) {
      const [key, permits] = Object.entries(held)[(k * k + (k >> 3)) % 3] as [string, { cost: number; release(): void }[]]
      const cost = 1 + (k % 4)
      if ((k * 7) % 5 < 3) permits.push(Object.assign(limiter.consume(key, cost), { cost }))
      else permits.pop()?.release()
      for (const [each, all] of Object.entries(held)) expect(limiter.inflight(each)).toBe(inflight(all))
    }
    expect(limiter.inflight()).toBe(inflight(Object.values(held).flat()))
    expect(limiter.inflight()).toBeGreaterThan(100)
  })

  test('is held until it is released, and a second release does nothing', () => {
    const limiter = createLimiter(places(2))
    const [first, second, third] = [limiter.consume('key'), limiter.consume('key'), limiter.consume('key')]
    expect([first.allowed, second.allowed, third.allowed]).toEqual([true, true, false])
    expect([first.held, third.held]).toEqual([true, false])
    expect(limiter.inflight('key')).toBe(2)
    first.release()
    first.release()
    third.release()
    expect(first.held).toBe(false)
    expect(limiter.peek('key').remaining).toBe(1)
    expect(limiter.inflight()).toBe(1)
  })

  test('says that only a release helps: limited, with Infinity, which is null in JSON', () => {
    const limiter = createLimiter(places(1))
    limiter.consume('key')
    const refused = limiter.consume('key')
    expect(refused).toMatchObject({ outcome: 'limited', allowed: false, retryAfterMs: Number.POSITIVE_INFINITY, remaining: 0 })
    expect(JSON.parse(JSON.stringify(refused))).toMatchObject({ outcome: 'limited', retryAfterMs: null })
    expect(Object.keys(JSON.parse(JSON.stringify(refused)))).not.toContain('token')
  })

  test('has a token that increases with each permit of its key', () => {
    const limiter = createLimiter(places(1), { clock: fakeClock(START_MS) })
    const tokens = Array.from({ length: 5 }, () => {
      using permit = limiter.consume('key')
      return permit.token
    })
    expect(tokens).toEqual(tokens.map((_, k) => (tokens[0] as number) + k))
    expect(limiter.consume('key', 2).token).toBe(-1)
  })

  test('is released by using, and by await using', async () => {
    const limiter = createLimiter(places(1))
    {
      using permit = limiter.consume('key')
      expect(permit.held).toBe(true)
    }
    {
      await using permit = await limiter.acquire('key')
      expect(permit.held).toBe(true)
      expect(limiter.inflight('key')).toBe(1)
    }
    expect(limiter.inflight('key')).toBe(0)
  })

  test('of several limits is all or nothing, and release gives back the held part only, refund the others only', () => {
    const clock = fakeClock(START_MS)
    const limiter = createLimiter({ rate: gcra({ rate: '1/s', burst: 2 }), inflight: places(5) }, { clock })
    const first = limiter.consume('key')
    limiter.consume('key')
    expect(limiter.consume('key')).toMatchObject({ allowed: false, policy: 'rate' })
    expect(limiter.inflight('key')).toBe(2)
    first.release()
    expect(limiter.peek('key', 0).parts).toMatchObject({ rate: { remaining: 0 }, inflight: { remaining: 4 } })
    limiter.refund('key')
    expect(limiter.peek('key', 0).parts).toMatchObject({ rate: { remaining: 1 }, inflight: { remaining: 4 } })
  })

  test('is settled in its rate, and stays as it is where it is held', () => {
    const limiter = createLimiter({ tokens: gcra({ rate: '1/h', burst: 100 }), inflight: places(5) })
    const permit = limiter.consume('key', { tokens: 10, inflight: 2 })
    permit.settle(30)
    expect(limiter.peek('key', 0).parts).toMatchObject({ tokens: { remaining: 70 }, inflight: { remaining: 3 } })
  })

  test('of a call whose listener throws is held by its caller', async () => {
    const limiter = createLimiter(places(1), {
      onDecision() {
        throw new Error('from a listener')
      },
    })
    const first = limiter.consume('key')
    expect([first.held, limiter.peek('key').remaining]).toEqual([true, 0])
    first.release()
    const second = await limiter.acquire('key')
    expect([second.held, limiter.peek('key').remaining]).toEqual([true, 0])
    second.release()
    expect(limiter.peek('key').remaining).toBe(1)
  })

  test('of a key that was reset is none of the new ones', () => {
    const limiter = createLimiter(places(1), { clock: fakeClock(START_MS) })
    const before = limiter.consume('key')
    limiter.reset('key')
    limiter.update(places(2))
    limiter.consume('key')
    const clock = limiter.consume('key')
    expect(clock.allowed).toBe(true)
    before.release()
    expect(limiter.peek('key').remaining).toBeLessThanOrEqual(1)
  })

  test('is told to listeners when it ends, with how it went', async () => {
    const clock = fakeClock(START_MS)
    const limiter = createLimiter(places(5), { name: 'jobs', clock, plans: { pro: places(9) } })
    const events: ReleaseEvent[] = []
    const stop = limiter.listen({ onRelease: (event) => void events.push(event) })
    const other = limiter.consume('key', 2)
    const permit = limiter.consume('key', 1, { plan: 'pro' })
    clock.advanceMs(12.5)
    permit.release({ outcome: 'ignored' })
    await limiter.run('key', () => 'fine')
    await limiter.run('key', () => Promise.reject(new Error('too slow'))).catch(() => undefined)
    expect(events).toEqual([
      { limiter: 'jobs', key: 'key', plan: 'pro', heldMs: 12.5, outcome: 'ignored', inflight: 3 },
      { limiter: 'jobs', key: 'key', plan: undefined, heldMs: 0, outcome: 'ok', inflight: 3 },
      { limiter: 'jobs', key: 'key', plan: undefined, heldMs: 0, outcome: 'dropped', inflight: 3 },
    ])
    stop()
    other.release()
    expect(events).toHaveLength(3)
    expect(() => other.release({ outcome: 'fine' as never })).toThrow("outcome \"fine\" must be 'ok', 'dropped' or 'ignored'")
  })

  test('by a plan with more places is from a share that is kept for it', () => {
    const limiter = createLimiter(places(8), { plans: { critical: places(10) } })
    for (let k = 0; k < 8; k++) expect(limiter.consume('key').allowed).toBe(true)
    expect(limiter.consume('key').allowed).toBe(false)
    const kept = [limiter.consume('key', 1, { plan: 'critical' }), limiter.consume('key', 1, { plan: 'critical' })]
    expect(kept.map(({ allowed }) => allowed)).toEqual([true, true])
    // A hard total: ten in all.
    expect(limiter.consume('key', 1, { plan: 'critical' }).allowed).toBe(false)
  })

  test.each([
    ['tryAcquire', 'UNSUPPORTED'],
    ['pace', 'UNSUPPORTED'],
    ['refund', 'UNSUPPORTED'],
    ['charge', 'UNSUPPORTED'],
  ] as const)('has no %s: nobody could release what it takes', (verb, code) => {
    const limiter = createLimiter(places(1)) as unknown as Record<string, (...args: unknown[]) => unknown>
    expect(() => limiter[verb]?.('key', [])).toThrow(expect.objectContaining({ code }))
  })

  test.each([
    [{ max: 0 }, 'concurrency max 0 must be a whole number from 1 to 1,000,000,000'],
    [{ max: 1, lease: 30_000 }, "concurrency lease 30000 of what? write '30000s' or '30000ms'"],
    [{ max: 1, lease: '99ms' }, 'concurrency lease "99ms" must be at least 100 ms'],
    [{ max: 1, lease: 'long' }, 'concurrency lease "long" must be a number with a unit'],
    [{ max: 1, ttl: 5 }, 'concurrency "ttl" is not an option: it has max, lease'],
  ])('is refused for %j', (options, message) => {
    expect(() => concurrency(options as never)).toThrow(message)
  })
})

describe('waiting', () => {
  test('is first come, first served; a place is handed over, and a newcomer does not overtake', async () => {
    const limiter = createLimiter(places(1))
    const held = limiter.consume('key')
    const order: string[] = []
    const noted = async (name: string) => {
      const permit = await limiter.acquire('key')
      order.push(name)
      return permit
    }
    const waits = ['A', 'B', 'C'].map((name) => noted(name))
    await turn()
    expect(limiter.waiting('key')).toBe(3)
    held.release()
    // In the same turn as the release: the place is A's already.
    expect(limiter.consume('key').allowed).toBe(false)
    const late = noted('D')
    for (const wait of [...waits, late]) (await wait).release()
    expect(order).toEqual(['A', 'B', 'C', 'D'])
    expect(limiter.inflight()).toBe(0)
  })

  test('for a large weight is not overtaken by small ones that would fit', async () => {
    const limiter = createLimiter(places(4))
    const held = [limiter.consume('key', 2), limiter.consume('key', 2)]
    const large = limiter.acquire('key', { cost: 4 })
    const small = limiter.acquire('key', { cost: 1 })
    const states = watched([large, small])
    held[0]?.release()
    await turn()
    expect(limiter.consume('key').allowed).toBe(false)
    expect(states).toEqual(['waits', 'waits'])
    held[1]?.release()
    ;(await large).release()
    ;(await small).release()
    expect(limiter.peek('key').remaining).toBe(4)
  })

  test('ends at its deadline, at the abort of a signal, and where too many wait; the line goes on', async () => {
    const clock = fakeClock(START_MS)
    const limiter = createLimiter(places(1), { clock, maxQueue: 3 })
    const held = limiter.consume('key')
    const controller = new AbortController()
    const waits = [
      limiter.acquire('key', { timeoutMs: 100 }),
      limiter.acquire('key', { signal: controller.signal }),
      limiter.acquire('key'),
      limiter.acquire('key'),
    ]
    const states = watched(waits)
    await turn()
    expect(states).toEqual(['waits', 'waits', 'waits', 'QUEUE_FULL'])
    clock.advanceMs(100)
    controller.abort(new SluiceError('CLOSED', 'given up'))
    await turn()
    expect(states).toEqual(['TIMEOUT', 'CLOSED', 'waits', 'QUEUE_FULL'])
    held.release()
    ;(await (waits[2] as (typeof waits)[0])).release()
    expect(limiter.peek('key').remaining).toBe(1)
    expect(clock.timers).toBe(0)
  })

  test('leaves nobody stuck when the numbers change: more places serve more, and a weight above all of them is refused', async () => {
    const limiter = createLimiter(places(3))
    const held = Array.from({ length: 3 }, () => limiter.consume('key'))
    const waits = [limiter.acquire('key', { cost: 3 }), limiter.acquire('key'), limiter.acquire('key')]
    const states = watched(waits)
    await turn()
    limiter.update(places(2))
    await turn()
    expect(states).toEqual(['IMPOSSIBLE', 'waits', 'waits'])
    // Nobody was put out: two have to go before the next one comes.
    expect(held.every((permit) => permit.held)).toBe(true)
    held[0]?.release()
    await turn()
    expect(states).toEqual(['IMPOSSIBLE', 'waits', 'waits'])
    held[1]?.release()
    await turn()
    expect(states).toEqual(['IMPOSSIBLE', 'has it', 'waits'])
    limiter.update(places(3))
    await turn()
    expect(states).toEqual(['IMPOSSIBLE', 'has it', 'has it'])
  })

  test('ends with CLOSED when the limiter is closed, and permits are released after that all the same', async () => {
    const store = memoryStore()
    const limiter = createLimiter(places(1), { name: 'jobs', store })
    const held = limiter.consume('key')
    const wait = limiter.acquire('key')
    limiter.close()
    await expect(wait).rejects.toMatchObject({ code: 'CLOSED' })
    held.release()
    expect(createLimiter(places(1), { name: 'jobs', store }).peek('key').remaining).toBe(1)
  })

  test('among limits with keys of their own is told of every release', async () => {
    const limiter = createLimiter({ user: places(1), tenant: places(2) })
    const held = [limiter.consume({ user: 'a', tenant: 't' }), limiter.consume({ user: 'b', tenant: 't' })]
    const wait = limiter.acquire({ user: 'c', tenant: 't' })
    held[0]?.release()
    const permit = await wait
    expect(limiter.peek({ user: 'd', tenant: 't' }).parts.tenant.remaining).toBe(0)
    permit.release()
    held[1]?.release()
    expect(limiter.peek({ user: 'a', tenant: 't' }, 0).parts).toMatchObject({ user: { remaining: 1 }, tenant: { remaining: 2 } })
  })

  test('with keys of its own is told of a release by one key for all', async () => {
    const limiter = createLimiter({ user: places(1), tenant: places(2) })
    const held = limiter.consume('a')
    const states = watched([limiter.acquire({ user: 'a', tenant: 't' }, { timeoutMs: 60_000 })])
    await turn()
    held.release()
    await turn()
    expect(states).toEqual(['has it'])
  })

  test('behind a caller of another plan goes on when that one leaves the line', async () => {
    const limiter = createLimiter(places(2), { plans: { other: places(2) } })
    limiter.consume('key')
    const { signal, abort } = abortable()
    const states = watched([limiter.acquire('key', { cost: 2, signal }), limiter.acquire('key', { plan: 'other' })])
    await turn()
    expect(states).toEqual(['waits', 'waits'])
    abort()
    await turn()
    expect(states).toEqual(['LEFT', 'has it'])
  })

  test('behind a caller of another plan goes on when that one is served, whichever queue is told first', async () => {
    const limiter = createLimiter(places(3), { plans: { other: places(3) } })
    const held = limiter.consume('key', 3)
    const { signal, abort } = abortable()
    // The first to wait at all decides which queue is told first.
    watched([limiter.acquire('key', { plan: 'other', signal })])
    await turn()
    abort()
    await turn()
    const states = watched([limiter.acquire('key', { cost: 2 }), limiter.acquire('key', { plan: 'other' })])
    await turn()
    held.release()
    await turn()
    expect(states).toEqual(['has it', 'has it'])
  })

  test('for what a limiter of the same name holds in the same memory is told of its release', async () => {
    const options = { name: 'jobs', store: memoryStore() }
    const before = createLimiter(places(2), options)
    const held = before.consume('key')
    before.close()
    const limiter = createLimiter(places(2), options)
    const other = createLimiter(places(2), options)
    const { signal, abort } = abortable()
    const states = watched([limiter.acquire('key', { cost: 2, signal }), other.acquire('key', { timeoutMs: 60_000 })])
    await turn()
    expect(states).toEqual(['waits', 'waits'])
    abort()
    await turn()
    expect(states).toEqual(['LEFT', 'has it'])
    const last = watched([limiter.acquire('key')])
    await turn()
    held.release()
    await turn()
    expect(last).toEqual(['has it'])
  })

  test('for a key that is reset together with another goes on', async () => {
    const limiter = createLimiter({ user: places(5), tenant: places(1) })
    limiter.consume({ user: 'a', tenant: 't' })
    const states = watched([limiter.acquire({ user: 'b', tenant: 't' })])
    await turn()
    limiter.reset({ user: 'a', tenant: 't' })
    await turn()
    expect(states).toEqual(['has it'])
  })

  test('costs nobody who aborts: 20,000 leave one signal, and nothing stays behind', async () => {
    const limiter = createLimiter(places(1), { maxQueue: 20_000 })
    const held = limiter.consume('key')
    const controller = new AbortController()
    const waits = Array.from({ length: 20_000 }, () => limiter.acquire('key', { signal: controller.signal }).catch(() => 'left'))
    await turn()
    controller.abort()
    expect(new Set(await Promise.all(waits))).toEqual(new Set(['left']))
    expect(limiter.waiting()).toBe(0)
    held.release()
    expect(limiter.consume('key').allowed).toBe(true)
  })
})

describe('run and wrap', () => {
  test('hold their place until the promise has settled, whatever was aborted meanwhile (p-queue frees it at the timeout)', async () => {
    const limiter = createLimiter(places(1))
    let end: (value: string) => void = () => undefined
    const controller = new AbortController()
    const running = limiter.run('key', () => new Promise<string>((resolve) => (end = resolve)), { signal: controller.signal })
    await turn()
    controller.abort()
    await turn()
    expect(limiter.inflight('key')).toBe(1)
    expect(limiter.consume('key').allowed).toBe(false)
    end('done')
    expect(await running).toBe('done')
    expect(limiter.inflight('key')).toBe(0)
  })

  test('release when the function throws, at once or later', async () => {
    const limiter = createLimiter(places(1))
    const thrown = () => {
      throw new Error('at once')
    }
    await expect(limiter.run('key', thrown)).rejects.toThrow('at once')
    await expect(limiter.run('key', () => Promise.reject(new Error('later')))).rejects.toThrow('later')
    expect(limiter.inflight()).toBe(0)
  })

  test('release what throws at once before they return, and hand the place on, whoever throws', async () => {
    const limiter = createLimiter(places(1))
    const thrown = () => {
      throw new Error('at once')
    }
    const failed = limiter.run('key', thrown)
    expect(limiter.inflight('key')).toBe(0)
    await expect(failed).rejects.toThrow('at once')
    const later = () => Promise.reject(new Error('later'))
    const jobs = [later, thrown, later, thrown].map((job) => limiter.run('key', job))
    const ended = await Promise.allSettled(jobs)
    expect(ended.map((end) => `${(end as PromiseRejectedResult).reason}`)).toEqual([
      'Error: later',
      'Error: at once',
      'Error: later',
      'Error: at once',
    ])
    expect([limiter.inflight(), limiter.waiting()]).toEqual([0, 0])
  })

  test('take a result, a promise and a thenable alike, at once and after a wait', async () => {
    const limiter = createLimiter(places(1))
    // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested
    const thenable = { then: (onDone: (value: string) => void) => onDone('thenable') }
    const jobs = [() => 'value', async () => 'promise', () => thenable]
    for (const job of jobs) expect(typeof (await limiter.run<unknown>('key', job))).toBe('string')
    expect(await Promise.all([...jobs, ...jobs].map((job) => limiter.run<unknown>('key', job)))).toEqual([
      'value',
      'promise',
      'thenable',
      'value',
      'promise',
      'thenable',
    ])
    expect(limiter.inflight()).toBe(0)
  })

  test('at a store that answers later end when the release was answered, however the work went', async () => {
    const memory = memoryStore()
    const log: string[] = []
    const apply = async (steps: readonly Step[]) => {
      for (const step of steps) memory.open(step.scope, () => START_MS * 1000).apply(step, true)
      await turn()
      if (steps.some(({ op }) => op === 'give')) log.push('released')
    }
    const limiter = createLimiter(places(1, '30s'), { name: 'jobs', store: asyncStore({ shared: true, apply }) })
    const jobs = [
      () => 'done',
      () => Promise.reject(new Error('later')),
      () => {
        throw new Error('at once')
      },
    ]
    for (const job of jobs) log.push(await limiter.run<unknown>('key', job).then(String, String))
    expect(log).toEqual(['released', 'done', 'released', 'Error: later', 'released', 'Error: at once'])
    limiter.close()
  })

  test('never let more run than there are places, with weights, many keys and failures', async () => {
    const limiter = createLimiter(places(3))
    const running = new Map<string, number>()
    let most = 0
    const job = limiter.wrap(
      (key: string) => key,
      async (key: string, weight: number) => {
        running.set(key, (running.get(key) ?? 0) + weight)
        most = Math.max(most, running.get(key) as number)
        await turn()
        running.set(key, (running.get(key) as number) - weight)
        if (weight === 2) throw new Error('failed')
        return weight
      },
      { cost: (_key, weight) => weight },
    )
    const jobs = Array.from({ length: 300 }, (_, k) => job(`key ${k % 4}`, 1 + (k % 3)))
    const settled = await Promise.allSettled(jobs)
    expect(settled.filter(({ status }) => status === 'rejected')).toHaveLength(100)
    expect(most).toBe(3)
    expect(limiter.inflight()).toBe(0)
  })
})

describe('with a lease, in memory as on Redis', () => {
  test('a holder renews it every third, and a place that nobody renews is free when it has run out', () => {
    const clock = fakeClock(START_MS)
    const store = memoryStore()
    const options = { name: 'jobs', store, clock }
    const limiter = createLimiter(places(1, '30s'), options)
    const permit = limiter.consume('key')
    expect(limiter.consume('key').retryAfterMs).toBe(30_000)
    clock.advanceMs(300_000)
    expect([permit.held, permit.signal.aborted]).toEqual([true, false])
    expect(limiter.consume('key').allowed).toBe(false)
    permit.release()
    clock.advanceMs(60_000)
    expect(clock.timers).toBeLessThanOrEqual(1)
  })

  test('a holder keeps its place when the lease becomes shorter', () => {
    const clock = fakeClock(START_MS)
    const limiter = createLimiter(concurrency({ max: 1, lease: '30s' }), { clock })
    const permit = limiter.consume('key')
    const { signal } = permit
    limiter.update(concurrency({ max: 1, lease: '3s' }))
    for (let k = 0; k < 60; k++) {
      clock.advanceMs(1_000)
      expect([permit.held, signal.aborted]).toEqual([true, false])
    }
    expect(limiter.consume('key').allowed).toBe(false)
  })

  test('a holder that stood still for longer than its lease is told before it goes on', () => {
    const clock = fakeClock(START_MS)
    let stalled = 0
    // Time passes, and no timer rings: the event loop stands still.
    const limiter = createLimiter(places(1, '30s'), { clock: { nowUs: () => clock.nowUs() + stalled, setTimer: clock.setTimer } })
    const [permit, other] = [limiter.consume('key'), limiter.consume('other')]
    const signal = other.signal
    stalled = 29_700_000
    expect(permit.held).toBe(false)
    expect(permit.signal.reason).toMatchObject({ code: 'LOST' })
    clock.advanceMs(1)
    clock.advanceMs(10_000)
    expect(signal.aborted).toBe(true)
    expect(limiter.inflight()).toBe(0)
    permit.release()
    expect(limiter.consume('key').allowed).toBe(true)
  })

  test('one that is released while the loss of the data is found out is not counted again', async () => {
    const clock = fakeClock(START_MS)
    let memory = memoryStore()
    const apply = async (steps: readonly Step[]) => {
      for (const step of steps) memory.open(step.scope, clock.nowUs).apply(step, true)
    }
    const limiter = createLimiter(concurrency({ max: 4, lease: '30s' }), {
      name: 'jobs',
      store: asyncStore({ shared: true, apply }),
      clock,
    })
    const [kept, released] = [await limiter.consume('key'), await limiter.consume('key')]
    memory = memoryStore()
    // Both are renewed in one step, which finds none of them; then each by itself.
    clock.advanceMs(10_000)
    await released.release()
    for (let k = 0; k < 5; k++) await turn()
    expect([kept.held, (await limiter.peek('key')).remaining]).toEqual([true, 3])
    limiter.close()
  })

  test('a lost permit that is released late takes nothing from later holders', () => {
    const clock = fakeClock(START_MS)
    let stalled = 0
    const limiter = createLimiter(places(1, '30s'), { clock: { nowUs: () => clock.nowUs() + stalled, setTimer: clock.setTimer } })
    const permit = limiter.consume('key')
    stalled = 31_000_000
    const next = limiter.consume('key')
    expect(next.allowed).toBe(true)
    expect(next.token).toBeGreaterThan(permit.token)
    permit.release()
    expect(limiter.consume('key').allowed).toBe(false)
  })
})

describe('faults of other libraries', () => {
  test('async-sema and async-mutex: a release too many raises the limit for ever', () => {
    const limiter = createLimiter(places(1))
    const permit = limiter.consume('key')
    for (let k = 0; k < 5; k++) permit.release()
    limiter.consume('key', 9).release()
    expect([limiter.consume('key').allowed, limiter.consume('key').allowed]).toEqual([true, false])
  })

  test('async-mutex: a weight above the value waits for ever and blocks the line', async () => {
    const limiter = createLimiter(places(1))
    limiter.consume('key')
    await expect(limiter.acquire('key', { cost: 2 })).rejects.toMatchObject({ code: 'IMPOSSIBLE' })
    expect(limiter.waiting()).toBe(0)
  })

  test('opossum: the timer of a waiter that was served removes another one', async () => {
    const clock = fakeClock(START_MS)
    const limiter = createLimiter(places(1), { clock })
    const held = limiter.consume('key')
    const [served, other] = [limiter.acquire('key', { timeoutMs: 10 }), limiter.acquire('key')]
    const states = watched([served, other])
    held.release()
    const permit = await served
    clock.advanceMs(100)
    await turn()
    expect(states).toEqual(['has it', 'waits'])
    permit.release()
    expect((await other).held).toBe(true)
  })

  test('Failsafe: a wait that timed out stays in line and swallows the next permit', async () => {
    const clock = fakeClock(START_MS)
    const limiter = createLimiter(places(1), { clock })
    const held = limiter.consume('key')
    const late = limiter.acquire('key', { timeoutMs: 10 })
    clock.advanceMs(10)
    await expect(late).rejects.toMatchObject({ code: 'TIMEOUT' })
    held.release()
    expect(limiter.consume('key').allowed).toBe(true)
  })

  test('p-limit: promises of calls that are cleared never settle', async () => {
    const limiter = createLimiter(places(1))
    limiter.consume('key')
    const controller = new AbortController()
    const calls = [1, 2, 3].map(() => limiter.run('key', () => 1, { signal: controller.signal }))
    controller.abort(new SluiceError('CLOSED', 'cleared'))
    expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  })

  test('bottleneck: the running count leaks when a job expires', async () => {
    const clock = fakeClock(START_MS)
    const limiter = createLimiter(places(2, '30s'), { clock: { nowUs: () => clock.nowUs() + stalledUs, setTimer: clock.setTimer } })
    let stalledUs = 0
    const lost = [limiter.consume('key'), limiter.consume('key')]
    stalledUs = 31_000_000
    clock.advanceMs(30_000)
    expect([limiter.inflight('key'), limiter.peek('key').remaining]).toEqual([0, 2])
    for (const permit of lost) permit.release()
    expect([limiter.inflight('key'), limiter.peek('key').remaining]).toEqual([0, 2])
  })
})

/**
 * A store that answers at once, and fails while it is told to: as SQLite does whose file is locked.
 */
function failingStore() {
  const memory = memoryStore()
  const store = {
    isDown: false,
    mode: 'sync' as const,
    shared: false,
    open: ((scope, nowUs) => {
      const states = memory.open(scope, nowUs)
      const apply: typeof states.apply = (step, isTold) => {
        if (store.isDown) throw new SluiceError('STORE', 'the file is locked')
        return states.apply(step, isTold)
      }
      return { apply, close: () => states.close() }
    }) as typeof memory.open,
  }
  return store
}

test('a lease whose renewal fails at a store that answers at once is renewed the next time, and nothing is thrown in a timer', () => {
  const clock = fakeClock(START_MS)
  const store = failingStore()
  const limiter = createLimiter(places(1, '30s'), { clock, name: 'api', store })
  const permit = limiter.consume('key')
  store.isDown = true
  clock.advanceMs(15_000)
  store.isDown = false
  clock.advanceMs(30_000)
  expect([permit.held, limiter.consume('key').allowed]).toEqual([true, false])
  store.isDown = true
  clock.advanceMs(30_000)
  expect([permit.held, limiter.inflight('key')]).toEqual([false, 0])
})

test('a release that fails at a store that answers at once is sent again, and what ran keeps its result', async () => {
  const clock = fakeClock(START_MS)
  const store = failingStore()
  const limiter = createLimiter(places(1, '30s'), { clock, name: 'api', store })
  const work = async () => {
    store.isDown = true
    return 'done'
  }
  expect(await limiter.run('key', work)).toBe('done')
  store.isDown = false
  expect(limiter.consume('key').allowed).toBe(false)
  clock.advanceMs(1_000)
  expect(limiter.consume('key').allowed).toBe(true)
})

test('a release that fails where nobody sends it again is the error of what ran, however that went', async () => {
  const store = failingStore()
  const limiter = createLimiter(places(4), { name: 'api', store })
  const done = async () => {
    store.isDown = true
  }
  const thrown = () => {
    store.isDown = true
    throw new Error('at once')
  }
  const jobs = [done, async () => thrown(), thrown]
  for (const job of jobs) {
    await expect(limiter.run('key', job)).rejects.toThrow('the file is locked')
    store.isDown = false
  }
  expect(limiter.inflight()).toBe(0)
})

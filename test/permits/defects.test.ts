/**
 * Defects that other libraries have or had, in one process and across processes, each by the name
 * of the library: what went wrong there does not here. Some more are in permits.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { concurrency, createLimiter, gcra, memoryStore } from '../../src/index.ts'
import { asyncStore } from '../../src/stores/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { Step } from '../../src/stores/step.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { until } from '../support/redis-servers.ts'
import { noUnhandledRejections } from '../waiting/support.ts'

noUnhandledRejections()

/** Lets everything run that needs no time. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** The names of those who came in, in their order; of those who did not, with the code. */
function comings() {
  const order: string[] = []
  const note = async (name: string, wait: Promise<{ release(): unknown }>) => {
    const permit = await wait.catch(({ code }) => void order.push(`${name} ${code}`))
    if (permit) order.push(name)
    return permit
  }
  return { order, note }
}

describe('in one process', () => {
  const places = (max: number) => concurrency({ max })

  test('p-queue: aborting a job that waits hangs the queue', async () => {
    const limiter = createLimiter(places(1))
    const held = limiter.consume('key')
    const controllers = Array.from({ length: 3 }, () => new AbortController())
    const waits = controllers.map(({ signal }) => limiter.run('key', () => 'ran', { signal }).catch(() => 'left'))
    const last = limiter.run('key', () => 'ran')
    await turn()
    controllers[1]?.abort()
    controllers[0]?.abort()
    held.release()
    expect(await Promise.all([...waits, last])).toEqual(['left', 'left', 'ran', 'ran'])
    expect([limiter.waiting(), limiter.inflight()]).toEqual([0, 0])
  })

  test('p-queue: a caller is starved by those who come after it', async () => {
    const limiter = createLimiter(places(2))
    const { order, note } = comings()
    const held = limiter.consume('key')
    const heavy = note('heavy', limiter.acquire('key', { cost: 2 }))
    const light = Array.from({ length: 50 }, (_, k) => note(`light ${k}`, limiter.acquire('key')))
    await turn()
    expect(order).toEqual([])
    held.release()
    ;(await heavy)?.release()
    for (const wait of light) (await wait)?.release()
    expect(order[0]).toBe('heavy')
  })

  test('cockatiel: a newcomer barges in, and a call that was accepted into the queue is rejected', async () => {
    const limiter = createLimiter(places(1), { maxQueue: 1 })
    const { order, note } = comings()
    const held = limiter.consume('key')
    const accepted = note('accepted', limiter.acquire('key'))
    await turn()
    held.release()
    // In the turn of the release, and in each microtask after it.
    const newcomers: Promise<unknown>[] = []
    for (let k = 0; k < 10; k++) {
      expect(limiter.consume('key').allowed).toBe(false)
      newcomers.push(note(`newcomer ${k}`, limiter.acquire('key')))
      await undefined
    }
    const permit = await accepted
    expect(order[0]).not.toMatch(/^newcomer \d$/)
    expect(order.filter((name) => !name.includes('QUEUE_FULL'))).toEqual(['accepted'])
    permit?.release()
    const served = (await Promise.all(newcomers)).filter((each) => each !== undefined)
    expect(served).toHaveLength(1)
  })

  test('cockatiel: a waiter that was aborted keeps its place in the queue until it is first', async () => {
    const limiter = createLimiter(places(1), { maxQueue: 2 })
    limiter.consume('key')
    const { order, note } = comings()
    const controller = new AbortController()
    void note('first', limiter.acquire('key'))
    void note('leaving', limiter.acquire('key', { signal: controller.signal }))
    await turn()
    controller.abort(Object.assign(new Error('left'), { code: 'LEFT' }))
    void note('next', limiter.acquire('key'))
    await turn()
    expect([order, limiter.waiting('key')]).toEqual([['leaving LEFT'], 2])
    limiter.close()
  })

  test('resilience4j: lowering the limit blocks the caller until calls have ended', async () => {
    const limiter = createLimiter(places(3))
    const held = [1, 2, 3].map(() => limiter.consume('key'))
    // It returns, though all are held; nobody is put out, and the new number holds from now on.
    limiter.update(places(1))
    expect(held.map((permit) => permit.held)).toEqual([true, true, true])
    held[0]?.release()
    held[1]?.release()
    expect(limiter.consume('key').allowed).toBe(false)
    held[2]?.release()
    expect([limiter.consume('key').allowed, limiter.consume('key').allowed]).toEqual([true, false])
  })

  test('resilience4j: a call that completes twice raises the limit', async () => {
    const limiter = createLimiter(places(1))
    await limiter.run('key', (permit) => permit.release())
    const wrapped = limiter.wrap('key', (fail: boolean) => (fail ? Promise.reject(new Error('failed')) : Promise.resolve(1)))
    await wrapped(false)
    await wrapped(true).catch(() => undefined)
    expect([limiter.consume('key').allowed, limiter.consume('key').allowed]).toEqual([true, false])
  })

  test('.NET: a cancellation and a release at the same time lock each other', async () => {
    const limiter = createLimiter(places(1))
    for (const isAbortFirst of [true, false]) {
      const held = limiter.consume('key')
      const controller = new AbortController()
      // What is told of the abort takes and releases in turn.
      controller.signal.addEventListener('abort', () => limiter.consume('key').release())
      const leaving = limiter.acquire('key', { signal: controller.signal }).then(
        (permit) => permit.release(),
        () => undefined,
      )
      const next = limiter.acquire('key')
      await turn()
      if (isAbortFirst) controller.abort()
      held.release()
      if (!isAbortFirst) controller.abort()
      await leaving
      ;(await next).release()
      expect([limiter.inflight(), limiter.waiting()]).toEqual([0, 0])
    }
  })

  test('.NET: a partition is disposed of while it is in use, or never', () => {
    const clock = fakeClock(1_700_000_000_000)
    const limiter = createLimiter(concurrency({ max: 1, lease: '1s' }), { store: memoryStore({ maxKeys: 10 }), clock })
    const held = limiter.consume('held')
    // Ten times as many keys as there is room for.
    for (let k = 0; k < 100; k++) {
      const permit = limiter.consume(`key ${k}`)
      expect(permit.allowed).toBe(true)
      permit.release()
      clock.advanceMs(10)
      expect([held.held, limiter.consume('held').allowed]).toEqual([true, false])
    }
  })

  test('Netflix: guaranteed shares come on top of the total', () => {
    const plans = { live: places(10), batch: places(3) }
    const limiter = createLimiter(places(7), { plans })
    const taken = { batch: 0, base: 0, live: 0 }
    for (let k = 0; k < 20; k++) {
      if (limiter.consume('key', 1, { plan: 'batch' }).allowed) taken.batch += 1
      if (limiter.consume('key').allowed) taken.base += 1
      if (limiter.consume('key', 1, { plan: 'live' }).allowed) taken.live += 1
    }
    expect(taken.batch + taken.base + taken.live).toBe(10)
    expect([limiter.inflight('key'), taken.batch <= 3]).toEqual([10, true])
  })

  test('Netflix: one waiter is woken by a release, and none when the limit rises', async () => {
    const limiter = createLimiter(places(2))
    const held = limiter.consume('key', 2)
    const { order, note } = comings()
    for (const name of ['a', 'b', 'c', 'd', 'e']) void note(name, limiter.acquire('key'))
    await turn()
    held.release()
    await turn()
    expect(order).toEqual(['a', 'b'])
    limiter.update(places(4))
    await turn()
    expect(order).toEqual(['a', 'b', 'c', 'd'])
    limiter.close()
  })

  test('Netflix: callers that look and then take run more than there are places', async () => {
    const limiter = createLimiter(places(3))
    let [running, most] = [0, 0]
    const job = async () => {
      most = Math.max(most, ++running)
      await turn()
      running -= 1
    }
    await Promise.all(Array.from({ length: 60 }, () => limiter.run('key', job)))
    expect(most).toBe(3)
  })
})

describe('across processes', () => {
  let clients: readonly [TestRedis, TestRedis]
  let names = 0

  beforeAll(async () => {
    clients = [await connectRedis(), await connectRedis()]
  })

  afterAll(() => {
    for (const client of clients) client.close()
  })

  const places = (max: number, leaseMs: number) => concurrency({ max, lease: `${leaseMs}ms` })
  const keyOf = ({ name }: { readonly name: string }) => `sluice:${name}:{key}`

  /** Limiters of one name on connections of their own: to Redis they are two processes. */
  function two(limits: readonly [ReturnType<typeof places>, ReturnType<typeof places>]) {
    const name = `defects-${process.pid}-${names++}`
    const made = clients.map((client, k) =>
      createLimiter(limits[k] as ReturnType<typeof places>, { name, store: redisStore(client), storeTimeoutMs: Number.POSITIVE_INFINITY }),
    )
    return made as [(typeof made)[0], (typeof made)[0]]
  }

  const alike = (max: number, lease = 30_000) => two([places(max, lease), places(max, lease)])

  test('redis-semaphore: a caller with a shorter lease throws out every holder, and drops the key', async () => {
    const [ours, theirs] = two([places(2, 60_000), places(2, 100)])
    const held = await ours.consume('key')
    const short = await theirs.consume('key')
    await short.release()
    expect(Number(await clients[0].send(['PTTL', keyOf(ours)]))).toBeGreaterThan(50_000)
    expect([held.held, (await theirs.peek('key')).remaining]).toEqual([true, 1])
    await held.release()
  })

  test('redis-semaphore: one refresh that fails loses the lease, and its rejection is unhandled', async () => {
    const clock = fakeClock(1_700_000_000_000)
    const memory = memoryStore()
    let renewals = 0
    const apply = async (steps: readonly Step[]) => {
      for (const step of steps) {
        if (step.op === 'renew' && ++renewals === 1) throw new Error('away')
        memory.open(step.scope, clock.nowUs).apply(step, true)
      }
    }
    const limiter = createLimiter(places(1, 30_000), { name: 'refresh', store: asyncStore({ shared: true, apply }), clock })
    const permit = await limiter.consume('key')
    for (let k = 0; k < 60; k++) {
      clock.advanceMs(1_000)
      await turn()
    }
    expect([permit.held, renewals > 3]).toEqual([true, true])
    await permit.release()
    limiter.close()
  })

  test('redis-semaphore: nothing tells a late holder from the present one', async () => {
    const [ours, theirs] = alike(1)
    const tokens: number[] = []
    for (let k = 0; k < 20; k++) {
      const permit = await (k % 2 === 0 ? ours : theirs).acquire('key')
      tokens.push(permit.token)
      await permit.release()
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b))
  })

  test('Redisson: permits are not renewed; Sidekiq: a call longer than its lock runs beside another', async () => {
    const [ours, theirs] = alike(1, 4_000)
    let [running, most] = [0, 0]
    const job = async () => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setTimeout(resolve, 5_000))
      running -= 1
    }
    await Promise.all([ours.run('key', job), theirs.run('key', job)])
    expect(most).toBe(1)
  })

  test('Redisson: a message that was missed hangs a waiter, and one for several permits waits although they are free', async () => {
    const [ours, theirs] = alike(3)
    const held = [await ours.consume('key', 2), await ours.consume('key')]
    const waiting = theirs.acquire('key', { cost: 3 })
    await held[0]?.release()
    await held[1]?.release()
    const permit = await waiting
    // Long before a lease of 30 s runs out.
    expect(permit.waitedMs).toBeLessThan(15_000)
    await permit.release()
  })

  test('Redisson: the count drifts from the set of leases, and keys never expire', async () => {
    const [ours, theirs] = alike(5)
    const held: { release(): unknown }[] = []
    for (let k = 0; k < 200; k++) {
      const limiter = k % 3 === 0 ? ours : theirs
      const permit = await limiter.consume('key', 1 + (k % 2))
      if (permit.allowed) held.push(permit)
      if (k % 2 === 0) await Promise.all([held.shift()?.release(), permit.release()])
      const ttlMs = Number(await clients[0].send(['PTTL', keyOf(ours)]))
      expect(ttlMs === -2 || ttlMs > 0).toBe(true)
    }
    await Promise.all(held.map((permit) => permit.release()))
    expect((await ours.peek('key')).remaining).toBe(5)
    expect(await clients[0].send(['EXISTS', keyOf(ours)])).toBe(0)
  })

  test('Redisson, bottleneck: the places of a process that crashed count for ever', async () => {
    const crashing = await connectRedis()
    const [ours] = alike(1)
    const patient = { storeTimeoutMs: Number.POSITIVE_INFINITY }
    const lost = createLimiter(places(1, 300), { name: ours.name, store: redisStore(crashing), ...patient })
    expect((await lost.consume('key')).allowed).toBe(true)
    crashing.close()
    const permit = await ours.acquire('key', { timeoutMs: 20_000 })
    expect(permit.held).toBe(true)
    await permit.release()
    lost.close()
  })

  test('bottleneck: its keys lie in several slots of a cluster', async () => {
    const [ours] = alike(2)
    const permit = await ours.consume('key')
    const keys = (await clients[0].send(['KEYS', `sluice:${ours.name}:*`])) as string[]
    expect(keys).toEqual([keyOf(ours)])
    await permit.release()
  })

  test('Sidekiq, BullMQ: a release wakes all who wait; here it wakes the first in line', async () => {
    const [ours, theirs] = alike(1)
    const held = await ours.consume('key')
    const { order, note } = comings()
    // One stands in line when Redis has it written down: what was asked first may arrive second.
    const bytes = async () => Number(await clients[0].send(['STRLEN', keyOf(ours)]))
    const standing = async (wait: () => ReturnType<typeof note>) => {
      const before = await bytes()
      const waits = wait()
      await until(async () => (await bytes()) > before)
      return [waits]
    }
    const waits = await standing(() => note('first', ours.acquire('key')))
    waits.push(...(await standing(() => note('other 0', theirs.acquire('key')))))
    for (let k = 1; k < 9; k++) waits.push(note(`other ${k}`, theirs.acquire('key')))
    await held.release()
    const first = await waits[0]
    for (let k = 0; k < 20; k++) expect((await theirs.consume('key')).allowed).toBe(false)
    expect(order).toEqual(['first'])
    await first?.release()
    for (const wait of waits.slice(1)) await (await wait)?.release()
    expect(order).toHaveLength(10)
  })

  test('Sidekiq: an empty list is taken for none, and the size stays 0', async () => {
    const [ours, theirs] = alike(2)
    for (let k = 0; k < 5; k++) {
      const all = [await ours.consume('key'), await theirs.consume('key')]
      expect(all.map(({ allowed }) => allowed)).toEqual([true, true])
      expect((await theirs.consume('key')).allowed).toBe(false)
      await Promise.all(all.map((permit) => permit.release()))
      expect((await ours.peek('key')).remaining).toBe(2)
    }
  })

  test('Sidekiq: a limit that was changed goes back to what it was', async () => {
    const [ours, theirs] = alike(2)
    ours.update(places(4, 30_000))
    const held = [await theirs.consume('key'), await theirs.consume('key')]
    expect((await theirs.consume('key')).allowed).toBe(false)
    held.push(await ours.consume('key'), await ours.consume('key'))
    expect(held.map(({ allowed }) => allowed)).toEqual([true, true, true, true])
    expect([(await ours.peek('key')).limit, (await theirs.peek('key')).limit]).toEqual([4, 2])
    await Promise.all(held.map((permit) => permit.release()))
  })

  test('Stripe: what has run out is swept by a command of its own, and two calls may have one name', async () => {
    const [ours] = alike(1_000)
    const permits = await Promise.all(Array.from({ length: 500 }, () => ours.consume('key')))
    expect(new Set(permits.map(({ token }) => token)).size).toBe(500)
    await Promise.all(permits.map((permit) => permit.release()))
    // A lease that has run out is not counted by the very step that decides.
    const clock = fakeClock(Date.now())
    const timed = createLimiter(places(1, 1_000), { name: `${ours.name}-timed`, store: redisStore(clients[0]), clock })
    const lapsed = createLimiter(places(1, 1_000), {
      name: timed.name,
      store: redisStore(clients[1]),
      clock: fakeClock(Date.now() + 5_000),
    })
    await timed.consume('key')
    expect((await lapsed.consume('key')).allowed).toBe(true)
    timed.close()
    lapsed.close()
  })

  test('adaptive-concurrency: a call that its rate refuses fills the inner limit for a round trip', async () => {
    const limits = { rate: gcra({ rate: '1/h', burst: 1 }), inflight: places(1, 30_000) }
    const options = { name: `defects-${process.pid}-${names++}`, store: redisStore(clients[0], { denialCache: false }) }
    const limiter = createLimiter(limits, options)
    await limiter.charge('key', { rate: 1, inflight: 0 })
    // All travel together: those that the rate refuses, and one that asks for a place alone.
    const refused = Array.from({ length: 20 }, () => limiter.consume('key'))
    const alone = limiter.consume('key', { rate: 0, inflight: 1 })
    expect((await Promise.all(refused)).map(({ allowed, policy }) => allowed || policy)).toEqual(Array(20).fill('rate'))
    expect((await alone).allowed).toBe(true)
    await (await alone).release()
    limiter.close()
  })
})

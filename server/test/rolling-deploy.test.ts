/**
 * A rolling deploy: built copies of two versions of the service, with another `max`, lease and rate
 * for the same limiter, on one Redis. Permits are taken at one copy, renewed and released at
 * another; the new copy starts, the old one is stopped while its permits are held, and traffic goes
 * on. By the server's time no copy grants beyond its own `max`, and nothing is lost or stuck.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { heldAtGrant, holdsOf, mostHeld } from '../../test/permits/swept.ts'
import { type RedisServer, startServer, until } from '../../test/support/redis-servers.ts'
import { call } from './support/client.ts'
import { type ServiceProcess, startedProcess } from './support/process.ts'

const CALLERS = 10
/** How many grants there are in each part of the deploy at least. */
const GRANTS = 25
/** In which the old copy has to have some, too. */
const GRANTS_OF_OLD = 5

interface Version {
  readonly max: number
  readonly leaseS: number
  readonly rate: number
}

/** `left`: permits that nobody releases. */
const yaml = ({ max, leaseS, rate }: Version) => `limiters:
  jobs:
    limits:
      rate: { type: fixedWindow, limit: ${rate}, window: 366d, anchor: first }
      inflight: { type: concurrency, max: ${max}, lease: ${leaseS}s }
  left:
    limits: { type: concurrency, max: ${max}, lease: ${leaseS / 10}s }
`

let folder: string
let redis: RedisServer
let witness: ReturnType<typeof createClient>
let copies: ServiceProcess[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-rolling-'))
  redis = await startServer()
  witness = createClient({ socket: { host: redis.host, port: redis.port } })
  await witness.connect()
  copies = []
})

afterEach(async () => {
  for (const { process } of copies) process.kill('SIGKILL')
  witness.destroy()
  await redis.kill()
  rmSync(folder, { recursive: true })
})

async function started(version: Version): Promise<ServiceProcess> {
  const file = join(folder, `sluice-${copies.length}.yaml`)
  writeFileSync(file, yaml(version))
  const copy = await startedProcess(file, '--redis', `redis://127.0.0.1:${redis.port}`, '--drain', '500ms', '--grace', '1s')
  copies.push(copy)
  return copy
}

async function serverUs(): Promise<number> {
  const [seconds, micros] = (await witness.sendCommand(['TIME'])) as unknown as [string, string]
  return Number(seconds) * 1_000_000 + Number(micros)
}

async function post({ url }: ServiceProcess, path: string, body: object) {
  const { status, body: answer } = await call(url, 'POST', path, body)
  expect(status, JSON.stringify(answer)).toBe(200)
  return answer
}

async function remaining({ url }: ServiceProcess, limiter: string) {
  const { parts } = (await call(url, 'GET', `/v1/limiters/${limiter}/keys/k`)).body
  return Object.fromEntries(Object.entries(parts as Record<string, { remaining: number }>).map(([name, part]) => [name, part.remaining]))
}

interface Taken {
  readonly permit: string
  readonly token: number
}

/** Callers behind a balancer, which sends each call to another of the copies that take any. */
class Traffic {
  readonly notes: [token: number, us: number][] = []
  /** Of each token, which copy has granted it. */
  readonly grants = new Map<number, ServiceProcess>()
  /** The copies that the balancer knows. */
  to: readonly ServiceProcess[]
  #next = 0
  #isOver = false
  readonly #callers: Promise<unknown>

  constructor(to: readonly ServiceProcess[]) {
    this.to = to
    this.#callers = Promise.all(Array.from({ length: CALLERS }, (_, k) => this.#caller(k)))
  }

  /** Not the one before, if there are two. */
  get copy(): ServiceProcess {
    return this.to[this.#next++ % this.to.length] as ServiceProcess
  }

  grantsOf(copy: ServiceProcess): number {
    return [...this.grants.values()].filter((each) => each === copy).length
  }

  /** Fails as soon as a caller does. */
  async until(isSo: () => boolean): Promise<void> {
    await Promise.race([this.#callers, until(async () => isSo())])
  }

  end(): Promise<unknown> {
    this.#isOver = true
    return this.#callers
  }

  async take(): Promise<Taken> {
    const { copy } = this
    const { status, body } = await call(copy.url, 'POST', '/v1/acquire', { limiter: 'jobs', key: 'k', timeoutMs: 60_000 })
    // Who still waits at a copy that stops is told so, and asks another.
    if (status === 503 && body.code === 'CLOSED' && !this.to.includes(copy)) return this.take()
    expect({ status, ...body }).toMatchObject({ status: 200, allowed: true, degraded: false })
    const { permit, token } = body
    this.grants.set(token, copy)
    this.notes.push([token, token])
    return { permit, token }
  }

  /** Holds a permit until it is told to let go, renewed at any copy, and released at any. */
  async hold(taken: Taken, isOver: () => boolean): Promise<void> {
    do await this.renew(this.copy, taken)
    while (!isOver())
    await this.release(this.copy, taken)
  }

  /** It was held at that time, because it can be renewed after it. */
  async renew(copy: ServiceProcess, { permit, token }: Taken): Promise<void> {
    const us = await serverUs()
    expect(await post(copy, '/v1/renew', { permit })).toMatchObject({ renewed: true })
    this.notes.push([token, us])
  }

  async release(copy: ServiceProcess, { permit }: Taken): Promise<void> {
    expect(await post(copy, '/v1/release', { permit })).toMatchObject({ released: true })
  }

  async #caller(k: number): Promise<void> {
    for (let job = k; !this.#isOver; job++) {
      let rounds = 1 + (job % 3)
      await this.hold(await this.take(), () => --rounds === 0)
    }
  }
}

const LARGE: Version = { max: 5, leaseS: 20, rate: 1_000_000 }
const SMALL: Version = { max: 3, leaseS: 10, rate: 900_000 }

test.each([
  ['less', LARGE, SMALL],
  ['more', SMALL, LARGE],
])(
  'a deploy that allows %s at once, under traffic: no copy grants beyond its own numbers, and nothing is lost',
  async (_, before, after) => {
    const old = await started(before)
    const traffic = new Traffic([old])
    const { permit: left } = await post(old, '/v1/decide', { limiter: 'left', key: 'k' })
    await traffic.until(() => traffic.grantsOf(old) > GRANTS)
    // Held until long after the copy that has granted it was stopped.
    let isOver = false
    const lasting = traffic.hold(await traffic.take(), () => isOver)
    const next = await started(after)
    const ofOld = traffic.grantsOf(old)
    traffic.to = [old, next]
    await traffic.until(() => traffic.grantsOf(old) > ofOld + GRANTS_OF_OLD && traffic.grantsOf(next) > GRANTS)

    // Each renews by its own lease.
    const { permit } = await post(old, '/v1/decide', { limiter: 'jobs', key: 'renewed' })
    expect(await post(next, '/v1/renew', { permit })).toMatchObject({ renewed: true, leaseMs: after.leaseS * 1000 })
    expect(await post(old, '/v1/renew', { permit })).toMatchObject({ renewed: true, leaseMs: before.leaseS * 1000 })
    expect(await post(next, '/v1/release', { permit })).toMatchObject({ released: true })

    traffic.to = [next]
    old.process.kill('SIGTERM')
    expect(await old.ended).toEqual([0, null])
    const stoppedUs = await serverUs()
    const ofNext = traffic.grantsOf(next)
    await traffic.until(() => traffic.grantsOf(next) > ofNext + GRANTS)
    isOver = true
    await lasting
    const whenFreed = traffic.grantsOf(next)
    await traffic.until(() => traffic.grantsOf(next) > whenFreed + GRANTS)
    await traffic.end()
    // All places of the new numbers can be held at once, and no more.
    const all = await Promise.all(Array.from({ length: after.max }, () => traffic.take()))
    expect(await post(next, '/v1/decide', { limiter: 'jobs', key: 'k' })).toMatchObject({ allowed: false })
    await Promise.all(all.map((taken) => traffic.hold(taken, () => true)))

    const holds = holdsOf(traffic.notes)
    expect(holds.size).toBe(traffic.grants.size)
    expect(mostHeld(holds)).toBeLessThanOrEqual(Math.max(before.max, after.max))
    // Used belongs to the key, capacity to the caller.
    const beyond = [...traffic.grants].filter(([token, copy]) => heldAtGrant(holds, token) > (copy === old ? before : after).max)
    expect(beyond.map(([token]) => token)).toEqual([])
    expect([...traffic.grants].filter(([token, copy]) => token > stoppedUs && copy === old)).toEqual([])
    // Each grant was charged once, by whichever copy; nothing is held any more.
    expect(await remaining(next, 'jobs')).toEqual({ rate: after.rate - traffic.grants.size, inflight: after.max })
    // Whose holder was never heard of again is free after the lease that it was granted for.
    await until(async () => (await remaining(next, 'left')).default === after.max)
    expect(await post(next, '/v1/renew', { permit: left })).toMatchObject({ renewed: false })
    expect(await post(next, '/v1/release', { permit: left })).toMatchObject({ released: false })
    next.process.kill('SIGTERM')
    expect(await next.ended).toEqual([0, null])
    expect(copies.map(({ lines }) => lines.filter((line) => line.includes('"level":50')))).toEqual([[], []])
  },
)

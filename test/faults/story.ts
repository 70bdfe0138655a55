/**
 * One story for every fault: callers on several clients, under each failure policy, take from keys
 * of their own while the fault strikes; then it ends, and nobody is restarted. The most that they
 * may be given is stated beforehand: the sum of what the fault can make Redis forget and of what
 * the policy admits by itself.
 */
import { type AsyncStore, createLimiter, gcra, type Limiter, SluiceError, tokenBucket } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { FaultProxy } from '../support/fault-proxy.ts'
import type { ClientCase, Opened } from '../support/redis-clients.ts'
import { type RedisServer, until } from '../support/redis-servers.ts'
import { settling } from './watch.ts'

export const POLICIES = ['throw', 'allow', 'deny', 'local'] as const
export type Policy = (typeof POLICIES)[number]

/** What a key has; nothing comes back while a test lasts. */
export const CAPACITY = 60
/** A process that is on its own gives out a tenth. */
const LOCAL_SHARE = 0.1
const LOCAL_PERMITS = CAPACITY * LOCAL_SHARE
/** Generous, because the machine may be busy: a healthy Redis must not look ill. */
export const STORE_TIMEOUT_MS = 1_000

/**
 * Callers of one key: how many at a time, and how many calls each makes in a part of the story.
 * Together fewer than the key has.
 */
const CALLERS = 3
const CALLS_WELL = 13
const CALLS_RACING = 4
const CALLS_ILL = 8
/**
 * All calls that a policy may have to answer by itself: those that run while the fault begins, and
 * those while it lasts.
 */
const CALLS_WITHOUT_REDIS = CALLERS * (CALLS_RACING + CALLS_ILL)

const limits = { burst: gcra({ rate: '1/h', burst: CAPACITY }), spare: tokenBucket({ refill: '1/h', capacity: 10 * CAPACITY }) }

/** A server, and the folder that it keeps its log in. */
export interface Place {
  readonly server: RedisServer
  readonly folder: string
}

/**
 * Where it happens. After a fault the server that clients reach through the proxy may be another
 * one.
 */
export interface Site {
  now: Place
  readonly proxy: FaultProxy
  /** Replicas, and servers that were in use before. */
  readonly others: Set<Place>
  /** As clients know it: the proxy's address. */
  readonly address: RedisServer
  /** Ends the others. */
  tidy(): Promise<void>
  close(): Promise<void>
}

/** What strikes, and where. */
export interface Fault<Where = Site> {
  readonly name: string
  /** Whether decisions cannot come from Redis while it lasts. Otherwise they all must. */
  readonly isOutage: boolean
  /** How often Redis has forgotten afterwards what it had admitted, and why not oftener. */
  readonly forgets: number
  /** Whether that depends on who was faster. Otherwise it must have happened. */
  readonly mayForget?: boolean
  readonly why: string
  /** What must be there before anything happens: a replica. */
  prepare?(site: Where): Promise<Place | undefined>
  /** Begins it, and resolves when it is in force. Gives what ends it. */
  strike(site: Where, prepared: Place | undefined): Promise<() => Promise<void>>
}

export interface Bound {
  /** Admissions by Redis. */
  readonly byRedis: number
  /** Admissions by the policy, without Redis. */
  readonly byPolicy: number
}

/** What may be admitted on one key from before a fault until Redis refuses after it. */
export function boundOf({ isOutage, forgets }: Pick<Fault, 'isOutage' | 'forgets'>, policy: Policy): Bound {
  // What Redis forgets it admits again: at most all that a key has, once.
  const byRedis = CAPACITY * (1 + forgets)
  // `allow` admits every call that it answers; `local` has one memory for a process, and nothing
  // comes back to it meanwhile.
  const byPolicy = { throw: 0, deny: 0, allow: CALLS_WITHOUT_REDIS, local: LOCAL_PERMITS }[policy]
  return { byRedis, byPolicy: isOutage ? byPolicy : 0 }
}

/** What became of all calls on one key. */
export class Tally {
  byRedis = 0
  byPolicy = 0
  /** Refused by Redis, and by the policy. */
  refused = 0
  refusedByPolicy = 0
  readonly failures: unknown[] = []

  get calls(): number {
    return this.byRedis + this.byPolicy + this.refused + this.refusedByPolicy + this.failures.length
  }

  async count(call: Promise<{ readonly allowed: boolean; readonly degraded: boolean }>): Promise<void> {
    try {
      const { allowed, degraded } = await settling(call)
      if (degraded) this[allowed ? 'byPolicy' : 'refusedByPolicy'] += 1
      else this[allowed ? 'byRedis' : 'refused'] += 1
    } catch (error) {
      this.failures.push(error)
    }
  }
}

/**
 * How often a client may be cut off once more after Redis was back. Each costs one call, because
 * the next one waits for Redis.
 */
const MOST_CUTS = 2

/** A client and a limiter on it, for as long as the test or the soak lasts. */
export class Cell {
  readonly name: string
  readonly policy: Policy
  readonly limiter: Limiter<typeof limits, AsyncStore>
  readonly #opened: Opened

  static async open(client: ClientCase, policy: Policy, addresses: readonly RedisServer[]): Promise<Cell> {
    return new Cell(client.name, policy, await client.open(addresses))
  }

  private constructor(name: string, policy: Policy, opened: Opened) {
    this.name = name
    this.policy = policy
    this.#opened = opened
    this.limiter = createLimiter(limits, {
      name: `${policy}-${name.replaceAll(' ', '-')}`,
      store: redisStore(opened.client),
      onStoreError: policy,
      storeTimeoutMs: STORE_TIMEOUT_MS,
      localShare: LOCAL_SHARE,
    })
  }

  close(): unknown {
    this.limiter.close()
    return this.#opened.close()
  }

  /** Several callers at a time, each one call after the other. */
  async call(tally: Tally, key: string, calls: number): Promise<void> {
    const caller = async () => {
      for (let call = 0; call < calls; call++) await tally.count(this.limiter.consume(key))
    }
    await Promise.all(Array.from({ length: CALLERS }, caller))
  }

  /**
   * Resolves when Redis charges again: another key, because a replica that is still taken for the
   * primary would answer questions too.
   */
  async recover(key: string): Promise<void> {
    await until(async () => {
      const { degraded } = await settling(this.limiter.consume(`${key}-afterwards`))
      return !degraded && this.limiter.health().state === 'up'
    })
  }

  /**
   * Takes what is left until Redis refuses. A primary that was replaced may cut its clients off
   * once more when the sentinels tell it so: then Redis is waited for again, and what `allow` let
   * pass in that moment is none of the fault's.
   */
  async drain(tally: Tally, key: string): Promise<void> {
    const drained = new Tally()
    for (let call = 0; call <= 3 * CAPACITY && drained.refused === 0; call++) {
      if (this.limiter.health().state === 'down') await this.recover(key)
      await drained.count(this.limiter.consume(key))
    }
    tally.byRedis += drained.byRedis
    tally.refused += drained.refused
    tally.refusedByPolicy += drained.refusedByPolicy
    tally.byPolicy += this.policy === 'allow' ? Math.max(0, drained.byPolicy - MOST_CUTS) : drained.byPolicy
    tally.failures.push(...drained.failures)
  }
}

export interface Told {
  readonly cell: Cell
  readonly tally: Tally
  readonly bound: Bound
  /** Every way in which it was not as promised, in words. */
  readonly wrongs: readonly string[]
}

/** Plays the story of one fault for all cells at once. `key` is one that no cell has used. */
export async function play<Where>(fault: Fault<Where>, site: Where, cells: readonly Cell[], key: string): Promise<Told[]> {
  const stories = cells.map((cell) => ({ cell, tally: new Tally(), bound: boundOf(fault, cell.policy), wrongs: [] as string[] }))
  const all = (act: (story: (typeof stories)[number]) => Promise<void>) => Promise.all(stories.map(act))
  const prepared = await fault.prepare?.(site)
  await all(({ cell, tally }) => cell.call(tally, key, CALLS_WELL))
  for (const { tally, wrongs } of stories) {
    if (tally.byRedis !== CALLERS * CALLS_WELL) wrongs.push(`before the fault Redis admitted ${tally.byRedis} of ${CALLERS * CALLS_WELL}`)
  }
  const racing = all(({ cell, tally }) => cell.call(tally, key, CALLS_RACING))
  const end = await fault.strike(site, prepared)
  await racing
  await all(({ cell, tally }) => cell.call(tally, key, CALLS_ILL))
  for (const { cell, wrongs } of stories) {
    const { state, error } = cell.limiter.health()
    if (state !== (fault.isOutage ? 'down' : 'up')) wrongs.push(`while it lasts health is '${state}'`)
    if (fault.isOutage && !(error instanceof SluiceError && error.code === 'STORE')) wrongs.push(`health has the error ${error}`)
  }
  await end()
  await all(({ cell }) => cell.recover(key))
  await all(({ cell, tally }) => cell.drain(tally, key))
  for (const story of stories) judge(fault, story)
  return stories
}

function judge(
  fault: Pick<Fault, 'isOutage' | 'forgets' | 'mayForget'>,
  { tally, bound, cell, wrongs }: { tally: Tally; bound: Bound; cell: Cell; wrongs: string[] },
): void {
  const { byRedis, byPolicy, refusedByPolicy, failures } = tally
  if (byRedis > bound.byRedis) wrongs.push(`Redis admitted ${byRedis}, more than ${bound.byRedis}`)
  if (byPolicy > bound.byPolicy) wrongs.push(`the policy admitted ${byPolicy}, more than ${bound.byPolicy}`)
  // What Redis charged and nobody was told of is at most one permit for each call that it did not
  // answer.
  const unanswered = byPolicy + refusedByPolicy + failures.length
  if (byRedis + unanswered < CAPACITY) wrongs.push(`only ${byRedis} were admitted, and only ${unanswered} not answered`)
  if (!fault.isOutage && unanswered > 0) wrongs.push(`${unanswered} calls were not answered by Redis`)
  if (cell.policy !== 'throw' && failures.length > 0) wrongs.push(`${failures.length} calls failed: ${failures[0]}`)
  for (const failure of failures) {
    if (!(failure instanceof SluiceError && failure.code === 'STORE')) wrongs.push(`a call failed with ${failure}`)
  }
  // Nothing is survived that did not happen.
  if (fault.isOutage && unanswered === 0) wrongs.push('it struck nobody')
  if (fault.forgets > 0 && !fault.mayForget && byRedis <= CAPACITY) wrongs.push('Redis forgot nothing')
}

/** One line: what was observed against what was promised. */
export function lineOf({ cell, tally, bound }: Told): string {
  const { byRedis, byPolicy, refusedByPolicy, failures } = tally
  return `${cell.policy} on ${cell.name}: ${byRedis} by Redis, at most ${bound.byRedis}; ${byPolicy} by the policy, at most ${bound.byPolicy}; ${refusedByPolicy} refused by it, ${failures.length} failed`
}

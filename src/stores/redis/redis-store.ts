/** State in Redis or Valkey, decided there by a script, on the server's clock. See run.lua. */
import type { Verdict } from '../../algorithms/decide.ts'
import { onlyKnown, refused } from '../../algorithms/rate.ts'
import { systemClock } from '../../clock/clock.ts'
import { SluiceError } from '../../errors.ts'
import { AsyncStore } from '../remote/async-store.ts'
import { allAllowed, type OnFailure, type OnVerdicts, type Part, type Scope, type Step, type StoreDriver } from '../store.ts'
import { acrossSlots } from './across-slots.ts'
import { Batches } from './batch.ts'
import { type RedisClient, senderOf } from './client.ts'
import { type DenialBounds, Denials } from './denials.ts'
import { isCrossSlot } from './failure.ts'
import { bySlot, type KeyScheme, redisKey } from './keys.ts'
import { Sent } from './wire.ts'

export interface RedisStoreOptions {
  /** What every key begins with. Default `'sluice'`. */
  readonly prefix?: string
  /** Keys for which this gives equal strings are kept together in a cluster, and decided as one. Default: each key for itself. */
  readonly hashTag?: (key: string) => string
  /** How many decisions of one turn of the event loop travel in one script call. 1 to 1,000, default 128; 1: each by itself. */
  readonly maxBatch?: number
  /** Refusals that are repeated without asking Redis again, for as long as they hold. Default on; `false` turns it off. */
  readonly denialCache?: DenialCacheOptions | false
}

export interface DenialCacheOptions {
  /** How long a refusal is repeated at most, in milliseconds: within that a change made elsewhere is seen. Above 0, at most 60,000, default 1,000. */
  readonly maxMs?: number
  /** How many refusals each limiter holds, the oldest going first. 1 to 1,000,000, default 10,000. */
  readonly maxKeys?: number
}

/** No name of a limit has such a sign in it. */
const PROBE = ':%probe'
const DEFAULT_MAX_BATCH = 128
const MOST_MAX_BATCH = 1_000
/** So many states in one key are read and written as a whole, whichever of them a decision is about. */
const MOST_LIMITS = 4_000
/** Redis 6.2 takes a million arguments in a call: up to six for each limit of each decision. */
const MOST_LIMITS_OF_BATCH = 128_000

export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): AsyncStore {
  const scheme = checkedScheme(options)
  const maxBatch = checkedMaxBatch(options)
  const batches = new Batches(senderOf(client), maxBatch)
  return new AsyncStore(new RedisDriver(scheme, batches, checkedBounds(options), maxBatch))
}

class RedisDriver implements StoreDriver {
  readonly shared = true
  readonly #scheme: KeyScheme
  readonly #batches: Batches
  readonly #bounds: DenialBounds | undefined
  readonly #maxBatch: number
  /** By the name of the limiter, as long as one of that name is open. */
  readonly #denials = new Map<string, Denials>()

  constructor(scheme: KeyScheme, batches: Batches, bounds: DenialBounds | undefined, maxBatch: number) {
    this.#scheme = scheme
    this.#batches = batches
    this.#bounds = bounds
    this.#maxBatch = maxBatch
  }

  open({ name, limits }: Scope): void {
    checkCount(limits.length, this.#maxBatch)
    if (this.#bounds === undefined) return
    const denials = this.#denials.get(name) ?? new Denials(this.#bounds)
    this.#denials.set(name, denials)
    denials.users += 1
  }

  release({ name }: Scope): void {
    const denials = this.#denials.get(name)
    if (denials === undefined) return
    denials.users -= 1
    if (denials.users === 0) this.#denials.delete(name)
  }

  apply(step: Step): Promise<readonly Verdict[]> {
    return new Promise((resolve, reject) => this.submit(step, resolve, reject))
  }

  submit(step: Step, onVerdicts: OnVerdicts, onFailure: OnFailure): void {
    const denials = this.#denials.get(step.scope.name)
    if (denials === undefined) this.#decide(step, onVerdicts, onFailure)
    else this.#decideUnlessDenied(step, denials, onVerdicts, onFailure)
  }

  #decideUnlessDenied(step: Step, denials: Denials, onVerdicts: OnVerdicts, onFailure: OnFailure): void {
    const sentUs = systemClock.nowUs()
    const known = denials.answer(step, sentUs)
    if (known !== undefined) {
      onVerdicts(known)
      return
    }
    denials.notice(step)
    const { changes } = denials
    const learn: OnVerdicts = (verdicts) => {
      if (!allAllowed(verdicts)) denials.learn(step, verdicts, sentUs, systemClock.nowUs(), changes)
      onVerdicts(verdicts)
    }
    this.#decide(step, learn, onFailure)
  }

  #decide(step: Step, onVerdicts: OnVerdicts, onFailure: OnFailure): void {
    let sent: Sent
    try {
      sent = this.#addressed(step)
    } catch (error) {
      onFailure(error)
      return
    }
    if (hasOneKey(step)) this.#batches.run(sent, onVerdicts, onFailure)
    else this.#decideBySlot(sent, onVerdicts, onFailure)
  }

  /** In a cluster its keys may be on several servers. */
  #decideBySlot(sent: Sent, onVerdicts: OnVerdicts, onFailure: OnFailure): void {
    const { step } = sent
    const slots = bySlot([...step.parts.keys()], (part) => keyOf(sent, part))
    if (slots.length === 1) {
      this.#batches.run(sent, onVerdicts, onFailure)
      return
    }
    const apart = () => {
      acrossSlots(step, slots, (each) => this.#decided(each)).then(onVerdicts, onFailure)
    }
    if (this.#batches.isCluster) {
      apart()
      return
    }
    this.#batches.run(sent, onVerdicts, (error) => {
      // A cluster that was not known to be one.
      if (isCrossSlot((error as Error).cause)) apart()
      else onFailure(error)
    })
  }

  #decided(step: Step): Promise<readonly Verdict[]> {
    return new Promise((resolve, reject) => this.#batches.run(this.#addressed(step), resolve, reject))
  }

  async probe(step: Step): Promise<void> {
    await Promise.all(this.#addressed(step).keys.map((key) => this.#batches.probe(`${key}${PROBE}`)))
  }

  shardOf({ name }: Scope, { key }: Part): string | undefined {
    return this.#batches.nodeOf(redisKey(this.#scheme, name, key))
  }

  #addressed(step: Step): Sent {
    const { scope, parts } = step
    const [{ key: first }] = parts as [Part]
    // Mostly they are all in one key.
    if (hasOneKey(step)) return new Sent(step, [redisKey(this.#scheme, scope.name, first)], inFirst(parts.length))
    const keyOfEach = parts.map(({ key }) => redisKey(this.#scheme, scope.name, key))
    const keys = [...new Set(keyOfEach)]
    return new Sent(
      step,
      keys,
      keyOfEach.map((key) => keys.indexOf(key) + 1),
    )
  }
}

const IN_FIRST: readonly number[] = [1]

/** So many parts that are all in the first key. */
function inFirst(parts: number): readonly number[] {
  return parts === 1 ? IN_FIRST : new Array(parts).fill(1)
}

function checkedScheme(options: RedisStoreOptions): KeyScheme {
  onlyKnown(options, ['prefix', 'hashTag', 'maxBatch', 'denialCache'], 'redisStore')
  const { prefix = 'sluice', hashTag } = options
  if (typeof prefix !== 'string' || !/^[^{}\s]{1,256}$/.test(prefix)) {
    throw refused('redisStore prefix', prefix, 'must be 1 to 256 characters without braces and white space')
  }
  if (hashTag !== undefined && typeof hashTag !== 'function') {
    throw refused('redisStore hashTag', hashTag, 'must be a function from a key to a string')
  }
  return { prefix, hashTag }
}

function checkedMaxBatch({ maxBatch = DEFAULT_MAX_BATCH }: RedisStoreOptions): number {
  if (Number.isInteger(maxBatch) && maxBatch >= 1 && maxBatch <= MOST_MAX_BATCH) return maxBatch
  throw refused('redisStore maxBatch', maxBatch, `must be a whole number from 1 to ${MOST_MAX_BATCH}`)
}

function checkedBounds({ denialCache = {} }: RedisStoreOptions): DenialBounds | undefined {
  if (denialCache === false) return undefined
  if (typeof denialCache !== 'object' || denialCache === null) {
    throw refused('redisStore denialCache', denialCache, 'must be false or an object such as { maxMs: 1000, maxKeys: 10_000 }')
  }
  onlyKnown(denialCache, ['maxMs', 'maxKeys'], 'redisStore denialCache')
  const { maxMs = 1_000, maxKeys = 10_000 } = denialCache
  if (typeof maxMs !== 'number' || !(maxMs > 0 && maxMs <= 60_000)) {
    throw refused('redisStore denialCache maxMs', maxMs, 'must be above 0 and at most 60000 milliseconds')
  }
  if (!Number.isInteger(maxKeys) || maxKeys < 1 || maxKeys > 1_000_000) {
    throw refused('redisStore denialCache maxKeys', maxKeys, 'must be a whole number from 1 to 1000000')
  }
  return { maxUs: Math.ceil(maxMs * 1000), maxKeys }
}

function checkCount(limits: number, maxBatch: number): void {
  const most = Math.min(MOST_LIMITS, Math.floor(MOST_LIMITS_OF_BATCH / maxBatch))
  if (limits <= most) return
  const why = `128,000 divided by maxBatch (${maxBatch}), and never more than 4,000`
  throw new SluiceError('CONFIG', `${limits} limits are too many for one limiter on Redis: it may have ${most}, which is ${why}`)
}

/** All limits of one key are in one slot. */
function hasOneKey({ parts }: Step): boolean {
  const [{ key }] = parts as [Part]
  return parts.every((part) => part.key === key)
}

function keyOf({ keys, places }: Sent, part: number): string {
  return keys[(places[part] as number) - 1] as string
}

/**
 * Where a request is let in or not. All adapters do the same three things with a gate: ask it (`enter`), do what it says, and tell it how the
 * response ended (`leave`, only where somebody wants to know).
 */
import type { Decision } from '../limiter/decision.ts'
import type { Abortable, Cost, Key } from '../limiter/input.ts'
import { createLimiter } from '../limiter/limiter.ts'
import type { Limits } from '../limiter/options.ts'
import { WaitError } from '../limiter/wait-error.ts'
import type { FailurePolicy } from '../stores/remote/substitute.ts'
import type { Scope } from '../stores/store.ts'
import { type HeaderWriter, headerWriter, partitionText } from './headers.ts'
import { byIp, type KeyFunction } from './keys.ts'
import { Made, noticeLimiter } from './misuse.ts'
import { checkHttpOptions, type HttpChoices, type HttpOptions, type KeySource } from './options.ts'
import { checkStatus, type Refusal, Refusals, TOO_MANY_REQUESTS } from './refusal.ts'
import { asError, CLIENT_LEFT, disregard, type HttpOutcome, type HttpRequest, isPromise, type MaybePromise, whenKnown } from './request.ts'
import { shortKey, shortKeys } from './short-key.ts'
import { explainOnce } from './warnings.ts'

/** What a gate says of a request. */
export interface Entry {
  /** Undefined if the request was not limited (`skip`). */
  readonly decision: Decision | undefined
  /** For the response of an admitted request: name, value, name, value ... */
  readonly headers: readonly string[]
  /** What to answer instead of going on. */
  readonly refusal: Refusal | undefined
  /** The client left while it waited: there is nobody to answer. */
  readonly gone: boolean
  /** To be told how the response ended; undefined if nobody wants to know. */
  readonly leave: ((outcome: HttpOutcome) => void) | undefined
}

/** How many may wait at a gate, whatever their keys. */
const MAX_WAITING = 10_000
/** How many may wait for one key, though a limit lets in fewer in the time that they would wait. */
const MIN_QUEUE = 10

const NO_HEADERS: readonly string[] = []
const PASSED: Entry = { decision: undefined, headers: NO_HEADERS, refusal: undefined, gone: false, leave: undefined }
const GONE: Entry = { ...PASSED, gone: true }

/** What a gate needs of a limiter, whatever its limits and its store. */
interface AnyLimiter {
  readonly name: string
  readonly onStoreError: FailurePolicy
  scope(plan?: string): Scope
  consume(key: AnyKey, cost?: AnyCost, options?: { plan: string }): MaybePromise<Decision>
  peek(key: AnyKey, cost: AnyCost, options?: { plan: string }): MaybePromise<Decision>
  acquire(key: AnyKey, options: object): Promise<Decision>
  waiting(key: AnyKey): number
  refund(key: AnyKey, cost: AnyCost, options: object): MaybePromise<void>
}

type AnyKey = Key<string>
type AnyCost = Cost<string>
type Plan = string | undefined

/** One request and what was found out about it. */
interface Asked<Native> {
  readonly native: Native
  readonly http: HttpRequest
  readonly key: AnyKey
  readonly cost: AnyCost
  readonly plan: Plan
}

function admitted(decision: Decision, headers: readonly string[], leave: Entry['leave']): Entry {
  return { decision, headers, refusal: undefined, gone: false, leave }
}

function refused(decision: Decision, refusal: Refusal): Entry {
  return { decision, headers: NO_HEADERS, refusal, gone: false, leave: undefined }
}

/** The client left while it was found out whether to let it in. */
function gone({ decision, leave }: Entry): Entry {
  leave?.({ status: CLIENT_LEFT, aborted: true })
  return { ...GONE, decision }
}

export class Gate<Native, Connection = unknown> {
  readonly #limiter: AnyLimiter
  /** As they were given. What is needed for each request is held in fields of its own: looking for what is not there takes its time. */
  readonly #choices: HttpChoices<Native>
  readonly #keyOf: KeyFunction<Native, AnyKey>
  readonly #cost: HttpChoices<Native>['cost']
  readonly #planOf: HttpChoices<Native>['plan']
  readonly #skip: HttpChoices<Native>['skip']
  readonly #refundWhen: HttpChoices<Native>['refundWhen']
  readonly #onLimited: HttpChoices<Native>['onLimited']
  readonly #partitionKey: HttpChoices<Native>['partitionKey']
  readonly #isShadow: boolean
  readonly #maxWaitMs: number
  /** How many may wait for one key; undefined: as many as can have their turn in time. */
  readonly #maxQueue: number | undefined
  /** How many wait now, for whatever keys. */
  #waiting = 0
  /** Only a key has to be found, nobody waits, and nobody is told of the end. */
  readonly #isPlain: boolean
  readonly #writer: HeaderWriter | undefined
  readonly #refusals: Refusals<Native>
  readonly #signalOf: (connection: Connection) => Abortable | undefined
  #made: Made | undefined

  /** `signalOf` makes a signal that is aborted when the client leaves. `more`: names of options that the adapter itself reads. */
  constructor(options: object, signalOf: (connection: Connection) => Abortable | undefined, more: readonly string[] = []) {
    checkHttpOptions(options, more)
    const { limit, limiter, ...choices } = options as HttpOptions<Native>
    this.#limiter = (limiter ?? createLimiter(limit as Limits)) as unknown as AnyLimiter
    this.#choices = choices as HttpChoices<Native>
    const { cost = 1, plan, skip, refundWhen, onLimited, partitionKey, shadow = false, maxWaitMs = 0, maxQueue } = this.#choices
    this.#keyOf = keyFunction(choices.key as KeySource<Native, string> | undefined)
    this.#cost = cost
    this.#planOf = plan
    this.#skip = skip
    this.#refundWhen = refundWhen
    this.#onLimited = onLimited
    this.#partitionKey = partitionKey
    this.#isShadow = shadow
    // A shadow holds nobody up either.
    this.#maxWaitMs = shadow ? 0 : maxWaitMs
    this.#maxQueue = maxQueue
    this.#isPlain = typeof cost !== 'function' && plan === undefined && refundWhen === undefined && this.#maxWaitMs === 0
    this.#writer = shadow ? undefined : headerWriter(choices.headers ?? 'draft-11')
    const deniesOutages = this.#limiter.onStoreError === 'deny'
    this.#refusals = new Refusals(checkStatus(choices.status ?? TOO_MANY_REQUESTS), choices.body, deniesOutages)
    this.#signalOf = signalOf
    if (limiter === undefined) this.#made = new Made()
    else noticeLimiter(limiter)
  }

  /** A gate with other choices. It shares the limiter, unless the choices name one of their own. */
  with(options: object): Gate<Native, Connection> {
    if (hasOwnLimits(options)) return new Gate({ ...withoutNames(this.#choices), ...options }, this.#signalOf)
    return new Gate({ ...this.#choices, ...options, limit: undefined, limiter: this.#limiter }, this.#signalOf)
  }

  /** `connection` is what the adapter knows the client's connection by; only a request that is not decided at once looks at it. */
  enter(native: Native, http: HttpRequest, connection: Connection): Entry | Promise<Entry> {
    if (this.#made !== undefined) this.#noticeFirstRequest(this.#made)
    try {
      const entered =
        this.#skip === undefined ? this.#find(native, http, connection) : this.#findUnlessSkipped(this.#skip, native, http, connection)
      return isPromise(entered) ? this.#enterLater(entered, connection) : entered
    } catch (error) {
      return this.#failed(error)
    }
  }

  #noticeFirstRequest(made: Made): void {
    made.noticeFirstRequest()
    this.#made = undefined
  }

  #enterLater(entered: Promise<Entry>, connection: Connection): Promise<Entry> {
    // Now, because a runtime may begin to watch the connection only when it is asked to.
    const signal = this.#isShadow ? undefined : this.#signalOf(connection)
    return entered.then(
      (entry) => (signal?.aborted && !entry.gone ? gone(entry) : entry),
      (error) => this.#failed(error),
    )
  }

  /** A shadow refuses nobody, whatever goes wrong in it. */
  #failed(error: unknown): Entry {
    if (!this.#isShadow) throw asError(error)
    explainOnce('SLUICE_SHADOW_FAILED', '', error)
    return PASSED
  }

  #findUnlessSkipped(
    skip: NonNullable<HttpChoices<Native>['skip']>,
    native: Native,
    http: HttpRequest,
    connection: Connection,
  ): Entry | Promise<Entry> {
    return whenKnown(skip(native), (skipped) => (skipped ? PASSED : this.#find(native, http, connection)))
  }

  /**
   * What most requests come to, with as little made on the way as there can be. Kept small, and the rare ways in functions of their own, so that
   * the compiler can fit it into its callers.
   */
  #find(native: Native, http: HttpRequest, connection: Connection): Entry | Promise<Entry> {
    const key = this.#keyOf(native, http)
    if (!this.#isPlain || isPromise(key)) return this.#findAll(native, http, key, connection)
    const decision = this.#limiter.consume(key, this.#cost as AnyCost)
    if (!isPromise(decision) && decision.allowed) return admitted(decision, this.#headers(key, undefined, decision), undefined)
    return this.#decided({ native, http, key, cost: this.#cost as AnyCost, plan: undefined }, decision)
  }

  /** Finds out what else is to be asked for, at once if it can be known at once. */
  #findAll(native: Native, http: HttpRequest, key: MaybePromise<AnyKey>, connection: Connection): Entry | Promise<Entry> {
    let cost: MaybePromise<AnyCost> | undefined
    let plan: MaybePromise<Plan>
    try {
      cost = typeof this.#cost === 'function' ? this.#cost(native) : (this.#cost as AnyCost)
      plan = this.#planOf === undefined ? undefined : this.#planOf(native)
    } catch (error) {
      disregard(key, cost)
      throw error
    }
    if (!isPromise(key) && !isPromise(cost) && !isPromise(plan)) return this.#ask({ native, http, key, cost, plan }, connection)
    return Promise.all([key, cost, plan]).then(([key, cost, plan]) => this.#ask({ native, http, key, cost, plan }, connection))
  }

  #ask(asked: Asked<Native>, connection: Connection): Entry | Promise<Entry> {
    if (this.#maxWaitMs > 0) return this.#wait(asked, this.#signalOf(connection))
    const { key, cost, plan } = asked
    return this.#decided(asked, plan === undefined ? this.#limiter.consume(key, cost) : this.#limiter.consume(key, cost, { plan }))
  }

  #decided(asked: Asked<Native>, decision: MaybePromise<Decision>): Entry | Promise<Entry> {
    return whenKnown(decision, (known) => this.#entry(asked, known))
  }

  async #wait(asked: Asked<Native>, signal: Abortable | undefined): Promise<Entry> {
    const { key, cost, plan } = asked
    const limiter = this.#limiter
    // Who finds no place is let in only if that can be at once.
    const places = this.#hasPlace(key, plan) ? 1 : 0
    const options = {
      cost,
      timeoutMs: places === 0 ? 0 : this.#maxWaitMs,
      ...(plan === undefined ? {} : { plan }),
      ...(signal === undefined ? {} : { signal }),
    }
    this.#waiting += places
    try {
      const decision = await limiter.acquire(key, options)
      if (!signal?.aborted) return this.#entry(asked, decision)
      // It left when its turn had come already, and nothing was done for it.
      if (!decision.degraded) this.#giveBack(asked, decision)
      return GONE
    } catch (error) {
      if (signal?.aborted) return GONE
      if (!(error instanceof WaitError)) throw error
      const decision = error.decision ?? (await limiter.peek(key, cost, plan === undefined ? undefined : { plan }))
      return this.#entry(asked, decision, true)
    } finally {
      this.#waiting -= places
    }
  }

  #hasPlace(key: AnyKey, plan: Plan): boolean {
    if (this.#waiting >= MAX_WAITING) return false
    const maxQueue = this.#maxQueue ?? servedWithin(this.#maxWaitMs, this.#limiter.scope(plan))
    return this.#limiter.waiting(key) < maxQueue
  }

  /** `refuse`: whatever the decision says, there is no room to wait in. */
  #entry(asked: Asked<Native>, decision: Decision, refuse = !decision.allowed): Entry {
    const { native, http, key, plan } = asked
    const headers = this.#headers(key, plan, decision)
    if (refuse && this.#onLimited !== undefined) this.#tell(this.#onLimited, native, decision)
    if (refuse && !this.#isShadow) return refused(decision, this.#refusals.of(decision, headers, native, http))
    const isRefundable = this.#refundWhen !== undefined && decision.allowed && !decision.degraded
    return admitted(decision, headers, isRefundable ? this.#leaver(asked, decision) : undefined)
  }

  /** Of a decision that the store had no part in nobody knows the figures. */
  #headers(key: AnyKey, plan: Plan, decision: Decision): readonly string[] {
    if (this.#writer === undefined || decision.degraded) return NO_HEADERS
    const partition = this.#partitionKey === undefined ? '' : partitionText(this.#partitionKey(key))
    return this.#writer(decision, this.#limiter.scope(plan), partition)
  }

  /** The answer does not depend on what it does with it. */
  #tell(onLimited: NonNullable<HttpChoices<Native>['onLimited']>, native: Native, decision: Decision): void {
    try {
      const told: unknown = onLimited(native, decision)
      if (isPromise(told)) told.then(undefined, onLimitedFailed)
    } catch (error) {
      onLimitedFailed(error)
    }
  }

  #leaver(asked: Asked<Native>, decision: Decision): (outcome: HttpOutcome) => void {
    return (outcome) => {
      // The response is out: whatever goes wrong now has nobody to go to.
      try {
        const wanted = whenKnown(this.#refundWhen?.(outcome, asked.native) ?? false, (isWanted) => {
          if (isWanted) this.#giveBack(asked, decision)
        })
        if (isPromise(wanted)) wanted.then(undefined, refundFailed)
      } catch (error) {
        refundFailed(error)
      }
    }
  }

  #giveBack({ key, cost, plan }: Asked<Native>, { atMs }: Decision): void {
    try {
      const given = this.#limiter.refund(key, cost, plan === undefined ? { atMs } : { atMs, plan })
      if (isPromise(given)) given.then(undefined, refundFailed)
    } catch (error) {
      refundFailed(error)
    }
  }
}

/** How many of one key can have their turn within so many milliseconds, were none let in before: within a few and the most that may wait at all. */
function servedWithin(maxWaitMs: number, { limits }: Scope): number {
  const served = limits.map(({ rule: { capacity, windowUs } }) => capacity * Math.ceil((maxWaitMs * 1000) / windowUs))
  return Math.min(Math.max(MIN_QUEUE, Math.min(...served)), MAX_WAITING)
}

function onLimitedFailed(error: unknown): void {
  explainOnce('SLUICE_ON_LIMITED_FAILED', '', error)
}

export function hasOwnLimits(options: object): boolean {
  const { limit, limiter } = options as Partial<HttpOptions<never>>
  return limit !== undefined || limiter !== undefined
}

/** Plans, and keys and costs by the names of limits, mean nothing to other limits. */
function withoutNames<Native>({ plan: _plan, key, cost, ...rest }: HttpChoices<Native>): HttpChoices<Native> {
  return {
    ...rest,
    ...(key === undefined || typeof key === 'object' ? {} : { key }),
    ...(cost === undefined || typeof cost === 'object' ? {} : { cost }),
  }
}

function refundFailed(error: unknown): void {
  explainOnce('SLUICE_REFUND_FAILED', '', error)
}

function keyFunction<Native>(source: KeySource<Native, string> | undefined): KeyFunction<Native, AnyKey> {
  if (source === undefined) return byIp()
  if (typeof source === 'function') return shortened(source as KeyFunction<Native, AnyKey>)
  if (typeof source === 'string') return () => source
  const named = Object.entries(source).map(([name, each]) => [name, typeof each === 'string' ? () => each : shortened(each)] as const)
  return (native, http) => {
    const found: (readonly [string, MaybePromise<AnyKey>])[] = []
    try {
      for (const [name, keyOf] of named) found.push([name, keyOf(native, http)])
    } catch (error) {
      disregard(...found.map(([, key]) => key))
      throw error
    }
    if (!found.some(([, key]) => isPromise(key))) return Object.fromEntries(found) as Record<string, string>
    return Promise.all(found.map(async ([name, key]) => [name, await key] as const)).then(Object.fromEntries)
  }
}

/** What is found in a request may be of any length and a piece of anything: it must neither be an error of ours nor keep the whole request. */
function shortened<Native>(keyOf: KeyFunction<Native, AnyKey>): KeyFunction<Native, AnyKey> {
  if (shortKeys.has(keyOf)) return keyOf
  return (native, http) => whenKnown(keyOf(native, http), shortOf)
}

/** What is no key stays what it is: the limiter refuses it. */
function shortOf(key: AnyKey): AnyKey {
  if (typeof key === 'string') return key === '' ? key : shortKey(key)
  if (typeof key !== 'object' || key === null) return key
  return Object.fromEntries(Object.entries(key).map(([name, each]) => [name, shortOf(each) as string]))
}

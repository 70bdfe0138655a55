/**
 * Where a request is let in or not. All adapters do the same three things with a gate: ask it (`enter`), do what it says, and tell it how the
 * response ended (`leave`, only where somebody wants to know).
 */
import type { Decision } from '../limiter/decision.ts'
import type { Abortable, Cost, Key } from '../limiter/input.ts'
import { createLimiter } from '../limiter/limiter.ts'
import type { Limits } from '../limiter/options.ts'
import { WaitError } from '../limiter/waiting/wait-error.ts'
import type { Scope, Store } from '../stores/store.ts'
import { type HeaderWriter, headerWriters, partitionText } from './headers.ts'
import { byIp, type KeyFunction } from './keys.ts'
import { noticeLimiter, noticeMade } from './misuse.ts'
import { checkHttpOptions, type HttpChoices, type HttpOptions, type KeySource } from './options.ts'
import { checkStatus, type Refusal, Refusals, TOO_MANY_REQUESTS } from './refusal.ts'
import { type HttpOutcome, type HttpRequest, isPromise, type MaybePromise, whenKnown } from './request.ts'
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

const NO_HEADERS: readonly string[] = []
const PASSED: Entry = { decision: undefined, headers: NO_HEADERS, refusal: undefined, gone: false, leave: undefined }
const GONE: Entry = { ...PASSED, gone: true }

/** What a gate needs of a limiter, whatever its limits and its store. */
interface AnyLimiter {
  readonly name: string
  scope(plan?: string): Scope
  consume(key: AnyKey, cost?: AnyCost, options?: { plan: string }): MaybePromise<Decision>
  peek(key: AnyKey, cost: AnyCost, options?: { plan: string }): MaybePromise<Decision>
  acquire(key: AnyKey, options: object): Promise<Decision>
  refund(key: AnyKey, cost: AnyCost, options: object): MaybePromise<void>
}

type AnyKey = Key<string>
type AnyCost = Cost<string>
type Plan = string | undefined

export class Gate<Native> {
  readonly #limiter: AnyLimiter
  readonly #choices: HttpChoices<Native>
  readonly #keyOf: KeyFunction<Native, AnyKey>
  readonly #writers: readonly HeaderWriter[]
  readonly #refusals: Refusals<Native>
  readonly #maxWaitMs: number
  readonly #noticeRequest: () => void

  /** `more`: names of options that the adapter itself reads. */
  constructor(options: HttpOptions<Native, Limits, Store, string> | object, more: readonly string[] = []) {
    checkHttpOptions(options, more)
    const { limit, limiter, ...choices } = options as HttpOptions<Native>
    this.#limiter = (limiter ?? createLimiter(limit as Limits)) as unknown as AnyLimiter
    this.#choices = choices as HttpChoices<Native>
    this.#keyOf = keyFunction(choices.key as KeySource<Native, string> | undefined)
    this.#writers = choices.shadow ? [] : headerWriters(choices.headers ?? 'draft-11')
    this.#refusals = new Refusals(checkStatus(choices.status ?? TOO_MANY_REQUESTS), choices.body)
    this.#maxWaitMs = choices.maxWaitMs ?? 0
    if (limiter !== undefined) noticeLimiter(limiter)
    this.#noticeRequest = limiter === undefined ? noticeMade() : () => {}
  }

  /** A gate with other choices. It shares the limiter, unless the choices name one of their own. */
  with(options: object): Gate<Native> {
    const { limit, limiter = limit === undefined ? this.#limiter : undefined } = options as HttpOptions<Native>
    const own = limit === undefined ? { limiter } : { limit }
    return new Gate<Native>({ ...this.#choices, ...options, limit: undefined, limiter: undefined, ...own })
  }

  /** `connection` makes a signal that is aborted when the client leaves: it is only called for a request that has to wait. */
  enter(native: Native, http: HttpRequest, connection: () => Abortable | undefined): Entry | Promise<Entry> {
    this.#noticeRequest()
    const { skip } = this.#choices
    if (skip === undefined) return this.#decide(native, http, connection)
    return whenKnown(skip(native), (skipped) => (skipped ? PASSED : this.#decide(native, http, connection)))
  }

  #decide(native: Native, http: HttpRequest, connection: () => Abortable | undefined): Entry | Promise<Entry> {
    const { cost: costs = 1, plan: planOf } = this.#choices
    const key = this.#keyOf(native, http)
    const cost = typeof costs === 'function' ? costs(native) : costs
    const plan = planOf?.(native)
    if (!isPromise(key) && !isPromise(cost) && !isPromise(plan)) return this.#ask(new Asked(native, http, key, cost, plan), connection)
    return Promise.all([key, cost, plan]).then(([key, cost, plan]) => this.#ask(new Asked(native, http, key, cost, plan), connection))
  }

  #ask(asked: Asked<Native>, connection: () => Abortable | undefined): Entry | Promise<Entry> {
    if (this.#maxWaitMs > 0) return this.#wait(asked, connection())
    const { key, cost, plan } = asked
    const decision = plan === undefined ? this.#limiter.consume(key, cost) : this.#limiter.consume(key, cost, { plan })
    return isPromise(decision) ? Promise.resolve(decision).then((known) => this.#entry(asked, known)) : this.#entry(asked, decision)
  }

  async #wait(asked: Asked<Native>, signal: Abortable | undefined): Promise<Entry> {
    const { key, cost, plan } = asked
    const limiter = this.#limiter
    const options = {
      cost,
      timeoutMs: this.#maxWaitMs,
      ...(plan === undefined ? {} : { plan }),
      ...(signal === undefined ? {} : { signal }),
    }
    try {
      return this.#entry(asked, await limiter.acquire(key, options))
    } catch (error) {
      if (signal?.aborted) return GONE
      if (!(error instanceof WaitError)) throw error
      const decision = error.decision ?? (await limiter.peek(key, cost, plan === undefined ? undefined : { plan }))
      return this.#entry(asked, decision, true)
    }
  }

  /** `refuse`: whatever the decision says, there is no room to wait in. */
  #entry(asked: Asked<Native>, decision: Decision, refuse = !decision.allowed): Entry {
    const { shadow = false, onLimited, refundWhen } = this.#choices
    if (refuse) onLimited?.(asked.native, decision)
    const headers = this.#headers(asked, decision)
    const refusal = refuse && !shadow ? this.#refusals.of(decision, headers, asked.native, asked.http) : undefined
    const leave = refundWhen !== undefined && decision.allowed && !decision.degraded ? this.#leaver(asked, decision) : undefined
    return { decision, headers, refusal, gone: false, leave }
  }

  /** Of a decision that the store had no part in nobody knows the figures. */
  #headers({ key, plan }: Asked<Native>, decision: Decision): string[] {
    const headers: string[] = []
    if (this.#writers.length === 0 || decision.degraded) return headers
    const { partitionKey } = this.#choices
    const partition = partitionText(partitionKey?.(key))
    const scope = this.#limiter.scope(plan)
    for (const write of this.#writers) write(headers, decision, scope, partition)
    return headers
  }

  #leaver({ native, key, cost, plan }: Asked<Native>, { atMs }: Decision): (outcome: HttpOutcome) => void {
    return (outcome) => {
      // The response is out: whatever goes wrong now has nobody to go to.
      try {
        if (!this.#choices.refundWhen?.(outcome, native)) return
        const given = this.#limiter.refund(key, cost, plan === undefined ? { atMs } : { atMs, plan })
        if (isPromise(given)) given.then(undefined, refundFailed)
      } catch (error) {
        refundFailed(error)
      }
    }
  }
}

function refundFailed(error: unknown): void {
  explainOnce('SLUICE_REFUND_FAILED', '', error)
}

/** One request and what was found out about it. */
class Asked<Native> {
  readonly native: Native
  readonly http: HttpRequest
  readonly key: AnyKey
  readonly cost: AnyCost
  readonly plan: Plan

  constructor(native: Native, http: HttpRequest, key: AnyKey, cost: AnyCost, plan: Plan) {
    this.native = native
    this.http = http
    this.key = key
    this.cost = cost
    this.plan = plan
  }
}

function keyFunction<Native>(source: KeySource<Native, string> | undefined): KeyFunction<Native, AnyKey> {
  if (source === undefined) return byIp()
  if (typeof source === 'function') return source as KeyFunction<Native, AnyKey>
  if (typeof source === 'string') return () => source
  const named = Object.entries(source).map(([name, each]) => [name, typeof each === 'string' ? () => each : each] as const)
  return (native, http) => {
    const found = named.map(([name, keyOf]) => [name, keyOf(native, http)] as const)
    if (!found.some(([, key]) => isPromise(key))) return Object.fromEntries(found) as Record<string, string>
    return Promise.all(found.map(async ([name, key]) => [name, await key] as const)).then(Object.fromEntries)
  }
}

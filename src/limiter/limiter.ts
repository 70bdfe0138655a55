/**
 * What a user holds. A limiter turns a verb into one step for the store and the store's verdicts into a decision. On a synchronous
 * store the verbs answer at once, on any other with promises; they are the same functions.
 */
import { COMPILE, type Limit, type Rule } from '../algorithms/algorithm.ts'
import type { Ticket, Verdict } from '../algorithms/decide.ts'
import { aheadUs } from '../algorithms/rate.ts'
import { type Clock, systemClock } from '../clock/clock.ts'
import { SluiceError, shown } from '../errors.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import type { AsyncStore, Part, Scope, Step, SyncStore } from '../stores/store.ts'
import { type Decision, decisionOf } from './decision.ts'
import { type Cost, costFor, instantUs, type Key, keyFor, spanUs } from './input.ts'

/** One limit, or several by name that are decided as one. */
export type Limits = Limit | Readonly<Record<string, Limit>>
export type LimitName<L extends Limits> = L extends Limit ? 'default' : Extract<keyof L, string>

export interface LimiterOptions<S extends SyncStore | AsyncStore = SyncStore> {
  /** Under which the store keeps this limiter's states. Letters, digits, `.`, `_`, `-`. Required with a remote store. */
  readonly name?: string
  /** Where state lives. Default: the memory of this process. */
  readonly store?: S
  /** Where time comes from. Default: the process's monotonic clock. A store with a clock of its own uses that, unless this is given. */
  readonly clock?: Clock
  /** How far `reserve` may book ahead, in milliseconds. 0 to 366 days, default 60,000. */
  readonly maxAheadMs?: number
}

/** A value at once, or a promise of it. */
export type Answer<S, T> = S extends AsyncStore ? Promise<T> : T

export interface Reservation<S> {
  /** Gives the cost back, minus what was reserved after it; nothing once its time has come. Calling it again does nothing. */
  cancel(): Answer<S, void>
}

export interface Limiter<L extends Limits, S extends SyncStore | AsyncStore = SyncStore> {
  /** Takes if allowed. */
  tryAcquire(key: Key<LimitName<L>>, cost?: Cost<LimitName<L>>): Answer<S, boolean>
  /** Takes if allowed, and tells all about it. */
  consume(key: Key<LimitName<L>>, cost?: Cost<LimitName<L>>): Answer<S, Decision<LimitName<L>>>
  /** What `consume` would answer; takes nothing. `remaining` is what is there now. */
  peek(key: Key<LimitName<L>>, cost?: Cost<LimitName<L>>): Answer<S, Decision<LimitName<L>>>
  /** Takes, maybe ahead of time: act after `delayMs`. Takes nothing if that would be more than `maxWaitMs` (default: `maxAheadMs`). */
  reserve(
    key: Key<LimitName<L>>,
    cost?: Cost<LimitName<L>>,
    options?: { readonly maxWaitMs?: number },
  ): Answer<S, Decision<LimitName<L>> & Reservation<S>>
  /** Gives back what was taken, never above idle. With `atMs` of a decision a window ago or more, nothing. */
  refund(key: Key<LimitName<L>>, cost?: Cost<LimitName<L>>, options?: { readonly atMs?: number }): Answer<S, void>
  /** Forgets the key. */
  reset(key: Key<LimitName<L>>): Answer<S, void>
  /** Changes the numbers of the live limiter; what was used stays used. */
  update(limits: L): void
}

const DEFAULT_MAX_AHEAD_MS = 60_000

export function createLimiter<const L extends Limits, S extends SyncStore | AsyncStore = SyncStore>(
  limits: L,
  options: LimiterOptions<S> = {},
): Limiter<L, S> {
  return new StoreLimiter<L, S>(limits, options)
}

type Verb = Pick<Step, 'op' | 'aheadUs' | 'ofUs'>

const TAKE: Verb = { op: 'take', aheadUs: 0, ofUs: -1 }
const ASK: Verb = { op: 'ask', aheadUs: 0, ofUs: -1 }
const GIVE: Verb = { op: 'give', aheadUs: 0, ofUs: -1 }

class StoreLimiter<L extends Limits, S extends SyncStore | AsyncStore> implements Limiter<L, S> {
  readonly #store: SyncStore | AsyncStore
  readonly #clock: Clock | undefined
  readonly #maxAheadUs: number
  #scope: NamedScope<LimitName<L>>

  constructor(limits: L, options: LimiterOptions<S>) {
    this.#store = options.store ?? memoryStore()
    this.#clock = options.clock ?? (this.#store.mode === 'sync' ? systemClock : undefined)
    this.#maxAheadUs = aheadUs(options.maxAheadMs ?? DEFAULT_MAX_AHEAD_MS, 'maxAheadMs')
    this.#scope = { name: nameOf(options.name, this.#store), limits: compiled(limits, this.#maxAheadUs) }
  }

  tryAcquire(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> = 1): Answer<S, boolean> {
    return this.#apply(TAKE, this.#parts(key, cost), (verdicts) => verdicts.every((verdict) => verdict.outcome === 'allowed'))
  }

  consume(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> = 1): Answer<S, Decision<LimitName<L>>> {
    return this.#decide(TAKE, key, cost)
  }

  peek(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> = 1): Answer<S, Decision<LimitName<L>>> {
    return this.#decide(ASK, key, cost)
  }

  reserve(
    key: Key<LimitName<L>>,
    cost: Cost<LimitName<L>> = 1,
    options: { readonly maxWaitMs?: number } = {},
  ): Answer<S, Decision<LimitName<L>> & Reservation<S>> {
    const maxWaitUs = options.maxWaitMs === undefined ? this.#maxAheadUs : spanUs(options.maxWaitMs, 'maxWaitMs')
    const parts = this.#parts(key, cost)
    const { limits } = this.#scope
    const verb: Verb = { op: 'take', aheadUs: Math.min(maxWaitUs, this.#maxAheadUs), ofUs: -1 }
    return this.#apply(verb, parts, (verdicts) => {
      const decision = decisionOf(limits, verdicts)
      return Object.assign(decision, { cancel: this.#canceller(parts, verdicts) })
    })
  }

  refund(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> = 1, options: { readonly atMs?: number } = {}): Answer<S, void> {
    const ofUs = options.atMs === undefined ? -1 : instantUs(options.atMs, 'atMs')
    return this.#apply({ ...GIVE, ofUs }, this.#parts(key, cost), () => undefined)
  }

  reset(key: Key<LimitName<L>>): Answer<S, void> {
    return this.#apply({ op: 'forget', aheadUs: 0, ofUs: -1 }, this.#parts(key, 0), () => undefined)
  }

  update(limits: L): void {
    const next = compiled(limits, this.#maxAheadUs)
    const before = this.#scope.limits
    const sameShape =
      next.length === before.length &&
      next.every(({ name, rule }, k) => name === before[k]?.name && rule.algorithm === before[k]?.rule.algorithm)
    if (!sameShape) throw new SluiceError('CONFIG', 'update must keep the names, the order and the algorithms of the limits')
    this.#scope = { name: this.#scope.name, limits: next }
  }

  #parts(key: Key<LimitName<L>>, cost: Cost<LimitName<L>>): Part[] {
    const { limits } = this.#scope
    const names = limits.map(({ name }) => name)
    return limits.map(({ name, rule }) => ({ limit: name, rule, key: keyFor(key, name, names), cost: costFor(cost, name, names) }))
  }

  #decide(verb: Verb, key: Key<LimitName<L>>, cost: Cost<LimitName<L>>): Answer<S, Decision<LimitName<L>>> {
    const { limits } = this.#scope
    return this.#apply(verb, this.#parts(key, cost), (verdicts) => decisionOf(limits, verdicts))
  }

  #apply<T>(verb: Verb, parts: readonly Part[], read: (verdicts: readonly Verdict[]) => T): Answer<S, T> {
    const step: Step = { ...verb, scope: this.#scope, parts, nowUs: this.#clock?.nowUs() }
    const store = this.#store
    const answer = store.mode === 'sync' ? read(store.apply(step)) : store.apply(step).then(read)
    return answer as Answer<S, T>
  }

  /** The tickets are read now: a synchronous store overwrites its verdicts with the next step. */
  #canceller(parts: readonly Part[], verdicts: readonly Verdict[]): () => Answer<S, void> {
    let tickets: (Ticket | undefined)[] = verdicts.map(({ ticket }) => ticket)
    return () => {
      const reserved = this.#present(parts).flatMap((part, k) => (tickets[k] === undefined ? [] : [{ ...part, ticket: tickets[k] }]))
      tickets = []
      if (reserved.length > 0) return this.#apply(GIVE, reserved, () => undefined)
      return (this.#store.mode === 'sync' ? undefined : Promise.resolve()) as Answer<S, void>
    }
  }

  /** The same parts under the present numbers. */
  #present(parts: readonly Part[]): Part[] {
    return parts.map((part, k) => ({ ...part, rule: (this.#scope.limits[k] as NamedRule<string>).rule }))
  }
}

interface NamedRule<Name extends string> {
  readonly name: Name
  readonly rule: Rule
}

interface NamedScope<Name extends string> extends Scope {
  readonly limits: readonly NamedRule<Name>[]
}

function compiled<L extends Limits>(limits: L, maxAheadUs: number): NamedRule<LimitName<L>>[] {
  const named = isLimit(limits) ? { default: limits } : limits
  if (typeof named !== 'object' || named === null || Object.keys(named).length === 0) {
    throw new SluiceError('CONFIG', `limits ${shown(limits)} must be a limit such as gcra({ ... }), or an object of them by name`)
  }
  return Object.entries(named).map(([name, limit]) => {
    if (!isLimit(limit)) throw new SluiceError('CONFIG', `limit '${name}' ${shown(limit)} must be made by a factory such as gcra({ ... })`)
    return { name: checkedName(name, 'the name of a limit') as LimitName<L>, rule: limit[COMPILE](maxAheadUs) }
  })
}

function isLimit(value: unknown): value is Limit {
  return typeof value === 'object' && value !== null && COMPILE in value
}

let unnamed = 0

/** In a store of this process an unnamed limiter is nobody else's; in a remote one that cannot be known. */
function nameOf(name: string | undefined, store: SyncStore | AsyncStore): string {
  if (name !== undefined) return checkedName(name, 'the name of a limiter')
  if (store.mode === 'async') throw new SluiceError('CONFIG', "a limiter with a remote store needs a name, such as { name: 'api' }")
  unnamed += 1
  return `unnamed-${unnamed}`
}

function checkedName(name: string, what: string): string {
  if (typeof name === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(name)) return name
  throw new SluiceError('CONFIG', `${what} ${shown(name)} must be 1 to 64 letters, digits, '.', '_' or '-'`)
}

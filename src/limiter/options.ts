/** The options of a limiter, checked when it is made. */
import { type Limit, RULE, type Rule } from '../algorithms/algorithm.ts'
import { DEFAULT_AHEAD_US, hintFor, invalid, MAX_NOW_US, onlyKnown } from '../algorithms/rate.ts'
import { type Clock, systemClock, trustedClocks } from '../clock/clock.ts'
import { SluiceError, shown } from '../errors.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import type { AsyncStore } from '../stores/remote/async-store.ts'
import type { FailurePolicy } from '../stores/remote/fallback.ts'
import type { HealthEvent } from '../stores/remote/health.ts'
import { anyUntilReleased } from '../stores/step.ts'
import type { Scope, Store, SyncStore } from '../stores/store.ts'
import type { Decision } from './decision.ts'
import type { DecisionEvent } from './events.ts'
import type { Cost, Key } from './input.ts'

/** One limit, or several by name that are decided as one. */
export type Limits = Limit | Readonly<Record<string, Limit>>
export type LimitName<L extends Limits> = L extends Limit ? 'default' : Extract<keyof L, string>

export type KeyOf<L extends Limits> = Key<LimitName<L>>
export type CostOf<L extends Limits> = Cost<LimitName<L>>
export type DecisionOf<L extends Limits> = Decision<LimitName<L>>

/** The same limits with other numbers. */
export type SameLimits<L extends Limits> = L extends Limit
  ? L
  : { readonly [Name in keyof L]: L[Name] extends Limit ? Limit & { type: L[Name]['type'] } : never }

export interface LimiterOptions<L extends Limits = Limits, S extends Store = SyncStore, P extends string = string> {
  /**
   * Under which the store keeps this limiter's states. 1 to 64 letters, digits, `.`, `_`, `-`, the
   * first a letter or digit. Required with a shared or remote store.
   */
  readonly name?: string
  /** Where state lives. Default: the memory of this process. */
  readonly store?: S
  /**
   * Where time comes from. Default: the process's monotonic clock. A store with a clock of its own
   * uses that, unless this is given.
   */
  readonly clock?: Clock
  /**
   * Other numbers for some callers, by name: `consume(key, cost, { plan: 'pro' })`. Same names of
   * limits, same algorithms.
   */
  readonly plans?: Readonly<Record<P, NoInfer<SameLimits<L>>>>
  /**
   * How far `reserve` and `acquire` may book ahead, in milliseconds. 0 to 366 days, default 60,000.
   * Callers that must wait longer wait without a booking.
   */
  readonly maxAheadMs?: number
  /**
   * How many may wait for one key; the next caller is refused with `QUEUE_FULL`. Whole, 0 or more,
   * or Infinity; default 10,000.
   */
  readonly maxQueue?: number
  /**
   * How many may wait for all keys together. Whole, 0 or more, or Infinity; default 25,000, or
   * `maxQueue` if that is more.
   */
  readonly maxWaiting?: number
  /** Whether the process may end while callers wait: true lets it. Default false. */
  readonly unref?: boolean
  /**
   * Called with every decision that takes (or refuses to): for logs and counters. An error it
   * throws reaches the caller of the verb.
   */
  readonly onDecision?: (event: DecisionEvent) => void
  /**
   * The policy for a remote store that fails or does not answer in time. `'throw'` (default): the
   * verb rejects with `STORE`. `'allow'`: everything is let through. `'deny'`: nothing is.
   * `'local'`: the memory of this process, with `localShare` of each limit.
   */
  readonly onStoreError?: FailurePolicy
  /**
   * How long a remote store may take for a decision, in milliseconds. Above 0, default 1,000;
   * Infinity: as long as it does.
   */
  readonly storeTimeoutMs?: number
  /**
   * With `onStoreError: 'local'`: the share of each limit, at least one permit, that this process
   * gives out. Above 0, at most 1, default 1.
   */
  readonly localShare?: number
  /** Called when the store goes down or is full, and when it is up again. */
  readonly onHealth?: (health: HealthEvent) => void
}

export const DEFAULT_MAX_AHEAD_MS: number = DEFAULT_AHEAD_US / 1000

const POLICIES: readonly string[] = ['throw', 'allow', 'deny', 'local'] satisfies FailurePolicy[]

/** Options that are checked by themselves: what is right, and the rule in words. */
const CHECKED: Readonly<Record<string, readonly [isRight: (value: unknown) => boolean, rule: string]>> = {
  maxQueue: [isCount, 'must be a whole number, 0 or more, or Infinity'],
  maxWaiting: [isCount, 'must be a whole number, 0 or more, or Infinity'],
  unref: [(value) => typeof value === 'boolean', 'must be true or false'],
  onStoreError: [(value) => POLICIES.includes(value as string), `must be one of ${POLICIES.join(', ')}`],
  storeTimeoutMs: [(value) => typeof value === 'number' && value > 0, 'must be above 0 milliseconds, or Infinity'],
  localShare: [(value) => typeof value === 'number' && value > 0 && value <= 1, 'must be above 0 and at most 1'],
}

/** The rule for limits, in words. */
const MADE_BY_FACTORY = 'must be made by a factory such as gcra({ ... }), or by limitFrom(json) of sluice/config'

const OPTION_NAMES = ['name', 'store', 'clock', 'plans', 'maxAheadMs', 'onDecision', 'onHealth', ...Object.keys(CHECKED)]

export interface NamedRule<Name extends string = string> {
  readonly name: Name
  readonly rule: Rule
}

export interface NamedScope<Name extends string = string> extends Scope {
  readonly limits: readonly NamedRule<Name>[]
}

export function checkOptions(options: object): void {
  onlyKnown(options, OPTION_NAMES, 'createLimiter')
  for (const [name, [isRight, rule]] of Object.entries(CHECKED)) {
    const value: unknown = options[name as keyof object]
    if (value !== undefined && !isRight(value)) throw invalid(name, value, rule)
  }
}

function isCount(value: unknown): boolean {
  return value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && (value as number) >= 0)
}

export function storeOf(store: Store | undefined): Store {
  if (store === undefined) return memoryStore()
  if (isStore(store)) return store
  throw invalid('store', store, 'must be a store such as memoryStore(), redisStore(client) or asyncStore(driver)')
}

/** It may be anything that a caller passes. */
function isStore(store: Store | null): boolean {
  return store?.mode === 'sync' ? typeof store.open === 'function' : store?.mode === 'async' && typeof store.connect === 'function'
}

/**
 * A clock of the caller's own is checked at every reading: a wrong time would be written into the
 * state. A time before 1970 counts as 0.
 */
export function clockOf(clock: Clock | undefined, store: Store): Clock | undefined {
  if (clock === undefined) return store.mode === 'sync' ? ownClockOf(store) : undefined
  if (typeof clock?.nowUs !== 'function' || typeof clock.setTimer !== 'function') {
    throw invalid('clock', clock, 'must have nowUs() and setTimer()')
  }
  const checked = trustedClocks.has(clock) ? clock : checkedClock(clock)
  return store.mode === 'sync' ? (store.commonClock?.(checked, clock) ?? checked) : checked
}

function checkedClock(clock: Clock): Clock {
  return { nowUs: () => checkedUs(clock.nowUs()), setTimer: (fn, us, keepAlive) => clock.setTimer(fn, us, keepAlive) }
}

/** The store's own time, where it has one. */
function ownClockOf({ nowUs }: SyncStore): Clock {
  return nowUs === undefined ? systemClock : { nowUs, setTimer: systemClock.setTimer }
}

function checkedUs(us: number): number {
  if (Number.isInteger(us) && us <= MAX_NOW_US) return Math.max(0, us)
  throw new SluiceError('CONFIG', `the clock read ${shown(us)}: it must be whole microseconds, at most ${MAX_NOW_US}`)
}

/**
 * The limits as rules, in their order, for a limiter that books so far ahead. `of` begins the
 * messages, where there are limits of several plans.
 */
export function compiled<Name extends string>(limits: Limits, aheadUs: number = DEFAULT_AHEAD_US, of = ''): NamedRule<Name>[] {
  const named: unknown = isLimit(limits) ? { default: limits } : limits
  if (!isRecord(named) || Object.keys(named).length === 0) {
    throw invalid(
      `${of}limits`,
      limits,
      'must be a limit such as gcra({ ... }), or an object of them by name such as { burst: gcra({ ... }) }',
    )
  }
  return Object.entries(named).map(([name, limit]) => {
    if (!isLimit(limit)) throw invalid(`${of}limit '${name}'`, limit, MADE_BY_FACTORY + hintFor(name))
    checkedName(name, `${of}the name of a limit`)
    const rule: Rule = limit[RULE]
    return { name: name as Name, rule: rule.algorithm.bookedAhead?.(rule, aheadUs, `${of}limit '${name}': `) ?? rule }
  })
}

/**
 * Limits that stand in for others must have their names and algorithms; the order is that of the
 * first.
 */
export function inPlaceOf<Name extends string>(
  first: readonly NamedRule<Name>[],
  next: readonly NamedRule<Name>[],
  what: string,
): NamedRule<Name>[] {
  const same = first.map(({ name, rule }) => next.find((other) => other.name === name && other.rule.algorithm.type === rule.algorithm.type))
  if (first.length === next.length && !same.includes(undefined)) return same as NamedRule<Name>[]
  throw new SluiceError('CONFIG', `${what} with ${listed(next)} must have the same limits with the same algorithms: ${listed(first)}`)
}

function listed(limits: readonly NamedRule[]): string {
  return `{ ${limits.map(({ name, rule }) => `${name}: ${rule.algorithm.type}`).join(', ')} }`
}

/** Whether it has things by name. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isLimit(value: unknown): value is Limit {
  return typeof value === 'object' && value !== null && RULE in value
}

/**
 * A limit that is in use until it is released carries the limiter that knows permits, so that no
 * other bundle has it.
 */
export const PERMITS: unique symbol = Symbol.for('sluice.permits')

/** The class that knows permits, if one of the limits needs it. */
export function permitClassOf<Class>(limits: Limits): Class | undefined {
  if (!anyUntilReleased(compiled(limits))) return undefined
  const all = (isLimit(limits) ? [limits] : Object.values(limits)) as unknown as readonly { readonly [PERMITS]?: Class }[]
  const found = all.find((limit) => limit[PERMITS] !== undefined)?.[PERMITS]
  if (found !== undefined) return found
  throw invalid('limits', limits, MADE_BY_FACTORY)
}

let unnamed = 0

/**
 * In a store of this thread an unnamed limiter is nobody else's; in a shared one that cannot be
 * known.
 */
export function nameOf(name: string | undefined, store: SyncStore | AsyncStore): string {
  if (name !== undefined) return checkedName(name, 'the name of a limiter')
  if (store.shared) throw new SluiceError('CONFIG', "a limiter on a shared or remote store needs a name, such as { name: 'api' }")
  unnamed += 1
  return `unnamed-${unnamed}`
}

function checkedName(name: string, what: string): string {
  if (typeof name === 'string' && /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) return name
  throw invalid(what, name, "must be 1 to 64 letters, digits, '.', '_' or '-', and begin with a letter or digit")
}

/** A configuration, read and checked. */
import type { FailurePolicy, HeaderStyle, Limit, Rate } from '../sluice.ts'

/** Names of limiters that begin so belong to the rules of domains. */
export const RULES_PREFIX = 'rls.'

/** Bounds of the service that can be configured. */
export interface Bounds {
  /** Keys of each limit, in memory. */
  readonly maxKeys: number
  /** The answer to a new key when there are so many in use. */
  readonly onFull: 'deny' | 'allow'
  /** How many may wait at `/v1/acquire`, for whatever limiters and keys. */
  readonly maxWaiters: number
}

export const DEFAULT_BOUNDS: Bounds = { maxKeys: 100_000, onFull: 'deny', maxWaiters: 10_000 }
export const MOST_WAITERS = 1_000_000
/** How many may wait for one key of a limiter, unless it says otherwise. */
export const DEFAULT_MAX_QUEUE = 1_000

export interface ServiceConfig {
  readonly bounds: Bounds
  /**
   * The whole service refuses no call: every limiter and rule below is in shadow, and so are limits
   * that callers bring along.
   */
  readonly shadow: boolean
  readonly limiters: ReadonlyMap<string, LimiterConfig>
  /** By the name of the domain: what Envoy asks about. */
  readonly domains: ReadonlyMap<string, DomainConfig>
}

export interface DomainConfig {
  readonly descriptors: readonly DescriptorRule[]
  /** Which headers Envoy is asked to add to its responses. */
  readonly headers: HeaderStyle | 'none'
}

export const HEADER_CHOICES: readonly DomainConfig['headers'][] = ['none', 'draft-11', 'draft-7', 'draft-6', 'legacy']

/**
 * Several limits are always kept by name; one without a name is called `default`, as the library
 * does.
 */
export type NamedLimits = Readonly<Record<string, Limit>>

export interface LimiterConfig {
  readonly name: string
  /** Of a rule of a domain, whose name says nothing to people: what does. */
  readonly rule: string | undefined
  readonly limits: NamedLimits
  readonly plans: Readonly<Record<string, NamedLimits>>
  readonly options: LimiterTuning
  /** Undefined: its numbers stay as they are. */
  readonly follow: FollowConfig | undefined
  /** Decides and counts, but refuses no call. */
  readonly shadow: boolean
}

/**
 * How people are told of a limiter: its name, or the rule as the file has it. Everywhere but in a
 * store.
 */
export function titleOf({ name, rule }: Pick<LimiterConfig, 'name' | 'rule'>): string {
  return rule ?? name
}

/** What a rate can follow: how loaded the process of the service is. */
export const SIGNAL_NAMES = ['eventLoopDelay', 'eventLoopUtilization', 'cpu', 'heap'] as const
export type SignalName = (typeof SIGNAL_NAMES)[number]

/**
 * A rate that follows the load of the service. What each option means, and its range, is the
 * library's to say (`followLoad`).
 */
export interface FollowConfig {
  readonly limit?: string
  readonly signal: SignalName
  readonly min: Rate
  readonly max: Rate
  readonly from: number
  readonly to: number
  readonly everyMs?: number
  readonly share?: number
}

/**
 * The options of a limiter that a file may set. What each means, and its range, is the library's to
 * say.
 */
export interface LimiterTuning {
  readonly onStoreError?: FailurePolicy
  readonly storeTimeoutMs?: number
  readonly localShare?: number
  readonly maxQueue?: number
  readonly maxAheadMs?: number
}

/**
 * One node of a domain's tree. It stands for one entry of a descriptor, and its children for the
 * next.
 */
export interface DescriptorRule {
  /** Its domain, and the keys and values on the way down to it: `edge: tenant, verb = write`. */
  readonly title: string
  readonly key: string
  /** Undefined: whatever the value is. */
  readonly value: string | undefined
  /** `value` is the beginning of what it stands for. */
  readonly wildcard: boolean
  readonly limiter: LimiterConfig | undefined
  /** Everything passes, and nothing is counted. */
  readonly unlimited: boolean
  /** Nothing passes. */
  readonly denied: boolean
  /**
   * Hits that a descriptor brings along have been used already: they are charged, whether they fit
   * or not.
   */
  readonly charge: boolean
  /** A limit or a denial that refuses no call. */
  readonly shadow: boolean
  readonly descriptors: readonly DescriptorRule[]
}

/** One thing that is wrong with a file, and where. */
export interface Mistake {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly message: string
}

export class ConfigError extends Error {
  readonly mistakes: readonly Mistake[]

  constructor(mistakes: readonly Mistake[]) {
    super(mistakes.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`).join('\n'))
    this.name = 'ConfigError'
    this.mistakes = mistakes
  }
}

/**
 * From the text of a file to a configuration. Every mistake is found at once, and each says where
 * it stands. The rules of limits and options are the library's: each is handed to it, and its
 * objection is put beside the place in the file.
 */
import { createLimiter, type Limit, type Limits, limitFrom, memoryStore, RULE, SluiceError, shown } from '../sluice.ts'
import {
  type Bounds,
  ConfigError,
  DEFAULT_BOUNDS,
  type DomainConfig,
  type FollowConfig,
  HEADER_CHOICES,
  type LimiterConfig,
  type LimiterTuning,
  type Mistake,
  MOST_WAITERS,
  type NamedLimits,
  RULES_PREFIX,
  type ServiceConfig,
} from './config.ts'
import { type ConfigPart, joinedParts, type Running } from './join.ts'
import { readDescriptors } from './read-descriptors.ts'
import { readFollow } from './read-follow.ts'
import { type Path, Source } from './source.ts'

type Fields = Readonly<Record<string, unknown>>

const TOP = ['limiters', 'domains', 'bounds', 'shadow']
const BOUNDS = ['maxKeys', 'onFull', 'maxWaiters'] as const
const TUNING = ['onStoreError', 'storeTimeoutMs', 'localShare', 'maxQueue', 'maxAheadMs'] as const
export const LIMITER_OPTIONS: readonly string[] = ['limits', 'plans', 'follow', 'shadow', ...TUNING]
const ANY_LIMIT = limitFrom({ type: 'gcra', rate: '1/s', burst: 1 })

/** A file, and what it says. */
export interface ConfigText {
  readonly file: string
  readonly text: string
}

/** Throws a `ConfigError` with all mistakes. `file` is how the messages name it. */
export function readConfig(text: string, file: string, running?: Running): ServiceConfig {
  return readConfigs([{ file, text }], running)
}

/**
 * Several files that are one configuration. `isShared`: whether others share the store that they
 * are for; undefined if that is not known.
 */
export function readConfigs(texts: readonly ConfigText[], running?: Running, isShared = running?.isShared): ServiceConfig {
  const sources = texts.map(({ file, text }) => new Source(text, file))
  const parts = sources.map((source) => partOf(source, running, isShared))
  const joined = joinedParts(
    parts.filter((part) => part !== undefined),
    running,
  )
  const mistakes = sources.flatMap((source) => inOrder(source.mistakes))
  if (mistakes.length > 0) throw new ConfigError(mistakes)
  return joined
}

function partOf(source: Source, running: Running | undefined, isShared: boolean | undefined): ConfigPart | undefined {
  const top = source.value()
  return source.mistakes.length > 0 ? undefined : new Reader(source, running, isShared).part(top)
}

function inOrder(mistakes: readonly Mistake[]): Mistake[] {
  return [...mistakes].sort((a, b) => a.line - b.line || a.column - b.column)
}

export class Reader {
  readonly source: Source
  readonly #running: Running | undefined
  readonly #isShared: boolean | undefined

  constructor(source: Source, running: Running | undefined, isShared: boolean | undefined) {
    this.source = source
    this.#running = running
    this.#isShared = isShared
  }

  part(top: unknown): ConfigPart | undefined {
    const fields = this.fields(top, [], TOP, 'the configuration')
    if (fields === undefined) return undefined
    const { limiters, domains, bounds, shadow } = fields
    return {
      source: this.source,
      isEmpty: limiters === undefined && domains === undefined,
      limiters: this.#limiters(limiters),
      domains: this.#domains(domains),
      bounds: bounds === undefined ? undefined : this.#bounds(bounds),
      shadow: shadow === undefined ? undefined : this.flag(shadow, ['shadow'], 'shadow'),
    }
  }

  /**
   * The fields of a mapping, of which only the known ones are allowed; undefined, and a mistake,
   * for anything else.
   */
  fields(value: unknown, path: Path, known: readonly string[] | undefined, what: string): Fields | undefined {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.source.wrong(path, `${what} ${shown(value)} must be a mapping${known === undefined ? '' : ` of ${known.join(', ')}`}`)
      return undefined
    }
    for (const name of Object.keys(value)) {
      if (known?.includes(name) !== false) continue
      this.source.wrongName([...path, name], `${shown(name)} is not an option of ${what}: there is ${known.join(', ')}`)
    }
    return value as Fields
  }

  flag(value: unknown, path: Path, what: string): boolean {
    if (value === undefined) return false
    if (typeof value === 'boolean') return value
    this.source.wrong(path, `${what} ${shown(value)} must be true or false`)
    return false
  }

  /** An objection of the library becomes a mistake at that place. */
  accepted<T>(path: Path, make: () => T): T | undefined {
    try {
      return make()
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error
      this.source.wrong(path, error.message)
      return undefined
    }
  }

  limiter(name: string, value: unknown, path: Path): LimiterConfig | undefined {
    if (isBareLimit(value)) {
      this.source.wrong(path, `limiter ${shown(name)} must have its limit one step further in, below limits: { limits: { type: ... } }`)
      return undefined
    }
    const fields = this.fields(value, path, LIMITER_OPTIONS, `limiter ${shown(name)}`)
    if (fields === undefined) return undefined
    const limits = this.limits(fields.limits, [...path, 'limits'])
    const options = this.tuning(fields, path)
    const shadow = this.flag(fields.shadow, [...path, 'shadow'], 'shadow')
    if (limits === undefined) return undefined
    this.#checkNames(name, limits, path)
    this.#checkAlgorithms(name, limits, path)
    const plans = this.#plans(limits, fields.plans, [...path, 'plans'])
    const ahead = this.#aheadOf(limits, plans, options, path)
    const follow = this.follow(fields.follow, [...path, 'follow'], limits, ahead)
    return { name, rule: undefined, limits, plans, options, follow, shadow }
  }

  /** One limit (it has a `type`), or several by name. */
  limits(value: unknown, path: Path): NamedLimits | undefined {
    const fields = this.fields(value, path, undefined, 'limits')
    if (fields === undefined) return undefined
    if (Object.keys(fields).length === 0) {
      this.source.wrong(path, 'limits {} must be one limit with a type, or several by name')
      return undefined
    }
    if (typeof fields.type === 'string') {
      const limit = this.limit(fields, path)
      return limit === undefined ? undefined : { default: limit }
    }
    const limits = Object.entries(fields).map(([name, json]) => [name, this.limit(json, [...path, name])] as const)
    return limits.some(([, limit]) => limit === undefined) ? undefined : (Object.fromEntries(limits) as NamedLimits)
  }

  /** The library stops at the first mistake: each is mended for it, until there is none. */
  limit(json: unknown, path: Path): Limit | undefined {
    let mended: unknown = json
    // A mended option is not wrong again, and there are not more options than in the file and in
    // the samples.
    for (let mistakes = 0; ; mistakes += 1) {
      try {
        const limit = limitFrom(mended)
        if (limit[RULE].endless && limit[RULE].algorithm.untilReleased) {
          this.source.wrong(
            path,
            `${limit.type} lease is missing: it must be a duration such as 30s, after which the place of a caller that died is free`,
          )
          return undefined
        }
        return mistakes === 0 ? limit : undefined
      } catch (error) {
        if (!(error instanceof SluiceError)) throw error
        const option = optionMeant(mended, error.message)
        const isUnknown = / is not an option/.test(error.message)
        if (option !== undefined && isUnknown) this.source.wrongName([...path, option], error.message)
        else this.source.wrong(isWritten(json, option) ? [...path, option as string] : path, error.message)
        const next = isUnknown ? without(mended, option) : withSample(mended, option)
        if (next === undefined) return undefined
        mended = next
      }
    }
  }

  /** `ahead`: how far ahead the limiter books, if the file says so. */
  follow(value: unknown, path: Path, limits: NamedLimits, ahead: LimiterTuning = {}): FollowConfig | undefined {
    return readFollow(this, value, path, limits, ahead, this.#isShared)
  }

  /** Those that are right. */
  tuning(fields: Fields, path: Path): LimiterTuning {
    const right = TUNING.filter((option) => fields[option] !== undefined && this.#isRight(option, fields[option], [...path, option]))
    return Object.fromEntries(right.map((option) => [option, fields[option]]))
  }

  #isRight(option: string, value: unknown, path: Path): boolean {
    if (value !== null) return this.accepted(path, () => createLimiter(ANY_LIMIT, { [option]: value }).close() === undefined) ?? false
    // `null` would be a default to the library; in a file it is a value that was forgotten.
    this.source.wrong(path, `${option} must have a value`)
    return false
  }

  /** How far ahead a limiter books, if the file says so and its limits have room for that. */
  #aheadOf(limits: NamedLimits, plans: Record<string, NamedLimits>, { maxAheadMs }: LimiterTuning, path: Path): LimiterTuning {
    if (maxAheadMs === undefined) return {}
    const make = () => createLimiter(limits as Limits, { plans, maxAheadMs } as object).close() === undefined
    return this.accepted([...path, 'maxAheadMs'], make) ? { maxAheadMs } : {}
  }

  #bounds(value: unknown): Bounds {
    const fields = this.fields(value, ['bounds'], BOUNDS, 'bounds') ?? {}
    const given = BOUNDS.filter((option) => fields[option] !== undefined)
    for (const option of given) {
      const path = ['bounds', option]
      if (fields[option] === null) this.source.wrong(path, `${option} must have a value`)
      else if (option !== 'maxWaiters') this.accepted(path, () => memoryStore({ [option]: fields[option] }))
      else if (!isWhole(fields[option], MOST_WAITERS)) {
        this.source.wrong(path, `maxWaiters ${shown(fields[option])} must be a whole number from 0 to ${MOST_WAITERS}`)
      }
    }
    return { ...DEFAULT_BOUNDS, ...Object.fromEntries(given.map((option) => [option, fields[option]])) }
  }

  #limiters(value: unknown): Map<string, LimiterConfig> {
    const limiters = new Map<string, LimiterConfig>()
    if (value === undefined) return limiters
    for (const [name, json] of Object.entries(this.fields(value, ['limiters'], undefined, 'limiters') ?? {})) {
      if (name.startsWith(RULES_PREFIX)) {
        this.source.wrongName(['limiters', name], `the name of a limiter ${shown(name)} must not begin with '${RULES_PREFIX}'`)
      }
      const limiter = this.limiter(name, json, ['limiters', name])
      if (limiter !== undefined) limiters.set(name, limiter)
    }
    return limiters
  }

  #domains(value: unknown): Map<string, DomainConfig> {
    const domains = new Map<string, DomainConfig>()
    if (value === undefined) return domains
    for (const [domain, json] of Object.entries(this.fields(value, ['domains'], undefined, 'domains') ?? {})) {
      const path = ['domains', domain]
      if (domain === '') this.source.wrongName(path, 'the name of a domain "" must not be empty')
      const fields = this.fields(json, path, ['descriptors', 'headers'], `domain ${shown(domain)}`)
      if (fields === undefined) continue
      const descriptors = readDescriptors(this, fields.descriptors, [...path, 'descriptors'], [domain])
      domains.set(domain, { descriptors, headers: this.#headers(fields.headers, [...path, 'headers']) })
    }
    return domains
  }

  #headers(value: unknown = 'none', path: Path): DomainConfig['headers'] {
    const choice = HEADER_CHOICES.find((each) => each === value)
    if (choice === undefined) this.source.wrong(path, `headers ${shown(value)} must be one of ${HEADER_CHOICES.join(', ')}`)
    return choice ?? 'none'
  }

  /**
   * The names of a limiter and of its limits become parts of keys in a store: the library has rules
   * for them.
   */
  #checkNames(name: string, limits: NamedLimits, path: Path): void {
    try {
      createLimiter(limits as Limits, { name }).close()
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error
      const limit = Object.keys(limits).find((each) => error.message.startsWith(`the name of a limit ${shown(each)} `))
      this.source.wrongName(limit === undefined ? path : [...path, 'limits', limit], error.message)
    }
  }

  /**
   * What was counted by one algorithm means nothing to another: going on under the same name would
   * forget it, or fail.
   */
  #checkAlgorithms(name: string, limits: NamedLimits, path: Path): void {
    for (const [limit, { type }] of Object.entries(limits)) {
      const before = this.#running?.algorithmOf(name, limit)
      if (before === undefined || before === type) continue
      const place = limit === 'default' ? [...path, 'limits'] : [...path, 'limits', limit]
      this.source.wrong(
        place,
        `limit ${shown(limit)} of limiter ${shown(name)} is a running ${before}: to make it a ${type}, give it another name`,
      )
    }
  }

  #plans(limits: NamedLimits, value: unknown, path: Path): Record<string, NamedLimits> {
    if (value === undefined) return {}
    const plans: [string, NamedLimits][] = []
    for (const [name, json] of Object.entries(this.fields(value, path, undefined, 'plans') ?? {})) {
      const plan = this.limits(json, [...path, name])
      if (plan === undefined) continue
      this.accepted([...path, name], () => createLimiter(limits as Limits, { plans: { [name]: plan } } as object).close())
      plans.push([name, plan])
    }
    return Object.fromEntries(plans)
  }
}

function isWhole(value: unknown, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= most
}

/** For each option of a limit a valid value. */
const SAMPLES: Fields = {
  rate: '1/s',
  burst: 1,
  capacity: 1,
  refill: '1/s',
  leak: '1/s',
  limit: 1,
  window: '1s',
  slots: 1,
  anchor: 'epoch',
  max: 1,
  lease: '30s',
}

/**
 * The option of a limit that a message of the library speaks of: it is named among the first words,
 * after the algorithm.
 */
function optionMeant(json: unknown, message: string): string | undefined {
  if (typeof json !== 'object' || json === null) return undefined
  const words = message.split(/[^\w$-]+/).slice(0, 3)
  return words.slice(1).find((word) => Object.hasOwn(json, word)) ?? words.find((word) => Object.hasOwn(SAMPLES, word))
}

function isWritten(json: unknown, option: string | undefined): boolean {
  return option !== undefined && Object.hasOwn(json as Fields, option)
}

function without(json: unknown, option: string | undefined): Fields | undefined {
  if (!isWritten(json, option)) return undefined
  return Object.fromEntries(Object.entries(json as Fields).filter(([name]) => name !== option))
}

/** Undefined where that would not help. */
function withSample(json: unknown, option: string | undefined): Fields | undefined {
  const { [option ?? '']: sample } = SAMPLES
  if (option === undefined || sample === undefined || (json as Fields)[option] === sample) return undefined
  return { ...(json as Fields), [option]: sample }
}

/**
 * A limit where a limiter should be: a common mistake, reported once instead of for each of its
 * options.
 */
function isBareLimit(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'type' in value && !('limits' in value)
}

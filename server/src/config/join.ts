/**
 * The files of a configuration, made one. A limiter, a domain and an option of the whole service
 * stand in one file each: of two, one would silently not hold.
 */
import { shown } from '../sluice.ts'
import { type Bounds, DEFAULT_BOUNDS, type DescriptorRule, type DomainConfig, type LimiterConfig, type ServiceConfig } from './config.ts'
import type { Source } from './source.ts'

/** What one file says. */
export interface ConfigPart {
  readonly source: Source
  /** It has neither limiters nor domains. */
  readonly isEmpty: boolean
  readonly limiters: ReadonlyMap<string, LimiterConfig>
  readonly domains: ReadonlyMap<string, DomainConfig>
  /** Undefined: it says nothing of them. */
  readonly bounds: Bounds | undefined
  readonly shadow: boolean | undefined
}

/** A service that runs already, and is to go over to what the files say. */
export interface Running {
  readonly bounds: Bounds
  /** Whether others share its store. */
  readonly isShared: boolean
  /** The algorithm under which it has counted for a limit of a limiter. */
  algorithmOf(limiter: string, limit: string): string | undefined
}

/** What is wrong is noted at its place. */
export function joinedParts(parts: readonly ConfigPart[], running: Running | undefined): ServiceConfig {
  if (parts.every(({ isEmpty }) => isEmpty)) parts[0]?.source.wrong([], 'the configuration must have limiters, domains or both')
  const config = {
    limiters: joinedMaps(parts, 'limiters', 'limiter'),
    domains: joinedMaps(parts, 'domains', 'domain'),
    bounds: onlyOne(parts, 'bounds')?.bounds ?? DEFAULT_BOUNDS,
    shadow: onlyOne(parts, 'shadow')?.shadow ?? false,
  }
  checkMemory(config.bounds, parts, running)
  return config.shadow ? inShadow(config) : config
}

function joinedMaps<Name extends 'limiters' | 'domains'>(parts: readonly ConfigPart[], name: Name, what: string): ConfigPart[Name] {
  const joined = new Map<string, LimiterConfig & DomainConfig>()
  const files = new Map<string, string>()
  for (const { source, [name]: entries } of parts) {
    for (const [key, value] of entries) {
      const file = files.get(key)
      if (file !== undefined) source.wrongName([name, key], `${what} ${shown(key)} stands in ${file} already`)
      files.set(key, source.file)
      joined.set(key, value as LimiterConfig & DomainConfig)
    }
  }
  return joined
}

/** The part that says it. */
function onlyOne(parts: readonly ConfigPart[], name: 'bounds' | 'shadow'): ConfigPart | undefined {
  const [first, ...others] = parts.filter((part) => part[name] !== undefined)
  for (const { source } of others) source.wrongName([name], `${name} stands in ${first?.source.file} already`)
  return first
}

/** The memory is made when the service starts. */
function checkMemory(bounds: Bounds, parts: readonly ConfigPart[], running: Running | undefined): void {
  const source = (parts.find((part) => part.bounds !== undefined) ?? parts[0])?.source
  for (const option of ['maxKeys', 'onFull'] as const) {
    const before = running?.bounds[option] ?? bounds[option]
    if (bounds[option] === before) continue
    source?.wrong(['bounds', option], `${option} ${shown(bounds[option])} is ${shown(before)} in the running service: start it anew`)
  }
}

function inShadow(config: ServiceConfig): ServiceConfig {
  const limiters = [...config.limiters].map(([name, limiter]) => [name, { ...limiter, shadow: true }] as const)
  const domains = [...config.domains].map(([name, domain]) => {
    return [name, { ...domain, descriptors: domain.descriptors.map(ruleInShadow) }] as const
  })
  return { ...config, limiters: new Map(limiters), domains: new Map(domains) }
}

function ruleInShadow(rule: DescriptorRule): DescriptorRule {
  const limiter = rule.limiter === undefined ? undefined : { ...rule.limiter, shadow: true }
  return { ...rule, limiter, shadow: true, descriptors: rule.descriptors.map(ruleInShadow) }
}

/** The tree of a domain's descriptors, as in the configuration of Envoy's own service. */
import { createHash } from 'node:crypto'
import { RULE, shown } from '../sluice.ts'
import { type DescriptorRule, type LimiterConfig, RULES_PREFIX } from './config.ts'
import type { Reader } from './read.ts'
import type { Path } from './source.ts'

const OPTIONS = [
  'key',
  'value',
  'limit',
  'unlimited',
  'denied',
  'charge',
  'shadow',
  'onStoreError',
  'storeTimeoutMs',
  'localShare',
  'follow',
  'descriptors',
]

/**
 * `above` is the domain and then every key and value on the way down: it tells the rules of a tree
 * apart.
 */
export function readDescriptors(reader: Reader, value: unknown, path: Path, above: readonly string[]): DescriptorRule[] {
  if (!Array.isArray(value)) {
    reader.source.wrong(path, `descriptors ${shown(value)} must be a list`)
    return []
  }
  const rules = value.map((json: unknown, k) => readRule(reader, json, [...path, k], above)).filter((rule) => rule !== undefined)
  noteTwins(reader, value, path)
  return rules
}

function readRule(reader: Reader, json: unknown, path: Path, above: readonly string[]): DescriptorRule | undefined {
  const fields = reader.fields(json, path, OPTIONS, 'a descriptor')
  if (fields === undefined) return undefined
  const key = text(reader, fields.key, [...path, 'key'], 'key')
  const written = fields.value === undefined ? undefined : text(reader, fields.value, [...path, 'value'], 'value')
  const star = written?.indexOf('*') ?? -1
  if (star >= 0 && star !== (written as string).length - 1) {
    reader.source.wrong([...path, 'value'], `value ${shown(written)} must have its wildcard * at the end, and only there`)
  }
  const here = [...above, key, written ?? '']
  const unlimited = reader.flag(fields.unlimited, [...path, 'unlimited'], 'unlimited')
  const denied = reader.flag(fields.denied, [...path, 'denied'], 'denied')
  const charge = reader.flag(fields.charge, [...path, 'charge'], 'charge')
  const shadow = reader.flag(fields.shadow, [...path, 'shadow'], 'shadow')
  const limiter = fields.limit === undefined ? undefined : readRuleLimiter(reader, fields, path, here, shadow)
  checkAllowance(reader, fields, path, key, { unlimited, denied })
  if (charge && fields.limit === undefined) reader.source.wrong([...path, 'charge'], 'charge: true must stand beside a limit')
  if (fields.follow !== undefined && fields.limit === undefined)
    reader.source.wrong([...path, 'follow'], 'follow must stand beside a limit')
  const descriptors = fields.descriptors === undefined ? [] : readDescriptors(reader, fields.descriptors, [...path, 'descriptors'], here)
  return {
    title: ruleText(here),
    key,
    value: star < 0 ? written : written?.slice(0, star),
    wildcard: star >= 0,
    limiter,
    unlimited,
    denied,
    charge,
    shadow,
    descriptors,
  }
}

/** A limit, none, or nothing at all: one of the three, unless there are more levels. */
function checkAllowance(reader: Reader, fields: Fields, path: Path, key: string, flags: Readonly<Record<string, boolean>>): void {
  const [flag, other] = Object.keys(flags).filter((name) => flags[name])
  if (other !== undefined) reader.source.wrong([...path, other], `${other}: true must not stand beside ${flag}: true`)
  if (flag !== undefined && fields.limit !== undefined) reader.source.wrong([...path, 'limit'], `limit must not stand beside ${flag}: true`)
  if (flag === undefined && fields.limit === undefined && fields.descriptors === undefined) {
    reader.source.wrong(path, `descriptor ${shown(key)} must have a limit, unlimited: true, denied: true, or descriptors below it`)
  }
}

type Fields = Readonly<Record<string, unknown>>

function readRuleLimiter(reader: Reader, fields: Fields, path: Path, here: readonly string[], shadow: boolean): LimiterConfig | undefined {
  const limit = reader.limit(fields.limit, [...path, 'limit'])
  const options = reader.tuning(fields, path)
  if (limit === undefined) return undefined
  if (limit[RULE].algorithm.untilReleased) {
    reader.source.wrong(
      [...path, 'limit', 'type'],
      `type ${shown(limit.type)} must not be the limit of a descriptor, because Envoy does not say when a request is done: make it a limiter, for /v1/acquire and /v1/release`,
    )
    return undefined
  }
  const limits = { default: limit }
  const follow = reader.follow(fields.follow, [...path, 'follow'], limits)
  return { name: stateName(here, limit.type), rule: ruleText(here), limits, plans: {}, options, follow, shadow }
}

/**
 * Under which a store keeps the counts of a rule: the same for the same rule in the next version of
 * the file, whatever else changed. Another algorithm cannot read them and has a name of its own.
 */
function stateName(here: readonly string[], algorithm: string): string {
  const digest = createHash('sha256').update(JSON.stringify(here)).digest('hex').slice(0, 16)
  return `${RULES_PREFIX}${algorithm}.${digest}`
}

/** Such as `edge: tenant, verb = write`. */
function ruleText([domain, ...entries]: readonly string[]): string {
  const shownEntries = entries.flatMap((key, k) => (k % 2 === 1 ? [] : [entries[k + 1] === '' ? key : `${key} = ${entries[k + 1]}`]))
  return `${domain}: ${shownEntries.join(', ')}`
}

function text(reader: Reader, value: unknown, path: Path, what: string): string {
  // YAML reads 404 and true as a number and a truth; in a descriptor they are text.
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'string' && value !== '') return value
  reader.source.wrong(path, `${what} ${shown(value)} must be a text that is not empty`)
  return ''
}

/** Of two rules for the same entry the second would never be asked. */
function noteTwins(reader: Reader, list: readonly unknown[], path: Path): void {
  const seen = new Set<string>()
  for (const [k, json] of list.entries()) {
    const { key, value } = (json ?? {}) as { key?: unknown; value?: unknown }
    const id = JSON.stringify([String(key), value === undefined ? null : String(value)])
    if (seen.has(id)) reader.source.wrong([...path, k], `descriptor ${shown(key)} ${shown(value ?? 'of any value')} stands here twice`)
    seen.add(id)
  }
}

/** A configuration in plain words, for `sluice check`. */
import { type Limit, RULE } from '../sluice.ts'
import {
  DEFAULT_MAX_QUEUE,
  type DescriptorRule,
  type FollowConfig,
  type LimiterConfig,
  type NamedLimits,
  type ServiceConfig,
} from './config.ts'

type Options = Readonly<Record<string, unknown>>

/** One sentence for each algorithm, made from the options as they were written. */
const SENTENCES: Readonly<Record<string, (options: Options) => string>> = {
  gcra: ({ rate, burst }) => `${pace(rate)}, up to ${burst} at once after a rest`,
  tokenBucket: ({ capacity, refill }) => `up to ${capacity} at once, which come back at ${pace(refill)}`,
  leakyBucket: ({ capacity, leak }) => `up to ${capacity} in line, let out at ${pace(leak)}`,
  fixedWindow: ({ limit, window, anchor }) => `${limit} in each ${window}${anchored(anchor)}`,
  slidingWindow: ({ limit, window, slots }) => `about ${limit} in any ${window}, which slides in ${slots} steps`,
  concurrency: ({ max, lease }) => `no more than ${max} at once, each free again ${lease} after it was taken or renewed`,
  slidingLog: ({ limit, window }) => `never more than ${limit} in any ${window}`,
}

const ON_STORE_ERROR: Readonly<Record<string, string>> = {
  throw: 'the caller is told that there is no decision',
  allow: 'everything is let through',
  deny: 'nothing is let through',
  local: 'this process decides by itself',
}

export function explained({ limiters, domains, bounds, shadow }: ServiceConfig): string {
  const lines = [...limiters.values()].flatMap((limiter) => [`limiter ${limiter.name}`, ...indented(limiterLines(limiter))])
  for (const [domain, { descriptors, headers }] of domains) {
    lines.push(`domain ${domain}`, ...indented(descriptors.flatMap(ruleLines)))
    if (headers !== 'none') lines.push(`  responses are given the headers of ${headers}`)
  }
  const { maxKeys, onFull, maxWaiters } = bounds
  const then = onFull === 'deny' ? 'is refused' : 'passes uncounted'
  lines.push('the service', `  holds at most ${maxKeys} keys of each limit in memory, and a new one ${then} while all are in use`)
  lines.push(`  lets at most ${maxWaiters} wait at once`)
  if (shadow) lines.push('  is in shadow: decides and counts, and refuses no call')
  return lines.join('\n')
}

function limiterLines({ limits, plans, options, follow, shadow }: LimiterConfig): string[] {
  const lines = limitLines(limits)
  if (follow !== undefined) lines.push(followLine(follow))
  for (const [name, plan] of Object.entries(plans)) lines.push(`on plan ${name}`, ...indented(limitLines(plan)))
  if (shadow) lines.push('in shadow: decides and counts, and refuses no call')
  const { onStoreError = 'throw', storeTimeoutMs = 1000, localShare = 1, maxQueue = DEFAULT_MAX_QUEUE } = options
  const share = onStoreError === 'local' ? `, with ${localShare * 100} % of each limit` : ''
  lines.push(`if Redis fails or takes more than ${storeTimeoutMs} ms, ${ON_STORE_ERROR[onStoreError]}${share}`)
  lines.push(`at most ${maxQueue} wait for one key`)
  return lines
}

function limitLines(limits: NamedLimits): string[] {
  const entries = Object.entries(limits)
  const lines = entries.map(([name, limit]) => (name === 'default' ? sentence(limit) : `${name}: ${sentence(limit)}`))
  if (entries.length > 1) lines.push('all of them are charged or none')
  return lines
}

function followLine({ limit, signal, min, max, from, to, share = 1 }: FollowConfig): string {
  const ofShare = share === 1 ? '' : `, and ${Number((share * 100).toPrecision(4))} % of that`
  return `${limit ?? 'the rate'} follows ${signal} of this process: ${pace(max)} up to ${from}, ${pace(min)} from ${to} on${ofShare}`
}

function sentence(limit: Limit): string {
  if (limit[RULE].capacity === 0) return `nothing passes (${limit.type})`
  const options = limit as unknown as Options
  return `${SENTENCES[limit.type]?.(options) ?? JSON.stringify(limit)} (${limit.type})`
}

function ruleLines(rule: DescriptorRule): string[] {
  const value = rule.wildcard ? ` = ${rule.value}*` : rule.value === undefined ? ', each value by itself' : ` = ${rule.value}`
  const lines = [`${rule.key}${value}: ${allowance(rule)}`]
  return [...lines, ...indented(rule.descriptors.flatMap(ruleLines))]
}

function allowance({ unlimited, denied, charge, shadow, limiter }: DescriptorRule): string {
  if (unlimited) return 'unlimited'
  if (denied) return shadow ? 'denied, in shadow' : 'denied: nothing passes'
  if (limiter === undefined) return 'no limit by itself, with'
  const charged = charge ? ', charged with hits whether they fit or not' : ''
  const { follow } = limiter
  const following = follow === undefined ? '' : `, ${followLine(follow)}`
  return `${limitLines(limiter.limits).join(', ')}${following}${charged}${shadow ? ', in shadow' : ''}`
}

function pace(rate: unknown): string {
  if (typeof rate === 'string') return rate.replace(/ ?\/ ?/, ' per ')
  const { permits, per } = rate as { permits: number; per: string }
  return `${permits} per ${per}`
}

function anchored(anchor: unknown): string {
  if (anchor === 'first') return ', counted from the first call of a key'
  return typeof anchor === 'number' && anchor !== 0 ? `, moved by ${anchor} ms` : ''
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`)
}

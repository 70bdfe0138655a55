/**
 * The headers about the limits, in the chosen form. All are lists of name, value, name, value ...
 * Names are in lower case, as HTTP/2 wants them: frameworks keep headers by such names, and one
 * that has to be converted first takes longer than all of ours.
 */

import type { Rule } from '../algorithms/algorithm.ts'
import { SluiceError, shown } from '../errors.ts'
import type { Decision, DecisionPart } from '../limiter/decision.ts'
import type { Scope } from '../stores/store.ts'
import { sfBytes, sfString } from './fields.ts'

/**
 * - `draft-11`: `RateLimit-Policy` and `RateLimit` as structured fields, every limit in both;
 * - `draft-7`: the same two names, one limit, `limit=100, remaining=50, reset=5`;
 * - `draft-6`: `RateLimit-Limit`, `-Remaining`, `-Reset` in seconds from now;
 * - `legacy`: `X-RateLimit-Limit`, `-Remaining`, `-Reset` in seconds since 1970.
 */
export type HeaderStyle = 'draft-11' | 'draft-7' | 'draft-6' | 'legacy'

/** One style, `'none'`, or one of the drafts together with `'legacy'`. */
export type HeaderChoice = HeaderStyle | 'none' | readonly HeaderStyle[]

/**
 * The fields for a decision. `scope` holds the limits that decided, `partition` is what stands
 * behind each item.
 */
export type HeaderWriter = (decision: Decision, scope: Scope, partition: string) => string[]

const STYLES: Readonly<Record<HeaderStyle, () => HeaderWriter>> = {
  'draft-11': draft11,
  'draft-7': draft7,
  'draft-6': () => draft6,
  legacy: () => legacy,
}

export function headerWriter(choice: HeaderChoice): HeaderWriter | undefined {
  const styles = choice === 'none' ? [] : typeof choice === 'string' ? [choice] : choice
  if (!Array.isArray(styles) || !styles.every((style) => Object.hasOwn(STYLES, style))) throw badChoice(choice)
  if (styles.filter((style) => style !== 'legacy').length > 1 || new Set(styles).size < styles.length) throw badChoice(choice)
  const [first, second] = styles.map((style) => STYLES[style as HeaderStyle]())
  if (first === undefined || second === undefined) return first
  return (decision, scope, partition) => [...first(decision, scope, partition), ...second(decision, scope, partition)]
}

function badChoice(choice: unknown): SluiceError {
  return new SluiceError(
    'CONFIG',
    `headers ${shown(choice)} must be 'draft-11', 'draft-7', 'draft-6', 'legacy', 'none', or one draft and 'legacy'`,
  )
}

/** A partition as it stands behind an item. */
export function partitionText(partition: string): string {
  return `;pk=${sfBytes(partition)}`
}

/** Headers round up: a client that waits that long has waited long enough. */
export function secondsOf(ms: number): number {
  return Math.ceil(ms / 1000)
}

/**
 * How long what a limit says holds: until it is idle again, or for one that refuses, until it would
 * admit the same call. `Retry-After` is the longest of these, so the two never contradict each
 * other.
 */
function effectiveMs({ outcome, retryAfterMs, resetAfterMs }: DecisionPart): number {
  return outcome === 'limited' ? retryAfterMs : resetAfterMs
}

/** When to come back where only a release helps: that time is unknown, and may be soon. */
const RETRY_MS = 1_000

function isUntilReleased({ algorithm }: Rule): boolean {
  return algorithm.untilReleased === true
}

/**
 * The wait that a refused client is told: that of the decision, unless a place may be given back
 * sooner. Infinity where waiting does not help.
 */
export function toldMs({ outcome, policy, retryAfterMs }: Decision, { limits }: Scope): number {
  if (outcome !== 'limited') return retryAfterMs
  for (const { name, rule } of limits) if (name === policy && isUntilReleased(rule)) return RETRY_MS
  return retryAfterMs
}

/**
 * Fields beside those of a limiter that decided about the same request before: lists tell of both.
 * Forms with room for one limit tell of the one that leaves less; `binds` says that this is ours.
 * `read` finds what the response says by now. `isOuter`: ours was asked first, and tells last.
 */
export function besides(headers: readonly string[], read: (name: string) => unknown, binds: boolean, isOuter = false): string[] {
  const all: string[] = []
  for (let k = 0; k < headers.length; k += 2) {
    const [name, value] = [headers[k] as string, headers[k + 1] as string]
    const before = read(name)
    if (typeof before !== 'string' || !OF_LIMITS.test(name)) all.push(name, value)
    else if (isList(name, before) && isList(name, value)) all.push(name, isOuter ? `${value},${before}` : `${before},${value}`)
    else if (binds) all.push(name, value)
  }
  return all
}

const OF_LIMITS = /^(x-)?ratelimit/

function isList(name: string, value: string): boolean {
  return name === 'ratelimit-policy' || (name === 'ratelimit' && value.startsWith('"'))
}

/**
 * The same of the limit that binds, for forms that have room for one, and no word for what is
 * released.
 */
function bindingMs({ parts, policy }: Decision, { limits }: Scope): number {
  for (const { name, rule } of limits) if (name === policy && isUntilReleased(rule)) return RETRY_MS
  return effectiveMs(parts[policy] as DecisionPart)
}

/**
 * Policies change only with the numbers of the limiter, so their texts are made once for each set
 * of them.
 */
function oncePerScope<T>(make: (scope: Scope) => T): (scope: Scope) => T {
  const known = new WeakMap<Scope, T>()
  return (scope) => {
    const found = known.get(scope)
    if (found !== undefined) return found
    const made = make(scope)
    known.set(scope, made)
    return made
  }
}

/**
 * The window in whole seconds, at least one: `w=0` is not allowed. People are told the rate that
 * they asked for.
 */
function windowSeconds(rule: Rule): number {
  return Math.max(1, Math.ceil((rule.asked ?? rule).windowUs / 1_000_000))
}

/** The unit of a quota: calls in a window, or calls that run at once. */
function unitOf(rule: Rule): string {
  return isUntilReleased(rule) ? ';qu="concurrent-requests"' : `;w=${windowSeconds(rule)}`
}

function draft11(): HeaderWriter {
  const textsOf = oncePerScope(({ limits }) => {
    const named = limits.map(({ name, rule }) => ({ name, text: sfString(name), rule }))
    const items = named.map(({ text, rule }) => `${text};q=${rule.capacity}${unitOf(rule)}`)
    return { named, items, policy: items.join(',') }
  })
  return (decision, scope, partition) => {
    const { named, items, policy } = textsOf(scope)
    let limits = ''
    for (const { name, text, rule } of named) {
      const part = decision.parts[name] as DecisionPart
      const until = isUntilReleased(rule) ? '' : `;t=${secondsOf(effectiveMs(part))}`
      const item = `${text};r=${part.remaining}${until}${partition}`
      limits = limits === '' ? item : `${limits},${item}`
    }
    const policies = partition === '' ? policy : items.map((item) => item + partition).join(',')
    return ['ratelimit-policy', policies, 'ratelimit', limits]
  }
}

function draft7(): HeaderWriter {
  const policies = oncePerScope(({ limits }) => limits.map(({ rule }) => `${rule.capacity}${unitOf(rule)}`).join(', '))
  return (decision, scope) => {
    const { limit, remaining } = decision
    const reset = secondsOf(bindingMs(decision, scope))
    return ['ratelimit-policy', policies(scope), 'ratelimit', `limit=${limit}, remaining=${remaining}, reset=${reset}`]
  }
}

function draft6(decision: Decision, scope: Scope): string[] {
  const reset = secondsOf(bindingMs(decision, scope))
  return ['ratelimit-limit', `${decision.limit}`, 'ratelimit-remaining', `${decision.remaining}`, 'ratelimit-reset', `${reset}`]
}

function legacy(decision: Decision, scope: Scope): string[] {
  const reset = secondsOf(decision.atMs + bindingMs(decision, scope))
  return ['x-ratelimit-limit', `${decision.limit}`, 'x-ratelimit-remaining', `${decision.remaining}`, 'x-ratelimit-reset', `${reset}`]
}

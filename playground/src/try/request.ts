/** A question to the service: what goes over the wire, and the same as curl and as TypeScript. */
import { bearer } from '../token.ts'

export const VERBS = ['consume', 'peek', 'reserve', 'acquire', 'refund', 'charge', 'settle', 'look', 'reset', 'rule'] as const
export type TryVerb = (typeof VERBS)[number]

export interface TryInput {
  readonly verb: TryVerb
  readonly limiter: string
  readonly key: string
  /** Whole permits, or an object of them, as it was typed. */
  readonly cost: string
  readonly plan: string
  readonly maxWaitMs: string
  readonly timeoutMs: string
  /** What was used, as the cost. */
  readonly actual: string
  /** The decision that is settled, as JSON. */
  readonly of: string
  /** Of `rule`: the domain, and the entries of a descriptor as `key=value, key=value`. */
  readonly domain: string
  readonly entries: string
  readonly token: string
}

export interface WireRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

type JsonField = 'cost' | 'actual' | 'of'

/** A field that must be JSON, or entries, and is not. */
export class FieldError extends Error {
  readonly field: JsonField | 'entries'

  constructor(field: JsonField | 'entries', text: string) {
    super(text)
    this.field = field
  }
}

/** Which of the optional fields a verb takes. */
export const FIELDS_OF: Readonly<Record<TryVerb, readonly (JsonField | 'plan' | 'maxWaitMs' | 'timeoutMs')[]>> = {
  consume: ['cost', 'plan'],
  peek: ['cost', 'plan'],
  reserve: ['cost', 'plan', 'maxWaitMs'],
  acquire: ['cost', 'plan', 'timeoutMs'],
  refund: ['cost'],
  charge: ['cost', 'plan'],
  settle: ['cost', 'plan', 'actual', 'of'],
  look: ['cost', 'plan'],
  reset: [],
  rule: ['cost'],
}

/** Verbs with a path of their own; the others are said to `/v1/decide`. */
const PATHS: Readonly<Partial<Record<TryVerb, string>>> = { acquire: '/v1/acquire', charge: '/v1/charge', settle: '/v1/settle' }

/** Throws a FieldError for a cost that is no number and no JSON, and for entries that are none. */
export function wireRequest(asked: TryInput): WireRequest {
  const { verb } = asked
  if (verb === 'look' || verb === 'reset') return ofKey(asked)
  if (verb === 'rule') return ofRule(asked)
  const takes = FIELDS_OF[verb]
  const body = {
    limiter: asked.limiter,
    key: asked.key,
    ...(verb === 'consume' || PATHS[verb] !== undefined ? {} : { verb }),
    ...(asked.cost.trim() === '1' ? {} : { cost: jsonOf(asked, 'cost') }),
    ...(takes.includes('plan') && asked.plan !== '' ? { plan: asked.plan } : {}),
    ...numberOf(asked, 'maxWaitMs'),
    ...numberOf(asked, 'timeoutMs'),
    ...(takes.includes('actual') ? { actual: jsonOf(asked, 'actual'), of: jsonOf(asked, 'of') } : {}),
  }
  const headers = { 'content-type': 'application/json', ...bearer(asked.token) }
  return { method: 'POST', path: PATHS[verb] ?? '/v1/decide', headers, body: JSON.stringify(body) }
}

function ofKey(asked: TryInput): WireRequest {
  const path = `/v1/limiters/${encodeURIComponent(asked.limiter)}/keys/${encodeURIComponent(asked.key)}`
  if (asked.verb === 'reset') return { method: 'DELETE', path, headers: bearer(asked.token), body: undefined }
  const query = new URLSearchParams()
  if (asked.cost.trim() !== '1') query.set('cost', JSON.stringify(jsonOf(asked, 'cost')))
  if (asked.plan !== '') query.set('plan', asked.plan)
  const text = query.toString()
  return { method: 'GET', path: text === '' ? path : `${path}?${text}`, headers: bearer(asked.token), body: undefined }
}

/** Envoy's question, in protobuf's JSON. */
function ofRule(asked: TryInput): WireRequest {
  const { domain, cost } = asked
  const hits = cost.trim() === '1' ? {} : { hitsAddend: jsonOf(asked, 'cost') }
  const body = JSON.stringify({ domain, descriptors: [{ entries: entriesIn(asked.entries) }], ...hits })
  return { method: 'POST', path: '/json', headers: { 'content-type': 'application/json', ...bearer(asked.token) }, body }
}

function entriesIn(text: string): { readonly key: string; readonly value: string }[] {
  return text.split(',').map((entry) => {
    const [, key, value] = /^\s*([^=]+?)\s*=\s*(.*?)\s*$/.exec(entry) ?? []
    if (key === undefined || value === undefined) throw new FieldError('entries', text)
    return { key, value }
  })
}

/**
 * What a rule is asked with, from its name in the file: `edge: tenant, verb = write` is
 * `tenant=example, verb=write`.
 */
export function entriesOf(domain: string, rule: string): string {
  const entries = rule.slice(`${domain}: `.length).split(', ')
  return entries
    .map((entry) => {
      const [key, value = 'example'] = entry.split(' = ')
      return `${key}=${value.replace(/\*$/, 'example')}`
    })
    .join(', ')
}

function jsonOf(asked: TryInput, field: JsonField): unknown {
  try {
    return JSON.parse(asked[field])
  } catch {
    throw new FieldError(field, asked[field])
  }
}

interface Times {
  readonly resetAfterMs: number
  readonly delayMs: number
}

/**
 * What `settle` needs of an answer, as JSON; undefined if the answer is no decision that charged
 * something.
 */
export function decisionIn({ path, body }: WireRequest, text: string): string | undefined {
  const { verb = 'consume' } = JSON.parse(body ?? '{}') as { verb?: string }
  if (path !== '/v1/acquire' && (path !== '/v1/decide' || verb === 'peek' || verb === 'refund')) return undefined
  try {
    const { atMs, outcome, parts } = JSON.parse(text) as { atMs: number; outcome: string; parts: Record<string, Times> }
    const needed = Object.entries(parts).map(([name, { resetAfterMs, delayMs }]) => [name, { resetAfterMs, delayMs }])
    return JSON.stringify({ atMs, outcome, parts: Object.fromEntries(needed) })
  } catch {
    return undefined
  }
}

/** What is no number goes as it was typed, so that the service can say what is wrong with it. */
function numberOf(asked: TryInput, name: 'maxWaitMs' | 'timeoutMs'): Record<string, number | string> {
  const text = asked[name].trim()
  if (!FIELDS_OF[asked.verb].includes(name) || text === '') return {}
  return { [name]: Number.isFinite(Number(text)) ? Number(text) : text }
}

export function curlOf({ method, path, headers, body }: WireRequest, origin: string): string {
  const parts = ['curl -i']
  if (method === 'DELETE') parts.push('-X DELETE')
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${quoted(`${name}: ${value}`)}`)
  if (body !== undefined) parts.push(`-d ${quoted(body)}`)
  return [...parts, quoted(`${origin}${path}`)].join(' ')
}

/** For a shell: nothing inside single quotes means anything but the quote itself. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

export function codeOf({ method, path, headers, body }: WireRequest, origin: string): string {
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}',`]),
    ...(Object.keys(headers).length === 0 ? [] : [`headers: ${literal(headers)},`]),
    ...(body === undefined ? [] : [`body: JSON.stringify(${literal(JSON.parse(body))}),`]),
  ]
  const init = options.length === 0 ? '' : `, {\n${options.map((line) => `  ${line}\n`).join('')}}`
  const answer = method === 'DELETE' ? 'console.log(response.status)' : 'console.log(response.status, await response.json())'
  return `const response = await fetch(${literal(origin + path)}${init})\n${answer}\n`
}

/** A value as people write it in TypeScript. */
export function literal(value: unknown): string {
  if (typeof value === 'string') return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  const fields = Object.entries(value).map(([name, of]) => `${/^[a-zA-Z_]\w*$/.test(name) ? name : literal(name)}: ${literal(of)}`)
  return `{ ${fields.join(', ')} }`
}

/** The request as it goes over the wire. */
export function shownRequest({ method, path, headers, body }: WireRequest): string {
  const lines = [`${method} ${path} HTTP/1.1`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)]
  return body === undefined ? lines.join('\n') : `${lines.join('\n')}\n\n${pretty(body)}`
}

export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

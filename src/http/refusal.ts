/** What a refused client is answered: a status, headers, and a body in a form that it reads. */
import { SluiceError, shown } from '../errors.ts'
import type { Decision, DecisionPart } from '../limiter/decision.ts'
import { type BodyForm, preferredForm } from './accept.ts'
import { secondsOf } from './headers.ts'
import { disregard, type HttpRequest, isPromise } from './request.ts'

export interface Refusal {
  readonly status: number
  /** Name, value, name, value ...: those of the limits, `Retry-After` where waiting helps, and `Content-Type`. */
  readonly headers: readonly string[]
  readonly body: string
}

/** A text, or anything that becomes JSON; or a function that makes one of the two. */
export type BodySource<Native> = string | object | ((native: Native, decision: Decision) => string | object)

/** Titles are those of draft-ietf-httpapi-ratelimit-headers, section 5. */
export const EXCEEDED = {
  type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  title: 'Request cannot be satisfied as assigned quota has been exceeded',
}
export const REDUCED = {
  type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
  title: 'Request cannot be satisfied due to temporary server capacity constraints',
}

export const TOO_MANY_REQUESTS = 429
const SERVICE_UNAVAILABLE = 503

const CONTENT_TYPES: Readonly<Record<BodyForm, string>> = {
  json: 'application/problem+json',
  text: 'text/plain; charset=utf-8',
  html: 'text/html; charset=utf-8',
}

export function checkStatus(status: number): number {
  if (Number.isInteger(status) && status >= 400 && status <= 599) return status
  throw new SluiceError('CONFIG', `status ${shown(status)} must be a whole number from 400 to 599`)
}

/** Makes refusals. `ofLimits` are the headers of the limits; more come on top. */
export class Refusals<Native> {
  readonly #status: number
  readonly #source: BodySource<Native> | undefined
  /** Whether the limiter refuses everything while its store is down: then it is not the client who did too much. */
  readonly #deniesOutages: boolean
  /** Bodies that were made before: there are as many as there are ways to exceed the limits, which is few. */
  readonly #known = new Map<string, string>()

  constructor(status: number, source: BodySource<Native> | undefined, deniesOutages: boolean) {
    this.#status = status
    this.#source = source
    this.#deniesOutages = deniesOutages
  }

  of(decision: Decision, ofLimits: readonly string[], native: Native, http: HttpRequest): Refusal {
    const headers = [...ofLimits]
    const isReduced = decision.degraded && this.#deniesOutages
    const status = isReduced ? SERVICE_UNAVAILABLE : this.#status
    const { retryAfterMs } = decision
    // Waiting does not help a cost that can never fit. A second at least: 0 would be an invitation to come back at once.
    if (retryAfterMs < Number.POSITIVE_INFINITY) headers.push('retry-after', `${Math.max(1, secondsOf(retryAfterMs))}`)
    if (this.#source !== undefined) return ownRefusal(this.#source, status, headers, native, decision)
    const form = preferredForm(http.header('accept'))
    headers.push('content-type', CONTENT_TYPES[form])
    return { status, headers, body: this.#body(status, form, isReduced, decision) }
  }

  #body(status: number, form: BodyForm, isReduced: boolean, { parts }: Decision): string {
    // No limit's name has such a sign in it. Put together as it goes, because every refusal comes here.
    let id = isReduced ? `${form}!` : form
    for (const name in parts) if ((parts[name] as DecisionPart).outcome !== 'allowed') id += ` ${name}`
    const known = this.#known.get(id)
    if (known !== undefined) return known
    const violated = Object.keys(parts).filter((name) => (parts[name] as DecisionPart).outcome !== 'allowed')
    const body = written(form, { ...(isReduced ? REDUCED : EXCEEDED), status, 'violated-policies': violated })
    this.#known.set(id, body)
    return body
  }
}

function ownRefusal<Native>(source: BodySource<Native>, status: number, headers: string[], native: Native, decision: Decision): Refusal {
  const made: unknown = typeof source === 'function' ? source(native, decision) : source
  if (isPromise(made)) {
    disregard(made)
    throw new SluiceError('CONFIG', 'body returned a promise, but must return a text or an object: a refusal waits for nothing')
  }
  const isText = typeof made === 'string'
  headers.push('content-type', isText ? CONTENT_TYPES.text : 'application/json')
  return { status, headers, body: isText ? made : JSON.stringify(made) }
}

interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly 'violated-policies': readonly string[]
}

/** Nothing in it comes from the client, and names of limits hold no characters that HTML would mind. */
function written(form: BodyForm, problem: Problem): string {
  if (form === 'json') return JSON.stringify(problem)
  const policies = problem['violated-policies']
  const text = policies.length === 0 ? `${problem.title}.` : `${problem.title}: ${policies.join(', ')}.`
  if (form === 'text') return `${text}\n`
  const title = problem.status === SERVICE_UNAVAILABLE ? 'Service unavailable' : 'Too many requests'
  return `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>${title}</title></head><body><h1>${title}</h1><p>${text}</p></body></html>\n`
}

/** The answer to a refused client: a status, headers, and a body in a form that it reads. */
import { SluiceError, shown } from '../errors.ts'
import type { Decision, DecisionPart } from '../limiter/decision.ts'
import { type BodyForm, preferredForm } from './accept.ts'
import { secondsOf } from './headers.ts'
import type { HttpChoices } from './options.ts'
import { disregard, type HttpRequest, isPromise } from './request.ts'
import { waitInWords } from './wait-text.ts'

export interface Refusal {
  readonly status: number
  /**
   * Name, value, name, value ...: those of the limits, `retry-after` where waiting helps,
   * `cache-control` and `content-type`.
   */
  readonly headers: readonly string[]
  readonly body: string
}

/** Another answer to a refusal. Missing fields stay as usual. */
export interface Answer {
  /** 200 to 599: 303 with a `location` sends the client elsewhere. */
  readonly status?: number | undefined
  /** By name, beside the usual ones or in place of them. Undefined takes one away. */
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined
  /** A text, or anything that becomes JSON. */
  readonly body?: string | object | undefined
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

const CONTENT_TYPE = 'content-type'
const JSON_TYPE = 'application/json'
const CONTENT_TYPES: Readonly<Record<BodyForm, string>> = {
  json: 'application/problem+json',
  text: 'text/plain; charset=utf-8',
  html: 'text/html; charset=utf-8',
}

function checkStatus(status: number, least: number): number {
  if (Number.isInteger(status) && status >= least && status <= 599) return status
  throw new SluiceError('CONFIG', `status ${shown(status)} must be a whole number from ${least} to 599`)
}

/**
 * Bodies that were made before, by the names of the limits that refuse: there are as many as there
 * are ways to exceed the limits, which is few.
 */
function noBodies(): Readonly<Record<BodyForm, Map<string, Body>>> {
  return { json: new Map(), text: new Map(), html: new Map() }
}

export class Refusals<Native> {
  readonly #status: number
  readonly #source: BodySource<Native> | undefined
  readonly #exceeded = noBodies()
  readonly #reduced = noBodies()

  constructor({ status = TOO_MANY_REQUESTS, body }: HttpChoices<Native>) {
    this.#status = checkStatus(status, 400)
    this.#source = body
  }

  /**
   * `retryAfterMs`: what the client is told, Infinity where waiting does not help. `headers` are
   * those of the limits, and the others are added to them. `isOutage`: the store is down or full,
   * or the load has lowered the limit; it is not the client who did too much.
   */
  usual(decision: Decision, retryAfterMs: number, headers: string[], isOutage: boolean, native: Native, http: HttpRequest): Refusal {
    const status = isOutage ? SERVICE_UNAVAILABLE : this.#status
    // Waiting does not help a cost that can never fit. A second at least: 0 would be an invitation
    // to come back at once.
    if (retryAfterMs < Number.POSITIVE_INFINITY) headers.push('retry-after', `${Math.max(1, secondsOf(retryAfterMs))}`)
    // A shared cache that stores a refusal would answer every client with it.
    headers.push('cache-control', 'no-store', CONTENT_TYPE)
    if (this.#source !== undefined) return ownRefusal(this.#source, status, headers, native, decision)
    const form = preferredForm(http.header('accept'))
    headers.push(CONTENT_TYPES[form])
    return { status, headers, body: this.#body(form, status, isOutage, decision.parts, retryAfterMs) }
  }

  #body(form: BodyForm, status: number, isOutage: boolean, parts: Decision['parts'], retryAfterMs: number): string {
    // Every refusal comes here, and nearly always one limit refuses: its name is a text that need
    // not be made.
    let violated = ''
    for (const name in parts)
      if ((parts[name] as DecisionPart).outcome !== 'allowed') violated = violated === '' ? name : `${violated} ${name}`
    const known = (isOutage ? this.#reduced : this.#exceeded)[form]
    let made = known.get(violated)
    if (made === undefined) {
      made = bodyOf(form, status, isOutage, parts)
      known.set(violated, made)
    }
    return made.text(retryAfterMs)
  }
}

/** `headers` ends with the name of the content type. */
function ownRefusal<Native>(source: BodySource<Native>, status: number, headers: string[], native: Native, decision: Decision): Refusal {
  const made: unknown = typeof source === 'function' ? source(native, decision) : source
  if (isPromise(made)) {
    disregard(made)
    throw new SluiceError('CONFIG', 'body returned a promise, but must return a text or an object: `answer` may take its time')
  }
  headers.push(typeof made === 'string' ? CONTENT_TYPES.text : JSON_TYPE)
  return { status, headers, body: textOf(made) }
}

function textOf(body: unknown): string {
  return typeof body === 'string' ? body : JSON.stringify(body)
}

/** `undefined` leaves the usual answer. */
export function answeredWith(answer: Answer | undefined, usual: Refusal): Refusal {
  if (answer === undefined) return usual
  if (typeof answer !== 'object' || answer === null) {
    throw new SluiceError(
      'CONFIG',
      `answer returned ${shown(answer)}: it must return { status, headers, body }, each if it is another, or undefined`,
    )
  }
  const { status = usual.status, headers = {} } = answer
  // The text of a refusal does not belong into a redirect.
  const isRedirect = status >= 300 && status < 400
  const { body = isRedirect ? '' : undefined } = answer
  const fields = new Map<string, string | undefined>()
  for (let k = 0; k < usual.headers.length; k += 2) fields.set(usual.headers[k] as string, usual.headers[k + 1] as string)
  if (body === '' && isRedirect) fields.delete(CONTENT_TYPE)
  else if (body !== undefined) fields.set(CONTENT_TYPE, typeof body === 'string' ? CONTENT_TYPES.text : JSON_TYPE)
  for (const [name, value] of Object.entries(headers)) fields.set(name.toLowerCase(), value)
  const list = [...fields].flatMap(([name, value]) => (value === undefined ? [] : [name, value]))
  return { status: checkStatus(status, 200), headers: list, body: body === undefined ? usual.body : textOf(body) }
}

/**
 * What a refusal says, but for the wait: the head, the wait in words, the tail, and where JSON can
 * hold it, the wait in milliseconds.
 */
class Body {
  readonly #head: string
  readonly #tail: string
  /** Before the milliseconds, and behind them. */
  readonly #retryAfter: string
  readonly #end: string
  /** Refusals come in floods, and all of a millisecond may say the same. */
  #textMs = Number.NaN
  #text = ''

  constructor(head: string, tail: string, retryAfter = '', end = '') {
    this.#head = head
    this.#tail = tail
    this.#retryAfter = retryAfter
    this.#end = end
  }

  text(retryAfterMs: number): string {
    const ms = Math.ceil(retryAfterMs)
    if (ms !== this.#textMs) {
      // Infinity is no JSON, and says that waiting does not help.
      const told = ms < Number.POSITIVE_INFINITY && this.#retryAfter !== '' ? this.#retryAfter + ms : ''
      this.#text = this.#head + waitInWords(ms) + this.#tail + told + this.#end
      this.#textMs = ms
    }
    return this.#text
  }
}

/**
 * Nothing in it comes from the client, and names of limits hold no characters that HTML would mind.
 */
function bodyOf(form: BodyForm, status: number, isOutage: boolean, parts: Decision['parts']): Body {
  const heading = isOutage ? 'Service unavailable' : 'Too many requests'
  if (form === 'text') return new Body(`${heading}. `, '\n')
  if (form === 'html') {
    const head = `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${heading}</title></head>`
    return new Body(`${head}<body><h1>${heading}</h1><p>`, '</p></body></html>\n')
  }
  const { type, title } = isOutage ? REDUCED : EXCEEDED
  const violated = Object.keys(parts).filter((name) => (parts[name] as DecisionPart).outcome !== 'allowed')
  const begun = JSON.stringify({ type, title, status, detail: `${heading}. ` })
  // Without the quote and the bracket that end it.
  return new Body(begun.slice(0, -2), `","violated-policies":${JSON.stringify(violated)}`, ',"retryAfterMs":', '}')
}

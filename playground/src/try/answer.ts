/** Answers: the last one in full, and the ones before it as a list. */
import { h, put } from '../dom.ts'
import { counted, plain, rounded } from '../numbers.ts'
import { labelled, table } from '../playground/tables.ts'
import type { Texts } from '../text/en.ts'
import { pretty, type WireRequest } from './request.ts'

export interface Answered {
  readonly wire: WireRequest
  readonly atMs: number
  readonly tookMs: number
  readonly response: Response
  readonly text: string
}

const MAX_KEPT = 50
const TOO_MANY_REQUESTS = 429

/** Neither a decision nor a refusal: the question was wrong, or the service is in trouble. */
export const isWrong = ({ response }: Answered): boolean => !response.ok && response.status !== TOO_MANY_REQUESTS

/** A reset and a refund are always granted; a decision says so itself. */
export const isAdmitted = ({ response, text }: Answered): boolean => response.ok && !text.includes('"allowed":false')

/** Kept while another tab is open, or another language is chosen. The newest is the first. */
let kept: readonly Answered[] = []

export class AnswerPanel {
  readonly element: HTMLElement
  readonly #texts: Texts
  readonly #answer = h('div', { class: 'stack', 'aria-live': 'polite', 'data-part': 'answer' })
  readonly #history = h('div', { 'data-part': 'history' })

  constructor(texts: Texts) {
    this.#texts = texts
    this.element = h('section', { class: 'panel' }, h('h2', {}, texts.try.answer), this.#answer, this.#history)
    this.#say(texts.try.noAnswer)
    this.#showHistory()
  }

  sending(): void {
    this.#say(this.#texts.try.sending)
  }

  failed(reason: unknown): void {
    put(this.#answer, h('p', { class: 'error' }, this.#texts.try.failed(reason instanceof Error ? reason.message : String(reason))))
  }

  /** One answer of a series. */
  keep(answered: Answered): void {
    kept = [answered, ...kept].slice(0, MAX_KEPT)
  }

  /**
   * The answer that is shown in full. `series`: how many were sent, and how many of them admitted,
   * if there were several.
   */
  show(answered: Answered, series: { readonly sent: number; readonly admitted: number } | undefined): void {
    const { response, text, tookMs } = answered
    const { took, series: told, headers } = this.#texts.try
    const ms = h('span', { class: 'note' }, took(plain(rounded(tookMs))))
    put(
      this.#answer,
      h('p', { class: 'status', 'data-part': 'status' }, `${statusOf(response)} `, ms, ' ', this.#badge(text)),
      series &&
        h('p', { 'data-part': 'series' }, told(counted(series.sent), counted(series.admitted), counted(series.sent - series.admitted))),
      text !== '' && h('pre', { tabindex: 0, 'data-part': 'body' }, pretty(text)),
      h('h3', {}, headers),
      h('pre', { tabindex: 0, 'data-part': 'headers' }, [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n')),
    )
    this.#showHistory()
  }

  #say(text: string): void {
    put(this.#answer, h('p', { class: 'note' }, text))
  }

  /** Of a decision: what it was. */
  #badge(text: string): HTMLElement | undefined {
    const [, said] = /"(?:allowed|overallCode)":(true|false|"OK"|"OVER_LIMIT")/.exec(text) ?? []
    if (said === undefined) return undefined
    const { admitted, refused } = this.#texts.step
    return said === 'true' || said === '"OK"'
      ? h('span', { class: 'admitted' }, `▲ ${admitted}`)
      : h('span', { class: 'refused' }, `▼ ${refused}`)
  }

  #showHistory(): void {
    if (kept.length < 2) {
      put(this.#history)
      return
    }
    const { history, historyColumns: columns } = this.#texts.try
    const head = [columns.at, columns.request, columns.answer, columns.remaining, columns.retry]
    const rows = kept.map((answered) => labelled(head, this.#cells(answered), {}))
    put(this.#history, h('h3', {}, history), table(head, h('tbody', {}, ...rows), history, 'cards'))
  }

  #cells({ wire, atMs, response, text }: Answered): HTMLElement[] {
    const { remaining, retryAfterMs } = figuresOf(text)
    return [
      h('th', { scope: 'row' }, CLOCK.format(atMs)),
      h('td', { class: 'number' }, shortRequest(wire)),
      h('td', { class: 'number' }, this.#badge(text) ?? statusOf(response)),
      h('td', { class: 'number' }, remaining === undefined ? '–' : counted(remaining)),
      h('td', { class: 'number' }, retryAfterMs === undefined || retryAfterMs === 0 ? '–' : `${plain(retryAfterMs)} ms`),
    ]
  }
}

/** To the millisecond, by the user's own clock, as Live has it. */
const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 })

/** Over HTTP/2 a status has no text. */
const statusOf = ({ status, statusText }: Response): string => (statusText === '' ? String(status) : `${status} ${statusText}`)

interface SentBody {
  readonly verb?: string
  readonly key?: string
  readonly cost?: unknown
  readonly descriptors?: readonly { readonly entries: readonly { readonly key: string; readonly value: string }[] }[]
}

function shortRequest({ method, path, body }: WireRequest): string {
  const { verb, key, cost, descriptors } = JSON.parse(body ?? '{}') as SentBody
  if (descriptors !== undefined)
    return descriptors.flatMap(({ entries }) => entries.map((entry) => `${entry.key}=${entry.value}`)).join(', ')
  if (key === undefined) return `${method} ${decodeURIComponent(path.split('/').at(-1) as string)}`
  const name = verb ?? (path === '/v1/decide' ? 'consume' : path.slice('/v1/'.length))
  return `${name} ${key}${cost === undefined ? '' : ` × ${JSON.stringify(cost)}`}`
}

function figuresOf(text: string): { readonly remaining?: number; readonly retryAfterMs?: number } {
  try {
    const { statuses, ...decision } = JSON.parse(text) as {
      remaining?: number
      retryAfterMs?: number
      statuses?: { limitRemaining: number }[]
    }
    return statuses?.[0] === undefined ? decision : { remaining: statuses[0].limitRemaining }
  } catch {
    return {}
  }
}

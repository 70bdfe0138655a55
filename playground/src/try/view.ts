/** Try: a form that asks the running service, and everything that went to and fro. */
import { copyButton, h, put } from '../dom.ts'
import type { View } from '../playground/view.ts'
import type { Texts } from '../text/en.ts'
import { authorization, UNAUTHORIZED } from '../token.ts'
import { type Answered, AnswerPanel, isAdmitted, isWrong } from './answer.ts'
import { AskForm, type Domain, type Limiter } from './form.ts'
import { codeOf, curlOf, decisionIn, shownRequest, type WireRequest } from './request.ts'

const AGAIN_MS = 2_000
/** After the last letter of a token. */
const TYPED_MS = 400
const NOT_FOUND = 404

export function tryView(texts: Texts): View {
  return new TryView(texts)
}

class TryView implements View {
  readonly element: HTMLElement
  readonly #texts: Texts
  readonly #leaving = new AbortController()
  readonly #form: AskForm
  readonly #answer: AnswerPanel
  readonly #sent = h('div', { class: 'stack' })
  readonly #notice = h('p', { class: 'panel note', role: 'status', 'data-part': 'notice', hidden: true })
  #timer: ReturnType<typeof setTimeout> | undefined
  /** With which it was told that it needs another token. */
  #refused: string | undefined

  constructor(texts: Texts) {
    this.#texts = texts
    this.#answer = new AnswerPanel(texts)
    this.#form = new AskForm(texts, {
      changed: (wire) => this.#changed(wire),
      submitted: (wire, times) => this.#submitted(wire, times),
    })
    const request = h('section', { class: 'panel' }, h('h2', {}, texts.try.request), this.#sent)
    this.element = h(
      'div',
      { class: 'stacked' },
      h('div', { class: 'intro' }, h('h1', {}, texts.try.heading), h('p', {}, texts.try.text)),
      this.#notice,
      h(
        'div',
        { class: 'try' },
        h('section', { class: 'panel' }, this.#form.element),
        h('div', { class: 'stacked' }, this.#answer.element, request),
      ),
    )
    this.#showRequest(this.#form.request())
    void this.#load()
  }

  repaint(): void {}

  close(): void {
    this.#leaving.abort()
    clearTimeout(this.#timer)
  }

  /** Another token may be the one that is wanted: tried when it is typed. */
  #changed(wire: WireRequest | undefined): void {
    this.#showRequest(wire)
    if (this.#refused === undefined || this.#refused === (authorization().authorization ?? '')) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#load(), TYPED_MS)
  }

  /** What there is to ask. Without a service the form still shows what would be sent. */
  async #load(): Promise<void> {
    try {
      const headers = authorization()
      const response = await fetch('v1/limiters', { headers, signal: this.#leaving.signal })
      if (response.status === UNAUTHORIZED) {
        this.#refused = headers.authorization ?? ''
        this.#notify(this.#texts.try.locked)
        return
      }
      this.#refused = undefined
      if (response.status === NOT_FOUND) {
        this.#notify(this.#texts.try.none)
        return
      }
      if (!response.ok) throw new Error(String(response.status))
      const { limiters, domains } = (await response.json()) as { limiters: Limiter[]; domains: Domain[] }
      this.#notify('')
      this.#form.offer(limiters, domains)
    } catch {
      if (this.#leaving.signal.aborted) return
      // A page from a file has no service to wait for; else it is starting or stopping.
      this.#notify(location.protocol === 'file:' ? this.#texts.try.none : this.#texts.try.away)
      if (location.protocol !== 'file:') this.#timer = setTimeout(() => void this.#load(), AGAIN_MS)
    }
  }

  #notify(text: string): void {
    this.#notice.hidden = text === ''
    if (this.#notice.textContent !== text) put(this.#notice, text)
  }

  #showRequest(wire: WireRequest | undefined): void {
    if (wire === undefined) return
    const origin = location.origin === 'null' ? 'http://localhost:8080' : location.origin
    put(
      this.#sent,
      h('pre', { tabindex: 0, 'data-part': 'request' }, shownRequest(wire)),
      this.#block('curl', this.#texts.try.curl, curlOf(wire, origin)),
      this.#block('typescript', this.#texts.try.code, codeOf(wire, origin)),
    )
  }

  #block(part: string, label: string, text: string): HTMLElement {
    const copy = copyButton(this.#texts.try.copy, this.#texts.try.copied, () => text)
    const head = h('div', { class: 'inline spread' }, h('h3', {}, label), copy)
    return h('div', { class: 'stack wide' }, head, h('pre', { tabindex: 0, 'data-part': part }, text))
  }

  async #submitted(wire: WireRequest, times: number): Promise<void> {
    this.#answer.sending()
    try {
      await this.#sendAll(wire, times)
    } catch (reason) {
      if (!this.#leaving.signal.aborted) this.#answer.failed(reason)
    }
  }

  /**
   * One after the other, so that the order is what the eye sees; the last answer is shown in full,
   * or the first that is no decision.
   */
  async #sendAll(wire: WireRequest, times: number): Promise<void> {
    let admitted = 0
    for (let k = 1; k <= times; k++) {
      const answered = await this.#send(wire)
      this.#answer.keep(answered)
      const decided = decisionIn(wire, answered.text)
      if (decided !== undefined) this.#form.decided(decided)
      if (isAdmitted(answered)) admitted += 1
      if (isWrong(answered)) {
        this.#answer.show(answered, undefined)
        return
      }
      if (k === times) this.#answer.show(answered, times > 1 ? { sent: times, admitted } : undefined)
    }
  }

  async #send(wire: WireRequest): Promise<Answered> {
    const { method, path, headers, body } = wire
    const beganMs = performance.now()
    const init = { method, headers, ...(body === undefined ? {} : { body }), signal: this.#leaving.signal }
    const response = await fetch(path.slice(1), init)
    const text = await response.text()
    return { wire, atMs: Date.now(), tookMs: performance.now() - beganMs, response, text }
  }
}

/** Try: a form that asks the running service, and everything that went to and fro. */
import { copyButton, field, h, put, select } from '../dom.ts'
import { counted, plain } from '../numbers.ts'
import type { View } from '../playground/view.ts'
import type { Texts } from '../text/en.ts'
import {
  type Asked,
  CostError,
  codeOf,
  curlOf,
  FIELDS_OF,
  pretty,
  shownRequest,
  type TryVerb,
  VERBS,
  type WireRequest,
  wireRequest,
} from './request.ts'

interface Limiter {
  readonly name: string
  readonly plans: Readonly<Record<string, unknown>>
}

const MAX_TIMES = 200
const TOO_MANY_REQUESTS = 429

/** Kept while another tab is open, or another language is chosen. A token is kept nowhere else. */
let asked: Asked = {
  verb: 'consume',
  limiter: 'api',
  key: 'user:42',
  cost: '1',
  plan: '',
  maxWaitMs: '1000',
  timeoutMs: '2000',
  atMs: '',
  token: '',
}

export function tryView(texts: Texts): View {
  let limiters: readonly Limiter[] = []
  let times = 1
  const leaving = new AbortController()
  const form = h('form', { class: 'stack', onsubmit: submit })
  const error = h('p', { class: 'error', role: 'alert' })
  const sent = h('div', { class: 'stack' })
  const answer = h('div', { class: 'stack', 'aria-live': 'polite', 'data-part': 'answer' }, h('p', { class: 'note' }, texts.try.noAnswer))
  const none = h('p', { class: 'panel note', hidden: true }, texts.try.none)
  const element = h(
    'div',
    { class: 'stacked' },
    h('div', { class: 'intro' }, h('h1', {}, texts.try.heading), h('p', {}, texts.try.text)),
    none,
    h(
      'div',
      { class: 'try' },
      h('section', { class: 'panel' }, form, error),
      h(
        'div',
        { class: 'stacked' },
        h('section', { class: 'panel' }, h('h2', {}, texts.try.answer), answer),
        h('section', { class: 'panel' }, h('h2', {}, texts.try.request), sent),
      ),
    ),
  )
  showForm()
  showRequest()
  void load()
  return {
    element,
    repaint() {},
    close: () => leaving.abort(),
  }

  /** What there is to ask. Without a service the form still shows what would be sent. */
  async function load(): Promise<void> {
    try {
      const response = await fetch('v1/limiters', { signal: leaving.signal })
      if (!response.ok) throw new Error(String(response.status))
      limiters = ((await response.json()) as { limiters: Limiter[] }).limiters
      const first = limiters[0]?.name
      if (first !== undefined && !limiters.some(({ name }) => name === asked.limiter)) asked = { ...asked, limiter: first }
      showForm()
      showRequest()
    } catch {
      if (!leaving.signal.aborted) none.hidden = false
    }
  }

  function set(change: Partial<Asked>): void {
    asked = { ...asked, ...change }
    showRequest()
  }

  function input(
    name: 'key' | 'cost' | 'maxWaitMs' | 'timeoutMs' | 'atMs' | 'token',
    more: Record<string, unknown> = {},
  ): HTMLInputElement {
    const element = h('input', { type: 'text', value: asked[name], spellcheck: 'false', autocomplete: 'off', 'data-ask': name, ...more })
    element.addEventListener('input', () => set({ [name]: element.value }))
    return element
  }

  function showForm(): void {
    const takes = FIELDS_OF[asked.verb]
    const words = texts.try
    const focused = (document.activeElement as HTMLElement | null)?.dataset.ask
    put(
      form,
      field(words.verb, verbSelect()),
      field(words.limiter, limiterSelect()),
      field(words.key, input('key', { required: true })),
      takes.includes('cost') && field(words.cost, input('cost', { required: true }), words.costHint),
      takes.includes('plan') && field(words.plan, planSelect()),
      takes.includes('maxWaitMs') && field(words.maxWaitMs, input('maxWaitMs', { inputmode: 'numeric' })),
      takes.includes('timeoutMs') && field(words.timeoutMs, input('timeoutMs', { inputmode: 'numeric' })),
      takes.includes('atMs') && field(words.atMs, input('atMs', { inputmode: 'numeric' })),
      field(words.token, input('token', { type: 'password' })),
      h(
        'div',
        { class: 'inline' },
        h('button', { type: 'submit', class: 'primary', 'data-part': 'send' }, words.send),
        field(words.times, timesInput()),
      ),
    )
    if (focused !== undefined) form.querySelector<HTMLElement>(`[data-ask=${focused}]`)?.focus()
  }

  function verbSelect(): HTMLSelectElement {
    const element = select(
      VERBS.map((verb) => [verb, texts.try.verbs[verb]] as const),
      asked.verb,
      (verb: TryVerb) => {
        set({ verb })
        showForm()
      },
    )
    element.dataset.ask = 'verb'
    return element
  }

  function limiterSelect(): HTMLElement {
    const names = limiters.length === 0 ? [asked.limiter] : limiters.map(({ name }) => name)
    const element = select(
      names.map((name) => [name, name] as const),
      asked.limiter,
      (limiter) => {
        set({ limiter, plan: '' })
        showForm()
      },
    )
    element.dataset.ask = 'limiter'
    return element
  }

  function planSelect(): HTMLElement {
    const known = Object.keys(limiters.find(({ name }) => name === asked.limiter)?.plans ?? {})
    const plans = asked.plan === '' || known.includes(asked.plan) ? known : [...known, asked.plan]
    return select([['', texts.try.noPlan] as const, ...plans.map((plan) => [plan, plan] as const)], asked.plan, (plan) => set({ plan }))
  }

  function timesInput(): HTMLElement {
    const element = h('input', { type: 'number', min: 1, max: MAX_TIMES, value: times, 'data-ask': 'times' })
    element.addEventListener('input', () => {
      times = Math.max(1, Math.min(MAX_TIMES, Math.trunc(Number(element.value)) || 1))
    })
    return element
  }

  function request(): WireRequest | undefined {
    try {
      put(error)
      return wireRequest(asked)
    } catch (mistake) {
      if (!(mistake instanceof CostError)) throw mistake
      put(error, texts.try.badCost)
      return undefined
    }
  }

  function showRequest(): void {
    const wire = request()
    if (wire === undefined) return
    const origin = location.origin === 'null' ? 'http://localhost:8080' : location.origin
    put(
      sent,
      h('pre', { tabindex: 0, 'data-part': 'request' }, shownRequest(wire)),
      block('curl', texts.try.curl, curlOf(wire, origin)),
      block('typescript', texts.try.code, codeOf(wire, origin)),
    )
  }

  function block(part: string, label: string, text: string): HTMLElement {
    const head = h(
      'div',
      { class: 'inline spread' },
      h('h3', {}, label),
      copyButton(texts.try.copy, texts.try.copied, () => text),
    )
    return h('div', { class: 'stack wide' }, head, h('pre', { tabindex: 0, 'data-part': part }, text))
  }

  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    const wire = request()
    if (wire === undefined) return
    const button = form.querySelector<HTMLButtonElement>('[data-part=send]')
    put(answer, h('p', { class: 'note' }, texts.try.sending))
    if (button !== null) button.disabled = true
    try {
      await sendAll(wire)
    } catch (reason) {
      if (!leaving.signal.aborted)
        put(answer, h('p', { class: 'error' }, texts.try.failed(reason instanceof Error ? reason.message : String(reason))))
    } finally {
      if (button !== null) button.disabled = false
    }
  }

  /** One after the other, so that the order is what the eye sees; the last answer is shown in full, or the first that is no decision. */
  async function sendAll(wire: WireRequest): Promise<void> {
    let admitted = 0
    for (let k = 1; k <= times; k++) {
      const { method, path, headers, body } = wire
      const beganMs = performance.now()
      const response = await fetch(path.slice(1), { method, headers, ...(body === undefined ? {} : { body }), signal: leaving.signal })
      const text = await response.text()
      if (isAdmitted(response, text)) admitted += 1
      const isWrong = !response.ok && response.status !== TOO_MANY_REQUESTS
      if (k === times || isWrong) showAnswer(response, text, performance.now() - beganMs, isWrong ? undefined : admitted)
      if (isWrong) return
    }
  }

  /** `admitted` is undefined where the answer is about the question: then there is nothing to count. */
  function showAnswer(response: Response, text: string, tookMs: number, admitted: number | undefined): void {
    const { status, statusText } = response
    const took = texts.try.took(plain(Math.round(tookMs * 10) / 10))
    put(
      answer,
      h(
        'p',
        { class: 'status', 'data-part': 'status' },
        `${status} ${statusText} `,
        h('span', { class: 'note' }, took),
        ' ',
        badge(text, texts),
      ),
      times > 1 &&
        admitted !== undefined &&
        h('p', { 'data-part': 'series' }, texts.try.series(counted(times), counted(admitted), counted(times - admitted))),
      text !== '' && h('pre', { tabindex: 0, 'data-part': 'body' }, pretty(text)),
      h('h3', {}, texts.try.headers),
      h('pre', { tabindex: 0, 'data-part': 'headers' }, [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n')),
    )
  }
}

/** Of a decision: what it was. */
function badge(text: string, texts: Texts): HTMLElement | undefined {
  const [, allowed] = /"allowed":(true|false)/.exec(text) ?? []
  if (allowed === undefined) return undefined
  return allowed === 'true'
    ? h('span', { class: 'admitted' }, `▲ ${texts.step.admitted}`)
    : h('span', { class: 'refused' }, `▼ ${texts.step.refused}`)
}

/** A reset and a refund are always granted; a decision says so itself. */
function isAdmitted(response: Response, text: string): boolean {
  if (!response.ok) return false
  return !text.includes('"allowed":false')
}

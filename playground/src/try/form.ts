/** The form: what is asked of the service. */
import { field, h, put, select } from '../dom.ts'
import type { Texts } from '../text/en.ts'
import { tokenNow, useToken } from '../token.ts'
import { entriesOf, FIELDS_OF, FieldError, type TryInput, type TryVerb, VERBS, type WireRequest, wireRequest } from './request.ts'

export interface Limiter {
  readonly name: string
  readonly plans: Readonly<Record<string, unknown>>
}

export interface Domain {
  readonly name: string
  readonly rules: readonly { readonly rule: string }[]
}

export interface FormListener {
  /** Whenever a field changes. `wire` is undefined while a field is wrong. */
  changed(wire: WireRequest | undefined): void
  submitted(wire: WireRequest, times: number): Promise<void>
}

type TextField = 'key' | 'cost' | 'maxWaitMs' | 'timeoutMs' | 'actual' | 'of' | 'entries' | 'token'

const MAX_TIMES = 200

/** Kept while another tab is open, or another language is chosen. A token is kept nowhere else. */
let asked: TryInput = {
  verb: 'consume',
  limiter: 'api',
  key: 'user:42',
  cost: '1',
  plan: '',
  maxWaitMs: '1000',
  timeoutMs: '2000',
  actual: '1',
  of: '',
  domain: '',
  entries: '',
  token: '',
}

export class AskForm {
  readonly element: HTMLFormElement
  readonly #texts: Texts
  readonly #listener: FormListener
  readonly #error = h('p', { class: 'error', role: 'alert', id: 'ask-error' })
  #limiters: readonly Limiter[] = []
  #domains: readonly Domain[] = []
  #times = 1

  constructor(texts: Texts, listener: FormListener) {
    this.#texts = texts
    this.#listener = listener
    asked = { ...asked, token: tokenNow() }
    this.element = h('form', { class: 'stack', onsubmit: (event: Event) => this.#submit(event) })
    this.#show()
  }

  /** What there is to ask. */
  offer(limiters: readonly Limiter[], domains: readonly Domain[]): void {
    this.#limiters = limiters
    this.#domains = domains
    const [domain] = domains
    if (asked.domain === '' && domain !== undefined) asked = { ...asked, ...ruleChosen(domain, domain.rules[0]?.rule) }
    const first = limiters[0]?.name
    if (first !== undefined && !limiters.some(({ name }) => name === asked.limiter)) asked = { ...asked, limiter: first }
    this.#show()
    this.#tell()
  }

  /** The request as it stands, or undefined if a field is wrong: then that one is marked. */
  request(): WireRequest | undefined {
    for (const wrong of this.element.querySelectorAll('[aria-invalid]')) wrong.removeAttribute('aria-invalid')
    try {
      const wire = wireRequest(asked)
      put(this.#error)
      return wire
    } catch (mistake) {
      if (!(mistake instanceof FieldError)) throw mistake
      this.element.querySelector(`[data-ask=${mistake.field}]`)?.setAttribute('aria-invalid', 'true')
      put(this.#error, this.#wordsOf(mistake))
      return undefined
    }
  }

  #wordsOf({ field, message }: FieldError): string {
    const words = this.#texts.try
    if (field === 'of') return words.badOf
    return field === 'entries' ? words.badEntries : words.badCost(message)
  }

  /** The last decision is the one to settle. */
  decided(of: string): void {
    asked = { ...asked, of }
    const field = this.element.querySelector<HTMLInputElement>('[data-ask=of]')
    if (field !== null) field.value = of
  }

  #set(change: Partial<TryInput>): void {
    asked = { ...asked, ...change }
    useToken(asked.token)
    this.#tell()
  }

  #tell(): void {
    this.#listener.changed(this.request())
  }

  #show(): void {
    const takes = FIELDS_OF[asked.verb]
    const isRule = asked.verb === 'rule'
    const words = this.#texts.try
    const focused = document.activeElement as HTMLInputElement | null
    const from = focused?.selectionStart
    const to = focused?.selectionEnd
    put(
      this.element,
      field(words.verb, this.#verb()),
      isRule && field(words.rule, this.#rule()),
      isRule && field(words.entries, this.#input('entries', { required: true }), words.entriesHint),
      !isRule && field(words.limiter, this.#limiter()),
      !isRule && field(words.key, this.#input('key', { required: true })),
      takes.includes('cost') && field(words.cost, this.#input('cost', { required: true }), isRule ? undefined : words.costHint),
      takes.includes('actual') && field(words.actual, this.#input('actual', { required: true })),
      takes.includes('of') && field(words.of, this.#input('of', { required: true }), words.ofHint),
      takes.includes('cost') && this.#error,
      takes.includes('plan') && field(words.plan, this.#plan()),
      takes.includes('maxWaitMs') && field(words.maxWaitMs, this.#input('maxWaitMs', { inputmode: 'numeric' })),
      takes.includes('timeoutMs') && field(words.timeoutMs, this.#input('timeoutMs', { inputmode: 'numeric' })),
      field(words.token, this.#input('token', { type: 'password' })),
      h(
        'div',
        { class: 'inline' },
        field(words.times, this.#timesInput()),
        h('button', { type: 'submit', class: 'primary', 'data-part': 'send' }, words.send),
      ),
    )
    if (focused?.dataset.ask !== undefined) this.#focus(focused.dataset.ask, from, to)
  }

  /** As it was before: also the caret of a person who types. */
  #focus(name: string, from: number | null | undefined, to: number | null | undefined): void {
    const element = this.element.querySelector<HTMLInputElement>(`[data-ask=${name}]`)
    element?.focus()
    if (typeof from === 'number') element?.setSelectionRange(from, to ?? from)
  }

  #input(name: TextField, more: Record<string, unknown> = {}): HTMLInputElement {
    const attributes = { type: 'text', value: asked[name], spellcheck: 'false', autocomplete: 'off', 'data-ask': name, ...more }
    const element = h('input', attributes)
    element.addEventListener('input', () => this.#set({ [name]: element.value }))
    return element
  }

  #verb(): HTMLSelectElement {
    const isThere = (verb: TryVerb) => verb !== 'rule' || asked.verb === 'rule' || this.#domains.length > 0
    const options = VERBS.filter(isThere).map((verb) => [verb, this.#texts.try.verbs[verb]] as const)
    return this.#select('verb', options, asked.verb, (verb: TryVerb) => this.#set({ verb }))
  }

  #limiter(): HTMLSelectElement {
    const names = this.#limiters.length === 0 ? [asked.limiter] : this.#limiters.map(({ name }) => name)
    const options = names.map((name) => [name, name] as const)
    return this.#select('limiter', options, asked.limiter, (limiter) => this.#set({ limiter, plan: '' }))
  }

  /** One of all rules. The entries below may be changed: they need not be those of the rule. */
  #rule(): HTMLSelectElement {
    const all = this.#domains.flatMap((domain) => domain.rules.map(({ rule }) => ({ ...ruleChosen(domain, rule), rule })))
    const chosen = all.find(({ domain, entries }) => domain === asked.domain && entries === asked.entries)?.rule ?? all[0]?.rule ?? ''
    const options = all.map(({ rule }) => [rule, rule] as const)
    return this.#select('rule', options, chosen, (rule) => {
      const { domain = '', entries = '' } = all.find((each) => each.rule === rule) ?? {}
      this.#set({ domain, entries })
    })
  }

  /** A choice that other fields depend on. */
  #select<Value extends string>(
    name: string,
    options: readonly (readonly [Value, string])[],
    chosen: Value,
    choose: (value: Value) => void,
  ): HTMLSelectElement {
    const element = select(options, chosen, (value) => {
      choose(value)
      this.#show()
      this.#tell()
    })
    element.dataset.ask = name
    return element
  }

  #plan(): HTMLElement {
    const known = Object.keys(this.#limiters.find(({ name }) => name === asked.limiter)?.plans ?? {})
    const plans = asked.plan === '' || known.includes(asked.plan) ? known : [...known, asked.plan]
    const options = [['', this.#texts.try.noPlan] as const, ...plans.map((plan) => [plan, plan] as const)]
    return select(options, asked.plan, (plan) => this.#set({ plan }))
  }

  #timesInput(): HTMLElement {
    const element = h('input', { type: 'number', min: 1, max: MAX_TIMES, value: this.#times, 'data-ask': 'times' })
    element.addEventListener('input', () => {
      this.#times = Math.max(1, Math.min(MAX_TIMES, Math.trunc(Number(element.value)) || 1))
    })
    return element
  }

  async #submit(event: Event): Promise<void> {
    event.preventDefault()
    const wire = this.request()
    if (wire === undefined) {
      this.element.querySelector<HTMLElement>('[aria-invalid=true]')?.focus()
      return
    }
    const button = this.element.querySelector<HTMLButtonElement>('[data-part=send]')
    if (button !== null) button.disabled = true
    try {
      await this.#listener.submitted(wire, this.#times)
    } finally {
      if (button !== null) button.disabled = false
    }
  }
}

function ruleChosen({ name }: Domain, rule: string | undefined): Pick<TryInput, 'domain' | 'entries'> {
  return { domain: name, entries: rule === undefined ? '' : entriesOf(name, rule) }
}

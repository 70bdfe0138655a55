/** One limit: its name and numbers, and under them a field for each of its options. */
import { field, h, put } from '../dom.ts'
import { counted } from '../numbers.ts'
import { FIELDS, type LimitType, mistakeIn } from '../simulation/limits.ts'
import type { LimitData } from '../sluice.ts'
import type { Texts } from '../text/en.ts'
import { numbersOf } from './picture.ts'
import { valueFrom } from './state.ts'

/** Options that a limit may leave out, with their default. */
const DEFAULTS: Readonly<Record<string, unknown>> = { slots: 10, anchor: 'epoch' }

export function limitRow(type: LimitType, first: LimitData, texts: Texts, change: (data: LimitData) => void): HTMLElement {
  let data = first
  const short = h('span', { class: 'numbers' }, numbersOf(data, texts))
  const error = h('p', { class: 'error', role: 'alert' })
  const { fields, mistake, rules, atMost } = texts.limits
  const apply = (option: string, text: string): boolean => {
    const next: LimitData = { ...data, [option]: valueFrom(text) }
    const wrong = mistakeIn(next)
    const rule = typeof wrong?.nearest === 'number' ? atMost(counted(wrong.nearest)) : rules[option as keyof typeof rules]
    put(error, wrong !== undefined && mistake(fields[option as keyof typeof fields], text, rule))
    if (wrong !== undefined) return false
    data = next
    put(short, numbersOf(data, texts))
    change(data)
    return true
  }
  const options = FIELDS[type].map((option) => {
    const input = optionInput(`${type}.${option}`, data[option] ?? DEFAULTS[option] ?? '', (text) => apply(option, text))
    return field(fields[option as keyof typeof fields], input)
  })
  return h('details', {}, h('summary', {}, h('span', {}, texts.types[type]), short), ...options, error)
}

/** `apply` says whether the text is right. */
function optionInput(name: string, value: unknown, apply: (text: string) => boolean): HTMLInputElement {
  const input = h('input', { type: 'text', value, spellcheck: 'false', autocomplete: 'off', 'data-option': name })
  input.addEventListener('input', () => input.setAttribute('aria-invalid', String(!apply(input.value))))
  return input
}

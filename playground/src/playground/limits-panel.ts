/** The limits: one pair of numbers for all six, or each with its own. */
import { field, foldingPanel, h, put, select } from '../dom.ts'
import { equalLimits, FIELDS, type Limits, type LimitType, shapeOf, TYPES } from '../simulation/limits.ts'
import type { LimitData } from '../sluice.ts'
import type { Texts } from '../text/en.ts'
import { numbersOf } from './picture.ts'
import { type State, valueFrom } from './state.ts'

export interface LimitsPanel {
  readonly element: HTMLElement
  show(state: State): void
}

type Change = (change: { readonly limits?: Limits; readonly shown?: readonly LimitType[] }) => void

const UNITS = ['us', 'ms', 's', 'min', 'h', 'd'] as const

export function limitsPanel(first: State, texts: Texts, change: Change): LimitsPanel {
  let { limits, shown } = first
  const common = h('div')
  const each = h('div', { class: 'each' })
  const element = foldingPanel(texts.limits.heading, common, each, h('p', { class: 'note' }, texts.limits.hint))
  show(first)
  return { element, show }

  function show(state: State): void {
    limits = state.limits
    shown = state.shown
    put(common, commonFields())
    put(each, ...TYPES.map(ofType))
  }

  /** What all six say at the moment is taken from the fixed window: its options are what the question asks for. */
  function commonFields(): HTMLElement {
    const { limit, window } = limits.fixedWindow
    const [, amount = '1', unit = 's'] =
      /^(\d+(?:\.\d+)?) ?([a-z]+)$/.exec(typeof window === 'number' ? `${window}ms` : String(window)) ?? []
    const permits = h('input', {
      type: 'number',
      min: 1,
      max: 100_000,
      value: limit,
      'aria-label': texts.limits.permits,
      'data-part': 'permits',
    })
    const per = h('input', { type: 'number', min: 1, max: 100_000, value: amount, 'aria-label': texts.limits.window })
    const units = select(
      UNITS.map((name) => [name, texts.limits.units[name]] as const),
      UNITS.find((name) => name === unit) ?? 's',
      apply,
    )
    units.setAttribute('aria-label', texts.limits.unit)
    const error = h('p', { class: 'error', role: 'alert' })
    permits.addEventListener('input', apply)
    per.addEventListener('input', apply)
    return h(
      'fieldset',
      { class: 'common' },
      h('legend', {}, texts.limits.all),
      h('div', { class: 'inline' }, permits, h('span', {}, texts.limits.per), per, units),
      error,
    )
    function apply(): void {
      const all = equalLimits(Number(permits.value), `${per.value}${units.value}`)
      // Each number is tried beside one that is right, so that the one at fault is marked.
      const arePermitsWrong = Object.values(equalLimits(Number(permits.value), '1s')).some(isWrong)
      const isPerWrong = !arePermitsWrong && Object.values(all).some(isWrong)
      permits.setAttribute('aria-invalid', String(arePermitsWrong))
      per.setAttribute('aria-invalid', String(isPerWrong))
      const { mistake, rules } = texts.limits
      put(
        error,
        arePermitsWrong && mistake(texts.limits.permits, permits.value, rules.limit),
        isPerWrong && mistake(texts.limits.window, `${per.value}${units.value}`, rules.window),
      )
      if (arePermitsWrong || isPerWrong) return
      limits = all
      put(each, ...TYPES.map(ofType))
      change({ limits })
    }
  }

  function ofType(type: LimitType): HTMLElement {
    const name = texts.types[type]
    const tick = h('input', { type: 'checkbox', 'aria-label': texts.limits.show(name), 'data-show': type })
    tick.checked = shown.includes(type)
    tick.addEventListener('change', () => {
      const next = TYPES.filter((other) => (other === type ? tick.checked : shown.includes(other)))
      // One row is always left: without any there would be nothing to see.
      if (next.length === 0) tick.checked = true
      else {
        shown = next
        change({ shown })
      }
    })
    const short = h('span', { class: 'numbers' }, numbersOf(limits[type], texts))
    const error = h('p', { class: 'error', role: 'alert' })
    const fields = FIELDS[type].map((option) => optionField(type, option, short, error))
    return h('div', { class: 'limit' }, tick, h('details', {}, h('summary', {}, h('span', {}, name), short), ...fields, error))
  }

  function optionField(type: LimitType, option: string, short: HTMLElement, error: HTMLElement): HTMLElement {
    const label = texts.limits.fields[option as keyof typeof texts.limits.fields]
    const first = limits[type][option] ?? (option === 'slots' ? 10 : option === 'anchor' ? 'epoch' : '')
    const input = h('input', {
      type: 'text',
      value: String(first),
      spellcheck: 'false',
      autocomplete: 'off',
      'data-option': `${type}.${option}`,
    })
    input.addEventListener('input', () => {
      const data: LimitData = { ...limits[type], [option]: valueFrom(input.value) }
      const isBad = isWrong(data)
      input.setAttribute('aria-invalid', String(isBad))
      put(error, isBad && texts.limits.mistake(label, input.value, texts.limits.rules[option as keyof typeof texts.limits.rules]))
      if (isBad) return
      limits = { ...limits, [type]: data }
      put(short, numbersOf(data, texts))
      change({ limits })
    })
    return field(label, input)
  }
}

function isWrong(data: LimitData): boolean {
  try {
    shapeOf(data)
    return false
  } catch {
    return true
  }
}

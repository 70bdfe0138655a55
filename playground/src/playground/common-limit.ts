/** One pair of numbers for all six limits: so many permits in so much time. */
import { h, put, select } from '../dom.ts'
import { equalLimits, isWrong, type Limits } from '../simulation/limits.ts'
import type { LimitData } from '../sluice.ts'
import type { Texts } from '../text/en.ts'

const UNITS = ['us', 'ms', 's', 'min', 'h', 'd'] as const

export class CommonLimit {
  readonly element: HTMLElement
  readonly #texts: Texts['limits']
  readonly #change: (limits: Limits) => void
  readonly #permits: HTMLInputElement
  readonly #per: HTMLInputElement
  readonly #units: HTMLSelectElement
  readonly #error = h('p', { class: 'error', role: 'alert' })

  constructor({ limit, window }: LimitData, { limits: texts }: Texts, change: (limits: Limits) => void) {
    this.#texts = texts
    this.#change = change
    const [, amount = '1', unit = 's'] = /^(\d+(?:\.\d+)?) ?([a-z]+)$/.exec(String(window)) ?? []
    this.#permits = this.#number(texts.permits, limit, 0, 'permits')
    this.#per = this.#number(texts.window, amount, 1)
    this.#units = this.#unitSelect(unit)
    this.element = h(
      'fieldset',
      { class: 'common' },
      h('legend', {}, texts.all),
      h('div', { class: 'inline' }, this.#permits, h('span', {}, texts.per), this.#per, this.#units),
      this.#error,
    )
  }

  #number(label: string, value: unknown, min: number, part?: string): HTMLInputElement {
    const oninput = () => this.#apply()
    return h('input', { type: 'number', min, max: 100_000, value, 'aria-label': label, 'data-part': part, oninput })
  }

  #unitSelect(unit: string): HTMLSelectElement {
    const options = UNITS.map((name) => [name, this.#texts.units[name]] as const)
    const units = select(options, UNITS.find((name) => name === unit) ?? 's', () => this.#apply())
    units.setAttribute('aria-label', this.#texts.unit)
    return units
  }

  #apply(): void {
    const permits = this.#permits.value
    const window = `${this.#per.value}${this.#units.value}`
    const all = equalLimits(Number(permits), window)
    // Each number is tried beside one that is right, so that the one at fault is marked.
    const arePermitsWrong = Object.values(equalLimits(Number(permits), '1s')).some(isWrong)
    const isPerWrong = !arePermitsWrong && Object.values(all).some(isWrong)
    this.#permits.setAttribute('aria-invalid', String(arePermitsWrong))
    this.#per.setAttribute('aria-invalid', String(isPerWrong))
    const { mistake, rules } = this.#texts
    put(
      this.#error,
      arePermitsWrong && mistake(this.#texts.permits, permits, rules.limit),
      isPerWrong && mistake(this.#texts.window, window, rules.window),
    )
    if (!arePermitsWrong && !isPerWrong) this.#change(all)
  }
}

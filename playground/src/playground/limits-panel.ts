/** The limits: one pair of numbers for all six, or each with its own. */
import { foldingPanel, h, put } from '../dom.ts'
import { type Limits, type LimitType, TYPES } from '../simulation/limits.ts'
import type { LimitData } from '../sluice.ts'
import type { Texts } from '../text/en.ts'
import { CommonLimit } from './common-limit.ts'
import { limitRow } from './limit-row.ts'
import type { State } from './state.ts'

type Change = (change: { readonly limits?: Limits; readonly shown?: readonly LimitType[] }) => void

export class LimitsPanel {
  readonly element: HTMLElement
  readonly #texts: Texts
  readonly #change: Change
  readonly #common = h('div')
  readonly #each = h('div', { class: 'each' })
  #limits: Limits
  #shown: readonly LimitType[]

  constructor({ limits, shown }: State, texts: Texts, change: Change) {
    this.#limits = limits
    this.#shown = shown
    this.#texts = texts
    this.#change = change
    const hint = h('p', { class: 'note' }, texts.limits.hint)
    this.element = foldingPanel(texts.limits.heading, this.#common, this.#each, hint)
    this.#showAll()
  }

  show({ limits, shown }: State): void {
    this.#limits = limits
    this.#shown = shown
    this.#showAll()
  }

  #showAll(): void {
    // What all six say at the moment is taken from the fixed window: its options are what the
    // question asks for.
    const common = new CommonLimit(this.#limits.fixedWindow, this.#texts, (all) => {
      this.#limits = all
      this.#showEach()
      this.#change({ limits: all })
    })
    put(this.#common, common.element)
    this.#showEach()
  }

  #showEach(): void {
    put(this.#each, ...TYPES.map((type) => h('div', { class: 'limit' }, this.#tick(type), this.#row(type))))
  }

  #row(type: LimitType): HTMLElement {
    return limitRow(type, this.#limits[type], this.#texts, (data: LimitData) => {
      this.#limits = { ...this.#limits, [type]: data }
      this.#change({ limits: this.#limits })
    })
  }

  /** Whether a limit has a row in the picture. */
  #tick(type: LimitType): HTMLElement {
    const label = this.#texts.limits.show(this.#texts.types[type])
    const tick = h('input', { type: 'checkbox', 'aria-label': label, 'data-show': type })
    tick.checked = this.#shown.includes(type)
    tick.addEventListener('change', () => {
      const next = TYPES.filter((other) => (other === type ? tick.checked : this.#shown.includes(other)))
      // One row is always left: without any there would be nothing to see.
      if (next.length === 0) tick.checked = true
      else {
        this.#shown = next
        this.#change({ shown: next })
      }
    })
    return tick
  }
}

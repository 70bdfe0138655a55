/**
 * To take away from a run of the algorithms: the code is that of one of them, which the reader
 * chooses.
 */
import { field, h, put, select } from '../dom.ts'
import type { LimitType } from '../simulation/limits.ts'
import type { Run } from '../simulation/run.ts'
import type { Texts } from '../text/en.ts'
import { drawingOf } from './canvas.ts'
import { limiterCode } from './code.ts'
import { SharePanel } from './share-panel.ts'
import { addressOf, type State } from './state.ts'

export class RunShare {
  readonly #texts: Texts
  readonly #panel: SharePanel
  readonly #types: HTMLSelectElement
  #shown: { readonly state: State; readonly run: Run } | undefined

  constructor(texts: Texts) {
    this.#texts = texts
    this.#types = select([], '', () => this.#showCode())
    this.#panel = new SharePanel(texts, field(texts.share.code, this.#types))
  }

  get element(): HTMLElement {
    return this.#panel.element
  }

  show(state: State, run: Run): void {
    this.#shown = { state, run }
    const types = run.rows.map(({ type }) => type)
    const chosen = [this.#types.value, 'gcra'].find((type) => types.includes(type as LimitType)) ?? types[0]
    put(this.#types, ...types.map((type) => h('option', { value: type, selected: type === chosen }, this.#texts.types[type])))
    this.#showCode()
  }

  #showCode(): void {
    if (this.#shown === undefined) return
    const { state, run } = this.#shown
    this.#panel.show({
      address: addressOf(state),
      drawing: drawingOf({ run, limits: state.limits, texts: this.#texts }),
      name: state.traffic.kind,
      code: limiterCode(state.limits[this.#types.value as LimitType]),
    })
  }
}

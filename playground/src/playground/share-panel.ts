/** To take away: the address, the picture, the code. */
import { copyButton, h, put } from '../dom.ts'
import type { Texts } from '../text/en.ts'
import { type Exported, exportButtons } from './export-buttons.ts'

export interface Shared extends Exported {
  /** Undefined: too long for an address. */
  readonly address: string | undefined
  readonly code: string
}

export class SharePanel {
  readonly element: HTMLElement
  readonly #texts: Texts
  readonly #link: HTMLButtonElement
  readonly #notice = h('p', { class: 'note', role: 'status' })
  readonly #code = h('code')
  #shared: Shared | undefined

  /** `title` stands over the code. */
  constructor(texts: Texts, title: HTMLElement) {
    const { share } = texts
    this.#texts = texts
    this.#link = copyButton(share.link, share.copied, () => linkTo(this.#shared?.address ?? ''))
    const copy = copyButton(share.copy, share.copied, () => this.#shared?.code ?? '')
    this.element = h(
      'section',
      { class: 'panel' },
      h('h2', {}, share.heading),
      h('div', { class: 'inline' }, this.#link, ...exportButtons(texts, () => this.#shared)),
      this.#notice,
      h('div', { class: 'stack' }, h('div', { class: 'inline' }, title, copy), h('pre', { tabindex: 0, 'data-part': 'code' }, this.#code)),
    )
  }

  show(shared: Shared): void {
    this.#shared = shared
    this.#link.disabled = shared.address === undefined
    put(this.#notice, this.#link.disabled && this.#texts.share.tooLong)
    put(this.#code, shared.code)
  }
}

/** The whole address of what the playground shows. */
function linkTo(address: string): string {
  const { origin, pathname } = location
  return `${origin === 'null' ? '' : origin}${pathname}#playground?${address}`
}

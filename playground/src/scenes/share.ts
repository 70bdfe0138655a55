/** To take away from a scene: the address, the picture, the code. */
import { copyButton, h, put } from '../dom.ts'
import { type Exported, exportButtons } from '../playground/export-buttons.ts'
import type { Drawing } from '../playground/frame.ts'
import { linkTo } from '../playground/share-panel.ts'
import type { Texts } from '../text/en.ts'

export interface SceneShare {
  readonly element: HTMLElement
  show(address: string, drawing: Drawing, code: string): void
}

export function sceneShare(texts: Texts, name: string): SceneShare {
  let shown = { address: '', code: '' }
  let exported: Exported | undefined
  const { share } = texts
  const code = h('code')
  const link = copyButton(share.link, share.copied, () => linkTo(shown.address))
  const copy = copyButton(share.copy, share.copied, () => shown.code)
  const element = h(
    'section',
    { class: 'panel' },
    h('h2', {}, share.heading),
    h('div', { class: 'inline' }, link, ...exportButtons(texts, () => exported)),
    h(
      'div',
      { class: 'stack' },
      h('div', { class: 'inline middle' }, 'TypeScript', copy),
      h('pre', { tabindex: 0, 'data-part': 'code' }, code),
    ),
  )
  return {
    element,
    show(address, drawing, text) {
      shown = { address, code: text }
      exported = { drawing, name }
      put(code, text)
    },
  }
}

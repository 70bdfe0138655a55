import { h } from '../dom.ts'
import type { View } from '../playground/view.ts'
import type { Texts } from '../text/en.ts'

export function liveView(texts: Texts): View {
  return { element: h('div', {}, texts.live.heading), repaint() {}, close() {} }
}

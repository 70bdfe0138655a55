/** To take away: the address, the picture, the code. */
import { copyButton, field, h, put, select } from '../dom.ts'
import type { LimitType } from '../simulation/limits.ts'
import type { Run } from '../simulation/run.ts'
import type { Texts } from '../text/en.ts'
import { drawingOf } from './canvas.ts'
import { limiterCode } from './code.ts'
import { exportButtons } from './export-buttons.ts'
import { addressOf, type State } from './state.ts'

/** The whole address of what the playground shows. */
export function linkTo(address: string): string {
  const { origin, pathname } = location
  return `${origin === 'null' ? '' : origin}${pathname}#playground?${address}`
}

export interface SharePanel {
  readonly element: HTMLElement
  show(state: State, run: Run): void
}

export function sharePanel(texts: Texts): SharePanel {
  let current: { readonly state: State; readonly run: Run } | undefined
  let chosen: LimitType | undefined
  const code = h('div', { class: 'stack' })
  const notice = h('p', { class: 'note', role: 'status' })
  const link = copyButton(texts.share.link, texts.share.copied, address)
  const element = h(
    'section',
    { class: 'panel' },
    h('h2', {}, texts.share.heading),
    h('div', { class: 'inline' }, link, ...exportButtons(texts, exported)),
    notice,
    code,
  )
  return { element, show }

  function show(state: State, run: Run): void {
    current = { state, run }
    const types = run.rows.map(({ type }) => type)
    if (chosen === undefined || !types.includes(chosen)) chosen = types.includes('gcra') ? 'gcra' : types[0]
    link.disabled = addressOf(state) === undefined
    put(notice, link.disabled && texts.share.tooLong)
    showCode(types)
  }

  function showCode(types: readonly LimitType[]): void {
    put(code)
    if (chosen === undefined || current === undefined) return
    const text = limiterCode(current.state.limits[chosen])
    const which = select(
      types.map((type) => [type, texts.types[type]] as const),
      chosen,
      (type) => {
        chosen = type
        showCode(types)
        code.querySelector('select')?.focus()
      },
    )
    put(
      code,
      h(
        'div',
        { class: 'inline' },
        field(texts.share.code, which),
        copyButton(texts.share.copy, texts.share.copied, () => text),
      ),
      h('pre', { tabindex: 0, 'data-part': 'code' }, h('code', {}, text)),
    )
  }

  function address(): string {
    return linkTo((current && addressOf(current.state)) ?? '')
  }

  function exported() {
    if (current === undefined) return undefined
    const { state, run } = current
    return { drawing: drawingOf({ run, limits: state.limits, texts }), name: state.traffic.kind }
  }
}

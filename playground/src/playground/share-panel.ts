/** To take away: the address, the picture, the code. */
import { copyButton, field, h, put, select } from '../dom.ts'
import type { LimitType } from '../simulation/limits.ts'
import type { Run } from '../simulation/run.ts'
import type { Texts } from '../text/en.ts'
import { palette } from './canvas.ts'
import { limiterCode } from './code.ts'
import { CanvasPen, SvgPen } from './pen.ts'
import { drawPicture, layoutFor, pictureLabel, type Scene } from './picture.ts'
import { addressOf, type State } from './state.ts'

/** Exports have one size, whatever the window has. */
const EXPORT_WIDTH = 960
const EXPORT_SCALE = 2

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
    h('div', { class: 'inline' }, link, exportButton('svg', saveSvg), exportButton('png', savePng)),
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
    const { origin, pathname } = location
    const base = origin === 'null' ? '' : origin
    return `${base}${pathname}#playground?${(current && addressOf(current.state)) ?? ''}`
  }

  function exportButton(kind: 'svg' | 'png', save: () => void): HTMLElement {
    return h('button', { type: 'button', class: 'small', 'data-export': kind, onclick: save }, texts.share[kind])
  }

  function scene(): Scene | undefined {
    return current && { run: current.run, limits: current.state.limits, texts, palette: palette() }
  }

  function saveSvg(): void {
    const seen = scene()
    if (seen !== undefined) save(new Blob([svgOf(seen)], { type: 'image/svg+xml' }), 'svg')
  }

  function savePng(): void {
    const seen = scene()
    if (seen === undefined) return
    const layout = layoutFor(EXPORT_WIDTH, seen.run.rows.length)
    const canvas = h('canvas', { width: layout.width * EXPORT_SCALE, height: layout.height * EXPORT_SCALE })
    const context = canvas.getContext('2d') as CanvasRenderingContext2D
    context.scale(EXPORT_SCALE, EXPORT_SCALE)
    drawPicture(new CanvasPen(context), layout, seen)
    canvas.toBlob((blob) => blob !== null && save(blob, 'png'))
  }

  function save(blob: Blob, ending: string): void {
    const url = URL.createObjectURL(blob)
    h('a', { href: url, download: `${texts.share.file}-${current?.state.traffic.kind}.${ending}` }).click()
    // Some browsers read it only after this.
    setTimeout(() => URL.revokeObjectURL(url), 60_000)
  }
}

export function svgOf(scene: Scene): string {
  const layout = layoutFor(EXPORT_WIDTH, scene.run.rows.length)
  const pen = new SvgPen()
  drawPicture(pen, layout, scene)
  return pen.svg(layout.width, layout.height, pictureLabel(scene))
}

/** A drawing as a file: SVG and PNG. */
import { h } from '../dom.ts'
import type { Texts } from '../text/en.ts'
import type { Drawing, Palette } from './frame.ts'
import { CanvasPen, SvgPen } from './pen.ts'
import { palette } from './time-picture.ts'

/** Exports have one size, whatever the window has. */
const EXPORT_WIDTH = 960
const EXPORT_SCALE = 2

export interface Exported {
  readonly drawing: Drawing
  /** For the name of the file. */
  readonly name: string
}

export function exportButtons(texts: Texts, exported: () => Exported | undefined): HTMLElement[] {
  return [button('svg', saveSvg), button('png', savePng)]

  function button(kind: 'svg' | 'png', save: (exported: Exported) => void): HTMLElement {
    const act = () => {
      const seen = exported()
      if (seen !== undefined) save(seen)
    }
    return h('button', { type: 'button', class: 'small', 'data-export': kind, onclick: act }, texts.share[kind])
  }

  function saveSvg({ drawing, name }: Exported): void {
    save(new Blob([svgOf(drawing, palette())], { type: 'image/svg+xml' }), `${name}.svg`)
  }

  function savePng({ drawing, name }: Exported): void {
    const frame = drawing.frame(EXPORT_WIDTH)
    const canvas = h('canvas', { width: frame.width * EXPORT_SCALE, height: frame.height * EXPORT_SCALE })
    const context = canvas.getContext('2d') as CanvasRenderingContext2D
    context.scale(EXPORT_SCALE, EXPORT_SCALE)
    drawing.draw(new CanvasPen(context), frame, palette())
    canvas.toBlob((blob) => blob !== null && save(blob, `${name}.png`))
  }

  function save(blob: Blob, file: string): void {
    const url = URL.createObjectURL(blob)
    h('a', { href: url, download: `${texts.share.file}-${file}` }).click()
    // Some browsers read it only after this.
    setTimeout(() => URL.revokeObjectURL(url), 60_000)
  }
}

export function svgOf(drawing: Drawing, colours: Palette): string {
  const frame = drawing.frame(EXPORT_WIDTH)
  const pen = new SvgPen()
  drawing.draw(pen, frame, colours)
  return pen.svg(frame.width, frame.height, drawing.label)
}

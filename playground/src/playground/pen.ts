/**
 * A pen for pictures: a canvas, or the text of an SVG file. One drawing, so that what is exported
 * is what was seen.
 */

export interface TextStyle {
  readonly size: number
  readonly colour: string
  readonly bold?: boolean
  readonly anchor?: 'start' | 'middle' | 'end'
}

export interface LineStyle {
  readonly width?: number
  readonly dash?: readonly number[] | undefined
}

export type Point = readonly [x: number, y: number]

export interface Pen {
  rect(x: number, y: number, width: number, height: number, colour: string): void
  /** A closed shape. */
  shape(points: readonly Point[], colour: string): void
  line(x1: number, y1: number, x2: number, y2: number, colour: string, dashed?: boolean): void
  /** From point to point. */
  curve(points: readonly Point[], colour: string, style?: LineStyle): void
  /** `y` is the base line. */
  text(x: number, y: number, text: string, style: TextStyle): void
}

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"

export class CanvasPen implements Pen {
  readonly #context: CanvasRenderingContext2D

  constructor(context: CanvasRenderingContext2D) {
    this.#context = context
  }

  rect(x: number, y: number, width: number, height: number, colour: string): void {
    this.#context.fillStyle = colour
    this.#context.fillRect(x, y, width, height)
  }

  shape(points: readonly Point[], colour: string): void {
    const context = this.#context
    context.fillStyle = colour
    context.beginPath()
    for (const [x, y] of points) context.lineTo(x, y)
    context.closePath()
    context.fill()
  }

  line(x1: number, y1: number, x2: number, y2: number, colour: string, dashed = false): void {
    const ends: Point[] = [
      [x1, y1],
      [x2, y2],
    ]
    this.curve(ends, colour, { dash: dashed ? [3, 3] : undefined })
  }

  curve(points: readonly Point[], colour: string, { width = 1, dash = [] }: LineStyle = {}): void {
    const context = this.#context
    context.strokeStyle = colour
    context.lineWidth = width
    context.lineJoin = 'round'
    context.setLineDash([...dash])
    context.beginPath()
    for (const [x, y] of points) context.lineTo(x, y)
    context.stroke()
  }

  text(x: number, y: number, text: string, { size, colour, bold, anchor = 'start' }: TextStyle): void {
    const context = this.#context
    context.fillStyle = colour
    context.font = `${bold ? '600 ' : ''}${size}px ${FONT}`
    context.textAlign = anchor === 'middle' ? 'center' : anchor
    context.textBaseline = 'alphabetic'
    context.fillText(text, x, y)
  }
}

export class SvgPen implements Pen {
  readonly #parts: string[] = []

  rect(x: number, y: number, width: number, height: number, colour: string): void {
    this.#parts.push(`<path fill="${colour}" d="M${at(x)} ${at(y)}h${at(width)}v${at(height)}h${at(-width)}z"/>`)
  }

  shape(points: readonly Point[], colour: string): void {
    this.#parts.push(`<polygon fill="${colour}" points="${points.map(([x, y]) => `${at(x)},${at(y)}`).join(' ')}"/>`)
  }

  line(x1: number, y1: number, x2: number, y2: number, colour: string, dashed = false): void {
    const dash = dashed ? ' stroke-dasharray="3 3"' : ''
    this.#parts.push(`<path stroke="${colour}"${dash} d="M${at(x1)} ${at(y1)}L${at(x2)} ${at(y2)}"/>`)
  }

  curve(points: readonly Point[], colour: string, { width = 1, dash }: LineStyle = {}): void {
    const dashes = dash === undefined ? '' : ` stroke-dasharray="${dash.join(' ')}"`
    const path = points.map(([x, y]) => `${at(x)} ${at(y)}`).join('L')
    this.#parts.push(`<path fill="none" stroke="${colour}" stroke-width="${width}" stroke-linejoin="round"${dashes} d="M${path}"/>`)
  }

  text(x: number, y: number, text: string, { size, colour, bold, anchor = 'start' }: TextStyle): void {
    const weight = bold ? ' font-weight="600"' : ''
    const place = anchor === 'start' ? '' : ` text-anchor="${anchor}"`
    this.#parts.push(`<text x="${at(x)}" y="${at(y)}" font-size="${size}" fill="${colour}"${weight}${place}>${escaped(text)}</text>`)
  }

  svg(width: number, height: number, label: string): string {
    const open = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FONT}" role="img">`
    return `${open}<title>${escaped(label)}</title>${this.#parts.join('')}</svg>\n`
  }
}

const at = (value: number): string => String(Math.round(value * 10) / 10)

const escaped = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;')

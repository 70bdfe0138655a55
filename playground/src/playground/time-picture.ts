/**
 * A drawing on the page whose axis is time, and over it the place where we are. What it draws, it
 * is handed.
 */
import { h, put } from '../dom.ts'
import { type Drawing, type Frame, PALETTE_NAMES, type Palette } from './frame.ts'
import { CanvasPen } from './pen.ts'

/** Colours come from the style sheet, so that there is one place for them. */
export function palette(): Palette {
  const style = getComputedStyle(document.documentElement)
  return Object.fromEntries(PALETTE_NAMES.map((name) => [name, style.getPropertyValue(`--${name}`)])) as unknown as Palette
}

export class TimePicture {
  readonly element: HTMLElement
  readonly #base = h('canvas', { role: 'img', 'data-part': 'picture' })
  readonly #line = h('div', { class: 'line', hidden: true })
  readonly #veil = h('div', { class: 'veil', hidden: true })
  readonly #over = h('div', { class: 'over', 'aria-hidden': 'true' }, this.#veil, this.#line)
  readonly #hand = h('div', { class: 'hand' })
  readonly #resized = new ResizeObserver(() => this.#fit())
  #drawing: Drawing | undefined
  #frame: Frame | undefined
  #atUs: number | undefined
  #hidesRest = false

  constructor(seek: (us: number) => void, ...over: HTMLElement[]) {
    this.element = h('div', { class: 'picture' }, this.#base, this.#over, this.#hand, ...over)
    this.#over.addEventListener('click', ({ clientX }) => {
      const us = this.usAt(clientX)
      if (us !== undefined) seek(us)
    })
    this.#resized.observe(this.element)
  }

  /** The time at a place of the window. */
  usAt(clientX: number): number | undefined {
    if (this.#drawing === undefined || this.#frame === undefined) return undefined
    const share = (clientX - this.#over.getBoundingClientRect().left - this.#frame.plotX) / this.#frame.plotWidth
    return Math.max(0, Math.min(1, share)) * this.#drawing.lengthUs
  }

  show(drawing: Drawing): void {
    this.#drawing = drawing
    this.redraw()
  }

  /** What draws by hand, in its row; undefined: nothing does. */
  byHand(board: HTMLElement | undefined): void {
    put(this.#hand, board)
  }

  /** The line at a time; what lies behind it is veiled while we go through the run. */
  point(atUs: number | undefined, hidesRest: boolean): void {
    this.#atUs = atUs
    this.#hidesRest = hidesRest
    this.#showPlace()
  }

  close(): void {
    this.#resized.disconnect()
  }

  #fit(): void {
    if (this.element.clientWidth !== this.#frame?.width) this.redraw()
  }

  redraw(): void {
    if (this.#drawing === undefined || this.element.clientWidth === 0) return
    this.#frame = this.#drawing.frame(this.element.clientWidth)
    this.#over.style.height = `${this.#frame.height}px`
    this.#placeHand(this.#frame)
    this.#base.setAttribute('aria-label', this.#drawing.label)
    this.#drawing.draw(new CanvasPen(sized(this.#base, this.#frame)), this.#frame, palette())
    this.#showPlace()
  }

  #placeHand({ plotX, plotWidth, handTop, handHeight }: Frame): void {
    Object.assign(this.#hand.style, { left: `${plotX}px`, width: `${plotWidth}px`, top: `${handTop}px`, height: `${handHeight}px` })
  }

  /** Moved, not drawn: while playing this happens in every frame. */
  #showPlace(): void {
    const lengthUs = this.#drawing?.lengthUs
    this.#line.hidden = this.#atUs === undefined || lengthUs === undefined
    this.#veil.hidden = this.#line.hidden || !this.#hidesRest
    if (this.#atUs === undefined || lengthUs === undefined || this.#frame === undefined) return
    const { plotX, plotWidth } = this.#frame
    const x = plotX + Math.min(1, this.#atUs / lengthUs) * plotWidth
    this.#line.style.transform = `translateX(${x}px)`
    this.#veil.style.transform = `translateX(${x + 3}px)`
  }
}

/** As many dots as the screen has. */
function sized(canvas: HTMLCanvasElement, { width, height }: Frame): CanvasRenderingContext2D {
  const ratio = Math.min(devicePixelRatio, 3)
  canvas.width = Math.round(width * ratio)
  canvas.height = Math.round(height * ratio)
  canvas.style.width = `${width}px`
  canvas.style.height = `${height}px`
  const context = canvas.getContext('2d') as CanvasRenderingContext2D
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  return context
}

/** The picture on the page, and over it the place where we are and the words about it. */
import { h, put } from '../dom.ts'
import { CanvasPen } from './pen.ts'
import { drawPicture, type Layout, layoutFor, PALETTE_NAMES, type Palette, pictureLabel, type Scene, wordsTop } from './picture.ts'

/** Colours come from the style sheet, so that there is one place for them. */
export function palette(): Palette {
  const style = getComputedStyle(document.documentElement)
  return Object.fromEntries(PALETTE_NAMES.map((name) => [name, style.getPropertyValue(`--${name}`)])) as unknown as Palette
}

export class Picture {
  readonly element: HTMLElement
  readonly #base = h('canvas', { role: 'img', 'data-part': 'picture' })
  readonly #line = h('div', { class: 'line', hidden: true })
  readonly #veil = h('div', { class: 'veil', hidden: true })
  readonly #over = h('div', { class: 'over', 'aria-hidden': 'true' }, this.#veil, this.#line)
  /** Over the row of what arrives. */
  readonly #hand = h('div', { class: 'hand' })
  readonly #resized = new ResizeObserver(() => this.#fit())
  #scene: Omit<Scene, 'palette'> | undefined
  #layout: Layout = layoutFor(320, 0)
  #atUs: number | undefined
  #hidesRest = false
  #hasState = true
  #isByHand = false
  readonly #words: HTMLElement

  /** `words` has one element for each row, with its number in `--row`: it stands under the bars of that row, or below the picture on a phone. */
  constructor(words: HTMLElement, seek: (us: number) => void) {
    this.#words = words
    this.element = h('div', { class: 'picture' }, this.#base, this.#over, this.#hand, words)
    this.#over.addEventListener('click', ({ clientX }) => {
      if (this.#scene === undefined) return
      const share = (clientX - this.#over.getBoundingClientRect().left - this.#layout.plotX) / this.#layout.plotWidth
      seek(Math.max(0, Math.min(1, share)) * this.#scene.run.lengthUs)
    })
    this.#resized.observe(this.element)
  }

  show(scene: Omit<Scene, 'palette'>): void {
    this.#scene = scene
    this.#draw()
  }

  showState(hasState: boolean): void {
    this.#hasState = hasState
    this.#draw()
  }

  /** What draws by hand, in the row of what arrives; undefined: nothing does. */
  byHand(board: HTMLElement | undefined): void {
    put(this.#hand, board)
    this.#isByHand = board !== undefined
    this.#draw()
  }

  /** The line at a time; what lies behind it is veiled while we go through the run. */
  point(atUs: number | undefined, hidesRest: boolean): void {
    this.#atUs = atUs
    this.#hidesRest = hidesRest
    this.#showPlace()
  }

  redraw(): void {
    this.#draw()
  }

  close(): void {
    this.#resized.disconnect()
  }

  #fit(): void {
    if (this.#scene !== undefined && this.element.clientWidth !== this.#layout.width) this.#draw()
  }

  #draw(): void {
    if (this.#scene === undefined || this.element.clientWidth === 0) return
    const scene: Scene = { ...this.#scene, palette: palette() }
    this.#layout = layoutFor(this.element.clientWidth, scene.run.rows.length, this.#hasState, this.#isByHand)
    this.#over.style.height = `${this.#layout.height}px`
    this.#placeWords()
    this.#placeHand()
    this.#base.setAttribute('aria-label', pictureLabel(scene))
    drawPicture(new CanvasPen(sized(this.#base, this.#layout)), this.#layout, scene)
    this.#showPlace()
  }

  #placeWords(): void {
    const first = wordsTop(this.#layout, 0)
    this.#words.classList.toggle('in-rows', !this.#layout.isNarrow)
    this.#words.style.setProperty('--first', `${first}px`)
    this.#words.style.setProperty('--each', `${wordsTop(this.#layout, 1) - first}px`)
    this.#words.style.setProperty('--left', `${this.#layout.plotX}px`)
  }

  #placeHand(): void {
    const { plotX, plotWidth, callsTop, callsHeight } = this.#layout
    Object.assign(this.#hand.style, { left: `${plotX}px`, width: `${plotWidth}px`, top: `${callsTop}px`, height: `${callsHeight}px` })
  }

  /** Moved, not drawn: while playing this happens in every frame. */
  #showPlace(): void {
    const lengthUs = this.#scene?.run.lengthUs
    this.#line.hidden = this.#atUs === undefined || lengthUs === undefined
    this.#veil.hidden = this.#line.hidden || !this.#hidesRest
    if (this.#atUs === undefined || lengthUs === undefined) return
    const { plotX, plotWidth } = this.#layout
    const x = plotX + Math.min(1, this.#atUs / lengthUs) * plotWidth
    this.#line.style.transform = `translateX(${x}px)`
    this.#veil.style.transform = `translateX(${x + 3}px)`
  }
}

/** As many dots as the screen has. */
function sized(canvas: HTMLCanvasElement, { width, height }: Layout): CanvasRenderingContext2D {
  const ratio = Math.min(devicePixelRatio, 3)
  canvas.width = Math.round(width * ratio)
  canvas.height = Math.round(height * ratio)
  canvas.style.width = `${width}px`
  canvas.style.height = `${height}px`
  const context = canvas.getContext('2d') as CanvasRenderingContext2D
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  return context
}

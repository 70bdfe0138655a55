/**
 * The picture of the six algorithms on the page, with the words about one call in the rows that
 * they are about.
 */
import type { Drawing } from './frame.ts'
import { drawPicture, type Layout, layoutFor, pictureLabel, type Scene, wordsTop } from './picture.ts'
import { TimePicture } from './time-picture.ts'

export class Picture {
  readonly #picture: TimePicture
  readonly #words: HTMLElement
  #scene: Omit<Scene, 'palette'> | undefined
  #hasState = true
  #isByHand = false

  /**
   * `words` has one element for each row, with its number in `--row`: it stands under the bars of
   * that row, or below the picture on a phone.
   */
  constructor(words: HTMLElement, seek: (us: number) => void) {
    this.#words = words
    this.#picture = new TimePicture(seek, words)
  }

  get element(): HTMLElement {
    return this.#picture.element
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
    this.#picture.byHand(board)
    this.#isByHand = board !== undefined
    this.#draw()
  }

  point(atUs: number | undefined, hidesRest: boolean): void {
    this.#picture.point(atUs, hidesRest)
  }

  redraw(): void {
    this.#picture.redraw()
  }

  close(): void {
    this.#picture.close()
  }

  #draw(): void {
    if (this.#scene === undefined) return
    this.#picture.show(drawingOf(this.#scene, this.#hasState, this.#isByHand, (layout) => this.#placeWords(layout)))
  }

  #placeWords(layout: Layout): void {
    const first = wordsTop(layout, 0)
    this.#words.classList.toggle('in-rows', !layout.isNarrow)
    this.#words.style.setProperty('--first', `${first}px`)
    this.#words.style.setProperty('--each', `${wordsTop(layout, 1) - first}px`)
    this.#words.style.setProperty('--left', `${layout.plotX}px`)
  }
}

/** `placed` is told where things lie each time that it is drawn. */
export function drawingOf(
  scene: Omit<Scene, 'palette'>,
  hasState = true,
  isByHand = false,
  placed: (layout: Layout) => void = () => undefined,
): Drawing {
  const { run } = scene
  return {
    lengthUs: run.lengthUs,
    label: pictureLabel(scene),
    frame: (width) => layoutFor(width, run.rows.length, hasState, isByHand),
    draw(pen, frame, palette) {
      placed(frame as Layout)
      drawPicture(pen, frame as Layout, { ...scene, palette })
    },
  }
}

/**
 * Drawn by hand: columns to drag over, each of them a slider for the keyboard and for screen
 * readers.
 */
import { h } from '../dom.ts'
import { plain } from '../numbers.ts'
import { COLUMNS } from '../simulation/traffic.ts'

export interface BoardOptions {
  readonly least: number
  readonly most: number
  /** How much time all columns span. */
  readonly seconds: number
  readonly label: string
  /** The name of a column, by its time in seconds. */
  column(from: string, to: string): string
  /** What a value is for people, where it is not the number alone. */
  valueText?(value: number): string
}

type Change = (columns: readonly number[]) => void

export class DrawingBoard {
  readonly element: HTMLElement
  readonly #options: BoardOptions
  readonly #change: Change
  readonly #counts: number[]
  readonly #columns: readonly HTMLElement[]
  /** Where the hand was last, while it draws. */
  #last: Point | undefined

  constructor(first: readonly number[], options: BoardOptions, change: Change) {
    this.#options = options
    this.#change = change
    this.#counts = [...first]
    this.#columns = first.map((_, k) => this.#column(k))
    this.element = h('div', { class: 'board', role: 'group', 'aria-label': options.label }, ...this.#columns)
    first.forEach((count, k) => {
      this.#show(k, count)
    })
    this.#listenToPointer()
  }

  #column(k: number): HTMLElement {
    const { least, most, seconds, column } = this.#options
    const widthS = seconds / COLUMNS
    return h(
      'div',
      {
        class: 'column',
        role: 'slider',
        tabindex: k === 0 ? 0 : -1,
        'aria-label': column(plain(k * widthS), plain((k + 1) * widthS)),
        'aria-orientation': 'vertical',
        'aria-valuemin': least,
        'aria-valuemax': most,
        onkeydown: (event: KeyboardEvent) => this.#onKey(event, k),
      },
      h('span', { class: 'bar' }),
    )
  }

  #show(k: number, count: number): void {
    const { most, valueText } = this.#options
    const column = this.#columns[k] as HTMLElement
    this.#counts[k] = count
    column.setAttribute('aria-valuenow', String(count))
    if (valueText !== undefined) column.setAttribute('aria-valuetext', valueText(count))
    const bar = column.firstElementChild as HTMLElement
    bar.style.height = `${(count / most) * 100}%`
  }

  #set(k: number, count: number): void {
    this.#show(k, within(count, this.#options.least, this.#options.most))
    this.#change([...this.#counts])
  }

  #onKey(event: KeyboardEvent, k: number): void {
    const { least, most } = this.#options
    const count = this.#counts[k] as number
    const values: Readonly<Record<string, number>> = {
      ArrowUp: count + 1,
      ArrowDown: count - 1,
      PageUp: count + 5,
      PageDown: count - 5,
      Home: least,
      End: most,
    }
    if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') this.#focus(k + (event.key === 'ArrowRight' ? 1 : -1))
    else if (values[event.key] !== undefined) this.#set(k, values[event.key] as number)
    else return
    event.preventDefault()
  }

  /** One column at a time can be reached with Tab. */
  #focus(k: number): void {
    const next = this.#columns[k]
    if (next === undefined) return
    for (const column of this.#columns) column.tabIndex = column === next ? 0 : -1
    next.focus()
  }

  #listenToPointer(): void {
    this.element.addEventListener('pointerdown', (event) => {
      this.element.setPointerCapture(event.pointerId)
      this.#last = undefined
      this.#draw(event)
    })
    this.element.addEventListener('pointermove', (event) => {
      if (this.element.hasPointerCapture(event.pointerId)) this.#draw(event)
    })
  }

  #draw({ clientX, clientY }: PointerEvent): void {
    const { least, most } = this.#options
    const { left, top, width, height } = this.element.getBoundingClientRect()
    const column = within(Math.floor(((clientX - left) / width) * COLUMNS), 0, COLUMNS - 1)
    const count = within(Math.round((1 - (clientY - top) / height) * most), least, most)
    for (const point of pointsBetween(this.#last, { column, count })) this.#show(point.column, point.count)
    this.#last = { column, count }
    this.#change([...this.#counts])
  }
}

interface Point {
  readonly column: number
  readonly count: number
}

const within = (value: number, least: number, most: number): number => Math.max(least, Math.min(most, value))

/**
 * A fast hand skips columns: what it passed over lies on the line from the last point to this one.
 */
function pointsBetween(last: Point | undefined, next: Point): Point[] {
  if (last === undefined || last.column === next.column) return [next]
  const step = Math.sign(next.column - last.column)
  return Array.from({ length: Math.abs(next.column - last.column) }, (_, k) => {
    const column = last.column + (k + 1) * step
    const share = (column - last.column) / (next.column - last.column)
    return { column, count: Math.round(last.count + share * (next.count - last.count)) }
  })
}

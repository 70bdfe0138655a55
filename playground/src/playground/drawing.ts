/** Drawn by hand: columns to drag over, each of them a slider for the keyboard and for screen readers. */
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

export function drawingBoard(
  first: readonly number[],
  { least, most, seconds, label, column: nameOf, valueText }: BoardOptions,
  change: (columns: readonly number[]) => void,
): HTMLElement {
  const counts = [...first]
  const bars = counts.map(() => h('span', { class: 'bar' }))
  const columns = counts.map((_, k) => columnFor(k))
  const board = h('div', { class: 'board', role: 'group', 'aria-label': label }, ...columns)
  counts.forEach((count, k) => {
    show(k, count)
  })
  listenToPointer()
  return board

  function columnFor(k: number): HTMLElement {
    const widthS = seconds / COLUMNS
    return h(
      'div',
      {
        class: 'column',
        role: 'slider',
        tabindex: k === 0 ? 0 : -1,
        'aria-label': nameOf(plain(k * widthS), plain((k + 1) * widthS)),
        'aria-orientation': 'vertical',
        'aria-valuemin': least,
        'aria-valuemax': most,
        onkeydown: (event: KeyboardEvent) => onKey(event, k),
      },
      bars[k],
    )
  }

  function show(k: number, count: number): void {
    counts[k] = count
    columns[k]?.setAttribute('aria-valuenow', String(count))
    if (valueText !== undefined) columns[k]?.setAttribute('aria-valuetext', valueText(count))
    const bar = bars[k] as HTMLElement
    bar.style.height = `${(count / most) * 100}%`
  }

  function set(k: number, count: number): void {
    show(k, within(count, least, most))
    change([...counts])
  }

  function onKey(event: KeyboardEvent, k: number): void {
    const count = counts[k] as number
    const values: Readonly<Record<string, number>> = {
      ArrowUp: count + 1,
      ArrowDown: count - 1,
      PageUp: count + 5,
      PageDown: count - 5,
      Home: least,
      End: most,
    }
    if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') focus(k + (event.key === 'ArrowRight' ? 1 : -1))
    else if (values[event.key] !== undefined) set(k, values[event.key] as number)
    else return
    event.preventDefault()
  }

  /** One column at a time can be reached with Tab. */
  function focus(k: number): void {
    const next = columns[k]
    if (next === undefined) return
    for (const column of columns) column.tabIndex = column === next ? 0 : -1
    next.focus()
  }

  function listenToPointer(): void {
    let last: Point | undefined
    const draw = (event: PointerEvent) => {
      const { left, top, width, height } = board.getBoundingClientRect()
      const column = within(Math.floor(((event.clientX - left) / width) * COLUMNS), 0, COLUMNS - 1)
      const count = within(Math.round((1 - (event.clientY - top) / height) * most), least, most)
      for (const point of pointsBetween(last, { column, count })) show(point.column, point.count)
      last = { column, count }
      change([...counts])
    }
    board.addEventListener('pointerdown', (event) => {
      board.setPointerCapture(event.pointerId)
      last = undefined
      draw(event)
    })
    board.addEventListener('pointermove', (event) => {
      if (board.hasPointerCapture(event.pointerId)) draw(event)
    })
  }
}

interface Point {
  readonly column: number
  readonly count: number
}

const within = (value: number, least: number, most: number): number => Math.max(least, Math.min(most, value))

/** A fast hand skips columns: what it passed over lies on the line from the last point to this one. */
function pointsBetween(last: Point | undefined, next: Point): Point[] {
  if (last === undefined || last.column === next.column) return [next]
  const step = Math.sign(next.column - last.column)
  return Array.from({ length: Math.abs(next.column - last.column) }, (_, k) => {
    const column = last.column + (k + 1) * step
    const share = (column - last.column) / (next.column - last.column)
    return { column, count: Math.round(last.count + share * (next.count - last.count)) }
  })
}

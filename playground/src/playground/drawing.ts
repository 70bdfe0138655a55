/** Traffic drawn by hand: columns to drag over, each of them a slider for the keyboard and for screen readers. */
import { h } from '../dom.ts'
import { plain } from '../numbers.ts'
import { COLUMNS, MAX_IN_COLUMN } from '../simulation/traffic.ts'
import type { Texts } from '../text/en.ts'

export function drawingBoard(
  first: readonly number[],
  seconds: number,
  texts: Texts,
  change: (columns: readonly number[]) => void,
): HTMLElement {
  const counts = [...first]
  const bars = counts.map(() => h('span', { class: 'bar' }))
  const columns = counts.map((_, k) => columnFor(k))
  const board = h('div', { class: 'board', role: 'group', 'aria-label': texts.traffic.kinds.drawn }, ...columns)
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
        'aria-label': texts.traffic.column(plain(k * widthS), plain((k + 1) * widthS)),
        'aria-orientation': 'vertical',
        'aria-valuemin': 0,
        'aria-valuemax': MAX_IN_COLUMN,
        onkeydown: (event: KeyboardEvent) => onKey(event, k),
      },
      bars[k],
    )
  }

  function show(k: number, count: number): void {
    counts[k] = count
    columns[k]?.setAttribute('aria-valuenow', String(count))
    const bar = bars[k] as HTMLElement
    bar.style.height = `${(count / MAX_IN_COLUMN) * 100}%`
  }

  function set(k: number, count: number): void {
    show(k, within(count, MAX_IN_COLUMN))
    change([...counts])
  }

  function onKey(event: KeyboardEvent, k: number): void {
    const count = counts[k] as number
    const values: Readonly<Record<string, number>> = {
      ArrowUp: count + 1,
      ArrowDown: count - 1,
      PageUp: count + 5,
      PageDown: count - 5,
      Home: 0,
      End: MAX_IN_COLUMN,
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
      const column = within(Math.floor(((event.clientX - left) / width) * COLUMNS), COLUMNS - 1)
      const count = within(Math.round((1 - (event.clientY - top) / height) * MAX_IN_COLUMN), MAX_IN_COLUMN)
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

const within = (value: number, most: number): number => Math.max(0, Math.min(most, value))

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

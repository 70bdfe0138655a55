/**
 * The picture: what arrives, and for each algorithm what it admits, refuses and keeps, on one time
 * axis.
 */
import { counted, plain } from '../numbers.ts'
import { FIELDS, type Limits, type LimitType } from '../simulation/limits.ts'
import { CELLS, type Row, type Run } from '../simulation/run.ts'
import { MAX_IN_COLUMN } from '../simulation/traffic.ts'
import type { LimitData } from '../sluice.ts'
import type { Texts } from '../text/en.ts'
import { isOver } from './conclusion.ts'
import {
  AXIS_HEIGHT,
  drawAxis,
  type Frame,
  GUTTER,
  PADDING,
  type Palette,
  ROW_GAP,
  SCALE,
  secondTicks,
  TITLE_HEIGHT,
  TOP,
  thinned,
  withAlpha,
} from './frame.ts'
import type { Pen, Point } from './pen.ts'

/** Where things lie. Names stand left of the plot where there is room, above it on a phone. */
export interface Layout extends Frame {
  readonly bars: number
  /** Whether what each limit keeps is drawn under its bars. */
  readonly hasState: boolean
  /** Of the bars of each row, up or down. */
  readonly sideHeight: number
  /** Whether what arrives is drawn by hand there: then the columns of the hand are its bars. */
  readonly isByHand: boolean
}

const CALLS_HEIGHT = 34
/** With room for a hand. */
const BY_HAND_HEIGHT = 96
const SIDE_HEIGHT = 27
/** Without the state there is room for higher bars. */
const TALL_SIDE_HEIGHT = 34
/** One line of words under the bars: the arithmetic of the call that is looked at. */
const WORDS_HEIGHT = 19
const GAUGE_HEIGHT = 24

export function layoutFor(width: number, rows: number, hasState = true, isByHand = false): Layout {
  const isNarrow = width < 620
  const plotX = isNarrow ? SCALE : GUTTER + SCALE
  const layout = {
    width,
    height: 0,
    plotX,
    plotWidth: width - plotX - PADDING,
    isNarrow,
    bars: isNarrow ? CELLS / 8 : CELLS / 4,
    hasState,
    sideHeight: hasState ? SIDE_HEIGHT : TALL_SIDE_HEIGHT,
    handTop: isNarrow ? TOP + TITLE_HEIGHT : TOP,
    handHeight: isByHand ? BY_HAND_HEIGHT : CALLS_HEIGHT,
    isByHand,
  }
  return { ...layout, height: rowTop(layout, rows) + AXIS_HEIGHT }
}

/** Where a row begins. */
function rowTop({ isNarrow, hasState, sideHeight, handTop, handHeight }: Layout, row: number): number {
  const each = (isNarrow ? TITLE_HEIGHT : 0) + 2 * sideHeight + WORDS_HEIGHT + (hasState ? GAUGE_HEIGHT : 0) + ROW_GAP
  return handTop + handHeight + ROW_GAP + row * each
}

/** Where the words of a row stand: between its bars and its state. */
export function wordsTop(layout: Layout, row: number): number {
  return rowTop(layout, row) + (layout.isNarrow ? TITLE_HEIGHT : 0) + 2 * layout.sideHeight + 1
}

export interface Scene {
  readonly run: Run
  readonly limits: Limits
  readonly texts: Texts
  readonly palette: Palette
}

export function drawPicture(pen: Pen, layout: Layout, scene: Scene): void {
  const { run, palette } = scene
  pen.rect(0, 0, layout.width, layout.height, palette.surface)
  drawAxis(pen, layout, secondTicks(layout, run.lengthUs, scene.texts.picture.seconds), palette)
  drawCalls(pen, layout, scene)
  const scale = Math.max(1, ...run.rows.flatMap(({ admitted, refused }) => [highest(admitted, layout.bars), highest(refused, layout.bars)]))
  for (const [k, row] of run.rows.entries()) drawRow(pen, layout, scene, row, scale, rowTop(layout, k))
}

function drawCalls(pen: Pen, layout: Layout, { run, palette, texts }: Scene): void {
  const { handTop: y, handHeight } = layout
  const title = { size: 13, colour: palette.ink, bold: true }
  const total = counted(run.atUs.length)
  if (layout.isNarrow) {
    pen.text(2, TOP + 13, texts.picture.calls, title)
    pen.text(layout.width - 4, TOP + 13, total, { ...title, anchor: 'end' })
  } else {
    pen.text(2, y + 13, texts.picture.calls, title)
    pen.text(2, y + 30, total, { size: 12, colour: palette.quiet })
  }
  const bins = binned(run.arrived, layout.bars)
  if (!layout.isByHand) drawBars(pen, layout, bins, y + handHeight, handHeight / Math.max(1, ...bins), palette.calls)
  drawScale(pen, layout, y, layout.isByHand ? MAX_IN_COLUMN : Math.max(...bins), palette)
  pen.line(layout.plotX, y + handHeight + 0.5, layout.plotX + layout.plotWidth, y + handHeight + 0.5, palette.quiet)
}

function drawRow(pen: Pen, layout: Layout, scene: Scene, row: Row, scale: number, top: number): void {
  const { palette } = scene
  const y = layout.isNarrow ? top + TITLE_HEIGHT : top
  const base = y + layout.sideHeight
  const perCall = (layout.sideHeight - 1) / scale
  drawBars(pen, layout, binned(row.admitted, layout.bars), base, perCall, palette.admitted)
  drawBars(pen, layout, binned(row.refused, layout.bars), base + 1, -perCall, palette.refused)
  pen.line(layout.plotX, base + 0.5, layout.plotX + layout.plotWidth, base + 0.5, palette.quiet)
  drawScale(pen, layout, y, scale, palette)
  drawNames(pen, layout, scene, row, top, y)
  if (layout.hasState) drawGauge(pen, layout, scene, row, y + 2 * layout.sideHeight + WORDS_HEIGHT)
}

function drawNames(pen: Pen, layout: Layout, { texts, palette, limits }: Scene, row: Row, top: number, y: number): void {
  const name = texts.types[row.type]
  const { admitted, refused } = row.totals
  const title = { size: 13, colour: palette.ink, bold: true }
  const up = `▲ ${counted(admitted)} ${texts.picture.admitted}`
  const down = `▼ ${counted(refused)} ${texts.picture.refused}`
  if (layout.isNarrow) {
    pen.text(2, top + 13, name, title)
    pen.text(layout.width - 4, top + 13, `▼ ${counted(refused)}`, { size: 12, colour: palette.refused, anchor: 'end', bold: true })
    const room = 26 + counted(refused).length * 8
    pen.text(layout.width - 4 - room, top + 13, `▲ ${counted(admitted)}`, { size: 12, colour: palette.admitted, anchor: 'end', bold: true })
    return
  }
  pen.text(2, y + 11, name, title)
  pen.text(GUTTER - 4, y + 11, numbersOf(limits[row.type], texts), { size: 11, colour: palette.quiet, anchor: 'end' })
  pen.text(2, y + 28, up, { size: 12, colour: palette.admitted, bold: true })
  pen.text(2, y + 44, down, { size: 12, colour: palette.refused, bold: true })
  const most = texts.picture.most(counted(row.totals.mostInWindow), counted(row.capacity))
  pen.text(2, y + 60, most, { size: 12, colour: isOver(row) ? palette.refused : palette.quiet, bold: isOver(row) })
}

/** The numbers of a limit, as short as they can be told: '10/s, burst 20', '100 per 1min'. */
export function numbersOf(data: LimitData, { limits: { numbers } }: Texts): string {
  const [most, pace] = FIELDS[data.type as LimitType] as [string, string]
  if ('window' in data) return numbers.window(String(data[most]), String(data.window))
  return numbers.pace(String(data[pace]), String(data[most]))
}

/**
 * A band between least and most of each cell: a line where nothing happens, a stroke where
 * something does.
 */
function drawGauge(pen: Pen, layout: Layout, { texts, palette }: Scene, row: Row, top: number): void {
  const bottom = top + GAUGE_HEIGHT
  // What admits nothing has a ceiling of 0.
  const yOf = (value: number) => bottom - (Math.min(value, row.ceiling) / (row.ceiling || 1)) * GAUGE_HEIGHT
  const xOf = (cell: number) => layout.plotX + ((cell + 0.5) / CELLS) * layout.plotWidth
  const upper: Point[] = []
  const lower: Point[] = []
  for (let cell = 0; cell < CELLS; cell++) {
    upper.push([xOf(cell), yOf(row.high[cell] as number) - 0.6])
    lower.unshift([xOf(cell), yOf(row.low[cell] as number) + 0.6])
  }
  const line = thinned(upper)
  const fill: Point[] = [[layout.plotX, bottom], ...line, [layout.plotX + layout.plotWidth, bottom]]
  pen.shape(fill, withAlpha(palette.gauge, 0.14))
  pen.shape([...line, ...thinned(lower)], palette.gauge)
  pen.line(layout.plotX, top + 0.5, layout.plotX + layout.plotWidth, top + 0.5, palette.grid, true)
  pen.line(layout.plotX, bottom + 0.5, layout.plotX + layout.plotWidth, bottom + 0.5, palette.grid)
  const small = { size: 11, colour: palette.quiet }
  pen.text(2, layout.isNarrow ? top - 5 : top + 15, texts.quantities[row.type], small)
  pen.text(layout.plotX - 5, top + 8, plain(row.ceiling), { ...small, anchor: 'end' })
  pen.text(layout.plotX - 5, bottom + 1, '0', { ...small, anchor: 'end' })
}

function drawScale(pen: Pen, layout: Layout, y: number, most: number, { quiet }: Palette): void {
  pen.text(layout.plotX - 5, y + 9, counted(most), { size: 11, colour: quiet, anchor: 'end' })
}

/** Upwards from the base line if `perCall` is above zero, downwards below it. */
function drawBars(pen: Pen, layout: Layout, bins: readonly number[], base: number, perCall: number, colour: string): void {
  const step = layout.plotWidth / bins.length
  const width = Math.max(1.5, step - 1)
  for (const [bin, count] of bins.entries()) {
    if (count === 0) continue
    // What is there is seen, however little it is beside the rest.
    const height = Math.max(3, Math.abs(count * perCall))
    pen.rect(layout.plotX + bin * step, perCall > 0 ? base - height : base, width, height, colour)
  }
}

function binned(cells: Uint32Array, bins: number): number[] {
  const size = cells.length / bins
  return Array.from({ length: bins }, (_, bin) => cells.subarray(bin * size, (bin + 1) * size).reduce((sum, count) => sum + count, 0))
}

const highest = (cells: Uint32Array, bins: number): number => Math.max(...binned(cells, bins))

/** The picture in words, for screen readers. */
export function pictureLabel({ run, texts }: Omit<Scene, 'palette'>): string {
  const rows = run.rows.map(
    ({ type, totals }) =>
      `${texts.types[type]}: ${counted(totals.admitted)} ${texts.picture.admitted}, ${counted(totals.refused)} ${texts.picture.refused}`,
  )
  return `${texts.picture.label}. ${rows.join('; ')}.`
}

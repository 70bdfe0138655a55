/**
 * Lines and areas over time, row under row, on one axis: for the scenes, and for the pictures in
 * the guides.
 */
import { counted } from '../numbers.ts'
import {
  AXIS_HEIGHT,
  type Drawing,
  drawAxis,
  type Frame,
  GUTTER,
  PADDING,
  type Palette,
  SCALE,
  TITLE_HEIGHT,
  type Tick,
  TOP,
  thinned,
  withAlpha,
} from '../playground/frame.ts'
import type { Pen, Point } from '../playground/pen.ts'

type Colour = keyof Palette

export interface Series {
  /** For the legend; one without a name has no entry there. */
  readonly name?: string
  readonly colour: Colour
  readonly kind: 'line' | 'area' | 'bars'
  /** One for each equal part of the time, or for each of `shares`. NaN is a gap in a line. */
  readonly values: ArrayLike<number>
  /** When each value was, as a share of the time. */
  readonly shares?: ArrayLike<number>
  /** Where an area begins, if not at 0. */
  readonly base?: ArrayLike<number>
  readonly dash?: readonly number[]
}

export interface ChartRow {
  readonly title: string
  /** The top of the scale. */
  readonly top: number
  readonly series: readonly Series[]
  readonly height?: number
}

export interface Chart {
  readonly label: string
  readonly lengthUs: number
  ticks(frame: Frame): readonly Tick[]
  readonly rows: readonly ChartRow[]
}

const ROW_HEIGHT = 92
const LEGEND_HEIGHT = 17
const GAP = 22
/** Between the legend and the plot, on a phone. */
const HEAD_GAP = 6
/** Scales have larger numbers than those of the six algorithms. */
const SCALE_WIDTH = SCALE + 8
const SWATCH = 18

export function chartDrawing(chart: Chart): Drawing {
  return {
    lengthUs: chart.lengthUs,
    label: chart.label,
    frame: (width) => frameFor(width, chart.rows),
    draw: (pen, frame, palette) => drawChart(pen, frame, chart, palette),
  }
}

/** The first row is the one that may be drawn by hand. */
function frameFor(width: number, rows: readonly ChartRow[]): Frame {
  const isNarrow = width < 620
  const plotX = isNarrow ? SCALE_WIDTH : GUTTER + SCALE_WIDTH
  const frame = { width, height: 0, plotX, plotWidth: width - plotX - PADDING, isNarrow, handTop: 0, handHeight: ROW_HEIGHT }
  const last = rowPlots(frame, rows).at(-1)
  return {
    ...frame,
    handTop: rowPlots(frame, rows)[0]?.top ?? TOP,
    height: (last === undefined ? TOP : last.top + last.height) + AXIS_HEIGHT,
  }
}

/** Where the values of a row are drawn. */
interface Plot {
  readonly top: number
  readonly height: number
}

/** On a phone the title of a row and its legend stand above its plot. */
function rowPlots(frame: Frame, rows: readonly ChartRow[]): Plot[] {
  let next = TOP
  return rows.map((row) => {
    const top = next + (frame.isNarrow ? headHeight(row, frame.width) : 0)
    const height = row.height ?? ROW_HEIGHT
    next = top + height + GAP
    return { top, height }
  })
}

const headHeight = (row: ChartRow, width: number): number => TITLE_HEIGHT + LEGEND_HEIGHT * linesOf(legendOf(row, width)) + HEAD_GAP

const linesOf = (legend: readonly LegendEntry[]): number => legend.at(-1)?.line ?? 0

function drawChart(pen: Pen, frame: Frame, { rows, ticks }: Chart, palette: Palette): void {
  pen.rect(0, 0, frame.width, frame.height, palette.surface)
  drawAxis(pen, frame, ticks(frame), palette)
  for (const [k, plot] of rowPlots(frame, rows).entries()) drawRow(pen, frame, rows[k] as ChartRow, plot, palette)
}

function drawRow(pen: Pen, frame: Frame, row: ChartRow, plot: Plot, palette: Palette): void {
  drawScale(pen, frame, row.top, plot, palette)
  for (const series of row.series) DRAW[series.kind](pen, placed(series, frame, row.top, plot), palette[series.colour])
  drawNames(pen, frame, row, plot.top, palette)
}

function drawScale(pen: Pen, { plotX, plotWidth }: Frame, most: number, { top, height }: Plot, { quiet, grid }: Palette): void {
  const small = { size: 11, colour: quiet, anchor: 'end' } as const
  for (const share of [0, 0.5, 1]) {
    const y = Math.round(top + (1 - share) * height) + 0.5
    pen.line(plotX, y, plotX + plotWidth, y, share === 0 ? quiet : grid)
    if (share !== 0.5 || Number.isInteger(most / 2)) pen.text(plotX - 5, y + 3.5, counted(most * share), small)
  }
}

/** A series as places on the drawing. */
interface Placed {
  readonly values: Point[]
  readonly base: Point[]
  readonly bottom: number
  readonly step: number
  readonly dash: readonly number[] | undefined
}

function placed({ values, shares, base, dash }: Series, frame: Frame, most: number, { top, height }: Plot): Placed {
  const step = frame.plotWidth / values.length
  const yOf = (value: number) => top + (1 - Math.min(1, value / most)) * height
  const xOf = (k: number) => frame.plotX + (shares === undefined ? (k + 0.5) * step : (shares[k] as number) * frame.plotWidth)
  const points = (line: ArrayLike<number>): Point[] => Array.from(line, (value, k) => [xOf(k), yOf(value)])
  return { values: points(values), base: points(base ?? new Float64Array(values.length)), bottom: top + height, step, dash }
}

const DRAW: Readonly<Record<Series['kind'], (pen: Pen, placed: Placed, colour: string) => void>> = {
  bars(pen, { values, bottom, step }, colour) {
    for (const [x, y] of values) pen.rect(x - step / 2 + 0.5, y, step - 1, bottom - y, colour)
  },
  line(pen, { values, dash }, colour) {
    for (const part of unbroken(values)) pen.curve(thinned(part), colour, { width: 1.8, dash })
  },
  area(pen, { values, base }, colour) {
    const edge = thinned(values)
    pen.shape([...edge, ...thinned(base).reverse()], withAlpha(colour, 0.4))
    pen.curve(edge, colour)
  },
}

/** The parts between gaps. */
function unbroken(points: readonly Point[]): Point[][] {
  const parts: Point[][] = [[]]
  for (const point of points) {
    if (Number.isNaN(point[1])) parts.push([])
    else parts.at(-1)?.push(point)
  }
  return parts.filter((part) => part.length > 0)
}

interface LegendEntry {
  readonly series: Series
  readonly x: number
  /** Counted from 1. */
  readonly line: number
}

/**
 * Each below the other in the gutter; on a phone side by side, as many to a line as there is room
 * for.
 */
function legendOf({ series }: ChartRow, width?: number): LegendEntry[] {
  let [x, line] = [2, 1]
  return series.flatMap((each, k) => {
    if (each.name === undefined) return []
    const needed = SWATCH + textWidth(each.name) + 14
    if (width === undefined) return [{ series: each, x: 2, line: series.slice(0, k + 1).filter(({ name }) => name !== undefined).length }]
    if (x > 2 && x + needed > width) [x, line] = [2, line + 1]
    const entry = { series: each, x, line }
    x += needed
    return [entry]
  })
}

/** About: characters of Chinese are as wide as they are high. */
const textWidth = (text: string): number => [...text].reduce((sum, letter) => sum + (letter > '\u2e80' ? 12 : 6.7), 0)

function drawNames(pen: Pen, frame: Frame, row: ChartRow, top: number, palette: Palette): void {
  const entries = legendOf(row, frame.isNarrow ? frame.width : undefined)
  const titleY = frame.isNarrow ? top - headHeight(row, frame.width) + 13 : top + 11
  pen.text(2, titleY, row.title, { size: 13, colour: palette.ink, bold: true })
  for (const { series, x, line } of entries) drawEntry(pen, series, x, titleY + LEGEND_HEIGHT * line + 1, palette)
}

function drawEntry(pen: Pen, { name = '', colour, kind, dash }: Series, x: number, y: number, palette: Palette): void {
  if (kind === 'line') {
    const ends: Point[] = [
      [x, y - 4],
      [x + SWATCH - 5, y - 4],
    ]
    pen.curve(ends, palette[colour], { width: 1.8, dash })
  } else pen.rect(x, y - 9, SWATCH - 6, 9, kind === 'area' ? withAlpha(palette[colour], 0.4) : palette[colour])
  pen.text(x + SWATCH, y, name, { size: 12, colour: palette.quiet })
}

/** A round number at or above: where there is room for a half, that is whole too. */
export function roundTop(most: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most)))
  const digits = power === 1 ? [1, 2, 4, 6, 8] : [1, 1.2, 1.6, 2, 3, 4, 6, 8]
  return Math.round((digits.find((digit) => digit * power >= most) ?? 10) * power)
}

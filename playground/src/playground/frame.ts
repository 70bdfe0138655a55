/** What drawings on an axis of time have in common: where the plot lies, its colours, the axis. */
import { plain } from '../numbers.ts'
import type { Pen, Point } from './pen.ts'

export interface Palette {
  readonly ink: string
  readonly quiet: string
  readonly grid: string
  readonly surface: string
  readonly admitted: string
  readonly refused: string
  readonly gauge: string
  readonly calls: string
}

export const PALETTE_NAMES = ['ink', 'quiet', 'grid', 'surface', 'admitted', 'refused', 'gauge', 'calls'] as const

/** Where the plot lies in a drawing. */
export interface Frame {
  readonly width: number
  readonly height: number
  readonly plotX: number
  readonly plotWidth: number
  /** On a phone names stand above the plot, else left of it. */
  readonly isNarrow: boolean
  /** Of the row that may be drawn by hand. */
  readonly handTop: number
  readonly handHeight: number
}

export interface Drawing {
  readonly lengthUs: number
  /** What it says, in words. */
  readonly label: string
  frame(width: number): Frame
  draw(pen: Pen, frame: Frame, palette: Palette): void
}

export const ROW_GAP = 14
export const AXIS_HEIGHT = 26
export const TITLE_HEIGHT = 20
export const GUTTER = 192
export const SCALE = 34
export const PADDING = 12
export const TOP = 10

/** A mark on the axis of time, by its share of the plot. */
export interface Tick {
  readonly share: number
  readonly text: string
}

/** The axis of time under all rows. */
export function drawAxis(pen: Pen, frame: Frame, ticks: readonly Tick[], palette: Palette): void {
  const bottom = frame.height - AXIS_HEIGHT
  for (const { share, text } of ticks) {
    const x = frame.plotX + share * frame.plotWidth
    pen.line(Math.round(x) + 0.5, TOP, Math.round(x) + 0.5, bottom + 4, palette.grid)
    const isLast = x > frame.width - 40
    pen.text(isLast ? frame.width - 4 : x, bottom + 17, text, { size: 11, colour: palette.quiet, anchor: isLast ? 'end' : 'middle' })
  }
}

/** From 0 on, at 1, 2 or 5 of some power of ten. */
export function secondTicks({ isNarrow }: Frame, lengthUs: number, unit: string): Tick[] {
  const stepUs = tickUs(lengthUs, isNarrow ? 4 : 8)
  const count = Math.floor(lengthUs / stepUs) + 1
  return Array.from({ length: count }, (_, k) => ({ share: (k * stepUs) / lengthUs, text: `${plain((k * stepUs) / 1_000_000)} ${unit}` }))
}

/** So that there are about so many. */
function tickUs(lengthUs: number, about: number): number {
  const raw = lengthUs / about
  const power = 10 ** Math.floor(Math.log10(raw))
  return ([1, 2, 5].find((digit) => digit * power >= raw) ?? 10) * power
}

/**
 * Without the points that lie on the way between their neighbours: most do, and a file with all of
 * them is four times as large.
 */
export function thinned(points: readonly Point[]): Point[] {
  const kept: Point[] = []
  for (const [k, point] of points.entries()) {
    const before = kept.at(-1)
    const after = points[k + 1]
    if (before === undefined || after === undefined) kept.push(point)
    else {
      const share = (point[0] - before[0]) / (after[0] - before[0])
      if (Math.abs(before[1] + share * (after[1] - before[1]) - point[1]) > 0.05) kept.push(point)
    }
  }
  return kept
}

/** Colours arrive as `rgb(r, g, b)`: that is how a browser tells a computed one. */
export function withAlpha(colour: string, alpha: number): string {
  return colour.replace(/^rgb\(([^)]+)\)$/, `rgba($1, ${alpha})`)
}

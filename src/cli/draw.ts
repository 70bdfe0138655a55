/**
 * Runs as text: what arrives, and for each limit a row of admitted and a row of refused, on one
 * time axis.
 */
import { countsOf, type Run } from './simulate.ts'
import { inWords, wrapped } from './terminal-text.ts'
import type { Traffic } from './traffic.ts'

export interface Colours {
  admitted(text: string): string
  refused(text: string): string
  quiet(text: string): string
  strong(text: string): string
}

const HEIGHTS = [...'▁▂▃▄▅▆▇█']
const NONE = '·'
const ARRIVALS = 'arrivals'
/** Behind a row: a number of up to five digits and a word. */
const TAIL = '  99999 admitted'.length
const FEWEST_SLICES = 16
const MOST_SLICES = 240
/** Between two marks of the axis. */
const NARROWEST_MARK = 8

export interface Slices {
  readonly count: number
  /** All of them together: as long as the traffic, or a little longer. */
  readonly lengthMs: number
}

/**
 * The slices of time that fit into so many columns. Each is a round time, so that none lies on both
 * sides of a full second.
 */
export function slicesFor(lengthMs: number, width: number, names: readonly string[]): Slices {
  const room = Math.max(FEWEST_SLICES, Math.min(MOST_SLICES, width - indentOf(names) - TAIL))
  const columnMs = roundAbove(lengthMs / room, [1, 2, 2.5, 5, 10])
  const count = Math.ceil(lengthMs / columnMs - 1e-9)
  return { count, lengthMs: count * columnMs }
}

export function drawn(traffic: Traffic, runs: readonly Run[], width: number, colours: Colours): string {
  const names = runs.map(({ name }) => name)
  const slices = runs[0]?.admitted.length ?? FEWEST_SLICES
  const arrivals = countsOf(traffic.arrivalsMs, traffic.lengthMs, slices)
  const highest = Math.max(1, ...arrivals, ...runs.flatMap(({ admitted, refused }) => [...admitted, ...refused]))
  const label = (name: string) => `  ${name}`.padEnd(indentOf(names))
  const row = (name: string, counts: readonly number[], paint: (text: string) => string, what: string) =>
    `${label(name)}${paint(bars(counts, highest))}  ${sum(counts)}${what}`
  const asIs = (text: string) => text
  return [
    ...wrapped(`${traffic.title} (${traffic.name})`, width, '  ').map(colours.strong),
    row(ARRIVALS, arrivals, asIs, ''),
    ...runs.flatMap(({ name, admitted, refused }) => [
      row(name, admitted, colours.admitted, ' admitted'),
      row('', refused, colours.refused, ' refused'),
    ]),
    `${label('')}${colours.quiet(axis(traffic.lengthMs, slices))}`,
    ...wrapped(legend(traffic.lengthMs / slices, highest, names), width - 2).map((line) => `  ${colours.quiet(line)}`),
  ].join('\n')
}

/** The legend: once for all traffic. */
export function explained(runs: readonly Run[], width: number, colours: Colours): string {
  const indent = indentOf(runs.map(({ name }) => name))
  const lines = runs.flatMap(({ name, explanation }) =>
    wrapped(explanation, Math.max(30, width - indent)).map(
      (line, k) => `${`  ${k === 0 ? name : ''}`.padEnd(indent)}${colours.quiet(line)}`,
    ),
  )
  return [colours.strong('What to look at'), ...lines].join('\n')
}

function indentOf(names: readonly string[]): number {
  return 4 + Math.max(ARRIVALS.length, ...names.map((name) => name.length))
}

function bars(counts: readonly number[], highest: number): string {
  return counts.map((count) => (count === 0 ? NONE : HEIGHTS[Math.ceil((count / highest) * HEIGHTS.length) - 1])).join('')
}

function legend(columnMs: number, highest: number, names: readonly string[]): string {
  const most = highest === 1 ? '█ one call' : `▁ to █ up to ${highest} calls`
  const delays = names.some((name) => name.startsWith('leakyBucket')) ? " A leaky bucket's calls are drawn when they may act." : ''
  return `Each column is ${inWords(columnMs)}: ${NONE} no call, ${most}.${delays}`
}

/** A mark at each round time, with the time behind it. */
function axis(lengthMs: number, slices: number): string {
  const columnMs = lengthMs / slices
  const stepMs = roundAbove(NARROWEST_MARK * columnMs, [1, 2, 5, 10])
  let line = ''
  for (let atMs = 0; atMs < lengthMs; atMs += stepMs) {
    const column = Math.floor(atMs / columnMs + 1e-9)
    const mark = `|${atMs === 0 ? '0' : inWords(atMs)}`
    if (column + mark.length <= slices) line = line.padEnd(column) + mark
  }
  return line
}

/** The next of some factors of a power of ten. */
function roundAbove(ms: number, factors: readonly number[]): number {
  const power = 10 ** Math.floor(Math.log10(ms))
  return power * (factors.find((factor) => factor * power >= ms) as number)
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)

/** Plays traffic against limits on a clock of its own and counts, per time slice, what is admitted and what is refused. */
import type { Limit } from '../algorithms/algorithm.ts'
import { createLimiter } from '../limiter/limiter.ts'
import type { Traffic } from './traffic.ts'

export interface Contestant {
  readonly name: string
  readonly limit: Limit
  /** One line: what to look at. */
  readonly explanation: string
}

export interface Run {
  readonly name: string
  readonly explanation: string
  /** Per slice, by the time at which they may act: a leaky bucket's admissions leave it later than they came. */
  readonly admitted: readonly number[]
  /** Per slice, by the time at which they came. */
  readonly refused: readonly number[]
}

export function simulate(traffic: Traffic, { name, limit, explanation }: Contestant, slices: number): Run {
  let nowMs = 0
  const clock = { nowUs: () => Math.round(nowMs * 1000), setTimer: () => () => undefined }
  const limiter = createLimiter(limit, { clock })
  const admitted = new Array<number>(slices).fill(0)
  const refused = new Array<number>(slices).fill(0)
  const sliceOf = (atMs: number) => Math.min(slices - 1, Math.floor((atMs / traffic.lengthMs) * slices))
  for (const atMs of traffic.arrivalsMs) {
    nowMs = atMs
    const { allowed, delayMs } = limiter.consume('key')
    const counts = allowed ? admitted : refused
    const slice = sliceOf(atMs + delayMs)
    counts[slice] = (counts[slice] as number) + 1
  }
  return { name, explanation, admitted, refused }
}

export interface Colours {
  admitted(text: string): string
  refused(text: string): string
  quiet(text: string): string
  strong(text: string): string
}

/** The runs on one traffic as text: a row of admitted and a row of refused each, on one time axis. */
export function drawn(traffic: Traffic, runs: readonly Run[], colours: Colours): string {
  const highest = Math.max(1, ...runs.flatMap(({ admitted, refused }) => [...admitted, ...refused]))
  const width = Math.max(...runs.map(({ name }) => name.length))
  const rows = runs.flatMap(({ name, explanation, admitted, refused }) => [
    `  ${name.padEnd(width)}  ${colours.admitted(bars(admitted, highest))}  ${sum(admitted)} admitted`,
    `  ${''.padEnd(width)}  ${colours.refused(bars(refused, highest))}  ${sum(refused)} refused`,
    `  ${''.padEnd(width)}  ${colours.quiet(explanation)}`,
  ])
  return [colours.strong(`${traffic.title} (${traffic.name})`), ...rows].join('\n')
}

const HEIGHTS = [...'▁▂▃▄▅▆▇█']

function bars(counts: readonly number[], highest: number): string {
  return counts.map((count) => (count === 0 ? '·' : HEIGHTS[Math.ceil((count / highest) * HEIGHTS.length) - 1])).join('')
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)

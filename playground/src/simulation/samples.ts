/**
 * What happened over time in scenes with a simulated server: as many samples as a picture of lines
 * needs.
 */
import { COLUMNS } from './traffic.ts'

export const SAMPLES = 256

/** Values over time, one for each sample. */
export type Line = Float64Array<ArrayBuffer>

export const newLine = (): Line => new Float64Array(SAMPLES)

/** The sample that a time belongs to. Beyond the end there is none. */
export function sampleAt(ms: number, lengthMs: number): number | undefined {
  const sample = Math.floor((ms / lengthMs) * SAMPLES)
  return sample < SAMPLES ? sample : undefined
}

/** The column of a hand-drawn row that a time belongs to: the last one goes on. */
export function columnAt<Value>(columns: readonly Value[], ms: number, lengthMs: number): Value {
  return columns[Math.min(COLUMNS - 1, Math.floor((ms / lengthMs) * COLUMNS))] as Value
}

/** When each sample ends, in microseconds. */
export function sampleTimesUs(lengthMs: number): Float64Array<ArrayBuffer> {
  return Float64Array.from({ length: SAMPLES }, (_, k) => ((k + 1) * lengthMs * 1000) / SAMPLES)
}

export const add = (line: Line, sample: number | undefined, value: number): void => {
  if (sample !== undefined) line[sample] = (line[sample] as number) + value
}

export const raise = (line: Line, sample: number | undefined, value: number): void => {
  if (sample !== undefined) line[sample] = Math.max(line[sample] as number, value)
}

/** Gaps, NaN, are left out. */
export const most = (line: Line): number => line.reduce((highest, value) => (value > highest ? value : highest), 0)

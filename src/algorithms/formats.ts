/**
 * The numbers of the formats that states have in bytes. A format names an algorithm and what its
 * figures and words mean: a change of either is another format, with the next free number. Numbers
 * are below 128 and are never used again.
 */
import { FORMATS } from './list.ts'

/** Numbers that are no longer written: windows and logs with other words, or in another order. */
export const RETIRED_FORMATS: readonly number[] = [5, 6, 8]

/** `1 (gcra), 2 (tokenBucket) ...`, for errors. */
export const KNOWN_FORMATS: string = FORMATS.map(({ format, algorithm }) => `${format} (${algorithm.type})`).join(', ')

const byType: ReadonlyMap<string, number> = new Map(FORMATS.map(({ format, algorithm }) => [algorithm.type, format]))

/** The format that states of a rule are written in. */
export function formatOf(type: string): number {
  return byType.get(type) as number
}

/** The worked examples: the same files that the tests of the library play on every store. */
import derived from '../../../test/vectors/derived.json'
import published from '../../../test/vectors/published.json'
import seeds from '../../../test/vectors/seeds.json'
import type { Tape } from '../sluice.ts'
import { shapeOf } from './limits.ts'
import type { Arrivals } from './traffic.ts'

const isForward = ({ tape }: Tape) => tape.every(({ atMs }, k) => k === 0 || atMs >= (tape[k - 1]?.atMs as number))

/** A time axis runs forward, so tapes whose clock steps back are not shown. */
const shown = (tapes: readonly unknown[]) => (tapes as readonly Tape[]).filter(isForward)

export const TAPES: Readonly<Record<'seeds' | 'published' | 'derived', readonly Tape[]>> = {
  seeds: shown(seeds),
  published: shown(published),
  derived: shown(derived),
}

export function tapeOf(id: string): Tape | undefined {
  return Object.values(TAPES)
    .flat()
    .find((tape) => tape.id === id)
}

/** Until the last call has been felt for one window, so that the end of it can be seen. */
export function tapeArrivals({ tape, limit }: Tape): Arrivals {
  const calls = tape.flatMap(({ atMs, cost, repeat = 1 }) => Array.from({ length: repeat }, () => ({ atMs, cost })))
  const { windowUs, intervalUs, capacity } = shapeOf(limit)
  const lastUs = Math.round((calls.at(-1)?.atMs ?? 0) * 1000)
  return {
    atUs: Float64Array.from(calls, ({ atMs }) => Math.round(atMs * 1000)),
    cost: Float64Array.from(calls, ({ cost }) => cost),
    lengthUs: lastUs + Math.max(windowUs, Math.ceil(intervalUs * capacity)),
  }
}

/** The first call of each row of a tape, and how many it stands for. */
export function rowsOf({ tape }: Tape): readonly { readonly first: number; readonly count: number }[] {
  let next = 0
  return tape.map(({ repeat = 1 }) => {
    const first = next
    next += repeat
    return { first, count: repeat }
  })
}

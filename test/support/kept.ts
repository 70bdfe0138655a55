/** A limit of GCRA, and a cost after which a key of it lives far beyond the next takes, at whatever time a test runs: they need not set its time to live. */
import { gcra } from '../../src/index.ts'

const PERMIT_US = 10_000_000
/** The coarsest grid that keys expire on, and half of it in permits. See gcra.lua. */
const GRID_US = 2 ** 35
const HALF = Math.floor(GRID_US / 2 / PERMIT_US)

export const KEPT_BURST = 1_000_000
export const KEPT_LIMIT = gcra({ rate: '6/min', burst: KEPT_BURST })

/** One of two that are half a grid apart: the TAT of one of them is not near the end of a grid. */
export function keptCost(): number {
  const cost = Math.ceil((4 * GRID_US) / PERMIT_US) + 1
  const place = ((Date.now() * 1000 + cost * PERMIT_US) % GRID_US) / GRID_US
  return place < 0.1 || place > 0.6 ? cost + HALF : cost
}

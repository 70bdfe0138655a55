import { expect, test } from 'vitest'
import { Coverage } from './against-oracle.ts'
import { BOUND_CASES, compareWindowTraces, HARD_WINDOW_CASES, RARE_FIRST_CASES, RARE_WINDOW_CASES } from './against-window-oracle.ts'
import { traceCount } from './trace.ts'

test('fixed window equals the oracle on every step of 4,000 traces: outcome, figures, state, and every retry really tried', () => {
  const coverage = new Coverage()
  compareWindowTraces(traceCount(4_000), 'fixedWindow', coverage)
  console.log(coverage.table('fixed window against the oracle'))
  for (const what of HARD_WINDOW_CASES) expect(coverage.share(what), what).toBeGreaterThanOrEqual(0.05)
  for (const what of [...RARE_WINDOW_CASES, ...RARE_FIRST_CASES]) expect(coverage.share(what), what).toBeGreaterThanOrEqual(0.001)
  for (const what of BOUND_CASES) expect(coverage.share(what), what).toBeGreaterThan(0)
})

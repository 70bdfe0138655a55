import { expect, test } from 'vitest'
import { Coverage } from './against-oracle.ts'
import { BOUND_CASES, compareWindowTraces, HARD_WINDOW_CASES, RARE_LOG_CASES, RARE_WINDOW_CASES } from './against-window-oracle.ts'
import { traceCount } from './trace.ts'

test('sliding log equals the oracle on every step of 3,000 traces: outcome, figures, state, and every retry really tried', () => {
  const coverage = new Coverage()
  compareWindowTraces(traceCount(3_000), 'slidingLog', coverage)
  console.log(coverage.table('sliding log against the oracle'))
  for (const what of HARD_WINDOW_CASES) expect(coverage.share(what), what).toBeGreaterThanOrEqual(0.05)
  for (const what of [...RARE_WINDOW_CASES, ...RARE_LOG_CASES]) expect(coverage.share(what), what).toBeGreaterThanOrEqual(0.001)
  for (const what of BOUND_CASES) expect(coverage.share(what), what).toBeGreaterThan(0)
})

import { expect, test } from 'vitest'
import { Coverage } from './against-oracle.ts'
import { compareWindowTraces, HARD_WINDOW_CASES } from './against-window-oracle.ts'
import { traceCount } from './trace.ts'

test('fixed window equals the oracle on every step of 4,000 traces: outcome, figures, state, and every retry really tried', () => {
  const coverage = new Coverage()
  compareWindowTraces(traceCount(4_000), 'fixedWindow', coverage)
  console.log(coverage.table('fixed window against the oracle'))
  for (const what of HARD_WINDOW_CASES) expect(coverage.share(what), what).toBeGreaterThanOrEqual(0.05)
})

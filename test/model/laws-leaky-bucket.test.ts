import { expect, test } from 'vitest'
import { Coverage, compareTraces, HARD_CASES, RARE_CASES } from './against-oracle.ts'
import { traceCount } from './trace.ts'

test('leaky bucket equals the oracle on every step of 4,000 traces: outcome, figures, state, and every retry really tried', () => {
  const coverage = new Coverage()
  compareTraces(traceCount(4_000), ['leakyBucket'], coverage)
  console.log(coverage.table('leaky bucket against the oracle'))
  for (const what of HARD_CASES) expect(coverage.share(what), what).toBeGreaterThanOrEqual(0.05)
  for (const what of RARE_CASES) expect(coverage.share(what), what).toBeGreaterThanOrEqual(0.001)
})

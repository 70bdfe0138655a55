/** A few rounds of the soak; `npm run proof` runs it for minutes. */
import { expect, test } from 'vitest'
import { soak } from './soak.ts'

const ROUNDS = 4

test(`${ROUNDS} rounds of mixed faults: everything is as promised`, async () => {
  const { rounds, wrongs } = await soak({ seed: 7, maxMs: Number.POSITIVE_INFINITY, maxRounds: ROUNDS, log: console.log })
  expect(wrongs).toEqual([])
  expect(rounds).toBe(ROUNDS)
})

/** Several processes with several connections each take from one key at once. */
import { randomUUID } from 'node:crypto'
import { inject, test } from 'vitest'
import { expectExactRace, RACES } from '../support/race.ts'

/** Ten seconds would have to pass before all calls of a race were admitted. */
const PACE = { capacity: 200, perSecond: 200, windowMs: 1_000, calls: 150, least: 100 }
const HAMMER = new URL('./hammer.process.mjs', import.meta.url)

test.each(RACES)('%s: every admission is right, and nobody was refused for nothing', async (_, names) => {
  await expectExactRace(HAMMER, { port: inject('redisPort'), prefix: `race-${randomUUID()}` }, names, PACE)
})

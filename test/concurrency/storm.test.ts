/** Small storms of terminated threads; `npm run proof -- --storm` runs them with a thousand. */
import { expect, test } from 'vitest'
import { AT_WORK, type Storm, type StormResult, storm } from './storm.ts'

const VICTIMS = 32
const SPARE = 3

async function told(options: Omit<Storm, 'victims'>): Promise<StormResult> {
  const result = await storm({ victims: VICTIMS, ...options })
  const { victims, inStep, failed, calls, ms } = result
  console.log(
    `${victims} threads terminated in ${(ms / 1000).toFixed(1)} s, ${inStep} in the middle of a step; ${failed} of ${calls} calls failed`,
  )
  return result
}

test('watched threads that are terminated cause no error with one place for each thread at work', async () => {
  const { inStep, failed, wrongs } = await told({ isWatched: true, maxThreads: AT_WORK, reclaimAfterMs: 3_600_000 })
  expect(wrongs).toEqual([])
  expect(failed).toBe(0)
  expect(inStep).toBeGreaterThan(SPARE)
})

test('threads that nobody watches cause no error with one more place for each that is terminated', async () => {
  const { mostDead, failed, wrongs } = await told({ isWatched: false, maxThreads: AT_WORK + VICTIMS, reclaimAfterMs: 2_000 })
  expect(wrongs).toEqual([])
  expect(failed).toBe(0)
  expect(mostDead).toBeGreaterThan(SPARE)
})

test(`with ${SPARE} places to spare no call fails before more than ${SPARE} are held by the dead, and all come back`, async () => {
  const { mostDead, wrongs } = await told({ isWatched: false, maxThreads: AT_WORK + SPARE, reclaimAfterMs: 2_000 })
  expect(wrongs).toEqual([])
  expect(mostDead).toBeGreaterThan(SPARE)
})

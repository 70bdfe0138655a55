/**
 * A story that ends the same in every runtime: the same calls at the same times to one limit of
 * every algorithm.
 */

export const LIMITS = {
  concurrency: { max: 5, lease: '3s' },
  fixedWindow: { limit: 5, window: '3s' },
  gcra: { rate: '7/3s', burst: 5 },
  leakyBucket: { capacity: 5, leak: '7/3s' },
  slidingLog: { limit: 5, window: '3s' },
  slidingWindow: { limit: 5, window: '3s', slots: 3 },
  tokenBucket: { capacity: 5, refill: '7/3s' },
}

/**
 * When (microseconds from the start), which verb, what cost. 7 permits in 3 seconds: no interval is
 * a whole number of microseconds.
 */
const CALLS = [
  [0, 'peek', 1],
  [0, 'consume', 3],
  [1, 'tryAcquire', 1],
  [1, 'consume', 2],
  [428_571, 'tryAcquire', 2],
  [428_573, 'consume', 2],
  [500_000, 'consume', 6],
  [900_000, 'refund', 1],
  [1_234_567, 'consume', 1],
  [1_234_568, 'reserve', 2],
  [2_999_999, 'peek', 5],
  [3_100_000, 'tryAcquire', 1],
  [7_000_001, 'consume', 5],
  [7_000_001, 'reset', undefined],
  [7_000_001, 'peek', 1],
]

/** What is held until it is released is not taken by these verbs. */
const OF_PERMITS = { tryAcquire: 'consume', refund: 'peek' }

const START_US = 1_700_000_000_123_456

function clockAt(timeUs) {
  return { nowUs: () => timeUs.now, setTimer: () => () => {} }
}

/** What every limiter answers, a line for each call. */
export function story(sluice, store) {
  const limits = Object.entries(LIMITS).map(([factory, options]) => [factory, sluice[factory](options)])
  const together = { short: sluice.gcra({ rate: '2/s', burst: 4 }), long: sluice.fixedWindow({ limit: 7, window: '1min' }) }
  return [...limits, ['together', together]].flatMap(([name, limit]) => {
    const time = { now: START_US }
    const limiter = sluice.createLimiter(limit, { name, clock: clockAt(time), ...(store && { store }) })
    return CALLS.map(([atUs, verb, cost]) => {
      time.now = START_US + atUs
      const asked = name === 'concurrency' ? (OF_PERMITS[verb] ?? verb) : verb
      return `${name} ${atUs} ${asked} ${cost} ${JSON.stringify(limiter[asked]('user:42', cost))}`
    })
  })
}

/** The same on memory of this thread and on memory that threads can share. */
export function storyOnBothStores(sluice, { sharedStore }) {
  return [...story(sluice), ...story(sluice, sharedStore({ maxKeys: 100, recordWords: 400 }))]
}

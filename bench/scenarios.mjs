// Traffic and limits: the same for every contestant.
const HOUR_MS = 3_600_000

/**
 * One set of limits in the terms of each kind of contestant. `rate` and `burst` are for the floor,
 * gcra and the buckets; `window` is for counters of windows, the peers among them; `log` is for the
 * sliding log, which holds 100,000 admissions of a key at most.
 */
const LIMITS = {
  /** One call an hour: after the first everything is denied. */
  denying: { rate: { permits: 1, perMs: HOUR_MS }, burst: 1, window: { limit: 1, ms: HOUR_MS }, log: { limit: 1, ms: HOUR_MS } },
  /** More than one thread can ask of one key: 10 million a second, and a billion at once. */
  generous: {
    rate: { permits: 10_000_000, perMs: 1000 },
    burst: 1e9,
    window: { limit: 1e9, ms: 100_000 },
    log: { limit: 100_000, ms: 10 },
  },
  /**
   * A slow rate, so that a key stays in use for 6 seconds after one call, and a burst that no key
   * of many can use up.
   */
  roomy: {
    rate: { permits: 10, perMs: 60_000 },
    burst: 1e7,
    window: { limit: 1e7, ms: HOUR_MS },
    // Short, because every admission of 10,000 busy keys is held for that long.
    log: { limit: 100_000, ms: 100 },
  },
  /** Every key stays in use for the whole measurement. */
  lasting: { rate: { permits: 1, perMs: HOUR_MS }, burst: 10, window: { limit: 10, ms: HOUR_MS }, log: { limit: 10, ms: HOUR_MS } },
}

export const LASTING = LIMITS.lasting

/**
 * `key` is JavaScript: where the loop of a round takes the key of its call number `at` from. See
 * loop.mjs.
 */
export const SCENARIOS = {
  'hot-denied': { title: 'one hot key, denied', limits: LIMITS.denying, keys: 1, key: 'hotKey' },
  'hot-allowed': { title: 'one hot key, allowed', limits: LIMITS.generous, keys: 1, key: 'hotKey' },
  'keys-10k': { title: '10,000 keys, uniform', limits: LIMITS.roomy, keys: 10_000, draw: uniform, key: 'keys[order[at & mask]]' },
  'keys-10k-fresh': {
    title: '10,000 keys, uniform, each key string built for its call',
    limits: LIMITS.roomy,
    keys: 10_000,
    draw: uniform,
    key: "'user:' + order[at & mask]",
  },
  'keys-1m-zipf': {
    title: '1,000,000 keys, Zipf (s = 1)',
    limits: LIMITS.roomy,
    keys: 1_000_000,
    draw: zipf,
    key: 'keys[order[at & mask]]',
  },
}

/**
 * How many draws are made beforehand: a power of two, so that they repeat by a mask. About as many
 * as the fastest calls in one round.
 */
const DRAWS = 1 << 20

/** The key strings of a scenario, and the order in which they are called. */
export function trafficOf({ keys: count, draw }) {
  const keys = Array.from({ length: count }, (_, n) => `user:${n}`)
  const random = mulberry32(1)
  const order = Int32Array.from({ length: draw ? DRAWS : 1 }, () => draw?.(count, random) ?? 0)
  return { keys, order, mask: order.length - 1 }
}

function uniform(count, random) {
  return Math.floor(random() * count)
}

/** The logarithm of a rank is uniform when its probability is proportional to 1 / rank. */
function zipf(count, random) {
  const rank = Math.floor((count + 1) ** random())
  // Coprime with the count: a permutation, so that popular keys do not lie side by side in memory
  // only because they were put in first.
  return (rank * 618_033) % count
}

/** A small generator with a seed: every process draws the same traffic. */
function mulberry32(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

// The goals of Sluice with Redis, and whether it reaches them. A goal reads the results and gives
// its figures: [spread, where it was measured].
import { spreadOf, timesAsFast } from '../statistics.mjs'
import { KEYS, MEASURED } from './bytes.mjs'
import { CLIENTS } from './clients.mjs'
import { CHARGED, OWN, PLAIN, REFUSED, SETTLED, TWO_LIMITS } from './contestants.mjs'
import { STORES } from './denied.mjs'
import { IN_FLIGHT, MAIN } from './in-flight.mjs'
import { ALGORITHMS } from './limits.mjs'
import { peersOf } from './peers.mjs'

/**
 * To the plain script: what is reached by algorithms that cost about the same. The bytes are those
 * of the subjects in bytes.mjs.
 */
const GROUPS = [
  {
    algorithms: ['gcra', 'fixedWindow'],
    decisions: 2.5,
    redisTime: 0.45,
    oneAtATime: 1.2,
    bytes: { target: 1.3, of: ['gcra', 'gcra, 7/s', 'fixedWindow'] },
  },
  {
    algorithms: ['tokenBucket', 'leakyBucket'],
    decisions: 2.3,
    redisTime: 0.5,
    oneAtATime: 1.2,
    bytes: { target: 1, of: ['tokenBucket', 'leakyBucket'] },
  },
  {
    algorithms: ['slidingWindow'],
    decisions: 2,
    redisTime: 0.6,
    oneAtATime: 1.25,
    bytes: { target: 0.8, of: ['slidingWindow'] },
  },
  {
    algorithms: ['slidingLog'],
    decisions: 1.5,
    redisTime: 0.8,
    oneAtATime: 1.25,
    bytes: { target: 0.5, of: ['slidingLog, 1,000 entries'] },
  },
]

export const GOALS = [
  ...ofEachGroup(({ algorithms, decisions }) =>
    atLeast(decisions, `decisions/s, ${MAIN} in flight, to the plain script: ${algorithms.join(', ')}`, throughputOf(algorithms, toPlain)),
  ),
  ...ofEachGroup(({ algorithms, redisTime }) =>
    atMost(
      redisTime,
      `Redis processor time per decision, to the plain script: ${algorithms.join(', ')}`,
      throughputOf(algorithms, redisTimeToPlain),
    ),
  ),
  ...ofEachGroup(({ algorithms, oneAtATime }) =>
    atMost(oneAtATime, `one decision at a time, median, to the plain script: ${algorithms.join(', ')}`, latencyOf(algorithms)),
  ),
  ...ofEachGroup(({ bytes: { target, of } }) =>
    atMost(target, `bytes of a key, to the plain script's: ${of.join('; ')}`, bytesToPlain(of)),
  ),
  atLeast(2.5, `decisions/s, ${MAIN} in flight, to the fastest peer that has the algorithm`, throughputOf(ALGORITHMS, toFastestPeer)),
  atLeast(0.55, 'two limits on one key, decisions/s to one limit', throughputOf(['gcra'], twoLimitsToOne)),
  atLeast(0.95, 'charge, calls/s to consume', throughputOf(ALGORITHMS, chargeToConsume)),
  atMost(2.1, 'consume and settle, time per call to consume', throughputOf(ALGORITHMS, settledToConsume)),
  atMost(2.1, 'consume and settle, Redis processor time to consume', throughputOf(ALGORITHMS, settledTimeToConsume)),
  atMost(1, 'Redis processor time of a refused decision, to an admitted one', throughputOf(ALGORITHMS, refusedToAdmitted)),
  atMost(1, 'milliseconds of a script call, median of the rounds', scriptMs),
  atMost(2, 'denied hot key with the denial cache, time per call to the memory store', deniedToMemory),
  atMost(1.5, 'one decision with 10 to 50,000 entries, median, to the smallest', grown('entries', 'decision')),
  atMost(2, 'one decision with 10 to 100 slots, median, to the smallest', grown('slots', 'decision')),
  atMost(1, 'milliseconds of the script when half of the window has just left, up to 50,000 entries and 100 slots', grownScriptMs('half')),
  atMost(1, 'milliseconds of the script of a refund of the oldest, up to 50,000 entries and 100 slots', grownScriptMs('refund')),
  atMost(1, 'script time for each of 100 limits in one limiter, to each of 10', timeForEachLimit),
]

function ofEachGroup(goal) {
  return GROUPS.map(goal)
}

function atLeast(target, title, figures) {
  return { title, target: `at least ${target}`, figures, reached: (figure) => figure >= target, worse: (a, b) => a - b }
}

function atMost(target, title, figures) {
  return { title, target: `at most ${target}`, figures, reached: (figure) => figure <= target, worse: (a, b) => b - a }
}

/** The figures of a goal, the worst first: it decides. Empty when nothing was measured. */
export function worstFirst({ figures, worse }, results) {
  return figures(results).sort(([a], [b]) => worse(a.median, b.median))
}

/** With so many in flight as the goals are for. */
function throughputOf(algorithms, figuresOf) {
  return onEach(algorithms, 'throughput', (measured, algorithm, client) => figuresOf(measured[MAIN], algorithm, client))
}

function latencyOf(algorithms) {
  return onEach(algorithms, 'latency', (latencies, algorithm) => [[timesAsFast(latencies[PLAIN], latencies[OWN]), algorithm]])
}

function onEach(algorithms, part, figuresOf) {
  return (results) =>
    algorithms.flatMap((algorithm) =>
      CLIENTS.flatMap((client) => {
        const measured = results.of({ part, client, algorithm })
        if (measured === undefined) return []
        return figuresOf(measured, algorithm, client).map(([spread, where]) => [spread, `${where} on ${client}`])
      }),
    )
}

function toPlain(speeds, algorithm) {
  return [[timesAsFast(speeds[OWN], speeds[PLAIN]), algorithm]]
}

function toFastestPeer(speeds, algorithm, client) {
  const [peer] = peersOf(algorithm, client).toSorted((a, b) => spreadOf(speeds[a].ns).median - spreadOf(speeds[b].ns).median)
  return peer === undefined ? [] : [[timesAsFast(speeds[OWN], speeds[peer]), `${algorithm} to ${peer}`]]
}

function redisTimeToPlain(speeds, algorithm) {
  return [[redisTimes(speeds[OWN], speeds[PLAIN]), algorithm]]
}

function refusedToAdmitted(speeds, algorithm) {
  return [[redisTimes(speeds[REFUSED], speeds[OWN]), algorithm]]
}

function chargeToConsume(speeds, algorithm) {
  return [[timesAsFast(speeds[CHARGED], speeds[OWN]), algorithm]]
}

function settledToConsume(speeds, algorithm) {
  return [[timesAsFast(speeds[OWN], speeds[SETTLED]), algorithm]]
}

function settledTimeToConsume(speeds, algorithm) {
  return [[redisTimes(speeds[SETTLED], speeds[OWN]), algorithm]]
}

/**
 * How many times the server's processor time `one` took per decision, as `other` did in the same
 * round.
 */
export function redisTimes(one, other) {
  return spreadOf(one.costs.map(({ redisUs }, round) => redisUs / other.costs[round].redisUs))
}

function twoLimitsToOne(speeds) {
  return TWO_LIMITS.map((name) => [timesAsFast(speeds[name], speeds[OWN]), name])
}

/** In every bench of many in flight, and with batches of keys that hold much. */
function scriptMs(results) {
  const inFlight = onEach(ALGORITHMS, 'throughput', (measured, algorithm) =>
    IN_FLIGHT.flatMap((count) =>
      Object.entries(measured[count])
        .filter(([name]) => [OWN, REFUSED].includes(name))
        .map(([name, { costs }]) => [scriptTime(costs), `${algorithm}, ${count} in flight${name === REFUSED ? ', refused' : ''}`]),
    ),
  )
  const batches = ['entries', 'slots', 'limits'].flatMap((growth) =>
    Object.entries(results.of({ part: 'growth', growth })?.measured.batch ?? {}).map(([size, turns]) => [
      spreadOf(turns.map(({ scriptUs }) => scriptUs / 1000)),
      `a batch, ${Number(size).toLocaleString('en')} ${growth}`,
    ]),
  )
  return [...inFlight(results), ...batches]
}

/** Milliseconds of one script call. */
export function scriptTime(costs) {
  return spreadOf(costs.map(({ scriptUs, scriptCalls }) => scriptUs / scriptCalls / 1000))
}

function deniedToMemory(results) {
  return CLIENTS.flatMap((client) => {
    const speeds = results.of({ part: 'denied', client })
    if (speeds === undefined) return []
    return [[timesAsFast(speeds[STORES.memory], speeds[STORES.redis]), client]]
  })
}

function bytesToPlain(names) {
  return (results) => {
    const measured = results.of({ part: 'bytes' })
    if (measured === undefined) return []
    return names.flatMap((name) => {
      const fill = MEASURED[name].fills.at(-1)
      return Object.keys(KEYS).map((kind) => {
        const { own, plain } = measured[name][kind]
        return [spreadOf([own[fill] / plain[fill]]), `${name}, ${kind}`]
      })
    })
  }
}

/** To the smallest size. */
function grown(growth, name) {
  return (results) => grownFigures(results, growth, name, ratiosOf)
}

function grownScriptMs(name) {
  const scriptMs = (bySize) => Object.entries(bySize).map(([size, turns]) => [size, spreadOf(turns.map(({ scriptUs }) => scriptUs / 1000))])
  return (results) => ['entries', 'slots'].flatMap((growth) => grownFigures(results, growth, name, scriptMs))
}

function grownFigures(results, growth, name, bySizeOf) {
  const found = results.of({ part: 'growth', growth })
  if (found === undefined) return []
  const bySize = found.measured[name]
  // A case that took too long to fill has not reached its goal.
  const missing = found.sizes.filter((size) => bySize[size] === undefined).map((size) => [size, WITHOUT_END])
  return [...bySizeOf(bySize), ...missing].map(([size, figure]) => [figure, `${Number(size).toLocaleString('en')} ${growth}`])
}

const WITHOUT_END = { median: Number.POSITIVE_INFINITY, low: Number.POSITIVE_INFINITY, high: Number.POSITIVE_INFINITY }

/**
 * For each size but that of the smallest median: how long a call took, to that one, turn by turn.
 */
export function ratiosOf(bySize, figure = 'ns') {
  const medianOf = ([, turns]) => spreadOf(turns.map((turn) => turn[figure])).median
  const [, smallest] = Object.entries(bySize).reduce((least, each) => (medianOf(each) < medianOf(least) ? each : least))
  return Object.entries(bySize)
    .filter(([, turns]) => turns !== smallest)
    .map(([size, turns]) => [size, spreadOf(turns.map((turn, k) => turn[figure] / smallest[k][figure]))])
}

/** Linear, or less: none of a hundred limits costs more than one of ten. */
function timeForEachLimit(results) {
  const bySize = results.of({ part: 'growth', growth: 'limits' })?.measured.decision
  if (bySize?.[100] === undefined) return []
  return [[spreadOf(bySize[100].map(({ scriptUs }, k) => scriptUs / 100 / (bySize[10][k].scriptUs / 10))), '100 limits']]
}

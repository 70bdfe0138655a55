// What Sluice wants to reach with Redis, and whether it does. A goal reads the results and gives its figures: [spread, where it was measured].
import { spreadOf, timesAsFast } from '../statistics.mjs'
import { plain } from '../tables.mjs'
import { FILLS, GCRA } from './bytes.mjs'
import { CLIENTS } from './clients.mjs'
import { HEADLINE, TWO_LIMITS } from './contestants.mjs'
import { STORES, VERBS } from './denied.mjs'
import { BATCHED, MINIMAL } from './floors.mjs'
import { PEER_NAMES } from './peers.mjs'

const THROUGHPUT = `decisions/s, ${HEADLINE}, 256 in flight, 10,000 keys`

export const GOALS = [
  atLeast(2.5, `${THROUGHPUT}, to ${MINIMAL} by one call per decision`, onEachClient('throughput', toMinimal)),
  atLeast(2.5, `${THROUGHPUT}, to the fastest peer`, onEachClient('throughput', toFastestPeer)),
  atMost(0.6, `Redis processor time per decision, to ${MINIMAL}`, onEachClient('throughput', redisTimeToMinimal)),
  atMost(1.15, `one decision at a time, median latency, to one EVALSHA of ${MINIMAL}`, onEachClient('latency', latencyToMinimal)),
  atLeast(0.6, 'two limits on one key, decisions/s to one limit', onEachClient('throughput', twoLimitsToOne)),
  atMost(2, 'denied hot key with the denial cache, time per call to the memory store', onEachClient('denied', deniedToMemory)),
  atMost(1.3, `bytes of a gcra key, to a bare string of the same key`, bytesToBare),
]

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

function onEachClient(part, figuresOf) {
  return (results) =>
    CLIENTS.flatMap((client) => {
      const measured = results.of(part, client)
      return measured === undefined ? [] : figuresOf(measured, client).map(([spread, where]) => [spread, `${where} on ${client}`])
    })
}

/** Beside it what the batched floor reaches, which is how far batching can go. */
function toMinimal(speeds) {
  const bound = timesAsFast(speeds[BATCHED], speeds[MINIMAL]).median
  return [[timesAsFast(speeds[HEADLINE], speeds[MINIMAL]), `${HEADLINE} (${BATCHED}: ${plain(bound)})`]]
}

function toFastestPeer(speeds, client) {
  const peer = PEER_NAMES[client].toSorted((a, b) => spreadOf(speeds[a].ns).median - spreadOf(speeds[b].ns).median)[0]
  return [[timesAsFast(speeds[HEADLINE], speeds[peer]), `${HEADLINE} to ${peer}`]]
}

function redisTimeToMinimal(speeds) {
  const bound = redisTimes(speeds[BATCHED], speeds[MINIMAL]).median
  return [[redisTimes(speeds[HEADLINE], speeds[MINIMAL]), `${HEADLINE} (${BATCHED}: ${plain(bound)})`]]
}

/** How many times the server's processor time `one` took per decision, as `other` did in the same round. */
export function redisTimes(one, other) {
  return spreadOf(one.costs.map(({ redisUs }, round) => redisUs / other.costs[round].redisUs))
}

function latencyToMinimal(latencies) {
  return [[timesAsFast(latencies[MINIMAL], latencies[HEADLINE]), HEADLINE]]
}

function twoLimitsToOne(speeds) {
  return TWO_LIMITS.map((name) => [timesAsFast(speeds[name], speeds[HEADLINE]), name])
}

function deniedToMemory(speeds) {
  return VERBS.map((verb) => [timesAsFast(speeds[`${STORES.memory} ${verb}`], speeds[`${STORES.redis} ${verb}`]), verb])
}

function bytesToBare(results) {
  const measured = results.of('bytes')
  if (measured === undefined) return []
  return GCRA.flatMap((name) =>
    Object.entries(measured[name]).map(([kind, { used, bare }]) => {
      return [spreadOf([Math.max(...FILLS.map((fill) => used[fill])) / bare]), `${name}, ${kind}`]
    }),
  )
}

// The goals of Sluice, and whether it reaches them. A goal reads the results and gives its figures:
// [figure, where it was measured].
import { CROWDS } from './crowds.mjs'
import { CHARGE, CHARGED_IN, CONSUME, consumeBeside, FLOOR_CONSUME, HEADLINE, SIZES, TRY_ACQUIRE } from './jobs.mjs'
import { PEER_NAMES } from './peers.mjs'
import { SCENARIOS } from './scenarios.mjs'
import { spreadOf, timesAsFast } from './statistics.mjs'
import { ownBeside, WAITING_PEER_NAMES } from './waiting-peers.mjs'

const EVERYWHERE = Object.keys(SCENARIOS)
const HOT = EVERYWHERE.filter((scenario) => SCENARIOS[scenario].keys === 1)
const MANY = EVERYWHERE.filter((scenario) => SCENARIOS[scenario].keys > 1)
const LEVELS = TRY_ACQUIRE.slice(0, 3)
const WINDOWS = TRY_ACQUIRE.slice(3, 5)
const LOG = TRY_ACQUIRE.slice(5)
const FLEXIBLE = 'rate-limiter-flexible'
const OTHER_PEERS = PEER_NAMES.filter((name) => name !== FLEXIBLE)
const MILLION = SIZES.at(-1)
const BOTTLENECK = 'bottleneck'
const OTHER_WAITING_PEERS = WAITING_PEER_NAMES.filter((name) => name !== BOTTLENECK)

export const PHASES = { arriving: 'a million keys arrive', inUse: 'a million keys are in use', expiring: 'a million keys expire' }

export const GOALS = [
  atLeast(0.85, 'tryAcquire of gcra and the buckets, to the floor', (results) => toFloor(results, LEVELS)),
  atLeast(0.7, 'the same with all six algorithms warmed up in the process', (results) => toFloor(results, LEVELS, 'speed-warmed')),
  atLeast(0.8, 'tryAcquire of the fixed and the sliding window, to the floor', (results) => toFloor(results, WINDOWS)),
  atLeast(0.5, 'tryAcquire of the sliding log, to the floor', (results) => toFloor(results, LOG)),
  atLeast(0.55, 'consume of gcra, to the floor', (results) => consumeToFloor(results, CONSUME.slice(0, 1))),
  atLeast(0.5, 'consume of the buckets, to the floor', (results) => consumeToFloor(results, CONSUME.slice(1))),
  atLeast(0.95, 'charge, to consume, where nothing is refused', chargeToConsume),
  atLeast(2, 'hot key with the turn clock, to the floor', turnClockToFloor),
  ...EVERYWHERE.map((scenario) => atLeast(5, `${HEADLINE}, to ${FLEXIBLE}`, (results) => toFlexible(results, scenario))),
  atLeast(0.9, `${HEADLINE} on a hot key, to every other peer`, (results) => toPeers(results, OTHER_PEERS, HOT)),
  atLeast(1, `${HEADLINE} on 10,000 and more keys, to every other peer`, (results) => toPeers(results, OTHER_PEERS, MANY)),
  atMost(100, 'bytes per live key at a million, gcra and the buckets', (results) => bytesPerKey(results, [MILLION])),
  atMost(150, 'bytes per live key at worst from 100,000 to a million, gcra and the buckets', (results) => bytesPerKey(results, SIZES)),
  ...Object.entries(PHASES).map(([phase, title]) =>
    atMost(5, `milliseconds of the longest pause while ${title}, beyond the floor's sweep, gcra`, (results) =>
      pauseBeyondSweep(results, phase),
    ),
  ),
  // One more or less is when the count began.
  atMost(1, 'scavenges in 10 million calls beyond the floor, tryAcquire', (results) => scavengesBeyondFloor(results, 'scavenges')),
  atMost(1, 'the same with all six algorithms warmed up in the process', (results) => scavengesBeyondFloor(results, 'scavenges-warmed')),
  atLeast(10, 'jobs with no limit reached, to bottleneck', (results) => toWaitingPeers(results, [BOTTLENECK])),
  atLeast(1, 'jobs, or permits, with no limit reached, to the fastest of the others', (results) =>
    toWaitingPeers(results, OTHER_WAITING_PEERS),
  ),
  atMost(13_312, 'bytes of one algorithm, minified and gzipped', bundledBytes),
]

function atLeast(target, title, figures) {
  return { title, target: `at least ${target}`, figures, reached: (figure) => figure >= target, worse: (a, b) => a < b }
}

function atMost(target, title, figures) {
  return { title, target: `at most ${target}`, figures, reached: (figure) => figure <= target, worse: (a, b) => a > b }
}

/** The worst figure decides. Undefined when nothing was measured. */
export function worstOf({ figures, worse }, results) {
  return figures(results).reduce((worst, each) => (worst === undefined || worse(each[0], worst[0]) ? each : worst), undefined)
}

/** With what the floor reaches when it tells as much. */
function consumeToFloor(results, subjects) {
  return toFloor(results, subjects).map(([figure, where]) => {
    const scenario = where.split(', ')[1]
    const [least] = toFloor(results, [FLOOR_CONSUME]).find(([, at]) => at.endsWith(scenario)) ?? []
    return [figure, least === undefined ? where : `${where} (${FLOOR_CONSUME}: ${least.toPrecision(3)})`]
  })
}

function chargeToConsume(results) {
  return found(CHARGE, CHARGED_IN, (subject, scenario) => {
    const speeds = results.of('speed', scenario, subject)
    return speeds && [timesAsFast(speeds[subject], speeds[consumeBeside(subject)]).median, `${subject}, ${scenario}`]
  })
}

function toFloor(results, subjects, part = 'speed') {
  return found(subjects, EVERYWHERE, (subject, scenario) => {
    const speeds = results.of(part, scenario, subject)
    return speeds && [timesAsFast(speeds[subject], speeds.floor).median, `${subject}, ${scenario}`]
  })
}

function toPeers(results, peers, scenarios) {
  return found(peers, scenarios, (peer, scenario) => {
    const speeds = results.of('speed', scenario, peer)
    return speeds && [timesAsFast(speeds[HEADLINE], speeds[peer]).median, `${peer}, ${scenario}`]
  })
}

/** Beside it what the floor reaches, because that bounds what can be reached. */
function toFlexible(results, scenario) {
  const speeds = results.of('speed', scenario, FLEXIBLE)
  if (speeds === undefined) return []
  const [own, floors] = [HEADLINE, 'floor'].map((name) => timesAsFast(speeds[name], speeds[FLEXIBLE]).median)
  return [[own, `${scenario} (the floor: ${floors.toPrecision(3)})`]]
}

function turnClockToFloor(results) {
  const measured = results.of('turn-clock', 'hot-allowed', HEADLINE)
  return measured ? [[timesAsFast(measured.speeds[HEADLINE], measured.speeds.floor).median, HEADLINE]] : []
}

function bytesPerKey(results, sizes) {
  return found(LEVELS, sizes, (subject, size) => {
    const bytes = results.of('memory', 'keys', subject)
    return bytes && [bytes[size], `${subject.split('.')[0]}, ${size.toLocaleString('en')} keys`]
  })
}

function pauseBeyondSweep(results, phase) {
  const own = results.all('pauses', HEADLINE)
  const sweep = results.all('pauses', 'floor sweep')
  if (own.length === 0 || sweep.length === 0) return []
  return [[medianOf(own, phase) - medianOf(sweep, phase), `${own.length} processes of each`]]
}

function medianOf(runs, phase) {
  return spreadOf(runs.map((run) => run[phase])).median
}

function scavengesBeyondFloor(results, part) {
  const floor = results.of(part, 'keys-10k', 'floor')
  return found(TRY_ACQUIRE, ['keys-10k'], (subject, scenario) => {
    const own = results.of(part, scenario, subject)
    return own && floor && [own.scavenges - floor.scavenges, subject]
  })
}

function toWaitingPeers(results, peers) {
  return found(peers, Object.keys(CROWDS), (peer, crowd) => {
    const speeds = results.of('waiting-speed', crowd, peer)
    return speeds && [timesAsFast(speeds[ownBeside(peer)], speeds[peer]).median, `${ownBeside(peer)} to ${peer}, ${crowd}`]
  })
}

function bundledBytes(results) {
  return Object.entries(results.of('size', 'bundle', 'all')?.bytes ?? {}).map(([algorithm, bytes]) => [bytes, algorithm])
}

/** Every pair of the two lists for which there is a figure. */
function found(ones, others, figure) {
  return ones.flatMap((one) => others.map((other) => figure(one, other))).filter((each) => each !== undefined)
}

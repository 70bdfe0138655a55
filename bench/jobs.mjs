// Everything that is measured: one job is one process.
import { CROWDS, WAITERS } from './crowds.mjs'
import { PEER_NAMES } from './peers.mjs'
import { SCENARIOS } from './scenarios.mjs'
import { ownBeside, WAITING_PEER_NAMES } from './waiting-peers.mjs'

const LEVELS = ['gcra', 'tokenBucket', 'leakyBucket']
export const ALGORITHMS = [...LEVELS, 'fixedWindow', 'slidingWindow', 'slidingLog']
export const TRY_ACQUIRE = ALGORITHMS.map((algorithm) => `${algorithm}.tryAcquire`)
export const CONSUME = LEVELS.map((algorithm) => `${algorithm}.consume`)
/** Beside `consume` of the same algorithm. */
export const CHARGE = ALGORITHMS.map((algorithm) => `${algorithm}.charge`)
export const consumeBeside = (charge) => charge.replace('.charge', '.consume')
/** Where nothing is refused: what `consume` refuses, `charge` writes down. */
export const CHARGED_IN = ['hot-allowed', 'keys-10k']
/** The least that a full decision can cost. */
export const FLOOR_CONSUME = 'floor.consume'
/** What stands beside the peers. */
export const HEADLINE = 'gcra.tryAcquire'

/**
 * How many keys memory is measured at. 524,289 is 2^19 + 1: a Map has just doubled, and holds the
 * most room for the fewest keys.
 */
export const SIZES = [100_000, 250_000, 524_289, 1_000_000]
const MEMORY_OF = [...TRY_ACQUIRE, ...PEER_NAMES]
/**
 * A longest pause is the worst of a thousand turns, so it takes several processes to see how much
 * of it is chance.
 */
const PAUSE_RUNS = 7
const SCAVENGE_RUNS = 3
/**
 * `consume` and `charge` are nearer to each other than the same code in two processes, which V8
 * places and inlines each in its own way: the rounds of so many processes count together.
 */
export const CHARGE_PROCESSES = 7

/**
 * Of the calls that wait: what stands beside the peers, and which others are measured under limits
 * that are not reached, and that are.
 */
export const WAITING_HEADLINE = 'gcra.acquire'
export const WAITING_OWN = [WAITING_HEADLINE, 'fixedWindow.acquire', 'gcra.wrap']
export const COSTING_OWN = [WAITING_HEADLINE, 'fixedWindow.acquire']
/**
 * A wait within `maxAheadMs` has its permits booked; all others stand outside, as they do where
 * nothing can be booked.
 */
export const BOOKED = `${WAITING_HEADLINE} booked`
export const OUTSIDE = `${WAITING_HEADLINE} outside`
/** How many waiters memory is measured at; the peers at the first only. */
export const WAITING_SIZES = [WAITERS, 100_000]
const SLOW = 'bottleneck'
/** How long it takes to take 10,000 calls in. */
export const SETTLE_MS = { 'one-key': 60_000, 'keys-10k': 15_000 }
/**
 * It passes some hundreds a second on one key, whatever the limit. Windows begin when the clock
 * says, not when a key is used up.
 */
const WITHOUT_COST = { 'one-key': SLOW, 'keys-10k': 'fixedWindow.acquire' }
const YEAR_MS = 366 * 24 * 3_600_000

/** V8 grows the young generation as it sees fit, and fewer scavenges would then mean nothing. */
const FIXED_YOUNG_GENERATION = ['--min-semi-space-size=1', '--max-semi-space-size=1']

/**
 * A job: its name, which --only looks at and under which its result is kept; its part, which is the
 * module that measures; and what that needs.
 */
export function allJobs(quick) {
  const length = quick ? { rounds: 5, roundMs: 15 } : { rounds: 15, roundMs: 60 }
  return [
    ...speedJobs(length),
    ...chargeJobs({ ...length, processes: quick ? 1 : CHARGE_PROCESSES }),
    ...warmedSpeedJobs(length),
    ...turnClockJobs(length),
    ...memoryJobs(),
    ...(quick ? pauseJobs(1, 100_000) : pauseJobs(PAUSE_RUNS, 1_000_000)),
    ...['scavenges', 'scavenges-warmed'].flatMap((part) => scavengeJobs(part, quick ? 1_000_000 : 10_000_000, quick ? 1 : SCAVENGE_RUNS)),
    ...waitingSpeedJobs(length, quick),
    ...waitingCostJobs(quick),
    ...waitingMemoryJobs(quick ? WAITING_SIZES.slice(0, 1) : WAITING_SIZES),
    sizeJob(),
  ]
}

function speedJobs(length) {
  return Object.keys(SCENARIOS).flatMap((scenario) => {
    const own = [...TRY_ACQUIRE, ...CONSUME, FLOOR_CONSUME].map((name) => [name, ['floor', name]])
    const beside = PEER_NAMES.map((name) => [name, ['floor', HEADLINE, name]])
    return [...own, ...beside].map(([subject, contestants]) => jobOf('speed', scenario, subject, { scenario, contestants, ...length }))
  })
}

function chargeJobs(length) {
  return CHARGED_IN.flatMap((scenario) =>
    CHARGE.map((name) => jobOf('speed', scenario, name, { scenario, contestants: ['floor', consumeBeside(name), name], ...length })),
  )
}

function warmedSpeedJobs(length) {
  return Object.keys(SCENARIOS).flatMap((scenario) =>
    TRY_ACQUIRE.map((name) => jobOf('speed-warmed', scenario, name, { scenario, contestants: ['floor', name], ...length })),
  )
}

function turnClockJobs(length) {
  const scenario = 'hot-allowed'
  return [jobOf('turn-clock', scenario, HEADLINE, { scenario, contestants: ['floor', HEADLINE], ...length })]
}

function memoryJobs() {
  return MEMORY_OF.map((name) => jobOf('memory', 'keys', name, { contestants: [name], sizes: SIZES }))
}

function pauseJobs(runs, keys) {
  return Array.from({ length: runs }, (_, run) =>
    ['floor sweep', HEADLINE].map((name) => jobOf('pauses', `run-${run + 1}`, name, { contestants: [name], keys })),
  ).flat()
}

function scavengeJobs(part, calls, runs) {
  const scenario = 'keys-10k'
  return ['floor', ...TRY_ACQUIRE].map((name) =>
    jobOf(part, scenario, name, { scenario, contestants: [name], calls, runs, flags: FIXED_YOUNG_GENERATION }),
  )
}

function waitingSpeedJobs(length, quick) {
  // Ten thousand jobs on one key take bottleneck half a minute: few rounds, and none to try.
  const slowly = { ...length, rounds: quick ? 1 : 3, trialRounds: 0 }
  return Object.keys(CROWDS).flatMap((crowd) => {
    const own = WAITING_OWN.map((name) => [name, ['floor', name]])
    const beside = WAITING_PEER_NAMES.map((name) => [name, ['floor', ownBeside(name), name]])
    return [...own, ...beside].map(([subject, contestants]) =>
      jobOf('waiting-speed', crowd, subject, { crowd, contestants, ...(subject === SLOW ? slowly : length) }),
    )
  })
}

function waitingCostJobs(quick) {
  return Object.keys(CROWDS).flatMap((crowd) => {
    const own = COSTING_OWN.map((name) => [name, [name]])
    const beside = WAITING_PEER_NAMES.map((name) => [name, [WAITING_HEADLINE, name]])
    return [...own, ...beside]
      .filter(([subject]) => WITHOUT_COST[crowd] !== subject)
      .map(([subject, contestants]) =>
        jobOf('waiting-cost', crowd, subject, { crowd, contestants, rounds: quick ? 1 : subject === SLOW ? 3 : 5 }),
      )
  })
}

function waitingMemoryJobs(sizes) {
  return Object.keys(CROWDS).flatMap((crowd) => {
    const contestants = [WAITING_HEADLINE]
    return [
      jobOf('waiting-memory', crowd, BOOKED, { crowd, contestants, sizes, options: { maxAheadMs: YEAR_MS } }),
      jobOf('waiting-memory', crowd, OUTSIDE, { crowd, contestants, sizes }),
      ...WAITING_PEER_NAMES.map((name) => {
        const settleMs = name === SLOW ? SETTLE_MS[crowd] : 0
        return jobOf('waiting-memory', crowd, name, { crowd, contestants: [name], sizes: [WAITERS], settleMs })
      }),
    ]
  })
}

function sizeJob() {
  return jobOf('size', 'bundle', 'all', {})
}

function jobOf(part, where, subject, rest) {
  return { name: `${part} ${where} ${subject}`, part, where, subject, ...rest }
}

// Everything that is measured: one job is one process.
import { PEER_NAMES } from './peers.mjs'
import { SCENARIOS } from './scenarios.mjs'

const LEVELS = ['gcra', 'tokenBucket', 'leakyBucket']
export const ALGORITHMS = [...LEVELS, 'fixedWindow', 'slidingWindow', 'slidingLog']
export const TRY_ACQUIRE = ALGORITHMS.map((algorithm) => `${algorithm}.tryAcquire`)
export const CONSUME = LEVELS.map((algorithm) => `${algorithm}.consume`)
/** What stands beside the peers. */
export const HEADLINE = 'gcra.tryAcquire'

/** How many keys memory is measured at. 524,289 is 2^19 + 1: a Map has just doubled, and holds the most room for the fewest keys. */
export const SIZES = [100_000, 250_000, 524_289, 1_000_000]
const MEMORY_OF = [...TRY_ACQUIRE, ...PEER_NAMES]
/** A longest pause is the worst of a thousand turns, so it takes several processes to see how much of it is chance. */
const PAUSE_RUNS = 5

/** V8 grows the young generation as it sees fit, and fewer scavenges would then mean nothing. */
const FIXED_YOUNG_GENERATION = ['--min-semi-space-size=1', '--max-semi-space-size=1']

/** A job: its name, which --only looks at and under which its result is kept; its part, which is the module that measures; and what that needs. */
export function allJobs(quick) {
  const length = quick ? { rounds: 5, roundMs: 15 } : { rounds: 15, roundMs: 60 }
  return [
    ...speedJobs(length),
    ...turnClockJobs(length),
    ...memoryJobs(),
    ...pauseJobs(quick ? 1 : PAUSE_RUNS),
    ...scavengeJobs(),
    sizeJob(),
  ]
}

function speedJobs(length) {
  return Object.keys(SCENARIOS).flatMap((scenario) => {
    const own = [...TRY_ACQUIRE, ...CONSUME].map((name) => [name, ['floor', name]])
    const beside = PEER_NAMES.map((name) => [name, ['floor', HEADLINE, name]])
    return [...own, ...beside].map(([subject, contestants]) => jobOf('speed', scenario, subject, { scenario, contestants, ...length }))
  })
}

function turnClockJobs(length) {
  const scenario = 'hot-allowed'
  return [jobOf('turn-clock', scenario, HEADLINE, { scenario, contestants: ['floor', HEADLINE], ...length })]
}

function memoryJobs() {
  return MEMORY_OF.map((name) => jobOf('memory', 'keys', name, { contestants: [name], sizes: SIZES }))
}

function pauseJobs(runs) {
  return Array.from({ length: runs }, (_, run) =>
    ['floor sweep', HEADLINE].map((name) => jobOf('pauses', `run-${run + 1}`, name, { contestants: [name] })),
  ).flat()
}

function scavengeJobs() {
  const scenario = 'keys-10k'
  return ['floor', ...TRY_ACQUIRE].map((name) =>
    jobOf('scavenges', scenario, name, { scenario, contestants: [name], flags: FIXED_YOUNG_GENERATION }),
  )
}

function sizeJob() {
  return jobOf('size', 'bundle', 'all', {})
}

function jobOf(part, where, subject, rest) {
  return { name: `${part} ${where} ${subject}`, part, where, subject, ...rest }
}

// The goals of the shared store. A goal reads the results and gives its figure.
import { spreadOf, timesAsFast } from './statistics.mjs'

export const SHARED_GOALS = [
  atLeast(0.5, 'one thread, tryAcquire, 10,000 keys, to the memory store', (results) => toMemory(results, 'keys-10k')),
  atLeast(1.7, 'two threads, 10,000 keys, to one thread', (results) => twoToOne(results, 'keys-10k').median),
  atLeast(1, 'two threads, one hot key, allowed, to one thread', (results) => twoToOne(results, 'hot-allowed').median),
  atLeast(100, 'one call at a time, to a message to the main thread and back', (results) => toOther(results, 'message').median),
  atMost(96, 'bytes for each of 100,000 keys beyond the key, gcra and the buckets', mostBytes),
]

function atLeast(target, title, figure) {
  return { title, target: `at least ${target}`, figure, reached: (value) => value >= target }
}

function atMost(target, title, figure) {
  return { title, target: `at most ${target}`, figure, reached: (value) => value <= target }
}

/** Each was measured beside the floor, in a process of its own. */
export function toMemory(results, scenario) {
  return toFloor(results, scenario, 'shared').median / toFloor(results, scenario, 'memory').median
}

export function toFloor(results, scenario, subject) {
  const speeds = results[`shared-speed ${scenario} ${subject}`]
  return timesAsFast(speeds[subject], speeds.floor)
}

export function twoToOne(results, scenario) {
  const { one, two } = results[`shared-threads ${scenario}`]
  return spreadOf(two.map((calls, round) => calls / one[round]))
}

/** How many times as fast a call of the shared store is as one of another way. */
export function toOther(results, other) {
  const measured = results['shared-messages hot-allowed']
  return spreadOf(measured[other].map((ns, round) => ns / measured.shared[round]))
}

function mostBytes(results) {
  const bytes = results['shared-memory keys']
  return Math.max(...['gcra', 'tokenBucket', 'leakyBucket'].map((algorithm) => bytes[algorithm].find(([size]) => size === 100_000)[1]))
}

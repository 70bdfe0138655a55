// Bytes of a full store for each key. Nothing grows: they are all there from the beginning,
// whatever the length of the keys.
import { sharedStore } from '../dist/stores/shared-memory/index.js'
import { sluiceLimit } from './contestants.mjs'
import { LASTING } from './scenarios.mjs'

const ALGORITHMS = ['gcra', 'tokenBucket', 'leakyBucket', 'fixedWindow', 'slidingWindow']
const SIZES = [10_000, 100_000, 1_000_000]

export default function sharedMemory() {
  const bytesFor = (algorithm, maxKeys) => sharedStore({ maxKeys, limits: sluiceLimit(algorithm, LASTING) }).bytes / maxKeys
  return Object.fromEntries(ALGORITHMS.map((algorithm) => [algorithm, SIZES.map((size) => [size, bytesFor(algorithm, size)])]))
}

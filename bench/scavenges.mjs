// Scavenges: how often the young generation is collected during millions of calls on 10,000 keys.
import { constants, PerformanceObserver } from 'node:perf_hooks'
import { contestant } from './contestants.mjs'
import { loopOf, nextTurn } from './loop.mjs'
import { SCENARIOS, trafficOf } from './scenarios.mjs'
import { spreadOf } from './statistics.mjs'

const WARM_UP_CALLS = 1_000_000

/** Now and then something else in the process allocates: of several runs the middle one counts. */
export default async function scavenges({ scenario, contestants: [name], calls, runs }) {
  const { limits, key, ...shape } = SCENARIOS[scenario]
  const loop = loopOf(await contestant(name, limits), trafficOf(shape), key)
  // Code that is not compiled yet allocates numbers, and both should be counted as they run for
  // good.
  loop(0, WARM_UP_CALLS)
  const counts = []
  for (let k = 0; k < runs; k++) counts.push(await scavengesDuring(() => loop(WARM_UP_CALLS, calls)))
  return { calls, scavenges: spreadOf(counts).median }
}

async function scavengesDuring(work) {
  let count = 0
  const observer = new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries()) if (detail.kind === constants.NODE_PERFORMANCE_GC_MINOR) count++
  })
  await nextTurn()
  observer.observe({ entryTypes: ['gc'] })
  work()
  // The entries arrive in a later turn.
  await new Promise((resolve) => setTimeout(resolve, 100))
  observer.disconnect()
  return count
}

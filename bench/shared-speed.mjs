// One thread: a store beside the floor, in interleaved rounds. The two stores have a process each,
// so that the limiter is compiled for one of them.
import { contestant } from './contestants.mjs'
import { loopOf } from './loop.mjs'
import { interleaved } from './rounds.mjs'
import { SCENARIOS, trafficOf } from './scenarios.mjs'
import { contestantOf, memoryLimiter, sharedLimiter, storeFor } from './shared-limiters.mjs'

const LIMITERS = { memory: memoryLimiter, shared: (scenario) => sharedLimiter(scenario, storeFor(scenario)) }

export default async function sharedSpeed({ scenario, subject, rounds, roundMs }) {
  const { key, limits, ...shape } = SCENARIOS[scenario]
  const traffic = trafficOf(shape)
  const contestants = [await contestant('floor', limits), contestantOf(subject, LIMITERS[subject](scenario))]
  const loops = contestants.map((each) => {
    loopOf(each, traffic, 'keys[at]')(0, shape.keys)
    return [each.name, loopOf(each, traffic, key)]
  })
  return interleaved(loops, rounds, roundMs)
}

// One thread: the shared store beside the memory store, in interleaved rounds.
import { loopOf } from './loop.mjs'
import { interleaved } from './rounds.mjs'
import { SCENARIOS, trafficOf } from './scenarios.mjs'
import { contestantOf, memoryLimiter, sharedLimiter, storeFor } from './shared-limiters.mjs'

export default async function sharedSpeed({ scenario, rounds, roundMs }) {
  const { key, ...shape } = SCENARIOS[scenario]
  const traffic = trafficOf(shape)
  const contestants = [contestantOf('memory', memoryLimiter(scenario)), contestantOf('shared', sharedLimiter(scenario, storeFor(scenario)))]
  const loops = contestants.map((contestant) => {
    loopOf(contestant, traffic, 'keys[at]')(0, shape.keys)
    return [contestant.name, loopOf(contestant, traffic, key)]
  })
  return interleaved(loops, rounds, roundMs)
}

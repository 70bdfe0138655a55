// Speed of the contestants of one job under one scenario.
import { contestant } from './contestants.mjs'
import { loopOf } from './loop.mjs'
import { interleaved } from './rounds.mjs'
import { SCENARIOS, trafficOf } from './scenarios.mjs'

export default async function speed({ scenario, contestants, rounds, roundMs }) {
  const { limits, key, ...shape } = SCENARIOS[scenario]
  const traffic = trafficOf(shape)
  const loops = []
  for (const name of contestants) {
    const made = await contestant(name, limits)
    await loopOf(made, traffic, IN_ORDER)(0, shape.keys)
    loops.push([name, loopOf(made, traffic, key)])
  }
  return interleaved(loops, rounds, roundMs)
}

/**
 * Every key is called once before the first round: what is measured is the use of keys, not their
 * arrival.
 */
const IN_ORDER = 'keys[at]'

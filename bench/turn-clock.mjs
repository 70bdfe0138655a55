// A hot key under the clock that is read once per turn of the event loop. It turns after every
// 1,000 calls, for the floor too.
import { turnClock } from '../dist/index.js'
import { contestant } from './contestants.mjs'
import { loopOf, nextTurn } from './loop.mjs'
import { interleaved } from './rounds.mjs'
import { SCENARIOS, trafficOf } from './scenarios.mjs'

const CALLS_PER_TURN = 1000
const WITNESSED_TURNS = 1000

export default async function turnClockSpeed({ scenario, contestants, rounds, roundMs }) {
  const { limits, key, ...shape } = SCENARIOS[scenario]
  const traffic = trafficOf(shape)
  const clock = turnClock()
  const loops = []
  for (const name of contestants) {
    const made = await contestant(name, limits, { clock })
    loops.push([name, loopOf(made, traffic, key, CALLS_PER_TURN)])
  }
  const speeds = await interleaved(loops, rounds, roundMs)
  return { speeds, witness: await witnessed(clock, loops.at(-1)[1]) }
}

/**
 * That the clock moves: its readings at the start of so many turns, which must all differ, or the
 * speed was that of a clock that stands.
 */
async function witnessed(clock, loop) {
  const readings = []
  for (let turn = 0; turn < WITNESSED_TURNS; turn++) {
    readings.push(clock.nowUs())
    await loop(0, CALLS_PER_TURN)
    await nextTurn()
  }
  return { turns: WITNESSED_TURNS, readings: new Set(readings).size, spanUs: readings.at(-1) - readings[0] }
}

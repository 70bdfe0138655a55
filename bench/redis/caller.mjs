// A contestant in a process of its own, which calls it when it is told to. Started by callers.mjs
// with { name, algorithm, client, port, database }.
import { inFlight } from './in-flight.mjs'
import { prepared } from './prepared.mjs'

const { made, keyAt, refill } = await prepared(JSON.parse(process.argv[2]))

const WORK = {
  refill,
  round: ({ from, calls, atOnce }) => {
    globalThis.gc({ type: 'minor' })
    return inFlight(made, keyAt, atOnce)(from, calls)
  },
}

process.on('message', async ({ work, ...rest }) => process.send({ answer: await WORK[work](rest) }))
process.send('ready')

// A contestant in a process of its own, which calls it when it is told to. Started by callers.mjs with { name, client, port, database }.
import { inFlight } from './in-flight.mjs'
import { prepared } from './prepared.mjs'

const { made, keyAt } = await prepared(JSON.parse(process.argv[2]))
const round = inFlight(made, keyAt)

process.on('message', async ({ from, calls }) => {
  globalThis.gc({ type: 'minor' })
  process.send(await round(from, calls))
})
process.send('ready')

// A process of its own for one job: holds the applications that take turns, and tells the processor
// time that it used. Started by http-run.mjs.
import { FRAMEWORKS, SCENARIOS, useOlder } from './http-apps.mjs'

const { framework, scenario, mode, contestants, older, first, rounds, calls, warmUpCalls } = JSON.parse(process.argv[2])

if (older !== undefined) await useOlder(older)
// The one that is made and called first has it better: it is not always the same one.
const order = contestants.map((_, turn) => (first + turn) % contestants.length)
const apps = []
for (const at of order) apps[at] = await FRAMEWORKS[framework].make(contestants[at], SCENARIOS[scenario], mode)

if (mode === 'in process') await inProcess()
else await overSockets()

/** Another one first in every round, so that what the machine does meanwhile falls on all alike. */
async function inProcess() {
  for (const at of order) await called(apps[at].inject, warmUpCalls)
  const measured = apps.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < apps.length; turn++) {
      const at = (round + turn) % apps.length
      globalThis.gc({ type: 'minor' })
      const before = cpuUs()
      await called(apps[at].inject, calls)
      measured[at].push((cpuUs() - before) / calls)
    }
  }
  process.send({ measured }, () => process.exit())
}

/** The event loop has to turn now and then, or what waits for it piles up. */
async function called(inject, calls) {
  for (let k = 1; k <= calls; k++) {
    await inject()
    if (k % 20 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

/** The parent makes the requests, and asks before and after. */
async function overSockets() {
  const ports = []
  for (const { server } of apps) {
    // A server that waits for its turn keeps its connections, however long the others take.
    server.keepAliveTimeout = 0
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    ports.push(server.address().port)
  }
  process.on('message', (message) => {
    if (message === 'sweep') globalThis.gc({ type: 'minor' })
    process.send({ cpuUs: cpuUs() })
  })
  process.send({ ports })
}

function cpuUs() {
  const { user, system } = process.cpuUsage()
  return user + system
}

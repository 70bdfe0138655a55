// Clients that give up after a second: requests at a steady pace, whatever becomes of them.
import { Agent, request } from 'node:http'

const GIVE_UP_MS = 1_000

/** What became of one request: 'ok' in time, 'refused' (503), or 'gone'; and how long it took. */
function ask(port, agent) {
  const sinceMs = performance.now()
  return new Promise((resolve) => {
    const end = (outcome) => resolve({ outcome, ms: performance.now() - sinceMs })
    const req = request({ port, host: '127.0.0.1', agent, signal: AbortSignal.timeout(GIVE_UP_MS) }, (res) => {
      res.resume()
      res.on('end', () => end(res.statusCode === 200 ? 'ok' : 'refused'))
      res.on('error', () => end('gone'))
    })
    req.on('error', () => end('gone'))
    req.end()
  })
}

/** So many at a time, one after the other: what the server can do. */
export async function closed(port, clients, forMs) {
  const agent = new Agent({ keepAlive: true })
  const untilMs = performance.now() + forMs
  let done = 0
  const client = async () => {
    while (performance.now() < untilMs) if ((await ask(port, agent)).outcome === 'ok') done += 1
  }
  await Promise.all(Array.from({ length: clients }, client))
  agent.destroy()
  return (done / forMs) * 1000
}

/** At a pace, evenly. Those of the first `warmMs` are not counted. */
export async function open(port, perSecond, warmMs, forMs) {
  const agent = new Agent({ keepAlive: true, maxSockets: 2_000 })
  const startMs = performance.now()
  const pending = []
  let sent = 0
  while (performance.now() - startMs < warmMs + forMs) {
    const due = ((performance.now() - startMs) / 1000) * perSecond
    for (; sent < due; sent++) {
      const isCounted = performance.now() - startMs >= warmMs
      const asked = ask(port, agent)
      if (isCounted) pending.push(asked)
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const answers = await Promise.all(pending)
  agent.destroy()
  const ok = answers.filter(({ outcome }) => outcome === 'ok').map(({ ms }) => ms)
  const share = (outcome) => answers.filter((one) => one.outcome === outcome).length / answers.length
  ok.sort((a, b) => a - b)
  return {
    goodput: (ok.length / forMs) * 1000,
    p99Ms: ok[Math.ceil(0.99 * ok.length) - 1] ?? Number.NaN,
    refused: share('refused'),
    gone: share('gone'),
  }
}

/** Every case on every framework, over real sockets: see cases.ts and frameworks.ts. */
import { Agent as HttpAgent, get as httpGet, type IncomingMessage } from 'node:http'
import { connect } from 'node:http2'
import { afterAll, describe, expect, test } from 'vitest'
import { CASES } from './cases.ts'
import { FRAMEWORKS, type Served } from './frameworks.ts'
import { HOLD_CASES } from './hold-cases.ts'
import { stopRemotes } from './remote.ts'
import { SETTLE_CASES } from './settle-cases.ts'

afterAll(stopRemotes)

describe.each(FRAMEWORKS)('$name', (framework) => {
  test.for([...CASES, ...SETTLE_CASES, ...HOLD_CASES])('$name', async ({ setup, skip: reason = framework.missing, run }, { skip }) => {
    skip(reason !== undefined, reason)
    const served = await framework.serve(setup)
    try {
      await run(served, framework.name)
    } finally {
      await served.close()
    }
  })

  test('keeps the connection alive, also over a refusal', async ({ skip }) => {
    skip(framework.missing !== undefined, framework.missing)
    const served = await framework.serve('plain')
    const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 })
    try {
      const ports: (number | undefined)[] = []
      for (let k = 0; k < 5; k++) ports.push((await once(served, agent)).port)
      expect(new Set(ports).size).toBe(1)
    } finally {
      agent.destroy()
      await served.close()
    }
  })

  test('answers over HTTP/2', async ({ skip }) => {
    const { serveHttp2 } = framework
    skip(serveHttp2 === undefined, 'the framework has no HTTP/2 of its own')
    const served = await (serveHttp2 as NonNullable<typeof serveHttp2>)('plain')
    const session = connect(served.url)
    try {
      const answers: [number, string][] = []
      for (let k = 0; k < 4; k++) answers.push(await overHttp2(session))
      expect(answers).toEqual([
        [200, '"default";r=2;t=1'],
        [200, '"default";r=1;t=2'],
        [200, '"default";r=0;t=3'],
        [429, '"default";r=0;t=1'],
      ])
    } finally {
      session.destroy()
      await served.close()
    }
  })
})

function once({ url }: Served, agent: HttpAgent): Promise<{ port: number | undefined }> {
  return new Promise((resolve, reject) => {
    const request = httpGet(url, { agent }, (response: IncomingMessage) => {
      const port = request.socket?.localPort
      response.resume().once('end', () => resolve({ port }))
    })
    request.once('error', reject)
  })
}

function overHttp2(session: ReturnType<typeof connect>): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':path': '/' })
    let told: [number, string]
    stream.once('response', (headers) => {
      told = [headers[':status'] as number, String(headers.ratelimit)]
    })
    stream.once('error', reject)
    stream.resume().once('end', () => resolve(told))
    stream.end()
  })
}

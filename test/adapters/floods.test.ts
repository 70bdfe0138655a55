/**
 * Floods over real sockets against a server with a small heap: the middleware holds a bounded
 * number of bytes for them, and serves others meanwhile. The server is the built one, in a process
 * of its own, so that its heap is only its own.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** What the server says of itself, after a collection. */
interface Figures {
  readonly waiting: number
  /** Requests that have reached the gate. */
  readonly reached: number
  readonly heapMb: number
}

let child: ChildProcess

afterEach(() => {
  child.kill('SIGKILL')
})

/** `gate` is what `rateLimit` is given, with `limiter` of these limits beside it. */
async function started(limits: string, gate: string): Promise<{ readonly port: number; figures(): Promise<Figures> }> {
  const code = `
    import { createServer } from 'node:http'
    import { createLimiter, fixedWindow, gcra } from './dist/index.js'
    import { byHeader, rateLimit } from './dist/adapters/node.js'
    const limiter = createLimiter(${limits})
    let reached = 0
    const limited = rateLimit({ limiter, ${gate} })((request, response) => response.end('let in'))
    const server = createServer({ maxHeaderSize: 65_536 }, (request, response) => {
      if (request.url === '/figures') {
        gc()
        response.end(JSON.stringify({ waiting: limiter.waiting(), reached, heapMb: process.memoryUsage().heapUsed / 1e6 }))
        return
      }
      reached += 1
      limited(request, response)
    })
    server.listen(0, '127.0.0.1', () => console.log(server.address().port))`
  child = spawn(process.execPath, ['--expose-gc', '--max-old-space-size=256', '--input-type=module', '-e', code], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [printed] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
  const port = Number(printed.toString())
  return { port, figures: async () => (await fetch(`http://127.0.0.1:${port}/figures`)).json() as Promise<Figures> }
}

/**
 * The figures as soon as no further request has reached the gate between two looks, many times in a
 * row.
 */
async function whenQuiet(figures: () => Promise<Figures>): Promise<Figures> {
  let last = await figures()
  for (let same = 0; same < 20; ) {
    const next = await figures()
    same = next.reached === last.reached ? same + 1 : 0
    last = next
  }
  return last
}

test('requests that are pipelined while the first of them waits take a few places, and the rest are refused', async () => {
  // One an hour: of those who wait an hour and a half two can have their turn at most, and ten may
  // wait at most.
  const { port, figures } = await started(
    "fixedWindow({ limit: 1, window: '1h', anchor: 'first' })",
    "key: (r) => r.headers['x-client'] ?? 'k', maxWaitMs: 5_400_000",
  )
  const before = await figures()
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(50_000))
  await once(socket, 'data')
  const { waiting, heapMb } = await whenQuiet(figures)
  expect(waiting).toBeLessThanOrEqual(10)
  // Node hands over what it has read in one go, 64 KiB: here 2,400 requests of 12 KB. All of them
  // would be 600 MB.
  expect(heapMb - before.heapMb).toBeLessThan(60)
  const other = await fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-client': 'other' } })
  expect([other.status, await other.text()]).toEqual([200, 'let in'])
  const refused = await fetch(`http://127.0.0.1:${port}/`)
  expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true])
  socket.destroy()
})

test('long values of a header cost what short ones cost, and are told apart at their last character', async () => {
  const { port, figures } = await started("gcra({ rate: '1/h', burst: 1 })", "key: byHeader('x-api-key')")
  const statusOf = async (key: string) => (await fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-api-key': key } })).status
  const long = 'k'.repeat(15_000)
  expect(await statusOf(`${long}a`)).toBe(200)
  expect(await statusOf(`${long}b`)).toBe(200)
  expect(await statusOf(`${long}a`)).toBe(429)
  const before = await figures()
  await sentOneByOne(port, 2_000, (k) => `x-api-key: ${long}${k}`)
  const after = await figures()
  expect(after.reached - before.reached).toBe(2_000)
  // 2 KB a key at most; 15 KB each would be 30 MB.
  expect(after.heapMb - before.heapMb).toBeLessThan(4)
})

test('a short key that was cut out of a long header does not keep the header', async () => {
  const key = "key: (r) => r.headers['x-forwarded-for'].split(',')[0]"
  const { port, figures } = await started("gcra({ rate: '1/h', burst: 1 })", key)
  const rest = ','.repeat(15_000)
  const before = await figures()
  await sentOneByOne(port, 2_000, (k) => `x-forwarded-for: client-number-${k}${rest}`)
  const after = await figures()
  expect(after.reached - before.reached).toBe(2_000)
  expect(after.heapMb - before.heapMb).toBeLessThan(4)
})

/** On one connection, each when the one before was answered. */
async function sentOneByOne(port: number, count: number, header: (k: number) => string): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  for (let k = 0; k < count; k++) {
    socket.write(`GET / HTTP/1.1\r\nHost: a\r\n${header(k)}\r\n\r\n`)
    await once(socket, 'data')
  }
  socket.destroy()
}

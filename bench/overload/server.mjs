// A server with a bottleneck, and one way to protect it:
// `node server.mjs <bottleneck> <protection>`. Says its port as a line of JSON.
import { createServer } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import underPressure from '@fastify/under-pressure'
import Fastify from 'fastify'
import protect from 'overload-protection'
import { rateLimit } from '../../dist/adapters/node.js'
import { concurrency, createLimiter } from '../../dist/index.js'
import { govern, knee, vegas } from '../../dist/load/index.js'

const [bottleneck, protection] = process.argv.slice(2)

/** Five connections to something that takes 50 ms: 100 a second. */
function pool() {
  let free = 5
  const waiting = []
  return async () => {
    if (free > 0) free -= 1
    else await new Promise((resolve) => waiting.push(resolve))
    await new Promise((resolve) => setTimeout(resolve, 50))
    const next = waiting.shift()
    if (next === undefined) free += 1
    else next()
  }
}

/**
 * Five pieces of work of 2 ms each on the one thread, with a turn between them: 100 a second at
 * most.
 */
function cpu() {
  return async () => {
    for (let k = 0; k < 5; k++) {
      const untilMs = performance.now() + 2
      while (performance.now() < untilMs);
      await nextTurn()
    }
  }
}

const work = { pool, cpu }[bottleneck]()
const answer = (res, status) => {
  res.statusCode = status
  res.end()
}

/** As the guide says: places in flight for the whole server, moved by a governor. */
function governed(by) {
  const limiter = createLimiter({ inflight: concurrency({ max: by.max }) })
  govern(limiter, { limit: 'inflight', by })
  const serve = plain()
  const limited = rateLimit({ limiter, key: () => 'server' })((_req, res) => serve(res))
  return (res, req) => limited(req, res)
}

function plain() {
  return async (res) => {
    await work()
    answer(res, 200)
  }
}

/** Their defaults, as the README says to use it. */
function overloadProtection() {
  const guard = protect('http', { production: true })
  const serve = plain()
  return (res, req) => {
    if (guard(req, res) !== true) serve(res)
  }
}

async function fastify() {
  const app = Fastify()
  await app.register(underPressure, { maxEventLoopDelay: 100, maxEventLoopUtilization: 0.98 })
  app.get('/', async () => {
    await work()
    return ''
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}

async function http() {
  const bounds = { min: 1, max: 1_000 }
  const handlers = {
    none: plain,
    knee: () => governed(knee(bounds)),
    vegas: () => governed(vegas(bounds)),
    'overload-protection': overloadProtection,
  }
  const handle = handlers[protection]()
  const server = createServer((req, res) => handle(res, req))
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

const server = protection === '@fastify/under-pressure' ? await fastify() : await http()
console.log(JSON.stringify({ port: server.address().port }))

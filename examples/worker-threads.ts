// One limit for a server of several threads: each thread listens on a port of its own, behind a
// load balancer, and all of them have one budget.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { createLimiter, gcra } from 'sluice'
import { type SharedHandle, sharedStore } from 'sluice/shared'

const THREADS = 3
const limits = gcra({ rate: '10/h', burst: 10 })

if (isMainThread) {
  // The thread that makes the memory says how large it is. The handle is all that the others need.
  const store = sharedStore({ maxKeys: 10_000, limits })
  const workers = Array.from({ length: THREADS }, () => new Worker(new URL(import.meta.url), { workerData: store.handle }))
  const ports: number[] = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0]))

  const ask = async (port: number) => (await fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-user': 'ann' } })).status
  const answers = await Promise.all(Array.from({ length: 30 }, (_, k) => ask(ports[k % THREADS] as number)))
  for (const status of [200, 429]) console.log(`${status}: ${answers.filter((each) => each === status).length}`)
  await Promise.all(workers.map((worker) => worker.terminate()))
} else {
  const limiter = createLimiter(limits, { name: 'api', store: sharedStore(workerData as SharedHandle) })
  const server = createServer((request, response) => {
    // At once, and exact: no message to another thread, no trip to Redis.
    const { allowed, retryAfterMs } = limiter.consume(`${request.headers['x-user']}`)
    if (!allowed) response.setHeader('retry-after', Math.ceil(retryAfterMs / 1000))
    response.writeHead(allowed ? 200 : 429).end()
  })
  server.listen(0, '127.0.0.1', () => parentPort?.postMessage((server.address() as AddressInfo).port))
}

// prints:
// 200: 10
// 429: 20

// A pool of threads (piscina) that call one third party, which bears 100 calls a second from all of
// them together.
import { isMainThread } from 'node:worker_threads'
import { Piscina, workerData } from 'piscina'
import { acquireSync, createLimiter, gcra } from 'sluice'
import { sharedStore } from 'sluice/shared'

const limits = gcra({ rate: '100/s', burst: 1 })

/**
 * A task of the pool. A pooled thread does one task at a time and may block: it stands still until
 * its turn has come.
 */
export default function callThem(): number {
  const { atMs, delayMs } = acquireSync(limiter, 'third party')
  return atMs + delayMs
}

// Piscina has a workerData of its own; that of node:worker_threads is something else in its
// threads.
const store = sharedStore(isMainThread ? { maxKeys: 10, limits } : workerData)
const limiter = createLimiter(limits, { name: 'calls', store })

if (isMainThread) {
  const pool = new Piscina({ filename: import.meta.url, minThreads: 3, maxThreads: 3, workerData: store.handle })
  const turnsMs = await Promise.all(Array.from({ length: 12 }, () => pool.run(undefined)))
  turnsMs.sort((a, b) => a - b)
  const gapsMs = turnsMs.slice(1).map((turnMs, k) => turnMs - turnsMs[k])
  console.log(`calls: ${turnsMs.length}`)
  console.log(`10 ms or more apart: ${gapsMs.filter((gapMs) => Math.round(gapMs * 1000) >= 10_000).length}`)
  await pool.close()
}

// prints:
// calls: 12
// 10 ms or more apart: 11

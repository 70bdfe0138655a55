/**
 * One limit for all processes of a machine, in a file: node:cluster, PM2, Electron, command lines.
 * There is no server, and the file outlives a restart.
 */
import cluster from 'node:cluster'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, tokenBucket } from 'sluice'
import { sqliteStore } from 'sluice/sqlite'

const WORKERS = 3

function work(path: string): void {
  const limiter = createLimiter(tokenBucket({ capacity: 10, refill: '1/h' }), { name: 'api', store: sqliteStore(path) })
  let allowed = 0
  for (let call = 0; call < 10; call++) if (limiter.tryAcquire('user:42')) allowed += 1
  process.send?.(allowed, () => process.disconnect())
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  const path = join(folder, 'limits.db')
  const workers = Array.from({ length: WORKERS }, () => cluster.fork({ LIMITS: path }))
  const ended = Promise.all(workers.map((worker) => once(worker, 'exit')))
  const counts = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0] as number))
  await ended
  console.log(`${WORKERS} processes asked 10 times each, and together got ${counts.reduce((sum, each) => sum + each, 0)}`)

  const later = createLimiter(tokenBucket({ capacity: 10, refill: '1/h' }), { name: 'api', store: sqliteStore(path) })
  console.log(`another one, after they have ended: ${later.tryAcquire('user:42')}`)
  rmSync(folder, { recursive: true })
}

if (process.env.LIMITS === undefined) await main()
else work(process.env.LIMITS)

// prints:
// 3 processes asked 10 times each, and together got 10
// another one, after they have ended: false

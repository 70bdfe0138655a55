// A process that is killed: takes for ever, and writes a byte for each permit that it was granted,
// before it takes the next.
import { writeSync } from 'node:fs'
import { createLimiter, fixedWindow } from '../../dist/index.js'
import { sqliteStore } from '../../dist/stores/sqlite/index.js'

const limiter = createLimiter(fixedWindow({ limit: 1_000_000, window: '366d' }), {
  name: 'victims',
  store: sqliteStore(process.argv[2], { busyTimeoutMs: 20_000 }),
})
while (limiter.tryAcquire('key')) writeSync(1, '.')

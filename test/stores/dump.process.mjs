// A process that goes on where the last one ended: restores what that left in a file, takes, and
// leaves what it has.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createLimiter, memoryStore, slidingLog, tokenBucket } from '../../dist/index.js'
import { dump, restore } from '../../dist/stores/index.js'

const [path] = process.argv.slice(2)
const store = memoryStore()
if (existsSync(path)) restore(store, readFileSync(path))
const limits = { bucket: tokenBucket({ capacity: 5, refill: '1/h' }), log: slidingLog({ limit: 5, window: '1h' }) }
const limiter = createLimiter(limits, { name: 'api', store })
const { remaining, atMs } = limiter.consume('user', 2)
console.log(JSON.stringify({ remaining, atMs, resetAfterMs: limiter.peek('user').parts.log.resetAfterMs }))
writeFileSync(path, dump(store))

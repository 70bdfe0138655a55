// A short-lived process, as a command line is: takes once and says what it was told.
import { createLimiter, tokenBucket } from '../../dist/index.js'
import { sqliteStore } from '../../dist/stores/sqlite/index.js'

const limiter = createLimiter(tokenBucket({ capacity: 3, refill: '1/h' }), { name: 'cli', store: sqliteStore(process.argv[2]) })
const { allowed, remaining, atMs } = limiter.consume('user')
console.log(JSON.stringify({ allowed, remaining, atMs }))

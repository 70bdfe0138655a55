/**
 * Limits, stores, limiters and errors of the copy for `import` with those of the copy for
 * `require`, and the other way round.
 */
import { createRequire } from 'node:module'
import * as imported from 'sluice'
import * as importedShared from 'sluice/shared'
import { story, storyOnBothStores } from './story.mjs'

const require = createRequire(import.meta.url)
const required = require('sluice')
const requiredShared = require('sluice/shared')

if (imported.createLimiter === required.createLimiter) throw new Error('there is one copy only')

/** What makes limits of one copy, and all else of the other. */
const mixed = (limits, rest) => ({ ...limits, createLimiter: rest.createLimiter })
const plain = storyOnBothStores(imported, importedShared).join('\n')
const tellings = {
  'limits imported': storyOnBothStores(mixed(imported, required), requiredShared),
  'limits required': storyOnBothStores(mixed(required, imported), importedShared),
  'stores imported': [
    ...story(required, imported.memoryStore()),
    ...story(required, importedShared.sharedStore({ maxKeys: 100, recordWords: 400 })),
  ],
  'stores required': [
    ...story(imported, required.memoryStore()),
    ...story(imported, requiredShared.sharedStore({ maxKeys: 100, recordWords: 400 })),
  ],
}
for (const [name, lines] of Object.entries(tellings)) console.log(name, lines.join('\n') === plain)

/** One state for limiters of both copies, and numbers that the other copy made. */
const store = imported.memoryStore()
const limit = (copy, burst) => copy.gcra({ rate: '1/h', burst })
const limiters = [imported, required].map((copy) => copy.createLimiter(limit(copy, 5), { name: 'api', store }))
console.log('one state', limiters[0].consume('k').remaining, limiters[1].consume('k').remaining)
limiters[1].update(limit(imported, 9))
console.log('updated', limiters[1].peek('k').remaining)

const failed = []
for (const [making, other] of [
  [imported, required],
  [required, imported],
]) {
  try {
    making.gcra({ rate: 'ten', burst: 1 })
  } catch (error) {
    failed.push(error instanceof other.SluiceError, error.code)
  }
  const limiter = making.createLimiter(limit(making, 1))
  limiter.tryAcquire('k')
  await limiter
    .acquire('k', { timeoutMs: 0 })
    .catch((error) => failed.push(error instanceof making.WaitError, error instanceof other.SluiceError, error.code))
}
failed.push(new Error('none') instanceof imported.SluiceError, null instanceof imported.SluiceError)
class Own extends imported.SluiceError {}
failed.push(
  new imported.SluiceError('CONFIG', 'not Own') instanceof Own,
  new Own('CONFIG', 'Own') instanceof Own,
  new Own('CONFIG', 'Own') instanceof required.SluiceError,
)
console.log('errors', failed.join(' '))

/** The middleware of one copy with a limiter of the other. */
const { rateLimit } = require('sluice/fetch')
const limited = rateLimit({ limiter: imported.createLimiter(limit(imported, 1)), key: () => 'k', maxWaitMs: 1 })(() => new Response('in'))
const request = () => new Request('http://localhost/')
console.log('middleware', (await limited(request())).status, (await limited(request())).status)

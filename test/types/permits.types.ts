/** The types of permits. Compiled, not run. */
import { concurrency, createLimiter, gcra, type HoldingLimiter, type Limiter, type Permit } from '../../src/index.ts'
import type { AsyncStore } from '../../src/stores/remote/async-store.ts'

declare const store: AsyncStore

const held = createLimiter(concurrency({ max: 2 }))
const mixed = createLimiter(
  { rate: gcra({ rate: '1/s', burst: 1 }), inflight: concurrency({ max: 2, lease: '30s' }) },
  { name: 'a', store },
)
const rate = createLimiter(gcra({ rate: '1/s', burst: 1 }))

held.consume('key') satisfies Permit
held.consume('key').token satisfies number
held.consume('key').signal satisfies AbortSignal
held.inflight() satisfies number
held.run('key', (permit) => permit.waitedMs) satisfies Promise<number>
held satisfies HoldingLimiter<ReturnType<typeof concurrency>>
mixed.consume('key', { rate: 1, inflight: 2 }) satisfies Promise<Permit<AsyncStore>>
mixed.run('key', async () => 'text') satisfies Promise<string>
void (async () => {
  const permit = await mixed.acquire('key', { timeoutMs: 5 })
  permit.release({ outcome: 'dropped' }) satisfies Promise<void>
  permit.parts.inflight.remaining satisfies number
  permit.waitedMs satisfies number
})

rate satisfies Limiter<ReturnType<typeof gcra>>
rate.tryAcquire('key') satisfies boolean
// @ts-expect-error what it takes, nobody could release
held.tryAcquire('key')
// @ts-expect-error what it takes, nobody could release
mixed.pace('key', [])
// @ts-expect-error a rate is not released
rate.consume('key').release()
// @ts-expect-error a rate has no run
rate.run('key', () => 1)
// @ts-expect-error a lease has a unit
concurrency({ max: 2, lease: 30_000 })
// @ts-expect-error no such outcome
held.consume('key').release({ outcome: 'fine' })

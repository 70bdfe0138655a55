/**
 * What permits promise on a store whose disk is slow, and then stands still: the same story for
 * each store that writes to a disk.
 */
import { expect } from 'vitest'
import { type AsyncStore, concurrency, createLimiter } from '../../src/index.ts'
import { until } from '../support/redis-servers.ts'
import type { SlowDisk } from '../support/slow-disk.ts'
import { holdsOf, mostHeld } from './swept.ts'

const MAX = 3
const LEASE_MS = 2_000
/** None of its syncs ends any more. */
const FOREVER_MS = 600_000

export interface Stage {
  /** A store as of a process of its own. */
  open(): AsyncStore
  /** The store's time, by a connection that nothing else waits on. */
  nowUs(): Promise<number>
  slow(ms: number): Promise<SlowDisk>
  /** How long each sync takes while the disk is slow, but does not stand still. */
  readonly slowMs: number
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Several processes, as the store sees them, whose callers take and release one after another. */
export async function permitsOnSlowDisk({ open, nowUs, slow, slowMs }: Stage): Promise<void> {
  const limiters = [0, 1, 2, 3].map(() =>
    createLimiter(concurrency({ max: MAX, lease: `${LEASE_MS}ms` }), {
      name: 'jobs',
      store: open(),
      onStoreError: 'deny',
      storeTimeoutMs: LEASE_MS / 2,
    }),
  )
  const [first] = limiters as [(typeof limiters)[number]]
  const notes: [token: number, us: number][] = []
  let isOver = false
  /** Notes when a permit was held: at a time of the store after which it still is. */
  const keep = async (permit: Awaited<ReturnType<typeof first.acquire>>, isDone: () => boolean) => {
    while (permit.held && !isDone()) {
      const us = await nowUs()
      if (permit.held) notes.push([permit.token, us])
      await pause(5)
    }
    const wasHeld = permit.held
    await permit.release()
    return wasHeld
  }
  const work = async (limiter: typeof first, k: number) => {
    for (let job = k; !isOver; job++) {
      let looks = 2 + (job % 3)
      await keep(await limiter.acquire('key'), () => looks-- === 0)
    }
  }
  const workers = limiters.flatMap((limiter, k) => [work(limiter, k), work(limiter, k + 1)])
  const more = async (count: number) => {
    const before = new Set(notes.map(([token]) => token)).size
    await until(async () => new Set(notes.map(([token]) => token)).size >= before + count)
  }
  await more(20)
  // Slow: everything takes longer. The policy grants nothing: it is all by the store.
  let disk = await slow(slowMs)
  await more(6)
  expect(disk.syncs).toBeGreaterThan(0)
  await disk.mend()
  await more(10)
  // Still: the policy answers, all leases run out, and those who wait go on waiting.
  const lasting = keep(await first.acquire('key'), () => isOver)
  disk = await slow(FOREVER_MS)
  const late = first.acquire('key')
  await until(async () => limiters.every((limiter) => limiter.health().state === 'down'))
  const stillMs = performance.now()
  expect(await first.consume('key')).toMatchObject({ allowed: false, degraded: true })
  await until(async () => performance.now() > stillMs + LEASE_MS)
  expect(disk.syncs).toBe(0)
  await disk.mend()
  // Nobody was told to begin again.
  const served = await late
  expect([served.degraded, served.held]).toEqual([false, true])
  await served.release()
  await more(20)
  isOver = true
  await Promise.all(workers)
  // Its holder was told that it was lost.
  expect(await lasting).toBe(false)
  const holds = holdsOf(notes)
  console.log(`${holds.size} permits on a slow disk, up to ${mostHeld(holds)} at once; bound ${MAX}`)
  expect(mostHeld(holds)).toBeLessThanOrEqual(MAX)
  // Takes that were not answered may have taken all the same: they are free after one lease.
  await until(async () => (await first.peek('key')).remaining === MAX)
  // Who waits is told of the end at once, whatever the disk does.
  const held = await Promise.all(Array.from({ length: MAX }, () => first.acquire('key')))
  // All places there are: none of them was given back in between.
  expect(new Set(held.map(({ token }) => token)).size).toBe(MAX)
  disk = await slow(FOREVER_MS)
  const waiting = limiters.map((limiter) => limiter.acquire('key').catch((error: { code: string }) => error.code))
  for (const limiter of limiters) limiter.close()
  expect(await Promise.all(waiting)).toEqual(limiters.map(() => 'CLOSED'))
  expect(disk.syncs).toBe(0)
  await disk.mend()
  for (const permit of held) await permit.release().catch(() => undefined)
}

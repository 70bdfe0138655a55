/**
 * A file on a disk that is slow: real processes whose syncs are held up. A call may stand still,
 * and every permit is given out once.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createLimiter, fixedWindow } from '../../src/index.ts'
import { mendAll, slowDisk, whyNoSlowDisk } from '../support/slow-disk.ts'
import { openSqlite } from '../support/stores.ts'

if (whyNoSlowDisk !== undefined) console.log(`The disk of SQLite is not slowed down: ${whyNoSlowDisk}`)

const SLOW_MS = 300

interface Called {
  readonly allowed?: boolean
  readonly code?: string
  readonly tookMs: number
}

let file: ReturnType<typeof openSqlite>
let children: ChildProcess[]
beforeEach(() => {
  file = openSqlite()
  children = []
})
afterEach(async () => {
  await mendAll()
  for (const child of children) child.kill('SIGKILL')
  file.close()
})

/** Processes that have made all they need before the disk is slow. */
async function started(count: number, task: object): Promise<ChildProcess[]> {
  for (let k = 0; k < count; k++) {
    const child = fork(new URL('./slow.process.mjs', import.meta.url), [JSON.stringify({ path: file.path, ...task })])
    children.push(child)
    await once(child, 'message')
  }
  return children
}

async function calls(child: ChildProcess, count: number): Promise<Called[]> {
  const answer = once(child, 'message')
  child.send(count)
  return (await answer)[0]
}

const pidsOf = (all: readonly ChildProcess[]) => all.map(({ pid }) => pid as number)
const allowedOf = (all: readonly Called[]) => all.filter(({ allowed }) => allowed).length

function used(limit: number): number {
  const limiter = createLimiter(fixedWindow({ limit, window: '366d', anchor: 'first' }), { name: 'api', store: file.store })
  return limit - limiter.peek('k').remaining
}

describe.skipIf(whyNoSlowDisk !== undefined)('a disk that takes 300 ms for a sync', () => {
  test('is waited for when the log is copied, not for each decision: two processes give out each permit once', async () => {
    const [limit, each] = [9_000, 5_000]
    const processes = await started(2, { limit, busyTimeoutMs: 30_000 })
    const disk = await slowDisk(pidsOf(processes), SLOW_MS)
    const called = (await Promise.all(processes.map((child) => calls(child, each)))).flat()
    expect(allowedOf(called)).toBe(limit)
    expect(called.filter(({ allowed }) => allowed === false).length).toBe(2 * each - limit)
    // The event loop stood still in a few of them.
    expect(Math.max(...called.map(({ tookMs }) => tookMs))).toBeGreaterThanOrEqual(SLOW_MS)
    console.log(`${called.length} decisions of two processes waited for ${disk.syncs} syncs`)
    expect(disk.syncs).toBeGreaterThan(0)
    expect(disk.syncs).toBeLessThan(limit / 50)
    await disk.mend()
    expect(used(limit)).toBe(limit)
  })

  test('is waited for by each decision that takes with synchronous = FULL, and by no other', async () => {
    const [limit, each] = [6, 5]
    const processes = await started(2, { limit, synchronous: 'FULL', busyTimeoutMs: 30_000 })
    const disk = await slowDisk(pidsOf(processes), SLOW_MS)
    const called = (await Promise.all(processes.map((child) => calls(child, each)))).flat()
    expect(allowedOf(called)).toBe(limit)
    expect(called.filter(({ allowed, tookMs }) => allowed && tookMs < SLOW_MS)).toEqual([])
    expect(disk.syncs).toBeGreaterThanOrEqual(limit)
    const { syncs } = disk
    const [refused] = await calls(processes[0] as ChildProcess, 1)
    expect([refused?.allowed, disk.syncs]).toEqual([false, syncs])
    await disk.mend()
    expect(used(limit)).toBe(limit)
  })

  test('longer than busyTimeoutMs is an error for others, who have charged nothing', async () => {
    const limit = 1_000
    const [holder] = (await started(1, { limit, synchronous: 'FULL', busyTimeoutMs: 30_000 })) as [ChildProcess]
    const other = (await started(1, { limit, busyTimeoutMs: 20 })).at(-1) as ChildProcess
    const disk = await slowDisk(pidsOf([holder]), SLOW_MS)
    const [others, held]: [Called[], Called[]] = [[], []]
    const isRefused = () => others.some(({ code }) => code !== undefined)
    /** It holds the file again and again, until the other has met it there. */
    const holding = async () => {
      while (!isRefused()) held.push(...(await calls(holder, 1)))
    }
    const asking = async () => {
      while (!isRefused()) others.push(...(await calls(other, 1)))
    }
    await Promise.all([holding(), asking()])
    const called = [...held, ...others]
    expect(others.map(({ code }) => code).filter((code) => code !== undefined)).toEqual(['STORE'])
    await disk.mend()
    expect(used(limit)).toBe(allowedOf(called))
  })
})

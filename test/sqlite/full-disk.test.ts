/** A disk that is really full: a small one in memory, which the test mounts. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createLimiter, fixedWindow, SluiceError, slidingLog } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'

const KB = 1_024
const DISK = 1_024 * KB
/** What takes all but a little of it. */
const BALLAST = 700 * KB

/**
 * The folder of a disk of so many bytes, or undefined: to mount one takes root, or sudo without a
 * password, on Linux.
 */
function mountedDisk(bytes: number): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-disk-'))
  const owner = `uid=${process.getuid?.()},gid=${process.getgid?.()}`
  if (asRoot('mount', '-t', 'tmpfs', '-o', `size=${bytes},mode=700,${owner}`, 'sluice-disk', folder)) return folder
  rmdirSync(folder)
  return undefined
}

function asRoot(...command: string[]): boolean {
  const [program, ...args] = process.getuid?.() === 0 ? command : ['sudo', '-n', ...command]
  return spawnSync(program as string, args, { stdio: 'ignore' }).status === 0
}

const disk = process.platform === 'linux' ? mountedDisk(DISK) : undefined
if (disk === undefined) {
  console.log('No disk is filled: mounting a small one takes Linux, and root or sudo. test/sqlite/store.test.ts fills a file instead')
}
afterAll(() => {
  if (disk === undefined) return
  asRoot('umount', disk)
  rmdirSync(disk)
})

const limits = { log: slidingLog({ limit: 500, window: '1h' }), daily: fixedWindow({ limit: 500, window: '1d', anchor: 'first' }) }

describe.skipIf(disk === undefined)('a disk that is full', () => {
  test('is an error that charges nothing; what is refused or asked is answered; and all goes on when there is room', () => {
    const path = join(disk as string, 'limits.db')
    const ballast = join(disk as string, 'ballast')
    let store = sqliteStore(path)
    const limiter = createLimiter(limits, { name: 'api', store })
    limiter.consume('held', 500)
    expect(limiter.consume('held').allowed).toBe(false)
    writeFileSync(ballast, new Uint8Array(BALLAST))
    const taken: string[] = []
    const error = errorOf(() => {
      for (let k = 0; k < 10_000; k++) {
        limiter.consume(`key:${k}`)
        taken.push(`key:${k}`)
      }
    })
    expect(error).toMatchObject({ code: 'STORE', message: expect.stringContaining('the disk is full') })
    expect(taken.length).toBeGreaterThan(20)
    // What fails it fails every time, and leaves nothing behind.
    for (let k = 0; k < 20; k++) expect(errorOf(() => limiter.consume(`more:${k}`)).code).toBe('STORE')
    expect(store.size).toBe(2 * (taken.length + 1))
    expect(limiter.consume('held').allowed).toBe(false)
    expect(limiter.peek('more:0').remaining).toBe(500)
    for (const key of taken) expect(limiter.peek(key).remaining).toBe(499)
    rmSync(ballast)
    expect(limiter.consume(`key:${taken.length}`).remaining).toBe(499)
    store.close()
    store = sqliteStore(path)
    const again = createLimiter(limits, { name: 'api', store })
    for (const key of taken) expect(again.consume(key).remaining).toBe(498)
    expect(store.size).toBe(2 * (taken.length + 2))
    store.close()
  })

  test('is an error when a store is made on it, and the next one is sound', () => {
    const path = join(disk as string, 'late.db')
    const ballast = join(disk as string, 'ballast')
    expect(() => writeFileSync(ballast, new Uint8Array(2 * DISK))).toThrow('ENOSPC')
    const error = errorOf(() => sqliteStore(path))
    expect(error).toMatchObject({ code: 'STORE', message: expect.stringMatching(/late\.db.*(full|disk)/) })
    rmSync(ballast)
    const store = sqliteStore(path)
    expect(createLimiter(limits, { name: 'api', store }).consume('u').remaining).toBe(499)
    store.close()
  })
})

function errorOf(call: () => unknown): SluiceError {
  try {
    call()
  } catch (error) {
    if (error instanceof SluiceError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

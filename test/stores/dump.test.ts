/** A memory store that is dumped and restored goes on as if nothing had happened. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ABOUTS } from '../../src/algorithms/list.ts'
import { concurrency, createLimiter, fixedWindow, gcra, type Limit, memoryStore, slidingLog } from '../../src/index.ts'
import { dump, restore } from '../../src/stores/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { Random } from '../model/random.ts'

const START_MS = 1_700_000_000_000

function again(bytes: Uint8Array, options = {}) {
  const store = memoryStore(options)
  restore(store, bytes)
  return store
}

/** What is held until it is released has other verbs: its places are below. */
const LIMITS = ABOUTS.filter(({ type }) => type !== 'concurrency')

describe.each(LIMITS)('$type', ({ type, sample }) => {
  test('restored in the middle, answers every call as the store that was never dumped, 25 lives', () => {
    let admitted = 0
    for (let seed = 1; seed <= 25; seed++) {
      const random = new Random(seed)
      const clock = fakeClock(START_MS)
      const limits = [3, 40].map((capacity) => sample(capacity, { permits: 3, per: '3s' }) as Limit)
      const open = (store = memoryStore()) => ({
        store,
        limiter: createLimiter({ [type]: limits[0] as Limit, other: limits[1] as Limit }, { name: 'api', store, clock }),
      })
      const [kept, dumped] = [open(), open()]
      let restored = dumped
      for (let k = 0; k < 60; k++) {
        if (random.chance(0.2)) {
          restored = open(again(dump(restored.store)))
          // Numbers may change between two lives, too.
          if (random.chance(0.3)) limits.reverse()
          for (const { limiter } of [kept, restored]) limiter.update({ [type]: limits[0] as Limit, other: limits[1] as Limit })
        }
        const [key, cost] = [`key:${random.whole(1, 3)}`, random.whole(0, 3)]
        const verb = random.pick(['consume', 'charge', 'peek', 'reserve'] as const)
        const answers = [kept, restored].map(({ limiter }) => JSON.stringify(limiter[verb](key, cost)))
        expect(answers[1], `seed ${seed}, call ${k}, ${verb}`).toBe(answers[0])
        if (verb === 'consume' && answers[0]?.includes('"allowed":true')) admitted += 1
        clock.advanceMs(random.magnitude(1, 3_000) / 2)
      }
    }
    expect(admitted).toBeGreaterThan(100)
  })
})

test('places are kept until their leases run out; those without a lease are left out: their holders end with the process', () => {
  const clock = fakeClock(START_MS)
  const leased = concurrency({ max: 1, lease: '30s' })
  const endless = concurrency({ max: 1 })
  const open = (store = memoryStore()) => ({
    store,
    leased: createLimiter(leased, { name: 'leased', store, clock }),
    endless: createLimiter(endless, { name: 'endless', store, clock }),
  })
  const before = open()
  for (const limiter of [before.leased, before.endless]) expect(limiter.consume('job').allowed).toBe(true)
  const after = open(again(dump(before.store)))
  before.leased.close()
  expect(after.endless.peek('job').allowed).toBe(true)
  expect(after.leased.peek('job')).toMatchObject({ allowed: false, retryAfterMs: 30_000 })
  clock.advanceMs(30_000)
  expect(after.leased.peek('job').allowed).toBe(true)
})

test('idle keys are left out, and limiters without a name', () => {
  const clock = fakeClock(START_MS)
  const store = memoryStore()
  const limit = gcra({ rate: '1/s', burst: 1 })
  const limiter = createLimiter(limit, { name: 'api', store, clock })
  const unnamed = createLimiter(limit, { store, clock })
  limiter.consume('idle')
  clock.advanceMs(900)
  limiter.consume('busy')
  unnamed.consume('busy')
  clock.advanceMs(100)
  expect(again(dump(store)).size).toBe(1)
  expect(again(dump(memoryStore())).size).toBe(0)
})

test('the keys of a limiter that is never opened leave when they are idle', () => {
  const clock = fakeClock(START_MS)
  const store = memoryStore()
  createLimiter(gcra({ rate: '1/s', burst: 1 }), { name: 'old', store, clock }).consume('key')
  const next = again(dump(store))
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { name: 'new', store: next, clock })
  clock.advanceMs(5_000)
  for (let k = 0; k < 5; k++) limiter.consume(`key:${k}`)
  expect(next.sizeOf('old', 'default')).toBe(0)
})

describe('bytes that cannot be restored', () => {
  const store = memoryStore()
  const clock = fakeClock(START_MS)
  const limiter = createLimiter(
    { log: slidingLog({ limit: 9, window: '1h' }), day: fixedWindow({ limit: 9, window: '1d' }) },
    { name: 'api', store, clock },
  )
  for (const key of ['a', 'ключ', 'c']) limiter.consume(key)
  const bytes = dump(store)
  const withByte = (at: number, byte: number) => Uint8Array.from(bytes, (each, k) => (k === at ? byte : each))

  test.each([
    ['text', new TextEncoder().encode('hello'), 'they do not begin as those of dump do'],
    ['nothing', new Uint8Array(0), 'they do not begin'],
    ['no bytes at all', 'sluice' as never, 'they are no Uint8Array'],
    ['another version', withByte(6, 9), 'they have the version 9, and this version of Sluice knows 1'],
    ['one state fewer than there are', withByte(10, 5), 'stand behind the last state'],
    ['one state more than there are', withByte(10, 7), 'they are cut off'],
  ])('%s', (_what, wrong, message) => {
    const into = memoryStore()
    expect(() => restore(into, wrong)).toThrow(expect.objectContaining({ code: 'STORE', message: expect.stringContaining(message) }))
    expect(into.size).toBe(0)
  })

  test('that are cut off anywhere, and nothing of them is restored', () => {
    for (let size = 0; size < bytes.length; size++) {
      const into = memoryStore()
      expect(() => restore(into, bytes.subarray(0, size)), `${size} bytes`).toThrow(expect.objectContaining({ code: 'STORE' }))
      expect(into.size).toBe(0)
    }
  })

  test('into a store that holds keys, or has no room for them', () => {
    expect(() => restore(store, bytes)).toThrow(
      expect.objectContaining({ code: 'CONFIG', message: expect.stringContaining('holds nothing') }),
    )
    expect(() => again(bytes, { maxKeys: 2 })).toThrow(
      expect.objectContaining({ code: 'CONFIG', message: expect.stringContaining('larger maxKeys') }),
    )
  })
})

test('a process goes on where the last one ended', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-dump-'))
  const script = new URL('./dump.process.mjs', import.meta.url).pathname
  const lives = [1, 2, 3].map(() => JSON.parse(execFileSync(process.execPath, [script, join(folder, 'limits')], { encoding: 'utf8' })))
  rmSync(folder, { recursive: true })
  expect(lives.map(({ remaining }) => remaining)).toEqual([3, 1, 1])
  // By the time of all of them: the first entry leaves the log an hour after it was made, whichever
  // process looks.
  const [first, , last] = lives
  expect(last.atMs).toBeGreaterThan(first.atMs)
})

/** The system clock and the turn clock. */
import { spawnSync } from 'node:child_process'
import { expect, test, vi } from 'vitest'
import { systemClock } from './clock.ts'
import { turnClock } from './turn-clock.ts'

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

test('the system clock reads whole microseconds since 1970 and never goes back', () => {
  let before = systemClock.nowUs()
  expect(Math.abs(before / 1000 - Date.now())).toBeLessThan(60_000)
  for (let k = 0; k < 10_000; k++) {
    const now = systemClock.nowUs()
    expect(Number.isInteger(now)).toBe(true)
    expect(now).toBeGreaterThanOrEqual(before)
    before = now
  }
})

test('the system clock is the one of performance.now(), also where that is the only one', async () => {
  vi.stubGlobal('process', undefined)
  vi.resetModules()
  const { systemClock: plain } = await import('./clock.ts')
  vi.unstubAllGlobals()
  expect(plain.nowUs).not.toBe(systemClock.nowUs)
  // Readings one after the other: nothing but a slow machine lies between them.
  const between = Array.from({ length: 100 }, () => systemClock.nowUs() - plain.nowUs())
  expect(Math.max(...between)).toBeGreaterThan(-1000)
  expect(Math.max(...between)).toBeLessThan(1000)
})

test('the turn clock stands still within a turn and moves with the next', async () => {
  let us = 5
  let readings = 0
  const source = {
    nowUs() {
      readings += 1
      return us
    },
    setTimer: systemClock.setTimer,
  }
  const clock = turnClock(source)
  expect([clock.nowUs(), clock.nowUs()]).toEqual([5, 5])
  us = 7
  await Promise.resolve()
  expect(clock.nowUs()).toBe(5)
  await nextTurn()
  expect([clock.nowUs(), clock.nowUs()]).toEqual([7, 7])
  expect(readings).toBe(2)
})

test('neither clock keeps a process alive', () => {
  const code = `import { turnClock, systemClock } from './dist/index.js'; turnClock().nowUs(); systemClock.nowUs()`
  const { status, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { timeout: 20_000 })
  expect({ status, signal }).toEqual({ status: 0, signal: null })
})

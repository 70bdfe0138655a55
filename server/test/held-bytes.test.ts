/** The counter of bytes that the service holds for clients. */
import { describe, expect, test, vi } from 'vitest'
import { HeldBytes, MAX_HELD_BYTES } from '../src/held-bytes.ts'

describe('bytes that are held for clients', () => {
  test('beyond the bound the oldest are ended, as many as are needed', () => {
    const held = new HeldBytes(100)
    const ended: string[] = []
    const enter = (name: string, bytes: number) => {
      const holding = held.enter(1_000, (why) => ended.push(`${name} ${why}`))
      holding.grow(bytes)
      return holding
    }
    const first = enter('first', 40)
    enter('second', 40)
    enter('third', 20)
    expect([held.bytes, ended]).toEqual([100, []])
    first.leave()
    first.grow(1_000)
    expect(held.bytes).toBe(60)
    enter('fourth', 90)
    expect([held.bytes, ended]).toEqual([90, ['second full', 'third full']])
    enter('fifth', 101)
    expect([held.bytes, ended.slice(2)]).toEqual([0, ['fourth full', 'fifth full']])
  })

  test('and a client that takes too long, once', () => {
    vi.useFakeTimers()
    const held = new HeldBytes()
    const ended: string[] = []
    const late = held.enter(1_000, (why) => ended.push(why))
    held.enter(1_000, (why) => ended.push(why)).leave()
    late.grow(MAX_HELD_BYTES)
    vi.advanceTimersByTime(1_000)
    late.grow(1)
    late.end('full')
    expect([held.bytes, ended, vi.getTimerCount()]).toEqual([0, ['late'], 0])
    vi.useRealTimers()
  })
})

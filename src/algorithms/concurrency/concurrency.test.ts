import { describe, expect, test } from 'vitest'
import { HeldKey } from '../../../test/support/held-key.ts'
import { RULE } from '../algorithm.ts'
import { concurrency } from './concurrency.ts'

const SECOND = 1_000_000

describe('two at once, with a lease of 30 s', () => {
  const limit = concurrency({ max: 2, lease: '30s' })

  test('waits until enough leases have run out, if nobody releases or renews', () => {
    const key = new HeldKey(limit)
    key.take(0)
    key.take(SECOND)
    expect([1, 2].map((cost) => key.waitUs(2 * SECOND, cost))).toEqual([28 * SECOND, 29 * SECOND])
    expect([key.remaining(2 * SECOND), key.resetUs(2 * SECOND)]).toEqual([0, 29 * SECOND])
  })

  test('is limited until the very microsecond', () => {
    const key = new HeldKey(limit)
    key.take(SECOND, 2)
    expect([key.take(31 * SECOND - 1), key.take(31 * SECOND)]).toEqual([1, 0])
  })

  test('shows who holds what until when', () => {
    const key = new HeldKey(limit)
    key.take(SECOND)
    key.take(SECOND)
    expect(key.state).toEqual({
      atUs: SECOND,
      lastToken: SECOND + 1,
      1000000: 1,
      '1000000 until': 31 * SECOND,
      1000001: 1,
      '1000001 until': 31 * SECOND,
    })
  })
})

test('goes on for ever in the room of its rule, with a guard behind it', () => {
  const rule = concurrency({ max: 3, lease: '1s' })[RULE]
  const { algorithm } = rule
  const s = new Float64Array(rule.words + 1)
  s[rule.words] = -7
  const tokens: number[] = []
  for (let k = 0; k < 5_000; k++) {
    const nowUs = SECOND + k * 10
    if (algorithm.untilUs(rule, s, 0, nowUs, 2) === 0) tokens.push(nowUs + algorithm.charge(rule, rule, s, 0, nowUs, 1))
    else expect(algorithm.giveBack(rule, s, 0, nowUs, 1, tokens.splice(k % tokens.length, 1)[0] as number, undefined)).toBe(1)
    expect(algorithm.neededWords?.(s, 0)).toBeLessThanOrEqual(rule.words)
  }
  expect(s.at(-1)).toBe(-7)
})

test('JSON of a limit has what was written, and no lease where there is none', () => {
  expect(JSON.stringify([concurrency({ max: 2 }), concurrency({ max: 2, lease: '30s' })])).toBe(
    '[{"type":"concurrency","max":2},{"type":"concurrency","max":2,"lease":"30s"}]',
  )
})

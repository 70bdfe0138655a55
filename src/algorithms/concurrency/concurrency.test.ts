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

describe('the work of a release, in words of the state that are read and written', () => {
  const orders = {
    'the oldest first': (tokens: number[]) => tokens,
    'the newest first': (tokens: number[]) => tokens.reverse(),
    'in any order': (tokens: number[]) => tokens.sort((a, b) => mixed(a) - mixed(b)),
  }
  const mixed = (token: number) => (token * 2_654_435_761) % 4_294_967_296

  /** Of so many permits of one key, on average: all are released, one after the other. */
  function wordsPerRelease(limit: ReturnType<typeof concurrency>, permits: number, order: (tokens: number[]) => number[]): number {
    const rule = limit[RULE]
    const { charge, giveBack, used } = rule.algorithm
    const s = new Float64Array(rule.words)
    const tokens = order(Array.from({ length: permits }, (_, k) => SECOND + k + charge(rule, rule, s, 0, SECOND + k, 1)))
    let words = 0
    const counted = new Proxy(s, {
      get(target, at) {
        words += 1
        return Reflect.get(target, at)
      },
      set(target, at, value) {
        words += 1
        return Reflect.set(target, at, value)
      },
    })
    const nowUs = SECOND + permits
    let given = 0
    for (const token of tokens) given += giveBack(rule, counted, 0, nowUs, 1, token, undefined)
    expect(given).toBe(permits)
    expect(used(rule, s, 0, nowUs)).toBe(0)
    return words / permits
  }

  test.each(Object.entries(orders))('does not grow with the number of permits, but for the search by halves: %s', (_, order) => {
    const limit = concurrency({ max: 16_000 })
    const [few, many] = [1_000, 16_000].map((permits) => wordsPerRelease(limit, permits, order)) as [number, number]
    // 16 times as many are four halves more, of a word each.
    expect(many - few).toBeLessThan(5)
    expect(many).toBeLessThan(60)
  })

  test.each(Object.entries(orders).filter(([name]) => name !== 'the newest first'))('with a lease neither: %s', (_, order) => {
    const limit = concurrency({ max: 1_000, lease: '30s' })
    const [few, many] = [100, 1_000].map((permits) => wordsPerRelease(limit, permits, order)) as [number, number]
    expect(many - few).toBeLessThan(5)
  })
})

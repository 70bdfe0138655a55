import { describe, expect, test } from 'vitest'
import { Random } from '../../../test/model/random.ts'
import { HeldKey } from '../../../test/support/held-key.ts'
import { type Algorithm, RULE, type Rule } from '../algorithm.ts'
import { concurrency } from './concurrency.ts'

const SECOND = 1_000_000
/** From here on a count is that of a caller in line. */
const IN_LINE = 2 ** 40

/** Words of others look like a lease of many permits, also without an end, or a caller in line. */
const A_LEASE = [7, 2 ** 39, 90 * SECOND]
const OTHERS = [[0, 0, 0], A_LEASE, [7, 2 ** 39, Number.POSITIVE_INFINITY], [7, IN_LINE + 1, 90 * SECOND]]

type Entry = [token: number, count: number, expiresUs: number]

/**
 * The words of a state by themselves, between words that belong to others: `check` says whether
 * those are as they were.
 */
class Words {
  static readonly BEFORE = 9
  static readonly BEHIND = 3
  readonly rule: Rule & { readonly places: number }
  readonly s: Float64Array
  readonly #algorithm: Required<Algorithm>

  /** What stands in the words of others: as three words of an entry, again and again. */
  readonly #others: readonly number[]

  constructor(max: number, lease?: '10s', others: readonly number[] = A_LEASE) {
    this.#others = others
    this.rule = concurrency(lease === undefined ? { max } : { max, lease })[RULE] as Words['rule']
    this.#algorithm = this.rule.algorithm as Required<Algorithm>
    this.s = Float64Array.from({ length: Words.BEFORE + this.rule.words + Words.BEHIND }, (_, k) => others[k % 3] as number)
    this.s.fill(0, Words.BEFORE, -Words.BEHIND)
  }

  charge(nowUs: number, cost = 1): number {
    return nowUs + this.#algorithm.charge(this.rule, this.rule, this.s, Words.BEFORE, nowUs, cost)
  }

  give(nowUs: number, token: number, cost = 1): number {
    return this.#algorithm.giveBack(this.rule, this.s, Words.BEFORE, nowUs, cost, token, undefined)
  }

  renew(nowUs: number, token: number, cost = 1): number {
    return this.#algorithm.renew(this.rule, this.rule, this.s, Words.BEFORE, nowUs, Float64Array.of(token), cost)
  }

  stand(nowUs: number, place = 0): number {
    return this.#algorithm.stand(this.rule, this.rule, this.s, Words.BEFORE, nowUs, place)
  }

  repair(nowUs: number): boolean {
    return this.#algorithm.repair(this.rule, this.s, Words.BEFORE, nowUs)
  }

  waitUs(nowUs: number, room: number, place?: number): number {
    return this.#algorithm.untilUs(this.rule, this.s, Words.BEFORE, nowUs, room, place)
  }

  resetUs(nowUs: number): number {
    return this.#algorithm.resetUs(this.rule, this.s, Words.BEFORE, nowUs)
  }

  used(nowUs: number): number {
    return this.#algorithm.used(this.rule, this.s, Words.BEFORE, nowUs)
  }

  has(token: number): boolean {
    return this.#algorithm.hasToken(this.s, Words.BEFORE, token)
  }

  get neededWords(): number {
    return this.#algorithm.neededWords(this.s, Words.BEFORE)
  }

  get fields() {
    return this.#algorithm.fields(this.rule, this.s, Words.BEFORE)
  }

  /** The words before the entries: held, waiting, and when the first and the last of them end. */
  get head() {
    const [held, waiting, soonestUs, latestUs] = this.s.subarray(Words.BEFORE + 5, Words.BEFORE + 9)
    return { held, waiting, soonestUs, latestUs }
  }

  /** Those that count nothing included. */
  get entries(): Entry[] {
    const at = Words.BEFORE + 9
    return Array.from({ length: this.s[Words.BEFORE + 4] as number }, (_, k) => [...this.s.subarray(at + 3 * k, at + 3 * k + 3)] as Entry)
  }

  /** Whether the words before the entries say what the entries do, and all behind them is empty. */
  checkAll(): void {
    const { entries } = this
    const live = entries.filter(([, count]) => count > 0)
    const leases = live.filter(([, count]) => count < IN_LINE)
    const ends = live.map(([, , expiresUs]) => expiresUs)
    const { held, waiting, soonestUs, latestUs } = this.head
    const total = this.s[Words.BEFORE + 3]
    expect({ total, held, waiting, latestUs }).toEqual({
      total: leases.reduce((sum, [, count]) => sum + count, 0),
      held: leases.length,
      waiting: live.length - leases.length,
      latestUs: Math.max(0, ...ends),
    })
    expect(soonestUs).toBeLessThanOrEqual(Math.min(...ends))
    expect(soonestUs === 0).toBe(live.length === 0)
    expect(entries.at(-1)?.[1]).not.toBe(0)
    // Of those with one token, because a lost one came back, only the first counts.
    const isInOrder = ([token, count]: Entry, before = 0) => token > before || (token === before && count === 0)
    expect(entries.every((entry, k) => isInOrder(entry, entries[k - 1]?.[0]))).toBe(true)
    expect(this.s.subarray(Words.BEFORE + 9 + 3 * entries.length, -Words.BEHIND).every((word) => word === 0)).toBe(true)
    this.check()
  }

  check(): void {
    const others = [...this.s.subarray(0, Words.BEFORE), ...this.s.subarray(-Words.BEHIND)]
    expect(others).toEqual(Array.from({ length: Words.BEFORE + Words.BEHIND }, (_, k) => this.#others[k % 3]))
  }
}

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

describe('the bounds of a limit', () => {
  test.each([
    [concurrency({ max: 2, lease: '10s' }), 1_000, 68],
    [concurrency({ max: 5_000, lease: '10s' }), 1_000, 2_064],
    [concurrency({ max: 2 }), 100_000, 68],
    [concurrency({ max: 1_000_000 }), 100_000, 200_064],
  ])('%o has so many leases, and room for so many entries', (limit, mostLeases, places) => {
    expect(limit[RULE]).toMatchObject({ mostLeases, places })
  })

  test('a lease is 100 ms at least', () => {
    expect(concurrency({ max: 1, lease: '100ms' })[RULE].windowUs).toBe(100_000)
    expect(() => concurrency({ max: 1, lease: '99.999ms' })).toThrow('at least 100 ms')
  })

  test('a limit without a lease does not have the name of one', () => {
    expect(Object.keys(concurrency({ max: 1 }))).toEqual(['type', 'max'])
  })

  test('a state asks for room for one more entry, a few at a time', () => {
    const key = new Words(20, '10s')
    const needed = Array.from({ length: 9 }, (_, k) => {
      const words = key.neededWords
      key.charge(SECOND + k)
      return words
    })
    expect(needed).toEqual([12, 15, 18, 21, 33, 33, 33, 33, 45])
  })
})

describe('a clock that stepped back by more than a lease', () => {
  test('is repaired, and one that stepped back by a lease is not', () => {
    const key = new Words(2, '10s')
    key.charge(60 * SECOND)
    expect([key.repair(60 * SECOND), key.repair(50 * SECOND)]).toEqual([false, false])
    expect(key.fields.atUs).toBe(60 * SECOND)
    expect(key.repair(50 * SECOND - 1)).toBe(true)
    expect(key.fields).toEqual({
      atUs: 50 * SECOND - 1,
      lastToken: 60 * SECOND,
      60000000: 1,
      '60000000 until': 60 * SECOND - 1,
    })
    expect(key.head).toEqual({ held: 1, waiting: 0, soonestUs: 60 * SECOND - 1, latestUs: 60 * SECOND - 1 })
  })

  test('leaves a key that holds nothing without times', () => {
    const key = new Words(2, '10s')
    key.give(60 * SECOND, key.charge(60 * SECOND))
    expect(key.repair(SECOND)).toBe(true)
    expect(key.head).toEqual({ held: 0, waiting: 0, soonestUs: 0, latestUs: 0 })
  })

  test('drops what had run out by then, and is without times if nothing is left', () => {
    const key = new Words(2, '10s')
    key.charge(100 * SECOND)
    key.give(112 * SECOND, key.charge(105 * SECOND))
    expect(key.head).toMatchObject({ held: 1 })
    expect(key.repair(SECOND)).toBe(true)
    expect(key.head).toEqual({ held: 0, waiting: 0, soonestUs: 0, latestUs: 0 })
  })

  test('touches nothing behind the last entry', () => {
    const key = new Words(1, '10s')
    for (let k = 0; k < key.rule.places; k++) key.charge(60 * SECOND)
    expect(Object.keys(key.fields)).toHaveLength(2 + 2 * key.rule.places)
    key.repair(SECOND)
    key.check()
  })
})

describe('tokens', () => {
  test('of nobody release nothing, also where time has just begun', () => {
    const key = new Words(9, '10s')
    expect(key.resetUs(0)).toBe(0)
    expect(key.charge(0, 5)).toBe(1)
    expect(key.give(0, -1)).toBe(-1)
    expect(key.used(0)).toBe(5)
    key.give(0, 1, 5)
    expect(key.resetUs(0)).toBe(2)
  })

  test('of a lease are not given up as a place in line is, for a cost of 0', () => {
    const key = new Words(2, '10s')
    const token = key.charge(SECOND)
    expect([key.give(SECOND, token, 0), key.used(SECOND)]).toEqual([-1, 1])
  })

  test('are known while something is held under them', () => {
    const key = new Words(3, '10s')
    const [first, second] = [key.charge(SECOND), key.charge(SECOND)]
    expect([key.has(first), key.has(second), key.has(second + 1)]).toEqual([true, true, false])
    key.give(SECOND, first)
    expect([key.has(first), key.has(second)]).toEqual([false, true])
  })

  test('of a state that was lost are counted again, and those of this state are not', () => {
    const key = new Words(3, '10s')
    expect(key.renew(SECOND, SECOND + 5)).toBe(1)
    expect(key.head).toMatchObject({ held: 1 })
    expect(key.give(SECOND, SECOND + 5)).toBe(1)
    // Released in this state, but it cannot know that it was not given out twice.
    expect(key.renew(SECOND, SECOND + 5)).toBe(1)
    const own = key.charge(SECOND)
    expect(own).toBe(SECOND + 6)
    key.give(SECOND, own)
    expect(key.renew(SECOND, own)).toBe(0)
  })

  test('that come back stand among the others in their order, and nothing behind them is touched', () => {
    const key = new Words(1, '10s')
    for (let k = 1; k < key.rule.places; k++) key.charge(60 * SECOND)
    expect(key.renew(60 * SECOND, 59 * SECOND)).toBe(1)
    const tokens = Object.keys(key.fields).filter((name) => /^\d+$/.test(name))
    expect(tokens).toHaveLength(key.rule.places)
    expect(key.has(59 * SECOND)).toBe(true)
    key.check()
  })
})

describe('the line', () => {
  test('holds 64, and the next is told that it is full', () => {
    const key = new Words(2, '10s')
    key.charge(SECOND, 2)
    for (let k = 0; k < 64; k++) expect(key.stand(SECOND)).toBe(SECOND + 1 + k)
    const before = key.s.slice()
    expect(key.stand(SECOND)).toBe(-1)
    expect(key.s).toEqual(before)
    expect(key.head).toMatchObject({ held: 1, waiting: 64 })
  })

  test('is full where leases and callers take all room of the state', () => {
    const key = new Words(1, '10s')
    for (let k = 0; k < key.rule.places - 8; k++) key.charge(SECOND)
    for (let k = 0; k < 8; k++) expect(key.stand(SECOND)).toBeGreaterThan(0)
    expect(key.stand(SECOND)).toBe(-1)
    key.check()
  })

  test('holds up a caller without a place, whatever the number of the first place', () => {
    const key = new Words(1, '10s')
    expect(key.stand(1)).toBe(1)
    expect([key.waitUs(1, 0), key.waitUs(1, 0, 1)]).toEqual([SECOND, 0])
  })
})

test('a lease is gone at the very microsecond at which it ends', () => {
  const key = new Words(3, '10s')
  key.charge(SECOND)
  key.charge(5 * SECOND)
  key.charge(11 * SECOND)
  expect(key.head).toMatchObject({ held: 2 })
})

test('a state of leases has room for one caller in line less', () => {
  const key = new Words(1, '10s')
  for (let k = 1; k < key.rule.places; k++) key.charge(SECOND)
  expect([key.stand(SECOND) > 0, key.stand(SECOND)]).toEqual([true, -1])
})

test('a key that became idle begins anew, and touches nothing before its words', () => {
  const key = new Words(2, '10s')
  key.charge(SECOND)
  expect(key.charge(20 * SECOND)).toBe(20 * SECOND)
  expect(key.renew(20 * SECOND, SECOND)).toBe(1)
  key.check()
})

describe('the words of a state', () => {
  test.each([
    [1, '10s'],
    [3, '10s'],
    [40, '10s'],
    [3, undefined],
  ] as const)('say what its entries do after every step: max %o, lease %o', (max, lease) => {
    const random = new Random(max)
    const key = new Words(max, lease)
    const tokens: number[] = []
    const token = () => random.pick([...tokens.slice(-2 * max - 9), 1])
    let nowUs = 100 * SECOND
    for (let k = 0; k < 4_000; k++) {
      nowUs += random.pick([0, 0, 1, SECOND / 20, SECOND, random.chance(0.03) ? 11 * SECOND : 1, random.chance(0.02) ? -12 * SECOND : 0])
      key.repair(nowUs)
      const room = max - random.whole(1, max)
      const step = random.pick(['charge', 'charge', 'give', 'give', 'give up', 'renew', 'stand'])
      if (step === 'charge' && key.waitUs(nowUs, room) === 0) tokens.push(key.charge(nowUs, max - room))
      if (step === 'give') key.give(nowUs, token(), random.whole(1, 2))
      if (step === 'give up') key.give(nowUs, token(), 0)
      if (step === 'renew') key.renew(nowUs, token(), random.whole(0, 1))
      if (step === 'stand') tokens.push(key.stand(nowUs, token()))
      key.checkAll()
    }
  })

  test('have removed entries until a quarter of all counts nothing', () => {
    const key = new Words(20, '10s')
    const tokens = Array.from({ length: 8 }, () => key.charge(SECOND))
    const lengthAfter = (release: number) => {
      key.give(SECOND, tokens[release] as number)
      key.charge(SECOND)
      return [key.entries.length, key.head.held]
    }
    // Eight entries, of which seven count: one more goes behind them, and from then on nine.
    expect([0, 1, 2, 3].map(lengthAfter)).toEqual([
      [9, 8],
      [10, 8],
      [11, 8],
      [12, 8],
    ])
    // Four of twelve count nothing when the next comes.
    key.charge(SECOND)
    expect([key.entries.length, key.head.held]).toEqual([9, 9])
  })

  test('have them no longer at exactly a quarter, and still at less', () => {
    const lengths = [1, 2].map((released) => {
      const key = new Words(20, '10s')
      const tokens = Array.from({ length: 8 }, () => key.charge(SECOND))
      for (const token of tokens.slice(0, released)) key.give(SECOND, token)
      key.charge(SECOND)
      return key.entries.length
    })
    expect(lengths).toEqual([9, 7])
  })

  test('make room where all that the rule has is taken', () => {
    const key = new Words(1, '10s')
    const tokens = Array.from({ length: key.rule.places }, () => key.charge(SECOND))
    key.give(SECOND, tokens[0] as number)
    key.charge(SECOND)
    expect(key.entries).toHaveLength(key.rule.places)
    key.checkAll()
  })
})

describe.each(OTHERS)('a thousand leases, beside %o, %o and %o', (...others) => {
  test('are all that there may be, whatever they hold, until the first has run out', () => {
    const key = new Words(5_000, '10s', others)
    for (let k = 0; k < 1_000; k++) key.charge(SECOND + k)
    expect(key.waitUs(2 * SECOND, 4_999)).toBe(9 * SECOND)
    expect(key.waitUs(11 * SECOND - 1, 4_999)).toBe(1)
    expect(key.waitUs(11 * SECOND, 4_999)).toBe(0)
  })

  test('are one too many for one more only', () => {
    const key = new Words(5_000, '10s', others)
    for (let k = 0; k < 999; k++) key.charge(SECOND)
    expect(key.waitUs(SECOND, 4_999)).toBe(0)
    key.charge(SECOND)
    expect(key.waitUs(SECOND, 4_999)).toBe(10 * SECOND)
  })

  test('and one more wait for the second to run out', () => {
    const key = new Words(5_000, '10s', others)
    for (let k = 0; k < 1_001; k++) key.charge(SECOND + k)
    expect(key.waitUs(11 * SECOND, 4_999)).toBe(1)
  })

  test('wait for a lease, not for one that was released or for a place in line', () => {
    const key = new Words(5_000, '10s', others)
    const released = key.charge(SECOND)
    for (let k = 0; k < 1_000; k++) key.charge(2 * SECOND)
    key.give(2 * SECOND, released)
    expect(key.waitUs(2 * SECOND, 4_999, key.stand(2 * SECOND))).toBe(10 * SECOND)
  })
})

describe.each(OTHERS)('beside words of others, %o, %o and %o,', (...others) => {
  test('a wait is that of the state', () => {
    const key = new Words(20, '10s', others)
    key.charge(SECOND, 4)
    key.charge(2 * SECOND, 6)
    expect([10, 8, 6, 4, 0].map((room) => key.waitUs(2 * SECOND, room))).toEqual([0, 9 * SECOND, 9 * SECOND, 10 * SECOND, 10 * SECOND])
    const place = key.stand(2 * SECOND)
    expect([key.waitUs(2 * SECOND, 10), key.waitUs(2 * SECOND, 10, place)]).toEqual([SECOND, 0])
  })

  test('a state that takes all of its room answers by its own entries', () => {
    const key = new Words(1, '10s', others)
    const { places } = key.rule
    for (let k = 0; k < places; k++) key.charge(100 * SECOND + k)
    expect([key.used(109 * SECOND), key.used(110 * SECOND), key.used(120 * SECOND)]).toEqual([places, places - 1, 0])
    expect(key.waitUs(100 * SECOND, places - 2)).toBe(10 * SECOND + 1)
    expect(key.waitUs(100 * SECOND, 0)).toBe(10 * SECOND + places - 1)
    expect(key.stand(109 * SECOND)).toBe(-1)
    expect(key.charge(200 * SECOND)).toBe(200 * SECOND)
    key.checkAll()
  })

  test('the leases of such a state run out at their own times', () => {
    const key = new Words(1, '10s', others)
    const { places } = key.rule
    for (let k = 0; k < places; k++) key.charge(85 * SECOND + k)
    expect(key.waitUs(85 * SECOND, places - 8)).toBe(10 * SECOND + 7)
    const all = new Words(5_000, '10s', others)
    for (let k = 0; k < all.rule.places; k++) all.charge(85 * SECOND)
    expect(all.waitUs(85 * SECOND, 4_999)).toBe(10 * SECOND)
  })

  test('such a state has room again when one of its entries has gone', () => {
    const leases = new Words(1, '10s', others)
    for (let k = 0; k < leases.rule.places; k++) leases.charge(SECOND + k)
    expect([leases.stand(11 * SECOND - 1), leases.stand(11 * SECOND)]).toEqual([-1, 11 * SECOND])
    const both = new Words(1, '10s', others)
    const first = both.charge(SECOND)
    for (let k = 9; k < both.rule.places; k++) both.charge(SECOND)
    for (let k = 0; k < 8; k++) expect(both.stand(SECOND)).toBeGreaterThan(0)
    expect(both.stand(SECOND)).toBe(-1)
    both.give(SECOND, first)
    expect(both.stand(SECOND)).toBeGreaterThan(0)
    both.checkAll()
  })

  test('the line is full by its own callers', () => {
    const key = new Words(2, '10s', others)
    key.charge(SECOND, 2)
    for (let k = 0; k < 64; k++) expect(key.stand(SECOND)).toBeGreaterThan(0)
    expect(key.stand(SECOND)).toBe(-1)
  })
})

test('waits are 0 at the beginning of time, too', () => {
  const key = new Words(2, '10s')
  key.charge(0)
  expect([key.waitUs(0, 1), key.waitUs(0, 0)]).toEqual([0, 10 * SECOND])
  key.stand(0)
  expect([key.waitUs(0, 2), key.waitUs(0, 1)]).toEqual([0, SECOND])
})

import { describe, expect, test } from 'vitest'
import { HeldKey } from '../../../test/support/held-key.ts'
import { RULE, type Rule } from '../algorithm.ts'
import { type SlidingLogOptions, slidingLog, slidingLogAlgorithm } from './sliding-log.ts'

const MS = 1_000
const SECOND = 1_000_000

describe('the number line of 3 a second', () => {
  const spread = () => {
    const key = new HeldKey(slidingLog({ limit: 3, window: '1s' }))
    for (const ms of [0, 400, 800]) key.take(ms * MS)
    return key
  }

  test('waits until as many admissions as are asked for have left the window', () => {
    const key = spread()
    expect([1, 2, 3].map((cost) => key.waitUs(900 * MS, cost))).toEqual([100 * MS, 500 * MS, 900 * MS])
    expect([key.remaining(900 * MS), key.resetUs(900 * MS)]).toEqual([0, 900 * MS])
  })

  test('admits again when an admission is exactly one window old, and not a microsecond before', () => {
    const key = spread()
    expect([key.take(SECOND - 1), key.take(SECOND), key.take(SECOND)]).toEqual([1, 0, 400 * MS])
  })

  test('keeps one entry for each microsecond, and drops what has left with the next charge', () => {
    const key = spread()
    key.take(1_400 * MS, 2)
    expect(key.state).toEqual({ atUs: 1400000, 800000: 1, 1400000: 2 })
  })

  test('leaves the same state after one take of 2 as after two takes of 1', () => {
    const limit = slidingLog({ limit: 5, window: '1s' })
    const [once, twice] = [new HeldKey(limit), new HeldKey(limit)]
    once.take(40, 2)
    twice.take(40)
    twice.take(40)
    expect(once.state).toEqual(twice.state)
  })

  test('goes on for ever in the room of its limit', () => {
    const rule = slidingLog({ limit: 3, window: '1s' })[RULE]
    const { algorithm } = rule
    // Room for all entries and one guard.
    const s = new Float64Array(rule.words + 1)
    s[rule.words] = -7
    for (let k = 0; k < 1_000; k++) {
      const nowUs = Math.ceil((k * SECOND) / 3)
      expect(algorithm.untilUs(rule, s, 0, nowUs, 2)).toBe(0)
      algorithm.charge(rule, rule, s, 0, nowUs, 1)
      expect(algorithm.untilUs(rule, s, 0, nowUs, 0)).toBeGreaterThan(0)
    }
    expect(s.at(-1)).toBe(-7)
  })
})

test('an idle log asks for no room behind its head, a full one for no more than its limit', () => {
  const rule = slidingLog({ limit: 2, window: '1s' })[RULE]
  const s = new Float64Array(rule.words)
  const needed = () => rule.algorithm.neededWords?.(s, 0)
  const sizes = [needed()]
  for (const nowUs of [1, 2]) {
    rule.algorithm.charge(rule, rule, s, 0, nowUs, 1)
    sizes.push(needed())
  }
  expect(sizes).toEqual([10, 12, 14])
})

describe('a clock that steps back', () => {
  const full = () => {
    const key = new HeldKey(slidingLog({ limit: 2, window: '1s' }))
    key.take(9_500 * MS)
    key.take(10 * SECOND)
    return key
  }

  test('by at most one window finds time standing still: used stays used', () => {
    const key = full()
    expect([key.repair(9 * SECOND), key.waitUs(9 * SECOND), key.remaining(9 * SECOND)]).toEqual([false, 1_500 * MS, 0])
  })

  test('by more counts what was in use as admitted now, and that is written', () => {
    const key = full()
    const nowUs = 9 * SECOND - 1
    expect([key.repair(nowUs), key.waitUs(nowUs), key.repair(nowUs)]).toEqual([true, SECOND, false])
    expect(key.state).toEqual({ atUs: 8999999, 8999999: 2 })
  })

  test('and what is taken then is counted beside it, whatever has left before', () => {
    const key = new HeldKey(slidingLog({ limit: 5, window: '1s' }))
    key.take(0, 3)
    for (const ms of [900, 1_500]) key.take(ms * MS)
    expect([key.repair(200 * MS), key.take(300 * MS), key.state]).toEqual([true, 0, { atUs: 300000, 200000: 2, 300000: 1 }])
  })

  test('and takes meanwhile are entered at the time that stands still', () => {
    const key = new HeldKey(slidingLog({ limit: 2, window: '1s' }))
    key.take(10 * SECOND)
    expect([key.take(9_500 * MS), key.state]).toEqual([0, { atUs: 10000000, 10000000: 2 }])
  })

  test('leaves an empty key idle only once its time no longer stands still', () => {
    const key = full()
    key.give(10 * SECOND, 2)
    expect([key.resetUs(10 * SECOND), key.resetUs(9_400 * MS)]).toEqual([0, 600 * MS])
    expect([key.repair(8 * SECOND), key.resetUs(8 * SECOND)]).toEqual([true, 0])
  })
})

describe('other numbers', () => {
  const limit = (permits: number, window: SlidingLogOptions['window']) => slidingLog({ limit: permits, window })
  const spread = () => {
    const key = new HeldKey(limit(3, '1s'))
    for (const ms of [0, 400, 800]) key.take(ms * MS)
    return key
  }

  test('of the caller are held against what counts by the window of the state, which stays as it is', () => {
    const key = spread()
    const before = key.state
    key.under(limit(2, '1min'))
    expect([key.take(1_100 * MS), key.remaining(1_100 * MS), key.resetUs(1_100 * MS)]).toEqual([300 * MS, 0, 700 * MS])
    expect([key.state, key.numbers]).toEqual([before, '3 1000000'])
    key.under(limit(10, '1min'))
    expect(key.remaining(1_100 * MS)).toBe(8)
  })

  test('keep the times of the entries with a charge, and drop what is dead under either', () => {
    const key = spread()
    key.under(limit(10, '1min')).take(1_100 * MS)
    expect([key.state, key.numbers]).toEqual([{ atUs: 1_100_000, 400000: 1, 800000: 1, 1100000: 1 }, '10 60000000'])
    key.under(limit(10, '400ms')).take(1_200 * MS)
    expect(key.state).toEqual({ atUs: 1_200_000, 1100000: 1, 1200000: 1 })
  })

  test('of a smaller log keep every entry with its time, also more than that has room for', () => {
    const key = new HeldKey(limit(30, '1s'))
    for (let us = 0; us < 60; us++) key.book(us)
    // Two seconds of 25 are 50, and 45 are in use.
    const small = limit(25, '1s')
    key.under(small).book(SECOND + 14, 5)
    const { atUs, ...entries } = key.state
    expect(entries).toEqual(Object.fromEntries([...Array.from({ length: 45 }, (_, k) => [15 + k, 1]), [SECOND + 14, 5]]))
    expect([key.numbers, key.remaining(SECOND + 14), key.waitUs(SECOND + 14)]).toEqual(['25 1000000', 0, 26])
    const { algorithm, words } = small[RULE]
    const places = key.s[4] as number
    expect(10 + 2 * places).toBeGreaterThan(words)
    // Stores are told of the places that it has, not of those that its limit has.
    expect([algorithm.neededWords?.(key.s, 0), algorithm.heldWords?.(key.s, 0)]).toEqual([10 + 2 * places, 10 + 2 * places])
  })

  test('of a smaller log have a ring that shrinks once most of it has left', () => {
    const key = new HeldKey(limit(60, '1s'))
    for (let us = 0; us < 100; us++) key.book(us)
    const before = key.s[4]
    key.under(limit(10, '1s')).take(SECOND + 95)
    expect([before, key.s[4], key.state]).toEqual([116, 5, { atUs: SECOND + 95, 96: 1, 97: 1, 98: 1, 99: 1, [SECOND + 95]: 1 }])
  })

  test('of a larger log take no more room than the entries need', () => {
    const key = new HeldKey(limit(10, '1s'))
    key.take(1)
    key.take(2)
    key.under(limit(40, '1s')).take(3)
    expect(key.s[4]).toBe(2)
  })

  test('in turn hold nothing for longer than a window', () => {
    const key = new HeldKey(limit(3, '1s'))
    key.take(0, 3)
    for (let ms = 100; ms < 1000; ms += 100) {
      key.under(limit(3 + ((ms / 100) % 2), '1s'))
      expect(key.waitUs(ms * MS, 2)).toBe((1000 - ms) * MS)
    }
    expect(key.waitUs(SECOND, 2)).toBe(0)
  })
})

describe('giving back', () => {
  const spread = () => {
    const key = new HeldKey(slidingLog({ limit: 6, window: '1s' }))
    for (const ms of [0, 400, 800]) key.take(ms * MS, 2)
    return key
  }

  test('without a time gives the newest first', () => {
    const key = spread()
    expect([key.give(900 * MS, 3), key.state]).toEqual([true, { atUs: 900000, 0: 2, 400000: 1 }])
    expect([key.give(900 * MS, 99), key.remaining(900 * MS), key.give(900 * MS, 1)]).toEqual([true, 6, false])
  })

  test('with a time gives to the entry of exactly that microsecond, and no more than it holds', () => {
    const key = spread()
    expect([key.give(900 * MS, 1, 400_001), key.give(900 * MS, 99, 400_000)]).toEqual([false, true])
    expect(key.state).toEqual({ atUs: 900000, 0: 2, 800000: 2 })
  })

  test('of an entry that has left the window does nothing', () => {
    const key = spread()
    expect([key.give(SECOND, 1, 0), key.remaining(SECOND)]).toEqual([false, 2])
  })
})

test('giving back what was taken then finds every entry of a long log', () => {
  const times = [0, 2, 4, 10, 14, 22, 26, 34]
  for (const ofUs of times) {
    const key = new HeldKey(slidingLog({ limit: 10, window: '1s' }))
    for (const nowUs of times) key.take(nowUs)
    expect([key.give(40, 1, ofUs + 1), key.give(40, 1, ofUs)]).toEqual([false, true])
    const { atUs, ...entries } = key.state
    expect(Object.keys(entries).map(Number)).toEqual(times.filter((time) => time !== ofUs))
  }
})

test('a ring that goes round counts what comes after all but its oldest entry was given back', () => {
  const key = new HeldKey(slidingLog({ limit: 8, window: '1s' }))
  for (const us of [0, 10, 20, 30]) key.take(us)
  // The first two have left: the last two of these stand before the oldest in the ring.
  key.take(SECOND + 10, 2)
  key.take(SECOND + 11)
  expect([key.give(SECOND + 12, 4), key.state]).toEqual([true, { atUs: SECOND + 12, 20: 1 }])
  key.take(SECOND + 12)
  expect([key.remaining(SECOND + 19), key.remaining(SECOND + 20)]).toEqual([6, 7])
})

test('a log that is given less room than its limit moves its entries to the front, not beyond its end', () => {
  const rule = slidingLog({ limit: 4, window: '1s' })[RULE]
  // A ring of two.
  const s = new Float64Array(3 + 10 + 2 * 2)
  for (const nowUs of [0, 1, 2, SECOND, SECOND + 1]) rule.algorithm.charge(rule, rule, s, 3, nowUs, 1)
  expect(rule.algorithm.fields(rule, s, 3)).toEqual({ atUs: 1_000_001, 2: 1, 1000000: 1, 1000001: 1 })
})

test('a log that is given less room drops entries that count nothing before it writes beyond that', () => {
  const rule = slidingLog({ limit: 4, window: '1s' })[RULE]
  const { charge, giveBack, fields } = rule.algorithm
  // A ring of two and a half.
  const s = new Float64Array(3 + 10 + 2 * 2 + 1)
  for (const nowUs of [0, 1, 2]) charge(rule, rule, s, 3, nowUs, 1)
  giveBack(rule, s, 3, 2, 1, 0, undefined)
  charge(rule, rule, s, 3, 3, 1)
  expect([fields(rule, s, 3), s.at(-1)]).toEqual([{ atUs: 3, 1: 1, 2: 1, 3: 1 }, 0])
})

test('a ring that is full keeps its places when entries that count nothing are dropped', () => {
  const key = new HeldKey(slidingLog({ limit: 4, window: '1s' }))
  for (let us = 0; us < 8; us++) key.book(us)
  for (let us = 0; us < 6; us++) key.give(8, 1, us)
  for (const us of [8, 9, 10, 11]) key.book(us)
  expect([key.s[1], key.s[4], key.state]).toEqual([6, 10, { atUs: 11, 6: 1, 7: 1, 8: 1, 9: 1, 10: 1, 11: 1 }])
})

test('a log asks for the room that it has, and where that is used up for one more entry and a quarter', () => {
  const rule = slidingLog({ limit: 4, window: '1s' })[RULE]
  const key = new HeldKey(rule)
  const roomFor = () => ((rule.algorithm.neededWords?.(key.s, 0) as number) - 10) / 2
  const rooms = [0, 1, 2, 3, SECOND + 1, SECOND + 2].map((nowUs) => {
    const room = roomFor()
    key.take(nowUs)
    return room
  })
  expect([...rooms, roomFor()]).toEqual([0, 1, 2, 3, 5, 3, 3])
  key.take(SECOND + 4, 1)
  expect([roomFor(), key.take(3 * SECOND), roomFor()]).toEqual([3, 0, 3])
  const larger = new HeldKey(slidingLog({ limit: 8, window: '1s' }))
  for (const us of [0, 1, 2, 3, 4]) larger.take(us)
  expect([larger.s[1], larger.s[4], rule.algorithm.neededWords?.(larger.s, 0)]).toEqual([5, 5, 10 + 2 * 5])
})

describe('what stores are told of a state', () => {
  const ruleOf = (limit: number) => slidingLog({ limit, window: '1s' })[RULE]

  test('is the room of twice the limit and a quarter more', () => {
    const { ruleOf: of } = ruleOf(1).algorithm
    expect([0, 1, 3, 4, 8, 100].map((limit) => (of([limit, SECOND]).words - 10) / 2)).toEqual([2, 2, 7, 10, 20, 250])
  })

  test('is that one whose places lie outside of its ring is damaged', () => {
    const rule = ruleOf(8)
    const isDamaged = (first: number, held: number, room: number) => {
      const s = new Float64Array(rule.words)
      s.set([first, held, held, 0, room])
      return rule.algorithm.neededWords?.(s, 0) === Number.POSITIVE_INFINITY
    }
    expect([isDamaged(4, 1, 5), isDamaged(0, 1, 0), isDamaged(0, 6, 5), isDamaged(7, 0, 5)]).toEqual([false, false, false, false])
    expect([isDamaged(5, 1, 5), isDamaged(1, 1, 1), isDamaged(0, 7, 5), isDamaged(0, 2, 0)]).toEqual([true, true, true, true])
    expect([isDamaged(0, 1, 300_000), isDamaged(0, 1, 300_001)]).toEqual([false, true])
  })

  test('may be damaged: a total that the entries do not have is waited for until the newest has left', () => {
    const rule = ruleOf(20)
    const s = new Float64Array(rule.words)
    for (const us of [1, 2, 3]) rule.algorithm.charge(rule, rule, s, 0, us, 1)
    s[2] = 10
    expect(rule.algorithm.untilUs(rule, s, 0, 4, 2)).toBe(3 + SECOND - 4)
    for (const us of [1, 2, 3]) rule.algorithm.giveBack(rule, s, 0, 4, 1, us, undefined)
    expect([s[1], rule.algorithm.resetUs(rule, s, 0, 4)]).toEqual([0, 0])
  })

  test('stays the same from version to version: sums begin anew with every segment of 256 places', () => {
    const rule = ruleOf(1_000)
    const s = new Float64Array(rule.words)
    for (let us = 1; us <= 601; us++) rule.algorithm.charge(rule, rule, s, 0, us, 1)
    expect([0, 254, 255, 256, 511, 512].map((place) => s[10 + 2 * place])).toEqual([1, 255, 256, 1, 256, 1])
  })

  test('is less once most of it has left, if it had more than 64 places', () => {
    const placesAfter = (limit: number, left: number, places = 65) => {
      const rule = ruleOf(limit)
      const { charge, giveBack } = rule.algorithm
      const s = new Float64Array(10 + 2 * places)
      for (let us = 1; us <= limit; us++) charge(rule, rule, s, 0, us, 1)
      // Entries that count nothing keep their places.
      for (let us = 1; us <= 12; us++) giveBack(rule, s, 0, limit, 1, us, undefined)
      for (let us = limit + 1; us <= limit + 12; us++) charge(rule, rule, s, 0, us, 1)
      const before = s[4]
      charge(rule, rule, s, 0, SECOND + limit + 12 - left, 1)
      return [before, s[4]]
    }
    expect(placesAfter(53, 1, 64)).toEqual([64, 64])
    expect([placesAfter(56, 18, 68), placesAfter(56, 19, 68)]).toEqual([
      [68, 22],
      [68, 68],
    ])
    expect([placesAfter(51, 1, 63), placesAfter(53, 1), placesAfter(53, 16), placesAfter(53, 17), placesAfter(53, 18)]).toEqual([
      [63, 63],
      [65, 1],
      [65, 20],
      [65, 21],
      [65, 65],
    ])
  })
})

/** Mulberry32. */
function randomOf(seed: number): (most: number) => number {
  let state = seed
  return (most) => {
    state = (state + 0x6d_2b_79_f5) | 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * (most + 1))
  }
}

/** The definition: a list of entries, which count by the window that they were written under. */
class List {
  entries: { timeUs: number; count: number }[] = []
  rule: Rule

  constructor(rule: Rule) {
    this.rule = rule
  }

  live(nowUs: number, { windowUs }: Rule = this.rule) {
    return this.entries.filter(({ timeUs, count }) => timeUs > nowUs - windowUs && count > 0)
  }

  used(nowUs: number): number {
    return this.live(nowUs).reduce((sum, { count }) => sum + count, 0)
  }

  untilUs(nowUs: number, room: number): number {
    let surplus = this.used(nowUs) - room
    if (surplus <= 0) return 0
    for (const { timeUs, count } of this.live(nowUs)) {
      surplus -= count
      if (surplus <= 0) return timeUs + this.rule.windowUs - nowUs
    }
    return Number.NaN
  }

  charge(nowUs: number, count: number, to: Rule): void {
    this.entries = this.live(nowUs)
    this.rule = to
    this.entries = this.live(nowUs)
    const newest = this.entries.at(-1)
    if (newest?.timeUs === nowUs) newest.count += count
    else this.entries.push({ timeUs: nowUs, count })
  }

  /** Answers how many that were, -1 for none. */
  give(nowUs: number, cost: number, ofUs: number): number {
    const live = this.live(nowUs)
    let left = cost
    for (const entry of ofUs < 0 ? live.reverse() : live.filter(({ timeUs }) => timeUs === ofUs)) {
      const given = Math.min(left, entry.count)
      entry.count -= given
      left -= given
    }
    return left === cost ? -1 : cost - left
  }

  fields(nowUs: number): Record<string, number> {
    return Object.fromEntries(this.live(nowUs).map(({ timeUs, count }) => [`${timeUs}`, count]))
  }
}

test.each([3, 40, 300, 1_500])(
  'a log of up to %i, full, sparse, in debt, given back and under other numbers, is what its list says',
  (limit) => {
    const random = randomOf(limit)
    const rules = [
      [limit, 100_000],
      [Math.ceil(0.8 * limit), 100_000],
      [Math.ceil(1.2 * limit), 60_000],
    ].map((figures) => slidingLogAlgorithm.ruleOf(figures)) as [Rule, Rule, Rule]
    const { used, untilUs, charge, giveBack, fields, neededWords } = slidingLogAlgorithm
    const s = new Float64Array(rules[2].words + 1).fill(-7)
    s.fill(0, 0, rules[2].words)
    const list = new List(rules[0])
    const taken: number[] = []
    const seen = { most: 0, debt: 0, larger: 0 }
    let nowUs = 1_000_000
    for (let step = 0; step < 12_000; step++) {
      // Bursts that fill it, then two paces at which many have left, then gaps.
      const pace = [20, Math.ceil(120_000 / limit), Math.ceil(200_000 / limit), 5_000][Math.floor(step / 2_000) % 4] as number
      nowUs += random(2 * limit) === 0 ? random(100_000) : random(pace)
      const to = rules[random(20) === 0 ? random(2) : rules.indexOf(list.rule)] as Rule
      const own = list.rule
      const room = random(limit)
      const asked = [used(own, s, 0, nowUs), untilUs(own, s, 0, nowUs, room)] as const
      expect([step, ...asked]).toEqual([step, list.used(nowUs), list.untilUs(nowUs, room)])
      const most = random(99) === 0 ? 1 + random(Math.min(limit, 30)) : 1
      if (random(9) < 7) {
        const cost = Math.min(most, to.mostUsed - asked[0])
        if (cost <= 0) continue
        charge(own, to, s, 0, nowUs, cost)
        list.charge(nowUs, cost, to)
        taken.push(nowUs)
      } else {
        const ofUs = random(3) === 0 ? -1 : (taken[Math.max(0, taken.length - 1 - random(limit))] ?? -1)
        expect([step, giveBack(own, s, 0, nowUs, most, ofUs, undefined)]).toEqual([step, list.give(nowUs, most, ofUs)])
      }
      seen.most = Math.max(seen.most, list.live(nowUs).length)
      seen.debt += list.used(nowUs) > list.rule.capacity ? 1 : 0
      seen.larger += (neededWords?.(s, 0) as number) > list.rule.words ? 1 : 0
      if (step % 8 > 0) continue
      const { atUs, ...entries } = fields(list.rule, s, 0)
      expect([step, Object.fromEntries(Object.entries(entries).filter(([us]) => Number(us) > nowUs - list.rule.windowUs))]).toEqual([
        step,
        list.fields(nowUs),
      ])
    }
    expect(s.at(-1)).toBe(-7)
    expect(seen.most).toBeGreaterThan(limit / 2)
    // The largest never gets so full in so few steps.
    if (limit < 1_000) expect(Math.min(seen.debt, seen.larger)).toBeGreaterThan(50)
  },
)

describe('the factory', () => {
  test('returns frozen plain data that JSON carries, and makes the same limit again from it', () => {
    const limit = slidingLog({ limit: 5, window: '1min' })
    const json = JSON.parse(JSON.stringify(limit))
    expect(Object.isFrozen(limit)).toBe(true)
    expect(json).toEqual({ type: 'slidingLog', limit: 5, window: '1min' })
    expect(slidingLog(json)[RULE]).toEqual(limit[RULE])
    expect(limit[RULE].numbers).toBe('5 60000000')
  })

  test('keeps up to 100,000 admissions', () => {
    expect(slidingLog({ limit: 100_000, window: '1s' })[RULE].capacity).toBe(100_000)
  })

  const bad: [unknown, string][] = [
    [undefined, 'slidingLog undefined must be an object with limit, window'],
    [{ limit: -1, window: '1s' }, 'slidingLog limit -1 must be a whole number from 0 to 100,000, because every admission is kept'],
    [{ limit: 100_001, window: '1s' }, 'slidingLog limit 100001 must be a whole number from 0 to 100,000, because every admission is kept'],
    [{ limit: 2.5, window: '1s' }, 'slidingLog limit 2.5 must be a whole number from 0 to 100,000, because every admission is kept'],
    [{ limit: 1, window: '0s' }, 'slidingLog window "0s" must be from 1 microsecond to 366 days'],
    [
      { limit: 1, window: '1 week' },
      "slidingLog window \"1 week\" must be a number with a unit (us, ms, s, min, h, d), such as '500ms' or '10s': did you mean '7d'?",
    ],
    [{ limit: 1, window: '1s', slots: 2 }, 'slidingLog "slots" is not an option: it has limit, window'],
  ]
  test.each(bad)('refuses %j', (options, message) => {
    expect(() => slidingLog(options as SlidingLogOptions)).toThrow(expect.objectContaining({ code: 'CONFIG', message }))
  })
})

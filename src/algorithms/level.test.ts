/**
 * The level where its rounding shows: several permits in a microsecond, and the longest debt. Times
 * in microseconds.
 */
import { describe, expect, test } from 'vitest'
import { Random } from '../../test/model/random.ts'
import { RULE } from './algorithm.ts'
import { gcra } from './all.ts'
import type { LevelRule } from './level.ts'

const START_US = 1_000
const LONGEST_US = 37_000 * 86_400_000_000

const ruleAt = (permits: number, periodUs: number) => gcra({ rate: { permits, per: `${periodUs}us` }, burst: 30 })[RULE] as LevelRule

/** What is in use, in `periodUs` of a permit: had everybody known the costs, and by a state. */
function levelOf({ permits, periodUs }: LevelRule, charges: readonly (readonly [atUs: number, cost: number])[], nowUs: number): number {
  let level = 0
  let atUs = START_US
  for (const [chargedUs, cost] of [...charges, [nowUs, 0] as const]) {
    level = Math.max(0, level - (chargedUs - atUs) * permits) + cost * periodUs
    atUs = chargedUs
  }
  return level
}

function levelIn({ permits }: LevelRule, [tatUs, part]: Float64Array, nowUs: number): number {
  return Math.max(0, ((tatUs as number) - nowUs) * permits + (part as number))
}

describe('settled', () => {
  /**
   * Of more than one permit in a microsecond nobody can tell which part of a microsecond was
   * charged later: that much may be a gift.
   */
  test.each([
    [7, 8, 0],
    [3, 5, 0],
    [1, 1, 0],
    [1, 4, 0],
    [3, 2, 2],
    [10, 1, 9],
  ])('at %i permits every %i microseconds is no gift, and exact while nobody came after it', (permits, periodUs, most) => {
    const rule = ruleAt(permits, periodUs)
    const { charge, giveRest, resetUs } = rule.algorithm
    const random = new Random(permits)
    let gift = 0
    for (let k = 0; k < 3_000; k++) {
      const s = new Float64Array(rule.words)
      const [before, estimate, after] = [random.whole(0, 2), random.whole(1, 30), random.pick([0, 1, random.whole(1, 30)])]
      const actual = random.whole(0, estimate - 1)
      if (before > 0) charge(rule, rule, s, 0, START_US, before)
      const chargedUs = START_US + random.whole(0, 2)
      charge(rule, rule, s, 0, chargedUs, estimate)
      const drainsInUs = resetUs(rule, s, 0, chargedUs)
      const left = { rule, words: Float64Array.of(chargedUs + drainsInUs) }
      const afterUs = chargedUs + random.whole(0, drainsInUs)
      if (after > 0) charge(rule, rule, s, 0, afterUs, after)
      const nowUs = afterUs + random.whole(0, 3)
      const inUse = levelIn(rule, s, nowUs)
      const given = giveRest?.(rule, s, 0, nowUs, estimate - actual, left) as number
      const charges = [[START_US, before] as const, [chargedUs, actual] as const, [afterUs, after] as const]
      const missing = levelOf(rule, charges, nowUs) - levelIn(rule, s, nowUs)
      const what = JSON.stringify({ charges, estimate, nowUs })
      if (after === 0) expect(missing, what).toBe(0)
      gift = Math.max(gift, missing)
      const freed = Math.floor((inUse - levelIn(rule, s, nowUs)) / periodUs)
      if (levelIn(rule, s, nowUs) > 0) expect(Math.max(0, given), what).toBe(freed)
    }
    expect(gift).toBeLessThanOrEqual(most)
  })

  test('under other numbers gives back whole permits that would still be in use at its own pace', () => {
    const [quick, slow] = [ruleAt(10, 1), ruleAt(1, 1)]
    const { charge, giveRest, resetUs } = quick.algorithm
    const s = new Float64Array(quick.words)
    charge(quick, quick, s, 0, START_US, 25)
    const left = { rule: quick, words: Float64Array.of(START_US + resetUs(quick, s, 0, START_US)) }
    charge(quick, slow, s, 0, START_US, 1)
    expect([giveRest?.(slow, s, 0, START_US + 1, 25, left), resetUs(slow, s, 0, START_US + 1)]).toEqual([10, 15])
    expect([giveRest?.(slow, s, 0, START_US + 2, 25, left), resetUs(slow, s, 0, START_US + 2)]).toEqual([-1, 14])
  })
})

test('a debt of 37,000 days to the microsecond is kept exactly, and no microsecond beyond', () => {
  const rule = gcra({ rate: '3/s', burst: 2 })[RULE] as LevelRule
  const { charge, fields } = rule.algorithm
  const after = (us: number) => {
    const s = new Float64Array(rule.words)
    charge(rule, rule, s, 0, START_US, (3 * LONGEST_US) / 1_000_000)
    charge(rule, rule, s, 0, START_US + us, 1)
    return fields(rule, s, 0)
  }
  // A permit takes 333,333 and a third microseconds.
  expect(after(333_333)).toMatchObject({ tatUs: START_US + 333_333 + LONGEST_US, part: 1 })
  expect(after(333_332)).toMatchObject({ tatUs: START_US + 333_332 + LONGEST_US, part: 0 })
})

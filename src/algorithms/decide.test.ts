import { expect, test } from 'vitest'
import { type Limit, RULE } from './algorithm.ts'
import { fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket } from './all.ts'
import { type Cell, decide, emptyVerdict, type Op } from './decide.ts'

const LIMITS: [string, Limit][] = [
  ['gcra', gcra({ burst: 5, rate: '1/s' })],
  ['tokenBucket', tokenBucket({ capacity: 5, refill: '1/s' })],
  ['leakyBucket', leakyBucket({ capacity: 5, leak: '1/s' })],
  ['fixedWindow', fixedWindow({ limit: 5, window: '1s' })],
  ['slidingWindow', slidingWindow({ limit: 5, window: '1s' })],
  ['slidingLog', slidingLog({ limit: 5, window: '1s' })],
]

/** A cell of a key that has taken 3. */
function heldCell(limit: Limit): Cell {
  const rule = limit[RULE]
  const cell: Cell = {
    rule,
    cost: 3,
    ticket: undefined,
    s: new Float64Array(20),
    i: 0,
    own: rule,
    isHeld: false,
    changed: false,
    verdict: emptyVerdict(),
  }
  decide('take', [cell], 0, -1, -1, true)
  return { ...cell, isHeld: true, verdict: emptyVerdict() }
}

test.each(LIMITS)('%s: giving back changes the state if there is something to give, and says so', (_, limit) => {
  const cell = heldCell(limit)
  for (const [cost, given, changed] of [
    [0, true, false],
    [2, true, true],
    [5, true, true],
    [1, false, false],
  ] as const) {
    cell.cost = cost
    const answer = decide('give', [cell], 0, -1, -1, true)
    expect([cost, answer, cell.verdict.outcome, cell.changed]).toEqual([cost, given, given ? 'allowed' : 'limited', changed])
  }
})

test.each(LIMITS)('%s: a step that is not told decides and leaves what one does that is', (_, limit) => {
  const [told, untold] = [heldCell(limit), heldCell(limit)]
  for (const [op, nowUs, cost] of [
    ['take', 1, 1],
    ['take', 1, 3],
    ['ask', 2, 1],
    ['take', 2, 1],
    ['give', 3, 1],
    ['take', 3, 5],
    ['take', 4_000_000, 2],
  ] as [Op, number, number][]) {
    const granted = [told, untold].map((cell, k) => {
      cell.cost = cost
      return decide(op, [cell], nowUs, -1, -1, k === 0)
    })
    expect([granted[1], untold.s, untold.changed]).toEqual([granted[0], told.s, told.changed])
  }
})

test.each(LIMITS)('%s: what is not held is cleared first, whatever lay there', (_, limit) => {
  const rule = limit[RULE]
  const [dirty, clean] = [new Float64Array(30).fill(7), new Float64Array(30)].map((s) => {
    const cell: Cell = { rule, cost: 2, ticket: undefined, s, i: 3, own: rule, isHeld: false, changed: false, verdict: emptyVerdict() }
    decide('take', [cell], 50, -1, -1, true)
    return [cell.verdict, rule.algorithm.fields(rule, s, 3)]
  })
  expect(dirty).toEqual(clean)
})

test('a charge writes the rule of the caller, all else leaves the one that the state is written under', () => {
  const [slow, quick] = [gcra({ burst: 5, rate: '1/s' })[RULE], gcra({ burst: 5, rate: '1/ms' })[RULE]]
  const cell = heldCell(gcra({ burst: 5, rate: '1/s' }))
  const ownAfter = (op: Op, cost: number) => {
    Object.assign(cell, { rule: quick, cost })
    decide(op, [cell], 0, -1, -1, true)
    return cell.own.numbers
  }
  expect([ownAfter('ask', 1), ownAfter('take', 3), ownAfter('take', 0), ownAfter('give', 1)]).toEqual(Array(4).fill(slow.numbers))
  expect(ownAfter('take', 1)).toBe(quick.numbers)
})

test('a reservation at another pace is told the first microsecond at which it is granted, by the draining of the state', () => {
  // 5 used at 1/s. At 10/s a cost of 5 may act after half a second.
  const cell = heldCell(gcra({ burst: 5, rate: '1/s' }))
  cell.cost = 2
  decide('take', [cell], 0, -1, -1, true)
  Object.assign(cell, { rule: gcra({ burst: 5, rate: '10/s' })[RULE], cost: 5 })
  expect([decide('take', [cell], 0, 500_000, -1, true), cell.verdict.delayUs]).toEqual([true, 500_000])
  const late = heldCell(gcra({ burst: 5, rate: '1/s' }))
  Object.assign(late, { rule: gcra({ burst: 5, rate: '10/s' })[RULE], cost: 5 })
  // 3 used: 0.3 s at the new pace, of which 0.2 s may be ahead; the state drains to 2 in a second.
  expect([decide('take', [late], 0, 200_000, -1, true), late.verdict.retryUs]).toEqual([false, 1_000_000])
})

test('a reservation that costs nothing by one limit is one by the other', () => {
  const [free, paid] = [heldCell(gcra({ burst: 5, rate: '1/s' })), heldCell(tokenBucket({ capacity: 5, refill: '1/s' }))]
  Object.assign(free, { cost: 0 })
  expect(decide('take', [free, paid], 0, 2_000_000, -1, true)).toBe(true)
  expect([free, paid].map(({ changed, verdict: { outcome, delayUs } }) => [changed, outcome, delayUs])).toEqual([
    [false, 'allowed', 0],
    [true, 'allowed', 1_000_000],
  ])
})

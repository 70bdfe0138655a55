import { expect, test } from 'vitest'
import { COMPILE, type Limit } from './algorithm.ts'
import { fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket } from './all.ts'
import { type Cell, decide, emptyVerdict, takeOne } from './decide.ts'

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
  const rule = limit[COMPILE](0)
  const cell: Cell = { rule, cost: 3, ticket: undefined, s: new Float64Array(20), i: 0, written: undefined, changed: false }
  decide('take', [cell], 0, -1, -1, [emptyVerdict()])
  return { ...cell, written: rule }
}

test.each(LIMITS)('%s: giving back is always granted, and changes the state only if there is something to give', (_, limit) => {
  const cell = heldCell(limit)
  for (const [cost, changed] of [
    [0, false],
    [2, true],
    [5, true],
    [1, false],
  ] as const) {
    cell.cost = cost
    expect([cost, decide('give', [cell], 0, -1, -1, [emptyVerdict()]), cell.changed]).toEqual([cost, true, changed])
  }
})

test.each(LIMITS)('%s: the short form answers every number like the long one, allowed and refused', (_, limit) => {
  const [short, long] = [heldCell(limit), heldCell(limit)]
  for (const [nowUs, cost] of [
    [1, 1],
    [1, 3],
    [2, 1],
    [2, 1],
    [3, 5],
    [4_000_000, 2],
  ] as const) {
    const [said, expected] = [emptyVerdict(), emptyVerdict()]
    takeOne(short.rule, short.s, short.i, nowUs, cost, said)
    decide('take', [{ ...long, cost }], nowUs, -1, -1, [expected])
    expect([said, short.s]).toEqual([expected, long.s])
  }
})

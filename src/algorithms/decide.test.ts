import { describe, expect, test } from 'vitest'
import { type Limit, RULE, type Rule } from './algorithm.ts'
import { concurrency, fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket } from './all.ts'
import { type Cell, decide, emptyVerdict, type Op, type Ticket, type Verdict } from './decide.ts'

const LIMITS: [string, Limit][] = [
  ['gcra', gcra({ burst: 5, rate: '1/s' })],
  ['tokenBucket', tokenBucket({ capacity: 5, refill: '1/s' })],
  ['leakyBucket', leakyBucket({ capacity: 5, leak: '1/s' })],
  ['fixedWindow', fixedWindow({ limit: 5, window: '1s' })],
  ['slidingWindow', slidingWindow({ limit: 5, window: '1s' })],
  ['slidingLog', slidingLog({ limit: 5, window: '1s' })],
]

/** A cell of a key that holds nothing. Its verdict is of another decision. */
function cellOf(rule: Rule, cost: number): Cell {
  const verdict: Verdict = { ...emptyVerdict(), outcome: 'impossible', retryUs: 7, delayUs: 7, given: 7 }
  return { rule, cost, ticket: undefined, s: new Float64Array(rule.words), i: 0, own: rule, isHeld: false, changed: false, verdict }
}

function ticketOf(rule: Rule, ...words: number[]): Ticket {
  return { numbers: rule.numbers, words: Float64Array.from(words) }
}

/** A cell of a key that has taken 3. */
function heldCell(limit: Limit): Cell {
  const cell = cellOf(limit[RULE], 3)
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

test.each(
  LIMITS.flatMap(([name, limit]) => (['take', 'charge', 'settle', 'line', 'give'] as const).map((op) => [name, op, limit] as const)),
)('%s, %s: what is not held is cleared first, whatever lay there', (_, op, limit) => {
  const rule = limit[RULE]
  const [dirty, clean] = [new Float64Array(30).fill(7), new Float64Array(30)].map((s) => {
    const cell = { ...cellOf(rule, 2), s, i: 3 }
    const answer = decide(op, [cell], 50, -1, 50, true)
    return [answer, cell.changed, cell.verdict, rule.algorithm.fields(rule, s, 3)]
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

test('a reservation at another pace is dated by the draining of the state, and told the first microsecond at which it is granted', () => {
  const slow = gcra({ burst: 5, rate: '1/s' })
  const { [RULE]: quick } = gcra({ burst: 5, rate: '10/s' })
  const booked = (nowUs: number, aheadUs: number) => {
    const cell = Object.assign(heldCell(slow), { rule: quick, cost: 5 })
    const granted = decide('take', [cell], nowUs, aheadUs, -1, true)
    const { delayUs, retryUs, resetUs } = cell.verdict
    return [granted, delayUs, retryUs, resetUs, cell.own.numbers]
  }
  // 3 are used: the state has drained in 3 s.
  expect(booked(0, 200_000)).toEqual([false, 3_000_000, 2_800_000, 3_000_000, '5 1 1000000'])
  expect(booked(2_799_999, 200_000)).toEqual([false, 200_001, 1, 200_001, '5 1 1000000'])
  // From then on it is theirs: a fifth of a permit and 5 of theirs.
  expect(booked(2_800_000, 200_000)).toEqual([true, 200_000, 0, 520_000, '5 1 100000'])
})

test('a reservation at a slower pace waits until what is in use drains at that pace within its time, too', () => {
  const cell = Object.assign(heldCell(gcra({ burst: 5, rate: '10/s' })), { cost: 3 })
  told('charge', [cell], 0)
  Object.assign(cell, { rule: gcra({ burst: 2, rate: '1/s' })[RULE], cost: 1 })
  // 6 are used. At 10/s 1 is after half a second. At 1/s 5 may be at once, to be 1 in 4 s.
  expect([decide('take', [cell], 0, 4_000_000, -1, true), cell.verdict.retryUs, cell.verdict.delayUs]).toEqual([false, 100_000, 500_000])
  expect([decide('take', [cell], 99_999, 4_000_000, -1, true), cell.verdict.retryUs]).toEqual([false, 1])
  const granted = decide('take', [cell], 100_000, 4_000_000, -1, true)
  expect([granted, cell.verdict.delayUs, cell.verdict.resetUs]).toEqual([true, 400_000, 6_000_000])
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

/**
 * Decides by cells, those that changed are held from then on, and tells all that the decision said.
 */
function told(op: Op, cells: readonly Cell[], nowUs: number, ofUs = -1): unknown[] {
  const answer = decide(op, cells, nowUs, -1, ofUs, true)
  for (const cell of cells) cell.isHeld ||= cell.changed
  return [
    answer,
    ...cells.map(({ changed, verdict: { outcome, retryUs, given } }) =>
      [outcome, retryUs, `given ${given}`, changed ? 'changed' : 'as it was'].join(', '),
    ),
  ]
}

describe('what is written down whether it fits or not', () => {
  test('a charge agrees where all is within the capacity', () => {
    const cells = [heldCell(gcra({ burst: 5, rate: '1/s' })), heldCell(fixedWindow({ limit: 5, window: '1s' }))]
    const fits = 'allowed, 0, given 0, changed'
    for (const cell of cells) cell.cost = 1
    expect(told('charge', cells, 0)).toEqual([true, fits, fits])
    expect(told('charge', cells, 0)).toEqual([true, fits, fits])
    for (const cell of cells) cell.cost = 2
    Object.assign(cells[1] as Cell, { cost: 0 })
    expect(told('charge', cells, 0)).toEqual([false, 'limited, 3000000, given 0, changed', 'allowed, 0, given 0, as it was'])
    expect(told('charge', cells.reverse(), 1_000_000)).toEqual([
      false,
      'allowed, 0, given 0, as it was',
      'limited, 4000000, given 0, changed',
    ])
  })

  test('a charge agrees where places are left, though no more leases may be held', () => {
    const cell = cellOf(concurrency({ max: 1_000_000, lease: '60s' })[RULE], 1)
    for (let k = 0; k < 1_000; k++) told('take', [cell], k)
    expect(told('take', [cell], 1_000)[0]).toBe(false)
    cell.cost = 0
    expect(told('charge', [cell], 1_000)).toEqual([true, 'allowed, 0, given 0, as it was'])
  })

  test('a settlement agrees where something was to be charged or given back, or nothing', () => {
    const [level, window] = [heldCell(gcra({ burst: 5, rate: '1/s' })), heldCell(fixedWindow({ limit: 5, window: '1s' }))]
    const settled = (cost: number, nowUs: number) => {
      Object.assign(level, { cost, ticket: ticketOf(level.rule, 3_000_000, 0, 0, 0) })
      Object.assign(window, { cost })
      const answers = told('settle', [level, window], nowUs, 0)
      expect([level.verdict.enteredUs, window.verdict.enteredUs]).toEqual([nowUs, nowUs])
      return answers
    }
    const nothing = 'allowed, 0, given 0, as it was'
    const charged = 'allowed, 0, given 0, changed'
    const refused = 'limited, 0, given 0, as it was'
    expect(settled(0, 0)).toEqual([true, nothing, nothing])
    expect(settled(-2, 0)).toEqual([true, 'allowed, 0, given 2, changed', 'allowed, 0, given 2, changed'])
    expect(settled(2, 0)).toEqual([true, charged, charged])
    // What is charged later is charged then.
    expect(settled(1, 2_000_000)).toEqual([true, charged, charged])
    // Of what was charged at 0 nothing counts any more.
    expect(settled(-1, 3_000_000)).toEqual([false, refused, refused])
  })

  test('a settlement downwards gives back by the numbers of the state, and leaves them', () => {
    const cell = heldCell(gcra({ burst: 5, rate: '1/s' }))
    const { [RULE]: quick } = gcra({ burst: 5, rate: '10/s' })
    const ticket = ticketOf(cell.rule, 3_000_000, 0, 0, 0)
    Object.assign(cell, { rule: quick, cost: 2 })
    expect([told('charge', [cell], 1_000_000)[0], cell.own.numbers]).toEqual([true, quick.numbers])
    // Two thirds of the time are left, of 3 permits.
    Object.assign(cell, { cost: -3, ticket })
    expect(told('settle', [cell], 1_000_000)).toEqual([true, 'allowed, 0, given 2, changed'])
    expect([cell.own.numbers, quick.algorithm.used(cell.own, cell.s, 0, 1_000_000)]).toEqual([quick.numbers, 2])
  })

  const MOST: Readonly<Record<string, number>> = {
    // 2^52 units of a millionth.
    gcra: 4_503_599_627,
    tokenBucket: 4_503_599_627,
    leakyBucket: 4_503_599_627,
    fixedWindow: 4_294_967_295,
    slidingWindow: 4_294_967_295,
    slidingLog: 10,
  }

  test.each(LIMITS)('%s: nothing is charged beyond the most that may be in use', (type, limit) => {
    const { [RULE]: rule } = limit
    const cell = heldCell(limit)
    const used = () => rule.algorithm.used(cell.own, cell.s, 0, 0)
    cell.cost = 1_000_000_000_000
    expect([told('charge', [cell], 0)[0], cell.changed, used(), rule.mostUsed]).toEqual([false, true, MOST[type], MOST[type]])
    const before = cell.s.slice()
    for (const op of ['charge', 'settle'] as const) {
      Object.assign(cell, { cost: 1, ticket: undefined })
      expect([told(op, [cell], 0, 0)[0], cell.verdict.outcome, cell.changed]).toEqual([false, 'limited', false])
    }
    expect(cell.s).toEqual(before)
  })

  test('nothing is charged, and the numbers of the state stay, where more is in use than may be under those of the caller', () => {
    const [log, small] = [slidingLog({ limit: 5, window: '1s' }), slidingLog({ limit: 1, window: '1min' })]
    const cell = Object.assign(heldCell(log), { rule: small[RULE], cost: 1 })
    for (const op of ['charge', 'settle'] as const) {
      expect([told(op, [cell], 0, 0)[0], cell.changed, cell.own]).toEqual([false, false, log[RULE]])
    }
    const level = Object.assign(heldCell(gcra({ burst: 5, rate: '1/us' })), { cost: 1_000 })
    told('charge', [level], 0)
    const { [RULE]: slow } = gcra({ burst: 5, rate: '1/366d' })
    Object.assign(level, { rule: slow, cost: 1 })
    expect([slow.mostUsed, told('charge', [level], 0)[0], level.changed, level.own.numbers]).toEqual([142, false, false, '5 1 1'])
  })
})

describe('a capacity of 0', () => {
  const zero = ({ [RULE]: { algorithm, figures } }: Limit) => algorithm.ruleOf([0, ...figures.slice(1)])
  const never = 'impossible, Infinity'

  test.each(LIMITS)('%s: all that costs something is impossible, and a question is free', (_, limit) => {
    const cell = cellOf(zero(limit), 1)
    for (const op of ['take', 'ask'] as const) {
      expect(told(op, [cell], 0)).toEqual([false, `${never}, given 7, as it was`])
      expect([decide(op, [cell], 0, 1_000_000, -1, true), cell.verdict.outcome]).toEqual([false, 'impossible'])
      cell.cost = 0
      expect(told(op, [cell], 0)).toEqual([true, 'allowed, 0, given 7, as it was'])
      cell.cost = 1
    }
  })

  test.each(LIMITS)('%s: a charge lands, and nothing is allowed any more', (_, limit) => {
    const cell = cellOf(zero(limit), 0)
    expect(told('charge', [cell], 0)).toEqual([true, 'allowed, 0, given 0, as it was'])
    cell.cost = 2
    expect(told('charge', [cell], 0)).toEqual([false, `${never}, given 0, changed`])
    cell.cost = 0
    expect(told('charge', [cell], 0)).toEqual([false, `${never}, given 0, as it was`])
    expect(cell.verdict.remaining).toBe(0)
    // Other numbers lead out of it.
    Object.assign(cell, { rule: limit[RULE], cost: 3 })
    expect([told('take', [cell], 0)[0], cell.verdict.remaining, cell.own]).toEqual([true, 0, limit[RULE]])
  })

  test.each(LIMITS)('%s: a refund gives back as much as the larger of two capacities, so nothing under 0', (_, limit) => {
    const cell = cellOf(zero(limit), 4)
    expect(told('give', [cell], 0)).toEqual([false, 'limited, 0, given 0, as it was'])
    told('charge', [cell], 0)
    expect(told('give', [cell], 0)).toEqual([false, 'limited, 0, given 0, as it was'])
    Object.assign(cell, { rule: limit[RULE], cost: 9 })
    expect(told('charge', [cell], 0)[0]).toBe(false)
    cell.rule = zero(limit)
    const before = cell.own.algorithm.used(cell.own, cell.s, 0, 0)
    expect(told('give', [cell], 0)).toEqual([true, 'allowed, 0, given 5, changed'])
    expect(before - cell.own.algorithm.used(cell.own, cell.s, 0, 0)).toBe(5)
  })
})

describe('permits', () => {
  const { [RULE]: places } = concurrency({ max: 2, lease: '30s' })

  test('a renewal agrees where every token is held, and says how many are', () => {
    const cell = cellOf(places, 1)
    for (const nowUs of [1_000, 2_000]) expect(told('take', [cell], nowUs)[0]).toBe(true)
    const renewed = (...tokens: number[]) => {
      Object.assign(cell, { cost: 0, ticket: ticketOf(places, ...tokens) })
      return told('renew', [cell], 3_000)
    }
    expect(renewed(1_000, 2_000)).toEqual([true, 'allowed, 0, given 2, changed'])
    expect(cell.verdict).toMatchObject({ atUs: 3_000, enteredUs: 3_000 })
    expect(renewed(1_000, 1_500)).toEqual([false, 'limited, 0, given 1, changed'])
    expect(renewed(1_500)).toEqual([false, 'limited, 0, given 0, as it was'])
  })

  test('a renewal of what is not held is of a state of nothing, whatever lay there', () => {
    const [dirty, clean] = [7, 0].map((word) => {
      const cell = { ...cellOf(places, 1), ticket: ticketOf(places, 500) }
      cell.s.fill(word, 0, places.freshWords)
      return [...told('renew', [cell], 1_000), places.algorithm.fields(places, cell.s, 0)]
    })
    expect(dirty).toEqual(clean)
    expect(clean?.slice(0, 2)).toEqual([true, 'allowed, 0, given 1, changed'])
  })

  /** A key of both limits whose places are taken, and callers that stand in line there. */
  function lineOf(other: Limit) {
    const cells = [cellOf(places, 2), cellOf(other[RULE], 1)] as const
    expect(told('take', cells, 1_000)[0]).toBe(true)
    return (costs: readonly [number, number], nowUs: number, place?: number) => {
      cells.forEach((cell, k) => {
        cell.cost = costs[k as 0 | 1]
      })
      cells[0].ticket = place === undefined ? undefined : ticketOf(places, place)
      const answers = told('line', cells, nowUs)
      expect(cells[1].verdict.enteredUs).toBe(nowUs)
      const inLine = Object.keys(cells[0].own.algorithm.fields(cells[0].own, cells[0].s, 0)).filter((name) => name.endsWith('in line for'))
      return [...answers, cells[0].verdict.enteredUs, inLine.length]
    }
  }

  test('who cannot have one stands in line: a new place, the same, or none', () => {
    const ask = lineOf(fixedWindow({ limit: 5, window: '1d' }))
    const free = 'allowed, 0, given 0, as it was'
    expect(ask([1, 1], 1_000)).toEqual([false, 'limited, 30000000, given 0, changed', free, 1_001, 1])
    expect(ask([1, 1], 1_500, 1_001)).toEqual([false, 'limited, 29999500, given 1, changed', free, 1_500, 1])
    expect(ask([1, 1], 1_500)).toEqual([false, 'limited, 29999500, given 0, changed', free, 1_500, 2])
    // What costs nothing is no call, and what never fits waits for nothing: the place is given up.
    expect(ask([0, 0], 1_600)).toEqual([true, free, free, 1_600, 2])
    const impossible = 'impossible, Infinity, given 0, changed'
    expect(ask([3, 1], 1_600, 1_001)).toEqual([false, impossible, free, 1_600, 1])
    expect(ask([1, 6], 1_600, 1_500)).toEqual([
      false,
      'limited, 29999400, given 0, changed',
      'impossible, Infinity, given 0, as it was',
      1_600,
      0,
    ])
    // At the end of the leases it is granted, and no microsecond before.
    expect(ask([2, 4], 30_000_999)).toEqual([false, 'limited, 1, given 0, changed', free, 30_000_999, 1])
    expect(ask([2, 4], 30_001_000, 30_000_999)).toEqual([
      true,
      'allowed, 0, given 0, changed',
      'allowed, 0, given 0, changed',
      30_001_000,
      0,
    ])
  })

  test('a call that costs nothing is let in, also where there is debt', () => {
    const cells = [cellOf(places, 0), cellOf(gcra({ burst: 2, rate: '1/s' })[RULE], 5)]
    expect(told('charge', cells, 1_000)[0]).toBe(false)
    for (const cell of cells) cell.cost = 0
    const free = 'allowed, 0, given 0, as it was'
    expect([told('take', cells, 1_000), told('line', cells, 1_000)]).toEqual([
      [true, free, free],
      [true, free, free],
    ])
  })

  test('each caller has a place of its own, at the beginning of time too, and nothing else is touched', () => {
    const cells = [
      cellOf(places, 1),
      cellOf(fixedWindow({ limit: 1, window: '1s' })[RULE], 1),
      cellOf(slidingLog({ limit: 1, window: '1s' })[RULE], 1),
    ]
    expect(told('take', cells.slice(1), 0)[0]).toBe(true)
    const placed = () => [told('line', cells, 0)[1], cells[0]?.verdict.enteredUs]
    expect([placed(), placed()]).toEqual([
      ['allowed, 0, given 0, changed', 1],
      ['limited, 1000000, given 0, changed', 2],
    ])
    for (const cell of cells.slice(1)) cell.cost = 0
    Object.assign(cells[0] as Cell, { ticket: ticketOf(places, 1) })
    const free = 'allowed, 0, given 0, as it was'
    expect(told('line', cells, 0)).toEqual([true, 'allowed, 0, given 0, changed', free, free])
  })

  test('a place in line that is a permit is not given up', () => {
    const cell = cellOf(places, 1)
    told('take', [cell], 1_000)
    cell.ticket = ticketOf(places, 1_000)
    expect(told('line', [cell], 2_000)).toEqual([true, 'allowed, 0, given 0, changed'])
    expect(places.algorithm.used(places, cell.s, 0, 2_000)).toBe(2)
  })

  test('sixty-four stand in line, and the others are told that they do not', () => {
    const ask = lineOf(fixedWindow({ limit: 5, window: '1d' }))
    const answers = Array.from({ length: 65 }, () => ask([1, 1], 1_000)[1])
    expect([...new Set(answers)]).toEqual(['limited, 30000000, given 0, changed', 'limited, 30000000, given -1, as it was'])
    expect(answers.indexOf(answers[64])).toBe(64)
  })

  test('a place in line is kept while another limit refuses, and left when all agree', () => {
    const ask = lineOf(leakyBucket({ capacity: 2, leak: '1/s' }))
    expect(ask([1, 2], 1_000).slice(1)).toEqual(['limited, 30000000, given 0, changed', 'limited, 1000000, given 0, as it was', 1_001, 1])
    const answers = ask([1, 1], 30_001_000, 1_001)
    expect(answers).toEqual([true, 'allowed, 0, given 0, changed', 'allowed, 0, given 0, changed', 30_001_000, 0])
  })

  test('who is let in by a leaky bucket is told when to act', () => {
    const [own, bucket] = [cellOf(places, 1), cellOf(leakyBucket({ capacity: 2, leak: '1/s' })[RULE], 1)]
    for (const delayUs of [0, 1_000_000]) {
      expect(told('line', [own, bucket], 1_000)[0]).toBe(true)
      expect([own.verdict.delayUs, bucket.verdict.delayUs]).toEqual([0, delayUs])
    }
  })
})

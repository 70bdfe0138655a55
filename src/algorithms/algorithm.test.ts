/**
 * The promises of every algorithm about its states (they are their own words, wherever these lie,
 * and nothing beside them), and of every limit.
 */
import { expect, test } from 'vitest'
import { Random } from '../../test/model/random.ts'
import { type Charged, type Limit, RULE, type Rule } from './algorithm.ts'
import { fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket } from './all.ts'
import { FORMATS } from './list.ts'

const SECOND = 1_000_000
const BESIDE = 5
const FOREIGN = -7

const LIMITS: [string, (permits: number) => Limit][] = [
  ['gcra', (burst) => gcra({ burst, rate: `${burst}/s` })],
  ['tokenBucket', (capacity) => tokenBucket({ capacity, refill: `${capacity}/s` })],
  ['leakyBucket', (capacity) => leakyBucket({ capacity, leak: `${capacity}/s` })],
  ['fixedWindow', (limit) => fixedWindow({ limit, window: '1s' })],
  ['slidingWindow', (limit) => slidingWindow({ limit, window: '1s', slots: 4 })],
  ['slidingLog', (limit) => slidingLog({ limit, window: '1s' })],
]

/** One contact with a key, as the same numbers whatever state it is made on. */
interface Contact {
  readonly own: Rule
  readonly to: Rule
  readonly nowUs: number
  readonly cost: number
  readonly verb: 'charge' | 'give' | 'settle' | 'ask'
  /** Of giving back: when what is given back was entered. */
  readonly ofUs: number
}

test.each(LIMITS)('%s answers the same wherever a state lies, and touches nothing beside it', (_, limit) => {
  const rules = [limit(9)[RULE], limit(6)[RULE]] as const
  const { words } = rules[0]
  const clean = new Float64Array(words)
  const among = new Float64Array(BESIDE + words + BESIDE)
  const random = new Random(2)
  for (const contact of contacts(new Random(1), rules)) {
    // What lies beside it may well be the time that is searched for.
    const foreign = random.pick([FOREIGN, contact.ofUs])
    const beside = [among.subarray(0, BESIDE), among.subarray(BESIDE + words)]
    for (const words of beside) words.fill(foreign)
    expect(answers(contact, among, BESIDE)).toEqual(answers(contact, clean, 0))
    expect(beside.flatMap((words) => [...words])).toEqual(new Array(2 * BESIDE).fill(foreign))
  }
})

function contacts(random: Random, rules: readonly [Rule, Rule]): Contact[] {
  let nowUs = 1_700_000_000_000_000
  let own: Rule = rules[0]
  const times = [-1]
  return Array.from({ length: 500 }, () => {
    nowUs += random.pick([0, 1, random.whole(0, SECOND), random.whole(-SECOND, SECOND), -3 * SECOND])
    const verb = random.pick(['charge', 'charge', 'settle', 'give', 'ask'] as const)
    const contact = { own, to: random.pick(rules), nowUs, cost: random.whole(1, 6), verb, ofUs: random.pick(times) }
    if (verb === 'charge') own = contact.to
    times.push(nowUs)
    times.splice(1, times.length - 9)
    return contact
  })
}

/**
 * Everything that the algorithm says and writes. Where a charge does not fit, everything is given
 * back first.
 */
function answers({ own, to, nowUs, cost, verb, ofUs }: Contact, s: Float64Array, i: number): unknown[] {
  const { algorithm } = own
  const said: unknown[] = [algorithm.repair(own, s, i, nowUs), algorithm.used(own, s, i, nowUs), algorithm.resetUs(own, s, i, nowUs)]
  said.push(algorithm.untilUs(own, s, i, nowUs, to.capacity - cost), algorithm.movesInUs?.(own, to, s, i, nowUs, 1, cost * SECOND))
  if (verb === 'give') said.push(algorithm.giveBack(own, s, i, nowUs, cost, ofUs, undefined))
  if (verb === 'settle') said.push(algorithm.giveBack(own, s, i, nowUs, cost, ofUs, chargeOf(to, ofUs)))
  if (verb !== 'charge') return [...said, algorithm.fields(own, s, i)]
  // A log has room for what its limit admits.
  const fits = algorithm.untilUs(own, s, i, nowUs, to.capacity - cost) === 0
  if (!fits) algorithm.giveBack(own, s, i, nowUs, own.capacity, -1, undefined)
  said.push(algorithm.charge(own, to, s, i, nowUs, cost))
  return [...said, algorithm.fields(to, s, i)]
}

/** Entered at a time by a key that held nothing, and to be acted on a little later. */
function chargeOf(rule: Rule, ofUs: number): Charged | undefined {
  return rule.algorithm.bookable ? { rule, words: Float64Array.of(ofUs + SECOND, ofUs, ofUs + SECOND / 7, 0) } : undefined
}

test.each(FORMATS.map(({ algorithm }) => algorithm))('$type is at most thirteen functions', (algorithm) => {
  const functions = Object.entries(algorithm).filter(([, value]) => typeof value === 'function')
  expect(functions.length, functions.map(([name]) => name).join(' ')).toBeLessThanOrEqual(13)
})

test('a limit keeps a frozen copy of what it was made from', () => {
  const rate = { permits: 7, per: '1s' as const }
  const limit = gcra({ burst: 2, rate })
  rate.permits = 9
  expect(limit.rate).toEqual({ permits: 7, per: '1s' })
  expect([Object.isFrozen(limit), Object.isFrozen(limit.rate)]).toEqual([true, true])
})

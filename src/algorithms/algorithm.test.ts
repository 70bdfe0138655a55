/** What every algorithm promises of its states (they are their own words, wherever these lie, and nothing beside them), and every limit. */
import { expect, test } from 'vitest'
import { Random } from '../../test/model/random.ts'
import { COMPILE, type Limit, type Rule } from './algorithm.ts'
import { fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket } from './all.ts'

const SECOND = 1_000_000
const BESIDE = 5
const FOREIGN = -7

const LIMITS: [string, (permits: number) => Limit][] = [
  ['gcra', (burst) => gcra({ burst, rate: '7/s' })],
  ['tokenBucket', (capacity) => tokenBucket({ capacity, refill: '7/s' })],
  ['leakyBucket', (capacity) => leakyBucket({ capacity, leak: '7/s' })],
  ['fixedWindow', (limit) => fixedWindow({ limit, window: '1s' })],
  ['slidingWindow', (limit) => slidingWindow({ limit, window: '1s', slots: 3 })],
  ['slidingLog', (limit) => slidingLog({ limit, window: '1s' })],
]

/** One contact with a key, as the same numbers whatever state it is made on. */
interface Contact {
  readonly rule: Rule
  readonly written: Rule
  readonly nowUs: number
  readonly cost: number
  readonly verb: 'fresh' | 'tryTake' | 'take' | 'give'
}

test.each(LIMITS)('%s answers the same wherever a state lies and whatever lay there before, and touches nothing beside it', (_, limit) => {
  const rules = [limit(9)[COMPILE](SECOND), limit(6)[COMPILE](SECOND)] as const
  const words = rules[0].algorithm.words(rules[0])
  const clean = new Float64Array(words)
  const among = new Float64Array(BESIDE + words + BESIDE).fill(FOREIGN)
  const beside = [...among.subarray(0, BESIDE), ...among.subarray(BESIDE + words)]
  for (const contact of contacts(new Random(1), rules)) {
    expect(answers(contact, among, BESIDE)).toEqual(answers(contact, clean, 0))
    expect([...among.subarray(0, BESIDE), ...among.subarray(BESIDE + words)]).toEqual(beside)
  }
})

function contacts(random: Random, rules: readonly [Rule, Rule]): Contact[] {
  let nowUs = 1_700_000_000_000_000
  let rule = rules[0]
  return Array.from({ length: 500 }, (_, k) => {
    const written = rule
    if (random.chance(0.1)) rule = random.pick(rules)
    nowUs += random.pick([0, 1, random.whole(0, SECOND), random.whole(-SECOND, SECOND), -3 * SECOND])
    const verb = k === 0 || random.chance(0.1) ? 'fresh' : random.pick(['tryTake', 'take', 'give'] as const)
    return { rule, written, nowUs, cost: random.whole(1, 6), verb }
  })
}

/** Everything that the algorithm says and writes. */
function answers({ rule, written, nowUs, cost, verb }: Contact, s: Float64Array, i: number): unknown[] {
  const { algorithm } = rule
  const settled = verb === 'fresh' ? algorithm.fresh(rule, s, i, nowUs) : algorithm.settle(rule, written, s, i, nowUs)
  const waitUs = algorithm.waitUs(rule, s, i, nowUs, cost)
  const said = [settled, waitUs, algorithm.remaining(rule, s, i, nowUs), algorithm.resetUs(rule, s, i, nowUs)]
  if (verb === 'tryTake') said.push(algorithm.tryTake(rule, s, i, nowUs, cost))
  if (verb === 'give') said.push(algorithm.give(rule, s, i, nowUs, cost, -1))
  if (verb === 'take' && waitUs === 0) algorithm.take(rule, s, i, nowUs, cost)
  return [...said, algorithm.encode(rule, s, i)]
}

test('a limit keeps a frozen copy of what it was made from', () => {
  const rate = { permits: 7, per: '1s' as const }
  const limit = gcra({ burst: 2, rate })
  rate.permits = 9
  expect(limit.rate).toEqual({ permits: 7, per: '1s' })
  expect([Object.isFrozen(limit), Object.isFrozen(limit.rate)]).toEqual([true, true])
})

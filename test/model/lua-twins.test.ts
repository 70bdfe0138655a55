/**
 * Every Lua function beside its TypeScript twin, on the same arguments, in the real Redis: same result, same state.
 * Cases travel as text, because a Lua reply truncates numbers and `tostring` loses digits above 14.
 */

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Algorithm, COMPILE, type EncodedState } from '../../src/algorithms/algorithm.ts'
import { type Cell, decide, emptyVerdict, type Op, type Ticket, type Verdict } from '../../src/algorithms/decide.ts'
import { gcra, gcraAlgorithm } from '../../src/algorithms/gcra/gcra.ts'
import { leakyBucket, leakyBucketAlgorithm } from '../../src/algorithms/leaky-bucket/leaky-bucket.ts'
import type { LevelRule } from '../../src/algorithms/level.ts'
import { packedNumbers } from '../../src/algorithms/packed.ts'
import type { Rate } from '../../src/algorithms/rate.ts'
import { tokenBucket, tokenBucketAlgorithm } from '../../src/algorithms/token-bucket/token-bucket.ts'
import { LIBRARY } from '../../src/stores/redis/script.ts'
import { decode } from '../support/decode.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { SHORT_FORM } from './short-form.ts'

const MAX = 2 ** 53 - 1
const DAY_US = 86_400_000_000
const MAX_PERIOD_US = 366 * DAY_US
const MAX_FILL_US = 36_525 * DAY_US
const MAX_NOW_US = 5_000_000_000_000_000
const BATCH = 1_000

let redis: TestRedis

beforeAll(async () => {
  redis = await connectRedis()
})

afterAll(() => redis.close())

// ---------------------------------------------------------------------------------------------------------------- the two sides as text

/** What every driver needs: fields parted by `|`, words by a space, and numbers with all their digits. */
const DRIVER = `
local function fieldsOf(line)
  local fields = {}
  for field in string.gmatch(line, '[^|]+') do
    fields[#fields + 1] = field
  end
  return fields
end

local function wordsOf(text)
  local words = {}
  for word in string.gmatch(text, '%S+') do
    words[#words + 1] = tonumber(word)
  end
  return words
end

local function shown(value)
  if type(value) == 'number' then
    return string.format('%.0f', value)
  elseif type(value) == 'table' then
    local texts = {}
    for k = 1, #value do
      texts[k] = shown(value[k])
    end
    return table.concat(texts, ' ')
  end
  return tostring(value)
end
`

/** The same text on this side. -0 shows, because Redis would keep it as `-0`. */
function shown(value: unknown): string {
  if (typeof value === 'object' && value !== null) return Array.from(value as Iterable<unknown>, shown).join(' ')
  return Object.is(value, -0) ? '-0' : String(value)
}

/** Runs `answer(fields)` in Redis for each line. */
async function inRedis(answer: string, lines: readonly string[]): Promise<string[]> {
  const script = `${LIBRARY}\n${DRIVER}\n${answer}
    local answers = {}
    for k = 1, #ARGV do
      answers[k] = answer(fieldsOf(ARGV[k]))
    end
    return answers`
  const answers: string[] = []
  for (let from = 0; from < lines.length; from += BATCH) {
    answers.push(...((await redis.send(['EVAL', script, '0', ...lines.slice(from, from + BATCH)])) as string[]))
  }
  return answers
}

/** Compares line by line and shows the first difference with the case that led to it. */
function expectSame(lines: readonly string[], lua: readonly string[], typescript: readonly string[]): void {
  expect(lua.length).toBe(lines.length)
  const k = lua.findIndex((answer, index) => answer !== typescript[index])
  if (k >= 0) expect({ case: lines[k], lua: lua[k]?.split('; ') }).toEqual({ case: lines[k], lua: typescript[k]?.split('; ') })
}

/** Counts by name, so that a test can show that what it is about did happen. */
class Tally {
  readonly counts: Record<string, number> = {}

  add(...names: readonly string[]): void {
    for (const name of names) this.counts[name] = (this.counts[name] ?? 0) + 1
  }

  expectShare(names: readonly string[], least: number): void {
    for (const name of names) expect(this.counts[name] ?? 0, `cases of '${name}'`).toBeGreaterThanOrEqual(least)
  }
}

function clampTo(least: number, value: number, most: number): number {
  return Math.max(least, Math.min(value, most))
}

/** From 0 to 1, evenly: `fc.double` would nearly always be next to 0. */
const share = fc.maxSafeNat().map((n) => n / 2 ** 53)

// ------------------------------------------------------------------------------------------------------------------------- arithmetic

interface Operands {
  a: number
  b: number
  add: number
  c: number
}

const exponent = fc.integer({ min: 0, max: 53 })
const nudge = fc.integer({ min: -2, max: 2 })

const operand = fc.oneof(
  fc.tuple(exponent, share).map(([k, part]) => clampTo(0, Math.floor(2 ** (k - 1) * (1 + part)), MAX)),
  fc.tuple(exponent, nudge).map(([k, d]) => clampTo(0, 2 ** k + d, MAX)),
  fc.nat({ max: 1_000 }).map((less) => MAX - less),
  fc.maxSafeNat(),
  fc.nat({ max: 12 }),
)

const drawnOperands = fc.record({
  a: operand,
  b: operand,
  /** Instead of b: as near to 2^53 / a as this. */
  near: fc.option(nudge, { freq: 3 }),
  add: operand,
  c: operand,
  /** Instead of c: this much above the least divisor that is allowed. */
  above: fc.option(fc.nat({ max: 3 }), { freq: 2 }),
})

/** Bends what was drawn into the domain: c + add and the quotient, rounded up, stay below 2^53. */
function inDomain({ a, b: drawnB, near, add, c: drawnC, above }: typeof drawnOperands extends fc.Arbitrary<infer T> ? T : never): Operands {
  const b = near === null ? drawnB : clampTo(0, Math.floor(2 ** 53 / Math.max(a, 1)) + near, MAX)
  const least = Number((BigInt(a) * BigInt(b)) >> 53n) + 1
  const c = clampTo(least, above === null ? drawnC : least + above, MAX)
  const untilQuotient = BigInt(c) * BigInt(MAX) - BigInt(a) * BigInt(b)
  const most = untilQuotient < BigInt(MAX - c) ? Number(untilQuotient) : MAX - c
  return { a, b, add: clampTo(0, add, Math.max(most, 0)), c }
}

/** Where one wrong step shows: products just above 2^53 that a double rounds down to it, powers of two, and a rest of half the divisor. */
const EDGES: readonly Operands[] = [
  { a: 3, b: 3_002_399_751_580_331, add: 0, c: 2 },
  { a: 3, b: 3_002_399_751_580_331, add: 0, c: 7 },
  { a: 2 ** 27, b: 2 ** 27, add: 0, c: 3 },
  { a: 2 ** 27, b: 2 ** 27 + 1, add: 1, c: 2 ** 28 },
  { a: 2 ** 52, b: 2 ** 52, add: 0, c: 2 ** 52 },
  { a: 2 ** 52 + 1, b: MAX, add: 0, c: MAX },
  { a: 2 ** 30, b: 2 ** 30 + 2 ** 29, add: 0, c: 2 ** 31 },
]

/** What the three functions should answer. */
function byBigInt({ a, b, add, c }: Operands): string {
  const product = BigInt(a) * BigInt(b)
  const total = product + BigInt(add)
  const divisor = BigInt(c)
  const up = (total + divisor - 1n) / divisor
  return shown([product / divisor, product % divisor, total / divisor, total % divisor, up])
}

test('mulDiv, mulAddDiv and mulAddDivUp in Lua equal BigInt on random and extreme operands', async () => {
  const all = [...EDGES, ...fc.sample(drawnOperands, { numRuns: 80_000, seed: 21 }).map(inDomain)]
  const tally = new Tally()
  for (const { a, b } of all) tally.add(BigInt(a) * BigInt(b) <= BigInt(MAX) ? 'fast' : 'wide')
  const lines = all.map(({ a, b, add, c }) => `${a}|${b}|${add}|${c}`)
  const lua = await inRedis(
    `local function answer(fields)
      local a, b, add, c = tonumber(fields[1]), tonumber(fields[2]), tonumber(fields[3]), tonumber(fields[4])
      local quotient, rest = mulDiv(a, b, c)
      local sum, sumRest = mulAddDiv(a, b, add, c)
      return shown({ quotient, rest, sum, sumRest, mulAddDivUp(a, b, add, c) })
    end`,
    lines,
  )
  expectSame(lines, lua, all.map(byBigInt))
  console.log('arithmetic:', all.length, 'cases', tally.counts)
  tally.expectShare(['fast', 'wide'], all.length / 5)
})

// ---------------------------------------------------------------------------------------------------------------- numbers in a few bytes

const drawnFigure = fc.oneof(
  fc.tuple(fc.integer({ min: 0, max: 13 }), fc.nat({ max: 999 })).map(([zeros, digits]) => Math.min(digits * 10 ** zeros, MAX_PERIOD_US)),
  share.map((part) => Math.floor(MAX_PERIOD_US ** part)),
)

test('packedNumbers in Lua equals the TypeScript, and reads back, in characters that every client sends as they are', async () => {
  const edges = [
    [0, 1, 7, 8],
    [9, 10, 63, 64],
    [100, 1_000, 9_999_999, 10_000_000],
    [100_000_000, 511, 512, MAX_PERIOD_US],
  ]
  const all = [...edges, ...fc.sample(fc.array(drawnFigure, { minLength: 4, maxLength: 4 }), { numRuns: 3_000, seed: 8 })]
  const lua = await inRedis(
    `local function answer(fields)
      local packed = packedNumbers(fields[1])
      local again, behind = unpackedNumbers('behind ' .. packed .. '!', 8, 4)
      local hex = string.gsub(packed, '.', function(each) return string.format('%02x', string.byte(each)) end)
      return hex .. ' ' .. tostring(again) .. ' ' .. behind - 8 - #packed
    end`,
    all.map((figures) => figures.join(' ')),
  )
  const typescript = all.map((figures) => {
    const packed = packedNumbers(figures)
    expect(packed).toMatch(/^[\0-\x7f]*$/)
    return `${Buffer.from(packed).toString('hex')} ${figures.join(' ')} 0`
  })
  expect(lua).toEqual(typescript)
})

// ------------------------------------------------------------------------------------------------------------------ rules and states

/** The corners of the domain, and then anything inside it. */
const CORNERS: readonly (readonly [rate: Rate, capacity: number])[] = [
  ['7/s', 1],
  ['7/s', 20],
  ['999983/d', 1_000_000],
  ['10/us', 1_000_000_000],
  ['10/us', 1],
  ['1/366d', 1],
  ['1/366d', 99],
  ['1/us', 1_000_000_000],
  ['1000000000/366d', 1_000_000_000],
  ['1/d', 36_525],
]

const randomLimit = fc.tuple(share, share, share).map(([period, pace, full]): readonly [Rate, number] => {
  const periodUs = Math.floor(MAX_PERIOD_US ** period)
  const permits = Math.floor(Math.min(1_000_000_000, 10 * periodUs) ** pace)
  const mostCapacity = Math.min(1_000_000_000, Number((BigInt(MAX_FILL_US) * BigInt(permits)) / BigInt(periodUs)))
  return [`${permits}/${periodUs}us`, Math.floor(mostCapacity ** full)]
})

const drawnLimit = fc.oneof(fc.constantFrom(...CORNERS), randomLimit)

/** Each algorithm with what the tests must know of it: how to make one, and how its state says "this level at that time". */
interface Kind {
  algorithm: Algorithm<LevelRule>
  rule(limit: readonly [Rate, number], maxAheadUs: number): LevelRule
  state(rule: LevelRule, level: Level, atUs: number, nowUs: number): number[]
}

/** Used permits: whole + part / periodUs. */
interface Level {
  whole: number
  part: number
}

/** The first two words of each of them: when the level will have drained. */
function tatOf(rule: LevelRule, { whole, part }: Level, atUs: number, nowUs: number): number[] {
  const time = BigInt(whole) * BigInt(rule.periodUs) + BigInt(part)
  const tatUs = BigInt(atUs) + time / BigInt(rule.permits)
  // A state that nobody repaired may lie far ahead, but not so far that asking about it leaves the exact numbers.
  const most = Math.max(atUs, Math.min(MAX, nowUs + MAX - 2 * MAX_FILL_US))
  return tatUs > BigInt(most) ? [most, 0] : [Number(tatUs), Number(time % BigInt(rule.permits))]
}

const KINDS: Readonly<Record<string, Kind>> = {
  gcra: {
    algorithm: gcraAlgorithm,
    rule: ([rate, burst], maxAheadUs) => gcra({ rate, burst })[COMPILE](maxAheadUs) as LevelRule,
    state: tatOf,
  },
  tokenBucket: {
    algorithm: tokenBucketAlgorithm,
    rule: ([refill, capacity], maxAheadUs) => tokenBucket({ capacity, refill })[COMPILE](maxAheadUs) as LevelRule,
    state: (rule, level, atUs, nowUs) => [...tatOf(rule, level, atUs, nowUs), atUs],
  },
  leakyBucket: {
    algorithm: leakyBucketAlgorithm,
    rule: ([leak, capacity], maxAheadUs) => leakyBucket({ capacity, leak })[COMPILE](maxAheadUs) as LevelRule,
    state: (rule, level, atUs, nowUs) => [...tatOf(rule, level, atUs, nowUs), atUs],
  },
}

const LEVELS = [
  'empty',
  'in use',
  'exactly full',
  'booked ahead',
  'at the ceiling',
  'just above the ceiling',
  'far above the ceiling',
] as const
const CLOCKS = [
  'long ago',
  'a while ago',
  'now',
  'just ahead',
  'ahead',
  'one window ahead',
  'beyond one window ahead',
  'far ahead',
] as const

const drawnState = fc.record({
  level: fc.constantFrom(...LEVELS),
  clock: fc.constantFrom(...CLOCKS),
  amount: share,
  part: fc.oneof(share, fc.constant(0)),
  distance: share,
})
type DrawnState = typeof drawnState extends fc.Arbitrary<infer T> ? T : never

/** From 0 to most, whole; share 0.999... reaches it. */
function portion(most: number, of: number): number {
  return Math.min(most, Math.floor((most + 1) * of))
}

function levelDrawn(rule: LevelRule, { level, amount, part }: DrawnState): Level {
  const { capacity, periodUs } = rule
  const { whole: ceilingWhole, part: ceilingPart } = ceilingOf(rule)
  const anyPart = portion(periodUs - 1, part)
  switch (level) {
    case 'empty':
      return { whole: 0, part: 0 }
    case 'in use':
      return { whole: portion(capacity - 1, amount), part: anyPart }
    case 'exactly full':
      return { whole: capacity, part: 0 }
    case 'booked ahead': {
      const whole = capacity + portion(ceilingWhole - capacity, amount)
      return { whole, part: whole === ceilingWhole ? portion(ceilingPart, part) : anyPart }
    }
    case 'at the ceiling':
      return { whole: ceilingWhole, part: ceilingPart }
    case 'just above the ceiling':
      return ceilingPart + 1 < periodUs ? { whole: ceilingWhole, part: ceilingPart + 1 } : { whole: ceilingWhole + 1, part: 0 }
    case 'far above the ceiling':
      return { whole: ceilingWhole + 1 + portion(farAbove(rule), amount), part: anyPart }
  }
}

/** Capacity and everything that may be booked ahead of it. */
function ceilingOf({ capacity, permits, periodUs, maxAheadUs }: LevelRule): Level {
  const ahead = BigInt(maxAheadUs) * BigInt(permits)
  return { whole: capacity + Number(ahead / BigInt(periodUs)), part: Number(ahead % BigInt(periodUs)) }
}

/** So many permits that a wait for them, unrepaired, still is an exact number. */
function farAbove({ permits, periodUs }: LevelRule): number {
  return Math.min(1_000_000_000, Math.floor(((MAX - 2 * MAX_FILL_US) * permits) / periodUs))
}

/** When the state was written, as seen from now. */
function writtenAt({ windowUs, maxAheadUs }: LevelRule, { clock, distance }: DrawnState, nowUs: number): number {
  const idleUs = windowUs + maxAheadUs
  const aheadUs: Record<DrawnState['clock'], number> = {
    'long ago': -idleUs - portion(MAX_FILL_US, distance),
    'a while ago': -1 - portion(idleUs, distance),
    now: 0,
    'just ahead': 1 + portion(Math.min(1_000, windowUs - 1), distance),
    ahead: 1 + portion(windowUs - 1, distance),
    'one window ahead': windowUs,
    'beyond one window ahead': windowUs + 1,
    'far ahead': windowUs + 1 + portion(MAX_FILL_US, distance),
  }
  // A date was a reading of a clock once.
  return clampTo(0, nowUs + aheadUs[clock], MAX_NOW_US)
}

const drawnNow = fc.oneof(
  share.map((part) => 1_760_000_000_000_000 + Math.floor(part * 10 * 365 * DAY_US)),
  share.map((part) => Math.floor(part * MAX_NOW_US)),
  fc.constantFrom(0, 1, 100_000, MAX_NOW_US),
)

const drawnAhead = fc.oneof(
  fc.constant(0),
  fc.constant(60_000_000),
  share.map((part) => Math.floor(MAX_PERIOD_US ** part)),
)

const COSTS = ['one', 'one', 'one', 'one', 'some', 'some', 'some', 'all', 'none', 'too much'] as const

const drawnCost = fc.record({ kind: fc.constantFrom(...COSTS), amount: share })

function costDrawn(capacity: number, { kind, amount }: typeof drawnCost extends fc.Arbitrary<infer T> ? T : never): number {
  const costs = {
    one: 1,
    all: capacity,
    some: 1 + portion(capacity - 1, amount),
    none: -1,
    'only what may act now': 0,
    'too much': capacity + 1 + portion(1_000, amount),
  }
  return Math.min(costs[kind], 1_000_000_000)
}

/** When the charge that is given back was taken. */
const drawnOf = fc.record({ kind: fc.constantFrom('unsaid', 'now', 'in the window', 'a window ago', 'just in the window'), amount: share })

function ofUsDrawn(windowUs: number, nowUs: number, { kind, amount }: typeof drawnOf extends fc.Arbitrary<infer T> ? T : never): number {
  if (kind === 'unsaid') return -1
  const agoUs = { now: 0, 'in the window': portion(windowUs, amount), 'a window ago': windowUs, 'just in the window': windowUs - 1 }[kind]
  return Math.max(0, nowUs - agoUs)
}

/** What a ticket has to do with the state it is presented to. */
const drawnTicket = fc.record({
  kind: fc.constantFrom('the last reservation', 'an earlier reservation', 'any reservation', 'any state'),
  amount: share,
  state: drawnState,
})
type DrawnTicket = typeof drawnTicket extends fc.Arbitrary<infer T> ? T : never

/** The words that a reservation left behind, some time before the state became what it is now. */
function ticketDrawn(kind: Kind, rule: LevelRule, settled: readonly number[], cost: number, nowUs: number, drawn: DrawnTicket): number[] {
  if (drawn.kind === 'the last reservation') return [...settled]
  if (drawn.kind === 'an earlier reservation') return earlier(rule, settled, 1 + portion(2 * cost, drawn.amount))
  const state: DrawnState = drawn.kind === 'any state' ? drawn.state : { ...drawn.state, level: 'booked ahead', clock: 'a while ago' }
  return kind.state(rule, levelDrawn(rule, state), writtenAt(rule, state, nowUs), nowUs)
}

/** The state before `permits` more were taken at the same instant. */
function earlier({ periodUs, permits: pace }: LevelRule, words: readonly number[], permits: number): number[] {
  const [tatUs, part, ...at] = words as [number, number, ...number[]]
  const [atUs = 0] = at
  const time = BigInt(tatUs) * BigInt(pace) + BigInt(part) - BigInt(permits) * BigInt(periodUs)
  if (time < BigInt(atUs) * BigInt(pace)) return [atUs, 0, ...at]
  return [Number(time / BigInt(pace)), Number(time % BigInt(pace)), ...at]
}

// ------------------------------------------------------------------------------------------------------------ every function by itself

const drawnCase = fc.record({
  limit: drawnLimit,
  /** The numbers the state was written under, when they are not the present ones. */
  before: fc.option(fc.record({ limit: drawnLimit, keeps: fc.constantFrom('nothing', 'rate', 'capacity') }), { freq: 2 }),
  maxAheadUs: drawnAhead,
  nowUs: drawnNow,
  state: drawnState,
  cost: drawnCost,
  of: drawnOf,
  ticket: drawnTicket,
})
type DrawnCase = typeof drawnCase extends fc.Arbitrary<infer T> ? T : never

interface Case {
  rule: LevelRule
  written: LevelRule
  level: Level
  atUs: number
  state: number[]
  nowUs: number
  cost: number
  giveCost: number
  ofUs: number
  ticket: number[]
}

function limitBefore([rate, capacity]: readonly [Rate, number], before: NonNullable<DrawnCase['before']>): readonly [Rate, number] {
  if (before.keeps === 'rate') return [rate, 1 + Math.floor(capacity / 3)]
  // With the capacity kept the slower pace must still fill it in 100 years, so keep it only where the other is the faster one.
  return before.keeps === 'capacity' && before.limit[1] >= capacity ? [before.limit[0], capacity] : before.limit
}

function caseDrawn(kind: Kind, drawn: DrawnCase): Case {
  const { maxAheadUs, nowUs } = drawn
  const rule = kind.rule(drawn.limit, maxAheadUs)
  const written = drawn.before === null ? rule : kind.rule(limitBefore(drawn.limit, drawn.before), maxAheadUs)
  const level = levelDrawn(written, drawn.state)
  const atUs = writtenAt(written, drawn.state, nowUs)
  const state = kind.state(written, level, atUs, nowUs)
  const cost = clampTo(1, costDrawn(rule.capacity, drawn.cost), rule.capacity)
  const settled = Float64Array.from(state)
  kind.algorithm.settle(rule, written, settled, 0, nowUs)
  return {
    rule,
    written,
    level,
    atUs,
    state,
    nowUs,
    cost,
    giveCost: Math.max(1, costDrawn(rule.capacity, drawn.cost)),
    ofUs: ofUsDrawn(rule.windowUs, nowUs, drawn.of),
    ticket: ticketDrawn(kind, rule, [...settled], cost, nowUs, drawn.ticket),
  }
}

function lineOf(type: string, { rule, written, state, nowUs, cost, giveCost, ofUs, ticket }: Case): string {
  const numbers = `${type}|${rule.numbers}|${rule.maxAheadUs}|${written.numbers}`
  return `${numbers}|${shown(state)}|${nowUs}|${cost}|${giveCost}|${ofUs}|${shown(ticket)}`
}

/** All functions on the settled state under the present rule, then on the raw state under the rule that it was written under. */
const EVERY_FUNCTION = `
local function copyOf(words)
  local copy = {}
  for k = 1, #words do
    copy[k] = words[k]
  end
  return copy
end

-- As the TypeScript writes it. GCRA's bytes must read back to be shown.
local function textOf(algorithm, rule, encoded)
  if algorithm.kind ~= 'string' then
    return encoded
  end
  local s, numbers = algorithm.decode(encoded)
  return numbers == rule.numbers and algorithm.text(s, numbers) or 'not read back'
end

local function decoded(algorithm, encoded)
  if algorithm.kind == 'string' then
    return algorithm.decode(encoded)
  end
  local fields = {}
  for k = 1, #encoded, 2 do
    fields[encoded[k]] = encoded[k + 1]
  end
  return algorithm.decode(fields)
end

${SHORT_FORM}
local function everyFunction(say, algorithm, rule, state, nowUs, cost, giveCost, ofUs, ticket)
  if not shortFormAgrees(algorithm, rule, function() return copyOf(state) end, nowUs, cost) then
    say('the short form disagrees')
  end
  say('waitUs', algorithm.waitUs(rule, state, nowUs, cost))
  say('delayUs', algorithm.delayUs and algorithm.delayUs(rule, state, nowUs) or 'none')
  say('remaining', algorithm.remaining(rule, state, nowUs))
  say('resetUs', algorithm.resetUs(rule, state, nowUs))
  local encoded = algorithm.encode(rule, state)
  say('encode', textOf(algorithm, rule, encoded))
  local words, numbers = decoded(algorithm, encoded)
  say('decode', words, numbers)
  say('untouched', state)
  local s = copyOf(state)
  algorithm.take(rule, s, nowUs, cost)
  say('take', s, algorithm.enteredUs(s, nowUs))
  s = copyOf(state)
  local gave = algorithm.give(rule, s, nowUs, giveCost, ofUs)
  say('give', gave, s)
  s = copyOf(state)
  local cancelled = algorithm.cancel(rule, s, nowUs, cost, ticket)
  say('cancel', cancelled, s)
end

local function answer(fields)
  local algorithm = algorithms[fields[1]]
  local rule = algorithm.ruleNamed(fields[2], tonumber(fields[3]))
  local written = algorithm.ruleNamed(fields[4], tonumber(fields[3]))
  local state, nowUs, cost, giveCost = wordsOf(fields[5]), tonumber(fields[6]), tonumber(fields[7]), tonumber(fields[8])
  local ofUs, ticket = tonumber(fields[9]), wordsOf(fields[10])
  local said = {}
  local function say(...)
    said[#said + 1] = shown({ ... })
  end
  say('rule', rule.numbers, rule.capacity, rule.permits, rule.periodUs, rule.windowUs, rule.maxAheadUs)
  say('rule', rule.toleranceUs, rule.tolerancePart, rule.ceilingUs)
  say('fresh', algorithm.fresh(rule, nowUs))
  local settled = copyOf(state)
  local wrote = algorithm.settle(rule, written, settled, nowUs)
  say('settle', wrote, settled)
  everyFunction(say, algorithm, rule, settled, nowUs, cost, giveCost, ofUs, ticket)
  everyFunction(say, algorithm, written, state, nowUs, math.min(cost, written.capacity), giveCost, ofUs, ticket)
  return table.concat(said, '; ')
end`

/** A state between two guards, as it would lie among others in a table. */
class Place {
  readonly s: Float64Array
  readonly i = 1

  constructor(words: readonly number[]) {
    this.s = Float64Array.from([-77, ...words, -77])
  }

  get words(): number[] {
    expect([this.s[0], this.s.at(-1)], 'the neighbours of the state').toEqual([-77, -77])
    return [...this.s.slice(1, -1)]
  }
}

type Say = (...values: unknown[]) => void

function encodedText(encoded: EncodedState): unknown {
  return typeof encoded === 'string' ? encoded : Object.entries(encoded).flat()
}

/** Only this side has the short form of a decision. It must answer and leave what the long one does. */
function shortFormAgrees(rule: LevelRule, { s, i }: Place, nowUs: number, cost: number): boolean {
  const { algorithm } = rule
  const short = s.slice()
  const long = s.slice()
  algorithm.settle(rule, rule, long, i, nowUs)
  const fits = algorithm.waitUs(rule, long, i, nowUs, cost) === 0
  if (fits) algorithm.take(rule, long, i, nowUs, cost)
  return algorithm.tryTake(rule, short, i, nowUs, cost) === fits && short.every((word, k) => word === long[k])
}

function everyFunction(say: Say, rule: LevelRule, words: readonly number[], used: Case, cost: number): void {
  const { nowUs, giveCost, ofUs, ticket } = used
  const algorithm = rule.algorithm as Algorithm<LevelRule>
  const at = new Place(words)
  const waitUs = algorithm.waitUs(rule, at.s, at.i, nowUs, cost)
  say('waitUs', waitUs)
  if (!shortFormAgrees(rule, at, nowUs, cost)) say('tryTake disagrees with settle, waitUs and take')
  say('delayUs', algorithm.delayUs?.(rule, at.s, at.i, nowUs) ?? 'none')
  say('remaining', algorithm.remaining(rule, at.s, at.i, nowUs))
  say('resetUs', algorithm.resetUs(rule, at.s, at.i, nowUs))
  const encoded = algorithm.encode(rule, at.s, at.i)
  say('encode', encodedText(encoded))
  const decoded = new Place(words.map(() => -1))
  const numbers = decode(algorithm, encoded, decoded.s, decoded.i)
  say('decode', decoded.words, numbers)
  say('untouched', at.words)
  algorithm.take(rule, at.s, at.i, nowUs, cost)
  say('take', at.words, algorithm.enteredUs(at.s, at.i, nowUs))
  const given = new Place(words)
  say('give', algorithm.give(rule, given.s, given.i, nowUs, giveCost, ofUs), given.words)
  const cancelled = new Place(words)
  say('cancel', algorithm.cancel(rule, cancelled.s, cancelled.i, nowUs, cost, Float64Array.from(ticket)), cancelled.words)
}

function answerOf(used: Case): string {
  const { rule, written, state, nowUs, cost } = used
  const algorithm = rule.algorithm as Algorithm<LevelRule>
  const said: string[] = []
  const say: Say = (...values) => said.push(shown(values))
  say('rule', rule.numbers, rule.capacity, rule.permits, rule.periodUs, rule.windowUs, rule.maxAheadUs)
  say('rule', rule.toleranceUs, rule.tolerancePart, rule.ceilingUs)
  const fresh = new Place(state.map(() => -1))
  algorithm.fresh(rule, fresh.s, fresh.i, nowUs)
  say('fresh', fresh.words)
  const settled = new Place(state)
  say('settle', algorithm.settle(rule, written, settled.s, settled.i, nowUs), settled.words)
  everyFunction(say, rule, settled.words, used, cost)
  everyFunction(say, written, state, used, Math.min(cost, written.capacity))
  return said.join('; ')
}

/** Which level a state was given, read off its numbers and not off how it was drawn. */
function levelKind(rule: LevelRule, { whole, part }: Level): string {
  const { capacity, maxAheadUs } = rule
  const { whole: ceilingWhole, part: ceilingPart } = ceilingOf(rule)
  if (whole > ceilingWhole || (whole === ceilingWhole && part > ceilingPart)) return 'above the ceiling'
  if (whole === capacity && part === 0) return 'exactly full'
  if (whole < capacity) return whole === 0 && part === 0 ? 'empty' : 'in use'
  return maxAheadUs > 0 && whole === ceilingWhole && part === ceilingPart ? 'at the ceiling' : 'booked ahead'
}

function clockKind({ windowUs, maxAheadUs }: LevelRule, aheadUs: number): string {
  if (aheadUs > windowUs) return aheadUs === windowUs + 1 ? 'dated just beyond one window ahead' : 'dated far ahead'
  if (aheadUs === windowUs) return 'dated one window ahead'
  if (aheadUs > 0) return 'dated ahead'
  return -aheadUs >= windowUs + maxAheadUs ? 'long idle' : 'written lately'
}

function rateKind({ numbers }: LevelRule, corners: ReadonlySet<string>): string {
  return corners.has(numbers) ? 'corner of the domain' : 'random rate'
}

/** Of the answers, the ones that were given on the settled state. */
function answerKinds(answer: string): string[] {
  const first = (name: string) => answer.slice(answer.indexOf(`${name} `) + name.length + 1).split(/[ ;]/, 1)[0]
  const wrote = ['settle', 'give', 'cancel'].map((name) => `${name} ${first(name)}`)
  return [...wrote, first('waitUs') === '0' ? 'fits' : 'must wait']
}

const EVERY_KIND = [
  ...['empty', 'in use', 'exactly full', 'booked ahead', 'at the ceiling', 'above the ceiling'],
  ...['long idle', 'written lately', 'dated ahead', 'dated one window ahead', 'dated just beyond one window ahead', 'dated far ahead'],
  ...['present numbers', 'old numbers', 'no booking', 'booking', 'corner of the domain', 'random rate'],
  ...['settle true', 'settle false', 'give true', 'give false', 'cancel true', 'cancel false', 'fits', 'must wait'],
]

describe.each(Object.keys(KINDS))('%s in Lua', (type) => {
  const kind = KINDS[type] as Kind

  test('answers and writes what the TypeScript does, function by function, on random states', async () => {
    const cases = fc.sample(drawnCase, { numRuns: 15_000, seed: 22 }).map((drawn) => caseDrawn(kind, drawn))
    const typescript = cases.map(answerOf)
    const lines = cases.map((each) => lineOf(type, each))
    expectSame(lines, await inRedis(EVERY_FUNCTION, lines), typescript)

    const tally = new Tally()
    const corners = new Set(CORNERS.map((limit) => kind.rule(limit, 0).numbers))
    cases.forEach(({ rule, written, level, atUs, nowUs }, k) => {
      tally.add(levelKind(written, level), clockKind(written, atUs - nowUs), rateKind(rule, corners))
      tally.add(rule.numbers === written.numbers ? 'present numbers' : 'old numbers', rule.maxAheadUs === 0 ? 'no booking' : 'booking')
      tally.add(...answerKinds(typescript[k] as string))
    })
    console.log(`${type}:`, cases.length, 'cases', tally.counts)
    tally.expectShare(EVERY_KIND, cases.length / 20)
  })
})

// --------------------------------------------------------------------------------------------------------------------- foreign states

/** What a key may hold that we did not write: whatever one side refuses, the other must refuse. */
const FOREIGN: Readonly<Record<string, readonly EncodedState[]>> = {
  gcra: [
    ...['', ' ', '5', 'hello', '5 2 1', '5 2 1 1000 3 4', '5 2 1 1000 ', ' 5 2 1 1000', '5  2 1 1000', '5 2 1 1000  3'],
    ...['-5 2 1 1000', '5.5 2 1 1000', '1e3 2 1 1000', '0x5 2 1 1000', '5 2 1 1000 -3', '5 2 1 1000 3.5', '5 2 1 1000\n', 'nan 2 1 1000'],
  ],
  tokenBucket: [
    {},
    ...['tokens', 'part', 'time', 'limit'].map((name) => ({ ...hash(), [name]: '' })),
    ...['tokens', 'part', 'time'].flatMap((name) =>
      ['x', '1.5', '1e3', '0x10', 'nan', 'inf', ' 1', '1 ', '--1', '+1', '1\n'].map((text) => ({ ...hash(), [name]: text })),
    ),
    ...['part', 'time'].map((name) => ({ ...hash(), [name]: '-1' })),
    ...['2', '2 1', '2 1 1000 4', '2 1 1000 ', '-2 1 1000', '2.5 1 1000', '2  1 1000', 'x'].map((limit) => ({ ...hash(), limit })),
  ],
  leakyBucket: [
    hash(),
    ...['water', 'part', 'time', 'limit'].map((name) => ({ ...waterHash(), [name]: '' })),
    ...['water', 'part', 'time'].flatMap((name) =>
      ['x', '1.5', '1e3', '0x10', 'nan', 'inf', ' 1', '1 ', '-1', '+1', '1\n'].map((text) => ({ ...waterHash(), [name]: text })),
    ),
    ...['2', '2 1', '2 1 1000 4', '2 1 1000 ', '-2 1 1000', '2.5 1 1000', '2  1 1000', 'x'].map((limit) => ({ ...waterHash(), limit })),
  ],
}

function hash(): Record<string, string> {
  return { tokens: '1', part: '0', time: '5', limit: '2 1 1000' }
}

function waterHash(): Record<string, string> {
  return { water: '1', part: '0', time: '5', limit: '2 1 1000' }
}

/** The fields of a case parted by `|`, so that a text may be empty or hold spaces. */
function foreignLine(type: string, encoded: EncodedState): string {
  const fields = typeof encoded === 'string' ? { text: encoded } : encoded
  return [type, ...Object.entries(fields).map(([name, text]) => `${name}=${text}`)].join('|')
}

const DECODE = `
local function answer(fields)
  local algorithm, encoded = algorithms[fields[1]], {}
  for k = 2, #fields do
    local name, text = string.match(fields[k], '^(%w+)=(.*)$')
    encoded[name] = text
  end
  local words, numbers = algorithm.decode(algorithm.kind == 'string' and encoded.text or encoded)
  return words and shown({ words, numbers }) or 'refused'
end`

function decodedText({ algorithm }: Kind, encoded: EncodedState): string {
  const s = new Float64Array(algorithm === gcraAlgorithm ? 2 : 3)
  try {
    const numbers = decode(algorithm, encoded, s, 0)
    return shown([[...s], numbers])
  } catch {
    return 'refused'
  }
}

describe.each(Object.keys(KINDS))('%s in Lua', (type) => {
  const kind = KINDS[type] as Kind
  const foreign = FOREIGN[type] as readonly EncodedState[]

  test('reads no state that it did not write, exactly like the TypeScript', async () => {
    const lines = foreign.map((encoded) => foreignLine(type, encoded))
    const typescript = foreign.map((encoded) => decodedText(kind, encoded))
    expect(typescript.filter((text) => text !== 'refused')).toEqual([])
    expectSame(lines, await inRedis(DECODE, lines), typescript)
  })
})

const BYTES = `
local function bytesIn(field)
  return field == '-' and '' or (string.gsub(field, '%x%x', function(hex) return string.char(tonumber(hex, 16)) end))
end`

const TAKE_BYTES = `${BYTES}
local function answer(fields)
  local bytes = bytesIn(fields[1])
  return algorithms.gcra.shortForm(fields[2] .. ':' .. packedNumbers(fields[2]), 1, 1000000)(bytes, 1, #bytes) and 'taken' or 'left'
end`

const DECODE_BYTES = `${BYTES}
local function answer(fields)
  local bytes = bytesIn(fields[1])
  local gcra = algorithms.gcra
  local s, numbers = gcra.decode(bytes)
  if not s then
    return 'refused'
  end
  -- By when the key expires it may be one of several.
  local high = string.byte(bytes)
  local onNoGrid = string.char(high < 128 and high or high % 32) .. string.sub(bytes, 2)
  return gcra.encode(gcra.ruleNamed(numbers, 0), s) == onNoGrid and gcra.text(s, numbers) or 'not ours'
end`

/** The bytes of a state, by the definition: the TAT in seven, then each figure by six bits a byte, then what is given for the part. */
function bytesOf(tatUs: bigint, figures: readonly bigint[], part: readonly number[] = []): number[] {
  const packed = figures.flatMap((figure) => {
    const bytes = [Number(figure & 63n)]
    for (let left = figure >> 6n; left > 0n; left >>= 6n) {
      bytes[bytes.length - 1] = (bytes.at(-1) as number) + 64
      bytes.push(Number(left & 63n))
    }
    return bytes
  })
  return [...Array.from({ length: 7 }, (_, k) => Number((tatUs >> BigInt(8 * (6 - k))) & 255n)), ...packed, ...part]
}

/** A figure by its digits and the zeros behind them. */
const round = (digits: bigint, zeros = 0n) => digits * 8n + zeros

const hexOf = (bytes: readonly number[]) => bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('') || '-'

describe('gcra in bytes', () => {
  const KNOWN: readonly (readonly [string, bigint, bigint[], number[]])[] = [
    ['2100000 2 1 1000000', 2_100_000n, [round(2n), round(1n), round(1n, 6n)], []],
    ['142857 7 7 1000000 1', 142_857n, [round(7n), round(7n), round(1n, 6n)], [1]],
    [
      '1763200000000000 1000000 999983 86400000000 999982',
      1_763_200_000_000_000n,
      [round(1n, 6n), round(999_983n), round(8_640n, 7n)],
      [0x0f, 0x42, 0x2e],
    ],
    ['0 1 10 1', 0n, [round(1n), round(1n, 1n), round(1n)], []],
    ['7 128 16384 1000000 16383', 7n, [round(128n), round(16_384n), round(1n, 6n)], [0x3f, 0xff]],
    ['255 127 256 10 255', 255n, [round(127n), round(256n), round(1n, 1n)], [255]],
    ['255 127 257 10 1', 255n, [round(127n), round(257n), round(1n, 1n)], [0, 1]],
    ['7 1 1 1000001', 7n, [round(1n), round(1n), round(1_000_001n)], []],
    ['72057594037 129 2097152 30000000 128', 72_057_594_037n, [round(129n), round(2_097_152n), round(3n, 7n)], [0, 0, 128]],
    ['5000000000000000 1000000000 1 31622400000000', 5_000_000_000_000_000n, [round(100n, 7n), round(1n), round(3_162_240n, 7n)], []],
  ]
  test.each(KNOWN)('%s stands there as defined', async (text, tatUs, figures, part) => {
    expect(await inRedis(DECODE_BYTES, [hexOf(bytesOf(tatUs, figures, part))])).toEqual([text])
  })

  const [ONE, THREE, SECOND] = [round(1n), round(3n), round(1n, 6n)]
  const MOST = [round(999_999_999n), round(999_999_999n), round(31_622_399_999_999n)]
  const REFUSED: readonly (readonly [string, number[]])[] = [
    ['no capacity', bytesOf(7n, [0n, ONE, SECOND])],
    ['no permits', bytesOf(7n, [ONE, 0n, SECOND])],
    ['no period', bytesOf(7n, [ONE, ONE, 0n])],
    ['zeros without digits', bytesOf(7n, [ONE, ONE, round(0n, 6n)])],
    ['a part that is a whole', bytesOf(7n, [ONE, THREE, SECOND], [3])],
    ['a part of 0', bytesOf(7n, [ONE, THREE, SECOND], [0])],
    ['a part of one permit', bytesOf(7n, [ONE, ONE, SECOND], [1])],
    ['zeros that could be counted', bytesOf(7n, [ONE, ONE, round(10n, 5n)])],
    ['a figure that goes on with nothing', [...bytesOf(7n, [ONE, ONE]), 64 + 14, 0]],
    ['a figure with an eighth bit', [...bytesOf(7n, [ONE, ONE]), 128 + 14, 1]],
    ['a figure that never ends', [...bytesOf(7n, [ONE, ONE]), ...Array.from({ length: 400 }, () => 127), 1]],
    ['a time that never comes', bytesOf(2n ** 53n, [ONE, ONE, SECOND])],
    ['a grid that there is not', bytesOf(2n ** 54n + 2n ** 53n + 7n, [ONE, ONE, SECOND])],
    ['a byte too many', bytesOf(7n, [ONE, THREE, SECOND], [1, 1])],
    ['more than 366 days', bytesOf(7n, [ONE, ONE, round(31_622_400_000_001n)])],
  ]
  test.each(REFUSED)('%s is refused', async (_, bytes) => {
    expect(await inRedis(DECODE_BYTES, [hexOf(bytes)])).toEqual(['refused'])
  })

  // Under the same numbers, and long ago: but for what stands behind them it would fit.
  const NUMBERS = [round(1n, 3n), round(3n, 2n), SECOND]
  const ENDINGS: readonly (readonly [string, readonly number[], string])[] = [
    ['nothing', [], 'taken'],
    ['a part', [0x01, 0x2b], 'taken'],
    ['a part that is a whole', [0x01, 0x2c], 'left'],
    ['a part of 0', [0, 0], 'left'],
    ['a part and more', [0, 5, 5], 'left'],
    ['half a part', [5], 'left'],
  ]
  test.each(ENDINGS)('with %s behind the numbers, the short form agrees', async (_, ending, answer) => {
    const bytes = bytesOf(7n, NUMBERS, ending)
    expect(await inRedis(TAKE_BYTES, [`${hexOf(bytes)}|1000 300 1000000`])).toEqual([answer])
    expect(await inRedis(DECODE_BYTES, [hexOf(bytes)])).toEqual([answer === 'taken' ? expect.stringMatching(/^7 1000 300 /) : 'refused'])
  })

  test.each([
    [256n, [255]],
    [257n, [0, 255]],
    [65_536n, [0, 255]],
    [65_537n, [0, 0, 255]],
  ])('a part of one of %i permits takes as many bytes in the short form', async (permits, part) => {
    const bytes = bytesOf(7n, [round(1n, 3n), round(permits), SECOND], part)
    expect(await inRedis(TAKE_BYTES, [`${hexOf(bytes)}|1000 ${permits} 1000000`])).toEqual(['taken'])
    expect(await inRedis(DECODE_BYTES, [hexOf(bytes)])).toEqual([`7 1000 ${permits} 1000000 255`])
  })

  test('the largest of all is read', async () => {
    const largest = [2n ** 53n - 1n, 2n ** 56n - 1n].map((tatUs) => bytesOf(tatUs, MOST, [0x3b, 0x9a, 0xc9, 0xfe]))
    expect(largest.map(({ length }) => length)).toEqual([31, 31])
    const text = '9007199254740991 999999999 999999999 31622399999999 999999998'
    expect(await inRedis(DECODE_BYTES, largest.map(hexOf))).toEqual([text, text])
  })

  test('whatever is read as a state would be written like that, and every damaged state but that is refused', async () => {
    const random = fc.sample(fc.array(fc.nat(255), { maxLength: 40 }), { numRuns: 3_000, seed: 20_260_417 })
    const damaged = KNOWN.flatMap(([, tatUs, figures, part]) => {
      const bytes = bytesOf(tatUs, figures, part)
      const flipped = bytes.flatMap((byte, k) => Array.from({ length: 8 }, (_, bit) => bytes.with(k, byte ^ (1 << bit))))
      const cut = bytes.map((_, k) => bytes.slice(0, k))
      return [...flipped, ...cut, [...bytes, 0], [...bytes, 128], [...bytes, 5, 5]]
    })
    const answers = await inRedis(DECODE_BYTES, [...random, ...damaged].map(hexOf))
    expect(answers.filter((answer) => answer === 'not ours')).toEqual([])
    const [refused, read] = [true, false].map((is) => answers.filter((answer) => (answer === 'refused') === is).length)
    console.log(`gcra in bytes: ${refused} refused, ${read} read back`)
    expect(Math.min(refused as number, read as number)).toBeGreaterThan(100)
  })
})

// ------------------------------------------------------------------------------------------------------------------------ one decision

const drawnCell = fc.record({
  type: fc.constantFrom(...Object.keys(KINDS)),
  limit: drawnLimit,
  /** Whether the store holds the key, and if so, under which numbers. */
  held: fc.constantFrom('not', 'under the present numbers', 'under the present numbers', 'under old numbers'),
  limitBefore: drawnLimit,
  state: drawnState,
  cost: drawnCost,
  ticket: fc.option(drawnTicket, { freq: 3 }),
  ticketIsOld: fc.constantFrom(false, false, false, true),
})
type DrawnCell = typeof drawnCell extends fc.Arbitrary<infer T> ? T : never

const drawnDecision = fc.record({
  op: fc.constantFrom<Op[]>('take', 'take', 'ask', 'give'),
  cells: fc.tuple(drawnCell, drawnCell),
  maxAheadUs: fc.oneof(drawnAhead, fc.constant(MAX_PERIOD_US)),
  ahead: fc.constantFrom('none', 'only what may act now', 'some', 'all', 'just enough for the first', 'one microsecond too little'),
  aheadShare: share,
  nowUs: drawnNow,
  of: drawnOf,
})

interface DecisionCase {
  op: Op
  nowUs: number
  aheadUs: number
  ofUs: number
  cells: CellCase[]
}

interface CellCase {
  rule: LevelRule
  cost: number
  /** How long the cell would have to wait. */
  waitUs: number
  written: LevelRule | undefined
  state: number[]
  ticket: Ticket | undefined
}

function cellDrawn(drawn: DrawnCell, maxAheadUs: number, nowUs: number): CellCase {
  const kind = KINDS[drawn.type] as Kind
  const rule = kind.rule(drawn.limit, maxAheadUs)
  const old = kind.rule(drawn.limitBefore, maxAheadUs)
  const writtenUnder = drawn.held === 'under old numbers' ? old : rule
  const state = kind.state(writtenUnder, levelDrawn(writtenUnder, drawn.state), writtenAt(writtenUnder, drawn.state, nowUs), nowUs)
  const settled = Float64Array.from(state)
  if (drawn.held === 'not') kind.algorithm.fresh(rule, settled, 0, nowUs)
  else kind.algorithm.settle(rule, writtenUnder, settled, 0, nowUs)
  const cost = costDrawn(rule.capacity, drawn.cost)
  const waitUs = kind.algorithm.waitUs(rule, settled, 0, nowUs, clampTo(1, cost, rule.capacity))
  const words = drawn.ticket === null ? undefined : ticketDrawn(kind, rule, [...settled], cost, nowUs, drawn.ticket)
  const ticket = words && { numbers: drawn.ticketIsOld ? old.numbers : rule.numbers, words: Float64Array.from(words) }
  return { rule, cost, waitUs, written: drawn.held === 'not' ? undefined : writtenUnder, state, ticket }
}

function decisionDrawn(drawn: typeof drawnDecision extends fc.Arbitrary<infer T> ? T : never): DecisionCase {
  const { op, maxAheadUs, nowUs } = drawn
  const cells = drawn.cells.map((cell) => cellDrawn(cell, maxAheadUs, nowUs))
  const { rule, waitUs } = cells[0] as CellCase
  const aheadUs = {
    none: -1,
    'only what may act now': 0,
    some: portion(maxAheadUs, drawn.aheadShare),
    all: maxAheadUs,
    'just enough for the first': Math.min(waitUs, maxAheadUs),
    'one microsecond too little': clampTo(0, waitUs - 1, maxAheadUs),
  }[drawn.ahead]
  return { op, nowUs, aheadUs, ofUs: ofUsDrawn(rule.windowUs, nowUs, drawn.of), cells }
}

function decisionLine({ op, nowUs, aheadUs, ofUs, cells }: DecisionCase): string {
  const parts = cells.map(({ rule, cost, written, state, ticket }) => {
    const held = written === undefined ? '-|-' : `${written.numbers}|${shown(state)}`
    const reserved = ticket === undefined ? '-|-' : `${ticket.numbers}|${shown(ticket.words)}`
    return `${rule.algorithm.type}|${rule.numbers}|${rule.maxAheadUs}|${cost}|${held}|${reserved}`
  })
  return [op, nowUs, aheadUs, ofUs, ...parts].join('|')
}

/** An impossible cost has no wait: Infinity here, nothing in a reply of Redis. */
const DECIDE = `
local function cellFrom(fields, first)
  local algorithm = algorithms[fields[first]]
  local rule = algorithm.ruleNamed(fields[first + 1], tonumber(fields[first + 2]))
  local cell = { algorithm = algorithm, rule = rule, cost = tonumber(fields[first + 3]) }
  if fields[first + 4] ~= '-' then
    cell.written = fields[first + 4] == rule.numbers and rule or algorithm.ruleNamed(fields[first + 4], rule.maxAheadUs)
    cell.state = wordsOf(fields[first + 5])
  end
  if fields[first + 6] ~= '-' then
    cell.ticket = { numbers = fields[first + 6], words = wordsOf(fields[first + 7]) }
  end
  return cell
end

-- Reused from case to case, as the runner does.
local verdicts = { {}, {} }

local function answer(fields)
  local cells = { cellFrom(fields, 5), cellFrom(fields, 13) }
  decide(fields[1], cells, tonumber(fields[2]), tonumber(fields[3]), tonumber(fields[4]), verdicts)
  local said = {}
  for k, verdict in ipairs(verdicts) do
    local retryUs = verdict.outcome == 'impossible' and 'never' or verdict.retryUs
    said[#said + 1] = shown({ verdict.outcome, verdict.remaining, retryUs, verdict.resetUs, verdict.delayUs, cells[k].changed, cells[k].state })
    said[#said + 1] = shown({ 'ticket', verdict.ticket or '-' }) .. shown({ ' entered', verdict.enteredUs })
  end
  return table.concat(said, '; ')
end`

/** Reused from case to case, like the ones of a store: nothing of the last decision may show in the next. */
const verdicts: readonly [Verdict, Verdict] = [emptyVerdict(), emptyVerdict()]

function decideOf({ op, nowUs, aheadUs, ofUs, cells: cases }: DecisionCase): string {
  const cells = cases.map(({ rule, cost, written, state, ticket }): Cell => {
    return { rule, cost, written, ticket, s: new Place(state).s, i: 1, changed: true }
  })
  const granted = decide(op, cells, nowUs, aheadUs, ofUs, verdicts)
  expect(granted).toBe(verdicts.every(({ outcome }) => outcome === 'allowed'))
  return verdicts.map((verdict, k) => verdictText(verdict, cells[k] as Cell, nowUs)).join('; ')
}

function verdictText(verdict: Verdict, cell: Cell, nowUs: number): string {
  const { outcome, remaining, retryUs, resetUs, delayUs, atUs, enteredUs, ticket } = verdict
  expect(atUs).toBe(nowUs)
  expect(outcome === 'impossible').toBe(retryUs === Number.POSITIVE_INFINITY)
  if (ticket !== undefined) expect(ticket.numbers).toBe(cell.rule.numbers)
  const retry = outcome === 'impossible' ? 'never' : retryUs
  const state = cell.s.slice(1, -1)
  const rest = `${shown(['ticket', ticket?.words ?? '-'])}${shown([' entered', enteredUs])}`
  return `${shown([outcome, remaining, retry, resetUs, delayUs, cell.changed, state])}; ${rest}`
}

/** What happened in a decision. */
function decisionKinds({ op, cells }: DecisionCase, answer: string): string[] {
  const said = answer.split('; ')
  const first = (said[0] as string).split(' ')
  const second = (said[2] as string).split(' ')
  const outcome = first[0] === second[0] ? first[0] : `${[first[0], second[0]].sort().join(' but ')}`
  const kinds = [`${op} ${outcome}`]
  if (!said[1]?.startsWith('ticket - ') && Math.max(Number(first[4]), Number(second[4])) > 0) kinds.push('reserved ahead of time')
  if (cells.some(({ written }) => written === undefined)) kinds.push('new key')
  if (op === 'give') kinds.push(cells[0]?.ticket === undefined ? `give back, changed ${first[5]}` : `cancel, changed ${first[5]}`)
  return kinds
}

test('decide in Lua answers and writes what decide does in TypeScript, on random pairs of cells', async () => {
  const cases = fc.sample(drawnDecision, { numRuns: 30_000, seed: 23 }).map(decisionDrawn)
  const typescript = cases.map(decideOf)
  const lines = cases.map(decisionLine)
  expectSame(lines, await inRedis(DECIDE, lines), typescript)

  const tally = new Tally()
  for (const [k, each] of cases.entries()) tally.add(...decisionKinds(each, typescript[k] as string))
  console.log('decide:', cases.length, 'cases', tally.counts)
  tally.expectShare(['take allowed', 'take limited', 'take allowed but limited', 'take allowed but impossible'], 1_000)
  tally.expectShare(['ask allowed', 'ask limited', 'ask allowed but limited', 'give allowed', 'reserved ahead of time', 'new key'], 500)
  tally.expectShare(['give back, changed true', 'give back, changed false', 'cancel, changed true', 'cancel, changed false'], 500)
})

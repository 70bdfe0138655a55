/**
 * Every Lua function of the windows beside its TypeScript twin, on the same state, in the real Redis: same result, same state.
 * States travel in the form that Redis keeps them in, so that encode and decode are compared with everything else. Leaky bucket is in
 * lua-twins.test.ts.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Algorithm, COMPILE, type EncodedState, figuresNamed, type Rule } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/fixed-window.ts'
import { gcra } from '../../src/algorithms/gcra/gcra.ts'
import { LIBRARY, scriptFor } from '../../src/stores/redis/script.ts'
import { wiredNumbers } from '../../src/stores/redis/wire.ts'
import { slotOf, type WindowKind, type WindowNumbers } from '../../src/testing/window-oracle.ts'
import { decode } from '../support/decode.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { Random } from './random.ts'
import { SHORT_FORM, WIRED } from './short-form.ts'
import { SEED } from './trace.ts'
import { someWindow, WINDOW_KINDS, type WindowTraceNumbers, windowRule } from './window-trace.ts'

const MAX_NOW_US = 5_000_000_000_000_000
const CASES = 10_000
const BATCH = 500

let redis: TestRedis

beforeAll(async () => {
  redis = await connectRedis()
})

afterAll(() => redis.close())

// -------------------------------------------------------------------------------------------------------------------------- the cases

/** A state as pairs of text: a hash or a sorted set in its order. A string has one pair, and no name. */
type Pairs = readonly (readonly [name: string, value: string])[]

interface Case {
  readonly rule: Rule
  readonly written: Rule
  readonly state: Pairs
  readonly nowUs: number
  readonly cost: number
  readonly giveCost: number
  readonly ofUs: number
  /** What is special about it. */
  readonly kinds: readonly string[]
}

const CLOCKS = ['long ago', 'a while ago', 'now', 'ahead', 'one window ahead', 'just beyond one window ahead', 'far ahead'] as const

function someCase(kind: WindowKind, random: Random): Case {
  const numbers = someWindow(kind, random)
  const isOld = random.chance(0.4)
  const writtenNumbers = isOld ? someWindow(kind, random) : numbers
  const [rule, written] = [windowRule(kind, numbers), windowRule(kind, writtenNumbers)]
  const nowUs = random.pick([1_700_000_000_000_000 + random.whole(0, 1e15), random.whole(0, MAX_NOW_US), random.whole(0, 100), MAX_NOW_US])
  const clock = random.pick(CLOCKS)
  const atUs = Math.min(2 ** 53 - 1, Math.max(0, nowUs + aheadUs(random, clock, written.windowUs)))
  return {
    rule,
    written,
    state: SOME_STATE[kind](random, writtenNumbers, atUs),
    nowUs,
    cost: random.pick([1, random.whole(1, rule.capacity), rule.capacity]),
    giveCost: random.pick([1, random.whole(1, rule.capacity), 1_000_000_000]),
    ofUs: someOfUs(random, nowUs, atUs, rule.windowUs),
    kinds: [clock, isOld ? 'old numbers' : 'present numbers'],
  }
}

function aheadUs(random: Random, clock: (typeof CLOCKS)[number], windowUs: number): number {
  return {
    'long ago': -windowUs - random.whole(0, 2 * windowUs),
    'a while ago': -random.whole(0, windowUs),
    now: 0,
    ahead: random.whole(1, windowUs),
    'one window ahead': windowUs,
    'just beyond one window ahead': windowUs + 1,
    'far ahead': windowUs + random.whole(1, 10 * windowUs),
  }[clock]
}

function someOfUs(random: Random, nowUs: number, atUs: number, windowUs: number): number {
  return Math.max(
    -1,
    random.pick([-1, nowUs, atUs, atUs, nowUs - random.whole(0, windowUs), nowUs - windowUs, nowUs + random.whole(0, windowUs)]),
  )
}

/** States that calls could have led to, under any numbers. */
const SOME_STATE: Readonly<Record<WindowKind, (random: Random, numbers: WindowTraceNumbers, atUs: number) => Pairs>> = {
  fixedWindow(random, { limit, lengthUs, anchor }, atUs) {
    const count = random.pick([0, limit, random.whole(0, limit)])
    const sinceUs =
      anchor === 'first' ? random.whole(0, Math.min(atUs, lengthUs - 1)) : (((atUs - anchor) % lengthUs) + lengthUs) % lengthUs
    return [['', `${count} ${atUs - sinceUs} ${atUs} ${limit} ${lengthUs} ${anchor === 'first' ? '1 0' : `0 ${anchor}`}`]]
  },
  slidingWindow(random, numbers, atUs) {
    const { limit, lengthUs, slots } = numbers
    const latest = Number(slotOf(numbers, atUs))
    const fields: [string, string][] = [
      ['time', `${atUs}`],
      ['limit', `${limit} ${lengthUs} ${slots}`],
    ]
    const chosen = new Set(
      Array.from({ length: random.whole(0, 8) }, () => random.pick([latest, latest - slots, latest - random.whole(0, slots)])),
    )
    let left = limit
    for (const slot of chosen) {
      // The oldest may hold up to the limit whatever the others do: it has been fading.
      const count = random.whole(0, slot === latest - slots ? limit : left)
      if (slot !== latest - slots) left -= count
      if (slot >= 0 && count > 0) fields.push([`${slot}`, `${count}`])
    }
    return fields
  },
  slidingLog(random, { limit, lengthUs }, atUs) {
    const times = Array.from({ length: random.whole(0, Math.min(limit, 30)) }, () =>
      random.pick([atUs, atUs - lengthUs, atUs - random.whole(0, 2 * lengthUs)]),
    )
    const entries = [...new Set(times)].filter((time) => time >= 0).sort((a, b) => a - b)
    let left = limit - entries.length
    const counts = entries.map(() => {
      const more = random.pick([0, random.whole(0, left)])
      left -= more
      return 1 + more
    })
    return [[`at ${atUs} limit ${limit} ${lengthUs}`, '0'], ...entries.map((time, k) => [`${time} ${counts[k]}`, `${time}`] as const)]
  },
}

// ----------------------------------------------------------------------------------------------------------------------- the two sides

function lineOf(kind: WindowKind, { rule, written, state, nowUs, cost, giveCost, ofUs }: Case): string {
  const [now, of] = [`${nowUs}`, `${ofUs}`]
  return JSON.stringify({
    kind,
    rule: rule.numbers,
    written: written.numbers,
    state: state.flat(),
    now,
    cost: `${cost}`,
    give: `${giveCost}`,
    of,
  })
}

/** All functions on the settled state under the present rule, then on the raw state under the rule that it was written under. */
const EVERY_FUNCTION = `
local function number(value)
  return type(value) == 'number' and string.format('%.0f', value) or tostring(value)
end

-- A string travels as the text that it is in TypeScript, and is made bytes and read back here.
local function fromText(algorithm, text)
  local count, startUs, atUs, numbers = string.match(text, '^(%d+) (%-?%d+) (%d+) (.*)$')
  local s = { tonumber(startUs), tonumber(count), tonumber(atUs) }
  return algorithm.decode(algorithm.encode(algorithm.ruleNamed(numbers, 0), s))
end

local function decoded(algorithm, pairs)
  if algorithm.kind == 'string' then
    return fromText(algorithm, pairs[2])
  end
  local fields, members = {}, {}
  for k = 1, #pairs, 2 do
    fields[pairs[k]] = pairs[k + 1]
    members[#members + 1] = pairs[k]
  end
  return algorithm.decode(algorithm.kind == 'zset' and members or fields)
end

local function encoded(algorithm, rule, s)
  return algorithm.kind == 'string' and { '', algorithm.text(s, rule.numbers) } or algorithm.encode(rule, s)
end

local function text(pairs)
  local shown = {}
  for k = 1, #pairs, 2 do
    shown[#shown + 1] = pairs[k] .. '=' .. pairs[k + 1]
  end
  table.sort(shown)
  return table.concat(shown, ', ')
end

${SHORT_FORM}
local function everyFunction(say, algorithm, rule, s, case)
  local nowUs, cost = tonumber(case.now), math.min(tonumber(case.cost), rule.capacity)
  local before = encoded(algorithm, rule, s)
  local function copy()
    local again, numbers = decoded(algorithm, before)
    assert(numbers == rule.numbers)
    return again
  end
  local function after(name, wrote, state)
    say(name, wrote, text(encoded(algorithm, rule, state)), algorithm.remaining(rule, state, nowUs), algorithm.resetUs(rule, state, nowUs))
  end
  say('waitUs', algorithm.waitUs(rule, s, nowUs, cost))
  if not shortFormAgrees(algorithm, rule, copy, nowUs, cost) then
    say('the short form disagrees')
  end
  after('untouched', false, s)
  after('decoded', false, copy())
  local taken = copy()
  algorithm.take(rule, taken, nowUs, cost)
  after('take', true, taken)
  say('entered', algorithm.enteredUs(taken, nowUs))
  local given = copy()
  after('give', algorithm.give(rule, given, nowUs, tonumber(case.give), tonumber(case.of)), given)
  local cancelled = copy()
  after('cancel', algorithm.cancel(rule, cancelled, nowUs, cost, {}), cancelled)
end

local function answer(line)
  local case = cjson.decode(line)
  local algorithm = algorithms[case.kind]
  local rule, written = algorithm.ruleNamed(case.rule, 0), algorithm.ruleNamed(case.written, 0)
  local said = {}
  local function say(...)
    local texts = {}
    for k, value in ipairs({ ... }) do
      texts[k] = number(value)
    end
    said[#said + 1] = table.concat(texts, ' ')
  end
  say('rule', rule.numbers, rule.capacity, rule.windowUs, algorithm.bookable)
  say('fresh', text(encoded(algorithm, rule, algorithm.fresh(rule, tonumber(case.now)))))
  local raw, numbers = decoded(algorithm, case.state)
  assert(numbers == written.numbers)
  everyFunction(say, algorithm, written, raw, case)
  local settled = decoded(algorithm, case.state)
  say('settle', algorithm.settle(rule, written, settled, tonumber(case.now)))
  everyFunction(say, algorithm, rule, settled, case)
  return table.concat(said, '; ')
end

local answers = {}
for k = 1, #ARGV do
  answers[k] = answer(ARGV[k])
end
return answers`

async function inRedis(lines: readonly string[]): Promise<string[]> {
  const answers: string[] = []
  for (let from = 0; from < lines.length; from += BATCH) {
    const batch = lines.slice(from, from + BATCH)
    answers.push(...((await redis.send(['EVAL', `${LIBRARY}\n${EVERY_FUNCTION}`, '0', ...batch])) as string[]))
  }
  return answers
}

/** A state between two guards, as it would lie among others in a table, with room for one more charge under either rule. */
class Place {
  readonly s: Float64Array
  readonly i = 1
  readonly rule: Rule

  constructor(rule: Rule, room: number) {
    this.rule = rule
    this.s = new Float64Array(room + 2).fill(-77)
  }

  get pairs(): Pairs {
    const { algorithm } = this.rule
    if (this.s[0] !== -77 || this.s.at(-1) !== -77) throw new Error('the neighbours of the state were written over')
    const encoded = algorithm.encode(this.rule, this.s, this.i)
    return typeof encoded === 'string' ? [['', encoded]] : Object.entries(encoded)
  }

  /** The same state in another place. */
  get copy(): Place {
    return placed(this.rule, this.pairs, this.s.length - 2)
  }
}

function placed(rule: Rule, pairs: Pairs, room: number): Place {
  const place = new Place(rule, room)
  const numbers = decode(rule.algorithm, encodedOf(pairs), place.s, place.i)
  if (numbers !== rule.numbers) throw new Error(`${numbers} is decoded, ${rule.numbers} was written`)
  return place
}

function encodedOf(pairs: Pairs): EncodedState {
  return pairs[0]?.[0] === '' ? pairs[0][1] : Object.fromEntries(pairs)
}

const shownPairs = (pairs: Pairs) =>
  pairs
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join(', ')

type Say = (...values: (string | number | boolean)[]) => void

function everyFunction(say: Say, place: Place, used: Case): void {
  const { nowUs, giveCost, ofUs } = used
  const { rule } = place
  const algorithm = rule.algorithm
  const cost = Math.min(used.cost, rule.capacity)
  const after = (name: string, wrote: boolean, { s, i, pairs }: Place) =>
    say(name, wrote, shownPairs(pairs), algorithm.remaining(rule, s, i, nowUs), algorithm.resetUs(rule, s, i, nowUs))
  say('waitUs', algorithm.waitUs(rule, place.s, place.i, nowUs, cost))
  after('untouched', false, place)
  after('decoded', false, place.copy)
  const taken = place.copy
  algorithm.take(rule, taken.s, taken.i, nowUs, cost)
  after('take', true, taken)
  say('entered', algorithm.enteredUs(taken.s, taken.i, nowUs))
  const given = place.copy
  after('give', algorithm.give(rule, given.s, given.i, nowUs, giveCost, ofUs), given)
  const cancelled = place.copy
  after('cancel', algorithm.cancel(rule, cancelled.s, cancelled.i, nowUs, cost, new Float64Array(0)), cancelled)
  if (!shortFormAgrees(place, nowUs, cost)) say('tryTake disagrees with settle, waitUs and take')
}

/** Only this side has the short form of a decision. It must answer and leave what the long one does. */
function shortFormAgrees(place: Place, nowUs: number, cost: number): boolean {
  const { rule } = place
  const { algorithm } = rule
  const [short, long] = [place.copy, place.copy]
  algorithm.settle(rule, rule, long.s, long.i, nowUs)
  const fits = algorithm.waitUs(rule, long.s, long.i, nowUs, cost) === 0
  if (fits) algorithm.take(rule, long.s, long.i, nowUs, cost)
  return algorithm.tryTake(rule, short.s, short.i, nowUs, cost) === fits && shownPairs(short.pairs) === shownPairs(long.pairs)
}

function answerOf(used: Case): string {
  const { rule, written, state, nowUs } = used
  const { algorithm } = rule
  const room = Math.max(algorithm.words(rule), algorithm.words(written)) + 2
  const said: string[] = []
  const say: Say = (...values) => said.push(values.join(' '))
  say('rule', rule.numbers, rule.capacity, rule.windowUs, algorithm.bookable)
  const fresh = new Place(rule, room)
  algorithm.fresh(rule, fresh.s, fresh.i, nowUs)
  say('fresh', shownPairs(fresh.pairs))
  everyFunction(say, placed(written, state, room), used)
  const old = placed(written, state, room)
  say('settle', algorithm.settle(rule, written, old.s, old.i, nowUs))
  const settled = new Place(rule, room)
  settled.s.set(old.s)
  everyFunction(say, settled, used)
  return said.join('; ')
}

/** Of the answers, whether the ones on the settled state wrote something, and whether the cost fits. */
function answerKinds(answer: string): string[] {
  const settled = answer.slice(answer.indexOf('; settle ') + 2)
  const first = (name: string) => settled.slice(settled.indexOf(`${name} `) + name.length + 1).split(/[ ;]/, 1)[0]
  return [`settle ${first('settle')}`, `give ${first('give')}`, first('waitUs') === '0' ? 'fits' : 'must wait']
}

const EVERY_KIND = [
  ...CLOCKS,
  'old numbers',
  'present numbers',
  'settle true',
  'settle false',
  'give true',
  'give false',
  'fits',
  'must wait',
]

describe.each(WINDOW_KINDS)('%s in Lua', (kind) => {
  test('answers and writes what the TypeScript does, function by function, on random states', async () => {
    const random = new Random(SEED)
    const cases = Array.from({ length: CASES }, () => someCase(kind, random))
    const lines = cases.map((each) => lineOf(kind, each))
    const typescript = cases.map(answerOf)
    const lua = await inRedis(lines)
    const k = lua.findIndex((answer, index) => answer !== typescript[index])
    if (k >= 0) expect({ case: lines[k], lua: lua[k]?.split('; ') }).toEqual({ case: lines[k], lua: typescript[k]?.split('; ') })
    expect(lua.length).toBe(CASES)

    const counts = new Map<string, number>()
    for (const [index, { kinds }] of cases.entries()) {
      for (const name of [...kinds, ...answerKinds(typescript[index] as string)]) counts.set(name, (counts.get(name) ?? 0) + 1)
    }
    console.log(`${kind}:`, CASES, 'cases', Object.fromEntries(counts))
    for (const name of EVERY_KIND) expect(counts.get(name) ?? 0, name).toBeGreaterThanOrEqual(CASES / 20)
  })
})

// --------------------------------------------------------------------------------------------------------------------- foreign states

const WINDOWS: Readonly<Record<WindowKind, WindowNumbers>> = {
  fixedWindow: { limit: 5, lengthUs: 1_000, anchor: 0, slots: 1 },
  slidingWindow: { limit: 5, lengthUs: 1_000, anchor: 0, slots: 2 },
  slidingLog: { limit: 5, lengthUs: 1_000, anchor: 0, slots: 1 },
}

/** What a key may hold that we did not write: whatever one side refuses, the other must refuse. */
const FOREIGN: Readonly<Record<WindowKind, readonly Pairs[]>> = {
  fixedWindow: [
    ...['', 'hello', '5', '1 0 5', '1 0 5 5 1000 0', '1 0 5 5 1000 2 0', '1 0 5 5 1000 0 0 0', ' 1 0 5 5 1000 0 0', '1 0 5 5 1000 0 0 '],
    ...['-1 0 5 5 1000 0 0', '1.5 0 5 5 1000 0 0', '1 0 -5 5 1000 0 0', '1e3 0 5 5 1000 0 0', '1 0 5 5 1000 0 0\n', 'nan 0 5 5 1000 0 0'],
  ].map((text) => [['', text]]),
  slidingWindow: [
    [['tokens', '1']],
    ...['', 'x', '1.5', '-5', '1e3', '0x10', ' 5', '5\n', 'nan'].map(
      (time): Pairs => [
        ['time', time],
        ['limit', '5 1000 2'],
      ],
    ),
    ...['', '5', '5 1000', '5 1000 0', '5 0 2', '5 1000 2 1', '5 1000 10000', '-5 1000 2', '5.5 1000 2'].map(
      (limit): Pairs => [
        ['time', '5000'],
        ['limit', limit],
      ],
    ),
    ...['hello', '1.5', '-1', '11', '7', '1e1', ' 10', ''].map(
      (slot): Pairs => [
        ['time', '5000'],
        ['limit', '5 1000 2'],
        [slot, '1'],
      ],
    ),
    ...['hello', '1.5', '-1', '', ' 1', '1e1'].map(
      (count): Pairs => [
        ['time', '5000'],
        ['limit', '5 1000 2'],
        ['10', count],
      ],
    ),
  ],
  slidingLog: [
    [['hello', '0']],
    [['4000 1', '4000']],
    ...['at 5 limit 5', 'at limit 5 1000', 'at -5 limit 5 1000', 'at 5 limit 5 1000 1', 'at 5.5 limit 5 1000', ' at 5 limit 5 1000'].map(
      (head): Pairs => [[head, '0']],
    ),
    ...['hello', '4000', '4000 x', '4000 1 1', '-4000 1', '4000.5 1', '4e3 1', ' 4000 1', 'at 6 limit 5 1000'].map(
      (entry): Pairs => [
        ['at 5000 limit 5 1000', '0'],
        [entry, '4000'],
      ],
    ),
  ],
}

const DECODE = `
local answers = {}
for k = 1, #ARGV do
  local case = cjson.decode(ARGV[k])
  local algorithm, fields, members = algorithms[case.kind], {}, {}
  for n = 1, #case.state, 2 do
    fields[case.state[n]] = case.state[n + 1]
    members[#members + 1] = case.state[n]
  end
  local raw = { string = case.state[2], hash = fields, zset = members }
  answers[k] = algorithm.decode(raw[algorithm.kind]) and 'read' or 'refused'
end
return answers`

function readOrRefused(algorithm: Algorithm, pairs: Pairs): string {
  try {
    return figuresNamed(decode(algorithm, encodedOf(pairs), new Float64Array(64), 0)).length > 0 ? 'read' : 'nothing'
  } catch {
    return 'refused'
  }
}

test.each(WINDOW_KINDS)('%s reads no state that it did not write, in Lua as in TypeScript', async (kind) => {
  const { algorithm } = windowRule(kind, WINDOWS[kind])
  const lines = FOREIGN[kind].map((state) => JSON.stringify({ kind, state: state.flat() }))
  const lua = (await redis.send(['EVAL', `${LIBRARY}\n${DECODE}`, '0', ...lines])) as string[]
  const found = FOREIGN[kind].map((pairs, k) => ({ pairs, typescript: readOrRefused(algorithm, pairs), lua: lua[k] }))
  expect(found.filter((each) => each.typescript !== 'refused' || each.lua !== 'refused')).toEqual([])
})

// ------------------------------------------------------------------------------------------------------------------------- a cost of 0

const GIVE_NOTHING = `
local algorithm = algorithms[ARGV[1]]
local rule = algorithm.ruleNamed(ARGV[2], 0)
local cell = { algorithm = algorithm, rule = rule, cost = 0, written = rule, state = algorithm.fresh(rule, 1000) }
algorithm.take(rule, cell.state, 1000, 2)
decide('give', { cell }, 1200, -1, -1, { {} })
return tostring(cell.changed)`

test.each(WINDOW_KINDS)('%s in Lua is not written when nothing is given back, although there is something to give', async (kind) => {
  const { numbers } = windowRule(kind, WINDOWS[kind])
  expect(await redis.send(['EVAL', `${LIBRARY}\n${GIVE_NOTHING}`, '0', kind, numbers])).toBe('false')
})

// -------------------------------------------------------------------------------------------------------------------------- the runner

/** A call of one permit, at a time that is passed in or, with '', on the clock of the server. */
function runnerCall(op: 'take' | 'give', key: string, type: string, numbers: string, nowUs: number | ''): string[] {
  return [
    'EVAL',
    scriptFor([type]).text,
    '1',
    key,
    `${nowUs}`,
    `${op} -1 -1`,
    '1',
    '1',
    type,
    numbers,
    '0',
    '1',
    ...(op === 'give' ? ['', ''] : []),
  ]
}

/** How long the key of these calls lives right after them. The most of many tries: a millisecond may end between the last call and the question. */
async function livesMs(calls: (key: string) => readonly string[][]): Promise<number> {
  const key = 'test:the runner'
  let most = Number.NEGATIVE_INFINITY
  for (let k = 0; k < 20; k++) {
    await redis.send(['MULTI'])
    for (const args of [['DEL', key], ...calls(key), ['PTTL', key]]) await redis.send(args)
    most = Math.max(most, Number(((await redis.send(['EXEC'])) as unknown[]).at(-1)))
  }
  return most
}

test('fixedWindow in Lua has one short form for all keys of a call, whenever their windows began', async () => {
  const held = ['2 4500000', '2 4800000', '2 4500000', '2 4600000', '1 4900000', '0 4900000', '2 4000000', '2 4000001']
  const shortly = `${WIRED}
    local algorithm, numbers = algorithms.fixedWindow, '10 1000000 1 0'
    local take = algorithm.shortForm(wired(numbers), 1, 5000000)
    local said = {}
    for k, began in ipairs(ARGV) do
      local count, startUs = string.match(began, '(%d+) (%d+)')
      local held = algorithm.encode(algorithm.ruleNamed(numbers, 0), { startUs, count, 4900000 })
      local s = algorithm.decode((take(held, 1, #held)))
      said[k] = s[2] .. ' ' .. s[1] .. ' ' .. s[3]
    end
    return said`
  const left = (text: string) => `${text} 5000000`
  // The third from the end has counted nothing, and the last but one's window is over.
  const taken = ['3 4500000', '3 4800000', '3 4500000', '3 4600000', '2 4900000', '1 5000000', '1 5000000', '3 4000001'].map(left)
  expect(await redis.send(['EVAL', `${LIBRARY}\n${shortly}`, '0', ...held])).toEqual(taken)
})

// ------------------------------------------------------------------------------------------------------------------ bytes of a window

/** 10 in a minute: 3 are counted, the window began a second before the state was written, at 1763200000000000 µs. */
const WINDOW = {
  time: [0x20 + 0x06, 0x43, 0x9e, 0xfd, 0xab, 0x00, 0x00],
  /** 1 and a zero, 6 and seven zeros, and twice 0: digits times eight, and the zeros. */
  numbers: [8 + 1, 48 + 7, 0, 0],
  since: [0x00, 0x0f, 0x42, 0x40],
  count: [3],
}
const WINDOW_TEXT = '3 1763199999000000 1763200000000000 10 60000000 0 0'

const READ_AND_TAKE = `${WIRED}
local bytes = string.gsub(ARGV[1], '%x%x', function(hex) return string.char(tonumber(hex, 16)) end)
local algorithm = algorithms.fixedWindow
local s, numbers = algorithm.decode(bytes)
-- A second after it was written.
local taken = algorithm.shortForm(wired('10 60000000 0 0'), 1, 1763200001000000)(bytes, 1, #bytes)
local again = s and algorithm.encode(algorithm.ruleNamed(numbers, 0), s) == bytes
return { s and algorithm.text(s, numbers) or 'refused', taken and 'taken' or 'left', again and 'the same' or 'other bytes' }`

function readAndTaken(bytes: readonly number[]): Promise<unknown> {
  const hex = bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')
  return redis.send(['EVAL', `${LIBRARY}\n${READ_AND_TAKE}`, '0', hex])
}

const bytesOf = (changed: Partial<typeof WINDOW> = {}) => Object.values({ ...WINDOW, ...changed }).flat()

test('fixedWindow in bytes stands there as defined', async () => {
  expect(await readAndTaken(bytesOf())).toEqual([WINDOW_TEXT, 'taken', 'the same'])
})

test.each([
  ['a time that is no window', { time: WINDOW.time.with(0, 0x06) }],
  ['a time after the last', { time: WINDOW.time.with(0, 0x40) }],
  ['a limit of 0', { numbers: WINDOW.numbers.with(0, 0) }],
  ['no window', { numbers: WINDOW.numbers.with(1, 0) }],
  ['neither the first nor not', { numbers: WINDOW.numbers.with(2, 16) }],
  ['a byte too few', { count: [] }],
  ['a byte too many', { count: [0, 3] }],
  ['more than the limit', { count: [11] }],
  ['a window that is longer than it is', { since: [0x03, 0x93, 0x87, 0x00] }],
  ['more than the limit in a window that is over', { time: WINDOW.time.with(1, 0), count: [11] }],
])('fixedWindow in bytes: %s is refused', async (_, changed) => {
  expect(await readAndTaken(bytesOf(changed))).toEqual(['refused', 'left', 'other bytes'])
})

test.each([
  ['no fewer', { count: [10] }, '10 1763199999000000 1763200000000000 10 60000000 0 0', 'left'],
  ['the last microsecond of it', { since: [0x03, 0x93, 0x86, 0xff] }, '3 1763199940000001 1763200000000000 10 60000000 0 0', 'taken'],
  ['the last time of all', { time: [0x3f, 255, 255, 255, 255, 255, 255] }, '3 9007199253740991 9007199254740991 10 60000000 0 0', 'left'],
  ['a window of the first call', { numbers: WINDOW.numbers.with(2, 8) }, '3 1763199999000000 1763200000000000 10 60000000 1 0', 'left'],
])('fixedWindow in bytes: %s is read', async (_, changed, text, answer) => {
  expect(await readAndTaken(bytesOf(changed))).toEqual([text, answer, 'the same'])
})

test('fixedWindow in bytes with one bit changed: what is read would be written like that', async () => {
  const bytes = bytesOf()
  const flipped = bytes.flatMap((byte, k) => Array.from({ length: 8 }, (_, bit) => bytes.with(k, byte ^ (1 << bit))))
  const answers = (await Promise.all(flipped.map(readAndTaken))) as [string, string, string][]
  expect(answers.filter(([text, , again]) => (text === 'refused') === (again === 'the same'))).toEqual([])
  const refused = answers.filter(([text]) => text === 'refused').length
  expect(Math.min(refused, answers.length - refused)).toBeGreaterThan(20)
})

test('fixedWindow in bytes may have begun before 1970', async () => {
  const since = { time: [0x20, 0, 0, 0, 0, 0, 0], since: [0x00, 0x0f, 0x42, 0x40] }
  expect(await readAndTaken(bytesOf(since))).toEqual(['3 -1000000 0 10 60000000 0 0', 'taken', 'the same'])
})

test.each([
  ['gcra', gcra({ rate: { permits: 1, per: 2_000.5 }, burst: 10 })],
  ['fixedWindow', fixedWindow({ limit: 10, window: 2_000.5, anchor: 'first' })],
])('the runner and a lone take by %s let a key live until it is idle, to the millisecond', async (type, limit) => {
  const numbers = wiredNumbers(limit[COMPILE](0))
  const plain = (key: string) => ['EVAL', scriptFor([type]).text, '1', key, type, numbers, '0', '1']
  expect(await livesMs((key) => [plain(key)])).toBe(2_001)
  expect(await livesMs((key) => [runnerCall('take', key, type, numbers, '')])).toBe(2_001)
})

test('the runner keeps a key whose clock was passed in for a day', async () => {
  expect(await livesMs((key) => [runnerCall('take', key, 'slidingLog', '5 1000', 1_000)])).toBe(86_400_000)
})

test.each([
  [1_234_567, 1_235],
  [1_000_000, 1_000],
  [1, 1],
])('the runner keeps a key on the clock of the server until it is idle: %i microseconds, rounded up to %i milliseconds', async (us, ms) => {
  expect(await livesMs((key) => [runnerCall('take', key, 'slidingLog', `5 ${us}`, '')])).toBe(ms)
})

test('the runner keeps a key that is idle at once for a millisecond', async () => {
  const calls = (key: string) =>
    (['take', 'give'] as const).map((op) => runnerCall(op, key, 'gcra', wiredNumbers(gcra({ rate: '1/s', burst: 5 })[COMPILE](0)), ''))
  expect(await livesMs(calls)).toBe(1)
})

test('the runner writes a log of more entries than one command takes, each with its time', async () => {
  const key = 'test:the runner:a long log'
  const numbers = '5000 1000000'
  const times = Array.from({ length: 4_500 }, (_, k) => 1_000_000 + k)
  await redis.send(['DEL', key])
  await redis.send(['ZADD', key, '0', `at 1004499 limit ${numbers}`, ...times.flatMap((time) => [`${time}`, `${time} 1`])])
  await redis.send(runnerCall('take', key, 'slidingLog', numbers, 1_004_500))
  const held = (await redis.send(['ZRANGE', key, '0', '-1', 'WITHSCORES'])) as unknown[]
  const expected = [...times, 1_004_500].flatMap((time) => [`${time} 1`, `${time}`])
  expect(held.flat().map(String)).toEqual([`at 1004500 limit ${numbers}`, '0', ...expected])
})

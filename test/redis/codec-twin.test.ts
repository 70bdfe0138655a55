/**
 * codec.lua writes the bytes that codec.ts writes, and reads them as it does: in the Redis that
 * runs it.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Format, RULE, type Rule } from '../../src/algorithms/algorithm.ts'
import { labelOf, readState, writeState } from '../../src/algorithms/codec.ts'
import { FORMATS } from '../../src/algorithms/list.ts'
import { fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { libraryText } from '../../src/stores/redis/script.ts'
import { type LuaRedis, startRedis } from '../lua/in-redis.ts'
import { Random } from '../model/random.ts'
import { traceCount } from '../model/trace.ts'
import { fromHex, toHex } from '../support/state-bytes.ts'

let redis: LuaRedis
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.close())

const LIBRARY = libraryText()
const HEX = `
local function toHex(raw)
  return (string.gsub(raw, '.', function(letter) return string.format('%02x', string.byte(letter)) end))
end
local function fromHex(hex)
  return (string.gsub(hex, '..', function(digits) return string.char(tonumber(digits, 16)) end))
end`

/** ARGV: label, when it is idle, words, and again. Answers the records. */
const WRITE = `${LIBRARY}${HEX}
local records, writtenBy = {}, {}
for k = 1, #ARGV, 3 do
  local s, label = {}, ARGV[k]
  for word in string.gmatch(ARGV[k + 2], '%S+') do
    s[#s + 1] = tonumber(word)
  end
  if #s > 20 then
    records[#records + 1] = toHex(doublesOf(label, s, #s, tonumber(ARGV[k + 1])))
  else
    writtenBy[label] = writtenBy[label] or { forms = {}, heads = {} }
    records[#records + 1] = toHex(recordOf(label, writtenBy[label], s[1] or 0, s[2] or 0, s[3] or 0, s[4] or 0, s, #s, tonumber(ARGV[k + 1])))
  end
end
return records`

/**
 * ARGV: records. Answers for each the label, when it is idle, the numbers of its rule, where it
 * ends, and its words.
 */
const READ = `${LIBRARY}${HEX}
local states = {}
for k = 1, #ARGV do
  local raw = fromHex(ARGV[k])
  local idleAtUs, head, wordsAt = unpackBytes('>I7Bc0', raw, 1)
  local shape = shapes[head] or shapeOf(head)
  local s = shape.isLarge and {} or readWords(shape, raw, wordsAt, idleAtUs, {}, 0)
  for k = 1, shape.isLarge and shape[2] or 0 do
    s[k] = unpackBytes('>d', raw, wordsAt + k * 8 - 8)
  end
  local label, words, _, size = unpack(shape)
  states[k] = table.concat({ toHex(label), string.format('%.0f', idleAtUs), (rules[label] or ruleOf(label)).numbers, wordsAt - 1 + size,
    join(slice(s, 1, 1 + words), ' ') }, ', ')
end
return states`

const RULES: readonly Rule[] = [
  gcra({ rate: '100/min', burst: 100 })[RULE],
  gcra({ rate: '999983/s', burst: 999_999_937 })[RULE],
  tokenBucket({ refill: '7/s', capacity: 3 })[RULE],
  leakyBucket({ leak: '1/366d', capacity: 1 })[RULE],
  fixedWindow({ limit: 10, window: '1min', anchor: 30_000 })[RULE],
  slidingWindow({ limit: 10, window: '1s', slots: 1 })[RULE],
  slidingWindow({ limit: 10, window: '1s' })[RULE],
  slidingWindow({ limit: 1_000_000_000, window: '366d', slots: 100 })[RULE],
  slidingLog({ limit: 10, window: '1s' })[RULE],
  slidingLog({ limit: 20_000, window: '1d' })[RULE],
]

interface State {
  readonly rule: Rule
  readonly name: string
  readonly idleAtUs: number
  readonly words: Float64Array
}

/** The first words of a log that has a ring of so many places: as many words are written. */
function emptyLog(places: number): readonly number[] {
  return [0, 0, 0, 0, Math.floor(places)]
}

/** Words of every size, some near the time of being idle, none that the bytes cannot hold. */
function anyState(random: Random, rule: Rule): State {
  const idleAtUs = random.magnitude(1, 2 ** 53 - 1)
  const mode = random.whole(0, 3)
  const word = () => {
    const kind = mode === 3 ? random.whole(0, 2) : mode
    if (kind === 0) return random.whole(0, 255)
    return kind === 1 ? random.magnitude(1, 2 ** 53 - 1) : idleAtUs - Math.min(idleAtUs, random.magnitude(1, 2 ** 48 - 1))
  }
  const count = random.chance(0.3) ? rule.words : random.whole(0, rule.words)
  const words = Float64Array.from({ length: rule.words }, (_, k) => (k < count ? word() : 0))
  if (rule.algorithm.neededWords !== undefined) words.set(emptyLog(Math.max(0, count - 10) / 2))
  return { rule, name: random.pick(['default', 'a', 'x'.repeat(64)]), idleAtUs, words }
}

/**
 * One word at every size at which it needs a byte more: as it is and counted back, among the first
 * words and behind them.
 */
function edgeStates(): State[] {
  const rule = slidingWindow({ limit: 10, window: '1s' })[RULE]
  const numbers = [1, 2, 3, 4, 5, 6].flatMap((size) => [256 ** size - 1, 256 ** size])
  const MAX = 2 ** 53 - 1
  return numbers.flatMap((number) =>
    [
      [1, number],
      [MAX, MAX - number],
    ].flatMap(([idleAtUs, word]) => [0, 4, 5].map((place) => stateOf(rule, idleAtUs as number, [...new Array(place).fill(0), word]))),
  )
}

/** One small word alone at each of the first four places, counted back and not. */
function loneWords(): State[] {
  const rules = RULES.filter(({ words }) => words <= 12)
  return rules.flatMap((rule) =>
    Array.from({ length: Math.min(rule.words, 4) }, (_, place) => [
      stateOf(rule, 1, [...new Array(place).fill(0), 5]),
      stateOf(rule, 1_000_000, [...new Array(place).fill(0), 999_995]),
    ]).flat(),
  )
}

/**
 * Words behind the first four: some as late as the state is idle, and some that take as many bytes
 * counted back as not. And pairs that differ in their tags alone, by so much that a worse name for
 * their forms would be the same.
 */
function wordsBehind(): State[] {
  const rule = slidingWindow({ limit: 10, window: '1s' })[RULE]
  const first = [1, 2, 3, 4]
  return [
    ...[
      [...first, 400, 9, 397],
      [...first, 100, 9, 300],
    ].map((words) => stateOf(rule, 400, words)),
    ...[
      [0, 0, 5, 0, 0, 7],
      [0, 0, 0, 0, 5, 7],
      [0, 0, 0, 5, 9, 0, 9],
      [0, 0, 0, 0, 9, 5, 9],
      [0, 0, 0, 5, 9, 9],
      [0, 0, 0, 0, 9, 9, 9],
    ].map((words) => stateOf(rule, 1, words)),
  ]
}

/** More words than are packed at once: 2 x 65,536 + 2. */
function longLog(): State {
  const rule = slidingLog({ limit: 52_426, window: '1d' })[RULE]
  const idleAtUs = 1_763_286_400_000_000
  const entries = Array.from({ length: 5_000 }, (_, k) => [1 + (k % 3), idleAtUs - 50_000_000 + k * 10_000])
  return stateOf(rule, idleAtUs, [...emptyLog(65_532), 0, 0, 0, 0, 0, ...entries.flat()])
}

function stateOf(rule: Rule, idleAtUs: number, first: readonly number[]): State {
  const words = new Float64Array(rule.words)
  words.set(first)
  return { rule, name: 'default', idleAtUs, words }
}

const random = new Random(20_261_117)
const STATES: readonly State[] = [
  ...RULES.flatMap((rule) => Array.from({ length: rule.words > 500 ? 6 : traceCount(300) }, () => anyState(random, rule))),
  ...edgeStates(),
  ...loneWords(),
  ...wordsBehind(),
  longLog(),
]
const recordOf = ({ rule, name, idleAtUs, words }: State) => writeState(rule, words, 0, idleAtUs, name)

/** A log writes no more words than it says it needs, and Lua writes those that it is handed. */
function writtenOf({ rule: { algorithm, freshWords }, words }: State): Float64Array {
  return algorithm.neededWords === undefined ? words : words.slice(0, Math.max(freshWords, algorithm.neededWords(words, 0)))
}

function* inPieces<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let first = 0; first < items.length; first += 100) yield items.slice(first, first + 100)
}

test('writes the same bytes', async () => {
  for (const states of inPieces(STATES)) {
    const args = states.flatMap((state) => [labelOf(state.rule, state.name), `${state.idleAtUs}`, writtenOf(state).join(' ')])
    expect(await redis.send(['EVAL', WRITE, '0', ...args])).toEqual(states.map((state) => toHex(recordOf(state))))
  }
})

test('reads the same states', async () => {
  for (const states of inPieces(STATES)) {
    const records = states.map(recordOf)
    const read = (await redis.send(['EVAL', READ, '0', ...records.map(toHex)])) as string[]
    read.forEach((text, k) => {
      const [label, idleAtUs, numbers, end, words = ''] = text.split(', ')
      const { rule, name } = states[k] as State
      const state = readState(records[k] as Uint8Array, 0)
      expect([label, idleAtUs, numbers, end]).toEqual([
        toHex([...labelOf(rule, name)].map((letter) => letter.charCodeAt(0))),
        `${state.idleAtUs}`,
        state.rule.numbers,
        `${state.end}`,
      ])
      const seen = words === '' ? [] : words.split(' ').map(Number)
      if (rule.words <= 20) expect(seen.at(-1), 'the last word that is written').not.toBe(0)
      expect(seen).toEqual([...state.words.slice(0, seen.length)])
      expect([...state.words.slice(seen.length)].every((word) => word === 0)).toBe(true)
    })
  }
})

/** ARGV: label, when it is idle, words. Answers the record with tags. */
const WRITE_TAGGED = `${LIBRARY}${HEX}
local s = {}
for word in string.gmatch(ARGV[3], '%S+') do
  s[#s + 1] = tonumber(word)
end
return toHex(recordOf(ARGV[1], { forms = {}, heads = {} }, s[1], s[2], s[3], s[4], s, #s, tonumber(ARGV[2])))`

test('words with tags may be any number up to 20', async () => {
  const rule = slidingWindow({ limit: 10, window: '16s', slots: 16 })[RULE]
  const idleAtUs = 1_763_286_400_000_000
  const kinds: ((k: number) => number)[] = [(k) => k, (k) => idleAtUs - 50_000_000 + k, () => idleAtUs, (k) => 2 ** 52 + k]
  for (const [n, count] of [5, 6, 7, 8, 12, 13, 19, 20, 20, 20].entries()) {
    const [even, odd] = [kinds[n % 4], kinds[(n >> 1) % 4]] as [(k: number) => number, (k: number) => number]
    const words = Array.from({ length: count }, (_, k) => (k < 4 ? 7 * k : k % 2 === 0 ? even(k) : odd(k)))
    const hex = (await redis.send(['EVAL', WRITE_TAGGED, '0', labelOf(rule, 'default'), `${idleAtUs}`, words.join(' ')])) as string
    const state = readState(fromHex(hex), 0)
    expect([count, state.idleAtUs, ...state.words.subarray(0, count)]).toEqual([count, idleAtUs, ...words])
    const [read] = (await redis.send(['EVAL', READ, '0', hex])) as string[]
    expect(read?.split(', ').slice(1)).toEqual([`${idleAtUs}`, rule.numbers, `${state.end}`, words.join(' ')])
  }
})

test('both refuse more than 20 words with tags', async () => {
  const label = [...labelOf(slidingWindow({ limit: 10, window: '16s', slots: 16 })[RULE], 'default')].map((letter) => letter.charCodeAt(0))
  const script = `${LIBRARY}${HEX} local isRead, failure = pcall(shapeOf, fromHex(ARGV[1])) return isRead and 'read' or failure.what`
  for (const [words, bytes] of [
    [20, [0, 0, 16]],
    [21, [0, 0, 17]],
    [260, [0, 1, 0]],
    [16_777_219, [255, 255, 255]],
  ] as const) {
    const head = [...label, 0x11, 0x11, 0x11, ...bytes]
    const read = () => readState(Uint8Array.from([6, 0, 0, 0, 0, 0, 0, head.length, ...head, ...new Array(300).fill(1)]), 0).words.length
    if (words <= 20) expect(read()).toBe(20)
    else expect(read).toThrow(/words (have no tags|are more than)/)
    expect(await redis.send(['EVAL', script, '0', toHex(head)])).toBe(words <= 20 ? 'read' : `${words} words have no tags`)
  }
})

test('both refuse heads that are cut off, and tags of other lengths', async () => {
  const label = toHex([...labelOf(RULES[0] as Rule, 'default')].map((letter) => letter.charCodeAt(0)))
  const script = `${LIBRARY}${HEX} local isRead, failure = pcall(shapeOf, fromHex(ARGV[1])) return isRead and 'read' or failure.what`
  const shorts = ['', '01', '0102', '0100', '010003', label.slice(0, -2)]
  const heads: [head: string, what: string][] = [
    ...shorts.map((head): [string, string] => [head, 'the head of a record is too short']),
    ...[4, 5, 7].map((count): [string, string] => [label + '11'.repeat(count), `${count} bytes are no tags`]),
  ]
  for (const [head, what] of heads) {
    const bytes = fromHex(head)
    expect(() => readState(Uint8Array.from([6, 0, 0, 0, 0, 0, 0, bytes.length, ...bytes, ...new Array(300).fill(1)]), 0), head).toThrow()
    expect(await redis.send(['EVAL', script, '0', head]), head).toBe(what)
  }
})

test('a head says its label itself, whichever was expected', async () => {
  const [one, other] = [RULES[0], RULES[1]].map((rule) => labelOf(rule as Rule, 'default')) as [string, string]
  const script = `${LIBRARY}${HEX} return toHex(shapeOf(fromHex(ARGV[1]), ARGV[2])[1])`
  const hexOf = (label: string) => toHex([...label].map((letter) => letter.charCodeAt(0)))
  for (const expected of [one, other]) {
    expect(await redis.send(['EVAL', script, '0', `${hexOf(one)}11`, expected])).toBe(hexOf(one))
  }
})

/**
 * ARGV: records and their labels. Answers for each whether it is one record under that label, also
 * if it were longer or under another, when it is idle, its first four words, and whether it is
 * written as it was.
 */
const QUICK = `${LIBRARY}${HEX}
local states = {}
for k = 1, #ARGV, 2 do
  local raw, label = fromHex(ARGV[k]), ARGV[k + 1]
  local isOne, form, length, t1, t2, t3, t4 = oneRecordForm(raw, label, #label)
  local isLonger, isOther = oneRecordForm(raw .. '!', label, #label), oneRecordForm(raw, '?' .. string.sub(label, 2), #label)
  local idleAtUs, head, a, b, c, d = unpackBytes(form, raw)
  local packed, s = { a, b, c, d }, { length = 5 }
  for n, tag in ipairs({ t1, t2, t3, t4 }) do
    if tag < 8 then
      s[n] = tag > 0 and packed[n] or 0
    else
      s[n] = idleAtUs - (tag > 8 and packed[n] or 0)
    end
  end
  local again, size = packedForm(#head, t1, t2, t3, t4)
  local isSame = pack(again, idleAtUs, head, a, b, c, d) == raw and size == length and leadTags(t1, t2, t3, t4) == string.sub(head, 2 + #label)
  states[#states + 1] = table.concat({ tostring(isOne), tostring(isLonger), tostring(isOther), string.format('%.0f', idleAtUs),
    join(slice(s, 1, 5), ' '), tostring(isSame) }, ', ')
end
return states`

test('reads and writes states of up to four words the quick way too', async () => {
  const few = STATES.filter(({ rule }) => rule.words <= 4)
  for (const states of inPieces(few)) {
    const answers = await redis.send([
      'EVAL',
      QUICK,
      '0',
      ...states.flatMap((each) => [toHex(recordOf(each)), labelOf(each.rule, each.name)]),
    ])
    expect(answers).toEqual(
      states.map(({ idleAtUs, words }) => ['true, false, false', idleAtUs, [...words, 0].slice(0, 4).join(' '), 'true'].join(', ')),
    )
  }
})

test('a head is not read the quick way that tells of more than four words, or has a tag that there is not', async () => {
  const rule = RULES[0] as Rule
  const record = [...recordOf(stateOf(rule, 1_000, [900, 1, 5]))]
  const headSize = record[7] as number
  const isRead = (bytes: readonly number[]) =>
    redis.send(['EVAL', `${LIBRARY}${HEX} return tostring(oneRecordForm(fromHex(ARGV[1]), ARGV[2], #ARGV[2]))`, '0', toHex(bytes), label])
  const label = labelOf(rule, 'default')
  expect(await isRead(record)).toBe('true')
  // Two words more, which take no bytes: they are 0. And the tags of a large state.
  for (const tags of [[0, 0, 0, 2], [0]]) {
    const bytes = record.toSpliced(8 + headSize, 0, ...tags).with(7, headSize + tags.length)
    expect(await isRead(bytes)).toBe('false')
  }
  for (const place of [label.length, label.length + 1]) {
    for (const shift of [1, 16]) {
      const tags = record[8 + place] as number
      const bytes = record.with(8 + place, tags - (Math.floor(tags / shift) % 16) * shift + 15 * shift)
      // As long as it says.
      expect(await isRead([...bytes, 0, 0, 0, 0, 0, 0]), toHex(bytes)).toBe('false')
      expect(await isRead([...bytes, 0, 0, 0, 0, 0, 0, 0]), toHex(bytes)).toBe('false')
    }
  }
})

test('both refuse figures that are no limit', async () => {
  const labels = ['01 00 03 000800', '01 00 03 0a0035', '01 00 03 0a0800', '01 00 02 0a08', '01 00 04 0a083508', '01 00 03 0a0875']
  const none = ['04 00 04 00 00 00 00', '09 00 03 00 0e']
  const others = [
    ...none,
    '0a 00 02 0e0e',
    '07 00 03 090e00',
    '07 00 03 09 00 09',
    '04 00 04 09 00 00 00',
    // Spelled otherwise: ten with a zero, a byte that says nothing, and none with a zero.
    '01 00 04 51010835',
    '01 00 04 4a000835',
    '01 00 03 010835',
    '01 00 0a 0a08 7f7f7f7f7f7f7f3f',
  ]
  // Without the bound of a figure it would be a limit like any other.
  const outOfRange = [
    [1, 1e15, 1],
    [1e15, 1, 1],
    [1, 1, 31_622_400_000_001],
  ].map((figures) => [...labelOf({ ...(RULES[0] as Rule), figures }, 'default')].map((letter) => letter.charCodeAt(0)))
  const heads = [...[...labels, ...others].map(fromHex), ...outOfRange]
  for (const head of heads) {
    const hex = toHex(head)
    expect(() => readState(Uint8Array.from([6, 0, 0, 0, 0, 0, 0, head.length, ...head]), 0), hex).toThrow(/figures|limit/)
    const script = `${LIBRARY}${HEX} local isRead, failure = pcall(ruleOf, fromHex(ARGV[1])) return isRead and 'read' or failure.what`
    expect(await redis.send(['EVAL', script, '0', hex]), hex).toMatch(
      outOfRange.includes(head as number[]) ? /^a figure is out of range$/ : /figure/,
    )
  }
})

const LONGEST_US = 366 * 86_400_000_000

test.each([
  ['gcra', [1_000_000_000, 10, 1], true],
  ['gcra', [1_000_000_001, 10, 1], false],
  ['gcra', [1, 11, 1], false],
  ['gcra', [1, 2, 2], false],
  // Twice the capacity and what drains in a minute are less than 2^52 units.
  ['gcra', [71, 1, LONGEST_US], true],
  ['gcra', [72, 1, LONGEST_US], false],
  ['gcra', [3, 75_059_993, 7_506_000], true],
  ['gcra', [4, 75_059_993, 7_506_000], false],
  ['gcra', [0, 1, LONGEST_US], true],
  ['gcra', [1, 1, LONGEST_US + 1], false],
  ['tokenBucket', [1, 2, 2], false],
  ['leakyBucket', [1, 2, 2], false],
  ['fixedWindow', [0, 60_000_000, 0, 0], true],
  ['fixedWindow', [1_000_000_000, LONGEST_US, 0, LONGEST_US - 1], true],
  ['fixedWindow', [1, 60_000_000, 0, 60_000_000], false],
  ['fixedWindow', [1, 60_000_000, 1, 0], true],
  ['fixedWindow', [1, 60_000_000, 1, 1], false],
  ['fixedWindow', [1, 60_000_000, 2, 0], false],
  ['slidingWindow', [1_000_000_000, LONGEST_US, 100], true],
  ['slidingWindow', [1, 100, 100], true],
  ['slidingWindow', [1, 202, 101], false],
  ['slidingWindow', [1, 1_000_000, 3], false],
  ['slidingWindow', [1, 0, 1], false],
  ['slidingLog', [0, 1], true],
  // What callers claim of the largest log.
  ['slidingLog', [120_000, 1], true],
  ['slidingLog', [120_001, 1], false],
  ['slidingLog', [1, 0], false],
  ['concurrency', [1, 0], true],
  ['concurrency', [0, 0], false],
  ['concurrency', [1_000_000_000, LONGEST_US], true],
] as const)('both read the figures of a %s at their bounds: %j, %s', async (type, figures, isRead) => {
  const { algorithm } = FORMATS.find(({ algorithm }) => algorithm.type === type) as Format
  const rule = algorithm.ruleOf([...figures])
  const label = labelOf(rule, 'default')
  const read = () => readState(writeState(rule, new Float64Array(10), 0, 1, 'default'), 0).rule.numbers
  const script = `${LIBRARY} local isRule, rule = pcall(ruleOf, ARGV[1]) return isRule and rule.numbers or rule.what`
  const lua = await redis.send(['EVAL', script, '0', label])
  if (isRead) expect([read(), lua]).toEqual([rule.numbers, rule.numbers])
  else {
    expect(read).toThrow(/figures/)
    expect(lua).toMatch(/figure/)
  }
})

/** ARGV: the bytes of a word, its tag, when the state is idle. Answers the word. */
const WORD = `${LIBRARY}${HEX}
local shape = shapeOf(fromHex(ARGV[1]))
local isRead, words = pcall(readWords, shape, fromHex(ARGV[2]), 1, tonumber(ARGV[3]), {}, 0)
return isRead and join(slice(words, 1, 1 + shape[2]), ' ') or words.what`

test('both refuse words below 0 and above 2^53, wherever they stand, and no others', async () => {
  const rule = slidingWindow({ limit: 10, window: '1s' })[RULE]
  const label = [...labelOf(rule, 'default')].map((letter) => letter.charCodeAt(0))
  const bytes = (number: number, size: number) => Array.from({ length: size }, (_, k) => Math.floor(number / 256 ** (size - 1 - k)) % 256)
  const [idleAtUs, MAX] = [1_000_000, 2 ** 53 - 1]
  for (const [tag, number, word] of [
    [7, MAX, MAX],
    [7, MAX + 1, undefined],
    [14, idleAtUs, 0],
    [14, idleAtUs + 1, undefined],
    [11, 256 ** 3 - 1, undefined],
    [9, 200, idleAtUs - 200],
  ] as const) {
    for (const place of [0, 1, 2, 3, 4, 5, 7]) {
      const tags = [0, 1, 2, 3, 4, 5].map((k) => (k === place || (place > 5 && k === 4 + (place % 2)) ? tag : 0))
      const pairs = [0, 2, 4].map((k) => (tags[k] as number) * 16 + (tags[k + 1] as number))
      const head = [...label, ...pairs, 0, 0, 4]
      const before = place === 7 ? bytes(tag < 8 ? 5 : idleAtUs - 5, tag % 8).slice(-(tag % 8)) : []
      const earlier = place === 7 && tag >= 9 && tag < 14 ? bytes(1, tag % 8) : before
      const behind = place === 4 || place === 5 ? bytes(tag < 8 ? 5 : 1, tag % 8) : []
      const written = [...earlier, ...bytes(number, tag % 8), ...behind]
      const read = () => readState(Uint8Array.from([...bytes(idleAtUs, 7), head.length, ...head, ...written]), 0).words[place]
      const lua = (await redis.send(['EVAL', WORD, '0', toHex(head), toHex(written), `${idleAtUs}`])) as string
      const what = `${number} with the tag ${tag} at ${place}`
      if (word === undefined) {
        expect(read, what).toThrow('all are whole numbers from 0 to 2^53 - 1')
        expect(lua, what).toBe('a word is out of range')
      } else {
        expect([read(), Number(lua.split(' ')[place])], what).toEqual([word, word])
      }
    }
  }
})

test('Lua refuses words that the bytes cannot hold', async () => {
  const script = `${LIBRARY}${HEX}
    local results, written = {}, { forms = {}, heads = {} }
    for k, word in ipairs({ 0 / 0, 1 / 0, -1 / 0, 2 ^ 53, -1 }) do
      for place, count in ipairs({ 1, 5, 6 }) do
        local s = { 1, 1, 1, 1, 1, 1 }
        s[count] = word
        local isWritten, failure = pcall(recordOf, ARGV[1], written, s[1], s[2], s[3], s[4], s, count, 2 ^ 50)
        results[#results + 1] = isWritten and 'written' or failure.what
      end
    end
    results[#results + 1] = select(2, pcall(recordOf, ARGV[1], written, 0, 0, 0, 0, {}, 0, 2 ^ 53)).what
    results[#results + 1] = select(2, pcall(recordOf, ARGV[1], written, 0, 0, 0, 0, {}, 0, 0 / 0)).what
    local large = {}
    for k = 1, 21 do
      large[k] = 0
    end
    results[#results + 1] = select(2, pcall(doublesOf, ARGV[1], large, 21, 2 ^ 53)).what
    return results`
  const results = (await redis.send(['EVAL', script, '0', labelOf(RULES[6] as Rule, 'default')])) as string[]
  expect(results).toEqual([...new Array(15).fill('a word is out of range'), ...new Array(3).fill('a state has no end')])
})

test('the head of a large state says how many words there are, also where a byte of that is full', async () => {
  const script = `${LIBRARY}${HEX} return toHex(largeHead('', tonumber(ARGV[1])))`
  for (const words of [21, 255, 256, 65_535, 65_536, 65_537, 131_072, 300_000]) {
    expect(await redis.send(['EVAL', script, '0', `${words}`])).toBe(words.toString(16).padStart(6, '0'))
  }
})

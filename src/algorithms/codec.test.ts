import { describe, expect, test } from 'vitest'
import { SluiceError } from '../errors.ts'
import { type Limit, RULE, type Rule } from './algorithm.ts'
import { concurrency, fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket } from './all.ts'
import { isReadable, labelOf, MAX_WORDS, readState, writeState } from './codec.ts'
import { formatOf, RETIRED_FORMATS } from './formats.ts'
import { FORMATS } from './list.ts'

const hexOf = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
const bytesOf = (hex: string) => Uint8Array.from(hex.replaceAll(/\s/g, '').match(/../g) ?? [], (digits) => Number.parseInt(digits, 16))

/** 0x06439efdb427c0: the 15th of November 2025. */
const NOW_US = 1_763_200_000_600_000

interface Example {
  readonly limit: Limit
  readonly name?: string
  readonly words: readonly number[]
  readonly idleAtUs: number
  readonly hex: string
}

const EXAMPLES: Readonly<Record<string, Example>> = {
  'gcra, 3 of 100 in use': {
    limit: gcra({ rate: '100/min', burst: 100 }),
    words: [NOW_US + 1_800_000, 0, NOW_US],
    idleAtUs: NOW_US + 1_800_000,
    // Idle at, size of the head; format, no name, three bytes of figures: 1 x 8 + 2, 1 x 8, 6 x 8 +
    // 5; tags: idle at less 0, 0, idle at less three bytes.
    hex: '06439efdcf9f00  08  01 00 03 0a0835 80b0  1b7740',
  },
  'gcra with a part and a name': {
    limit: gcra({ rate: '7/s', burst: 20 }),
    name: 'burst',
    words: [NOW_US + 142_857, 1, NOW_US],
    idleAtUs: NOW_US + 142_858,
    hex: '06439efdb655ca  0d  01 05 6275727374 03 11380e 91b0  01 01 022e0a',
  },
  'gcra that is booked ahead': {
    limit: gcra({ rate: '1/s', burst: 1 }),
    words: [NOW_US + 5_000_000, 0, NOW_US],
    idleAtUs: NOW_US + 5_000_000,
    hex: '06439efe007300  08  01 00 03 08080e 80b0  4c4b40',
  },
  'token bucket, 7 of 10 tokens left': {
    limit: tokenBucket({ refill: '5/s', capacity: 10 }),
    words: [NOW_US + 600_000, 0, NOW_US],
    idleAtUs: NOW_US + 600_000,
    hex: '06439efdbd4f80  08  02 00 03 090815 80b0  0927c0',
  },
  'leaky bucket, 3 of 10 in it': {
    limit: leakyBucket({ leak: '5/s', capacity: 10 }),
    words: [NOW_US + 600_000, 0, NOW_US],
    idleAtUs: NOW_US + 600_000,
    hex: '06439efdbd4f80  08  03 00 03 090815 80b0  0927c0',
  },
  'fixed window, 3 of 10': {
    limit: fixedWindow({ limit: 10, window: '1min' }),
    words: [1_763_199_960_000_000, 1_763_200_020_000_000, 3, NOW_US],
    idleAtUs: 1_763_200_020_000_000,
    hex: '06439efedc2d00  09  04 00 04 09370000 c81c  03938700 03 01280540',
  },
  'sliding window, 3 and 2 of 10': {
    limit: slidingWindow({ limit: 10, window: '1s' }),
    words: [NOW_US, 17_632_000_006, 5, 0, 0, 0, 2, 0, 3, 0, 0, 0, 0, 0],
    idleAtUs: 1_763_200_001_700_000,
    hex: '06439efdc4f0a0  0c  07 00 03 090e09 b510 10 000005  10c8e0 041af2f806 05 00 02 03',
  },
  'sliding log, 3 and 1 of 10': {
    limit: slidingLog({ limit: 10, window: '1s' }),
    words: [0, 2, 4, 3, 1, NOW_US, 1, NOW_US - 5, 0, NOW_US, 3, NOW_US - 5],
    idleAtUs: NOW_US + 1_000_000,
    hex: '06439efdc36a00  0b  0a 00 02 090e 0111 1b 000008  02 04 03 01 0f4240 01 0f4245 00 0f4240 03 0f4245',
  },
  'a state of nothing but zeros': {
    limit: slidingLog({ limit: 10, window: '1s' }),
    words: new Array(13).fill(0),
    idleAtUs: 7,
    hex: '00000000000007  05  0a 00 02 090e',
  },
  'a large sliding log': {
    limit: slidingLog({ limit: 10, window: '1s' }),
    words: [0, 2, 4, 3, 6, NOW_US, 1, NOW_US, 0, NOW_US, 3, NOW_US, ...new Array(10).fill(0)],
    idleAtUs: NOW_US + 1_000_000,
    hex: `06439efdc36a00  08  0a 00 02 090e 000016
      0000000000000000 4000000000000000 4010000000000000 4008000000000000 4018000000000000
      43190e7bf6d09f00 3ff0000000000000 43190e7bf6d09f00 0000000000000000 43190e7bf6d09f00
      4008000000000000 43190e7bf6d09f00 ${'00'.repeat(80)}`,
  },
}

const withoutZeros = (words: Float64Array) => words.slice(0, words.findLastIndex((word) => word !== 0) + 1)
const ruleOf = ({ limit }: Example): Rule => limit[RULE]

describe.each(Object.entries(EXAMPLES))('%s', (_, example) => {
  const { name = 'default', words, idleAtUs, hex } = example
  const rule = ruleOf(example)
  const bytes = bytesOf(hex)

  test('is written as these bytes', () => {
    expect(hexOf(writeState(rule, Float64Array.from(words), 0, idleAtUs, name))).toBe(hexOf(bytes))
  })

  test('is read back, wherever it stands', () => {
    const state = readState(Uint8Array.from([9, 9, ...bytes, 7]), 2)
    expect(state).toMatchObject({ name, idleAtUs, end: 2 + bytes.length, rule: { numbers: rule.numbers } })
    expect(state.rule.algorithm).toBe(rule.algorithm)
    expect(words.slice(0, state.words.length)).toEqual([...state.words])
    expect(words.slice(state.words.length).every((word) => word === 0)).toBe(true)
    expect(state.words.length).toBeGreaterThanOrEqual(rule.freshWords)
  })

  test('is an error where it ends too early, at every length', () => {
    for (let length = 0; length < bytes.length; length++) {
      expect(() => readState(bytes.slice(0, length), 0)).toThrow(expect.objectContaining({ code: 'STORE' }))
    }
  })

  test('with any bit changed is a state that can be written again, or an error', () => {
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = bytes.slice()
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7))
      try {
        const state = readState(changed, 0)
        const again = readState(writeState(state.rule, state.words, 0, state.idleAtUs, state.name), 0)
        expect(again).toMatchObject({ name: state.name, idleAtUs: state.idleAtUs })
        expect(withoutZeros(again.words)).toEqual(withoutZeros(state.words))
        expect(again.rule.numbers).toBe(state.rule.numbers)
      } catch (error) {
        expect(error).toBeInstanceOf(SluiceError)
        expect(error).toMatchObject({ code: 'STORE' })
      }
    }
  })
})

test('usual states of gcra and of a bucket take no more than 24 bytes, and their name', () => {
  for (const [name, { hex, name: limit = '' }] of Object.entries(EXAMPLES)) {
    if (/gcra|bucket/.test(name)) expect(bytesOf(hex).length - limit.length, name).toBeLessThanOrEqual(24)
  }
})

describe('what is not ours says so', () => {
  const [head, label] = ['06439efdcf9f00', '01 00 03 0a0835']
  test.each([
    ['nothing', '', 'at byte 0: the record ends within the time at which it is idle: 0 of 7 bytes are there'],
    ['text', '68656c6c6f20776f726c64', 'at byte 0: no state of Sluice begins with the byte 104'],
    ['no head', `${head} 00`, 'its format'],
    [
      'a format of another version',
      `${head} 08 7f 00 03 0a0835 80f0`,
      'at byte 8: the state has the format 127, and this version of Sluice knows 1 (gcra), 2 (tokenBucket)',
    ],
    ['a format that is 0', `${head} 08 00 00 03 0a0835 80f0`, 'the format 0,'],
    ['a name that is none', `${head} 0a 01 02 2062 03 0a0835 80f0`, 'at byte 9: " b" is no name of a limit'],
    [
      'a name that is longer than the head',
      `${head} 08 01 09 03 0a0835 80f0`,
      'at byte 9: the head is too short for the name of its limit',
    ],
    ['no name', `${head} 01 01`, 'at byte 9: the head is too short for the name of its limit'],
    ['figures that are longer than the head', `${head} 08 01 00 06 0a0835 80f0`, 'at byte 10: the head is too short for its figures'],
    ['two figures', `${head} 07 01 00 02 0a08 80f0`, 'at byte 10: [100,1] are not 3 figures from 0 to 31622400000000'],
    ['four figures', `${head} 09 01 00 04 0a083508 80f0`, 'are not 3 figures'],
    ['a figure that does not end', `${head} 08 01 00 03 0a0875 80f0`, 'at byte 10: [] are not 3 figures'],
    ['ten with one zero in place of one with two', `${head} 09 01 00 04 51010835 80f0`, 'are not 3 figures'],
    ['a figure with a byte that says nothing', `${head} 09 01 00 04 4a000835 80f0`, 'are not 3 figures'],
    ['no permits with a zero', `${head} 08 01 00 03 010835 80f0`, 'are not 3 figures'],
    ['the name of the one limit', `${head} 0f 01 07 64656661756c74 03 0a0835 80f0`, 'at byte 9: "default" is no name of a limit'],
    ['a figure above 366 days', `${head} 0f 01 00 0a 0a08 7f7f7f7f7f7f7f3f 80f0`, 'are not 3 figures from 0 to'],
    [
      'a capacity of 0 without a pace',
      `${head} 08 01 00 03 000035 80f0`,
      'at byte 10: the figures 0 0 600000 are no limit of the type gcra',
    ],
    ['a capacity of 0 without a period', `${head} 08 01 00 03 000800 80f0`, 'at byte 10: the figures 0 1 0 are no limit of the type gcra'],
    [
      'a capacity of 0 without a window',
      `${head} 08 0a 00 02 0000 8000 00`,
      'at byte 10: the figures 0 0 are no limit of the type slidingLog',
    ],
    ['no permits in a period', `${head} 08 01 00 03 0a0035 80f0`, 'the figures 100 0 600000 are no limit'],
    ['a period of 0', `${head} 08 01 00 03 0a0800 80f0`, 'the figures 100 1 0 are no limit'],
    ['a log of a million', `${head} 08 0a 00 02 0e0e 8000 00`, 'the figures 1000000 1000000 are no limit of the type slidingLog'],
    ['a window of no slots', `${head} 08 07 00 03 090e00 8000`, 'are no limit of the type slidingWindow'],
    ['too many doubles', `${head} 09 ${label} 000015`, 'at byte 14: 21 words are more than a state of 100 1 600000 has, 3'],
    ['too few doubles', `${head} 08 0a 00 02 090e 000014`, '20 words are no large state: those have more than 20'],
    ['a double that is not whole', `${head} 08 0a 00 02 090e 000015 ${'3fe0000000000000'.repeat(21)}`, 'a word is 0.5'],
    ['four bytes of tags', `${head} 0a ${label} 80f00000`, 'at byte 14: 4 bytes are no tags: there are 0, 1, 2, 3 or 6'],
    ['seven bytes of tags', `${head} 0d ${label} 80f0000000000000`, '7 bytes are no tags'],
    ['a fourth word', `${head} 08 ${label} 80f1 01`, 'at byte 14: 4 words are more than a state of 100 1 600000 has, 3'],
    ['too many words', `${head} 0c 07 00 03 090e09 b511 11 ffffff`, '16777219 words are more than a state of 10 1000000 10 has, 14'],
    ['a word above 2^53', `${head} 08 ${label} 7000 ffffffffffffff`, 'at byte 16: a word is'],
    ['a word of a tag that there is not', `${head} 08 ${label} 00f0`, 'at byte 16: no word has the tag 15'],
    ['a word below 0', `00000000000064 08 ${label} 9000 65`, 'at byte 16: a word is -1, and all are whole numbers from 0 to 2^53 - 1'],
    ['a double below 0', `${head} 08 0a 00 02 090e 000015 ${'bff0000000000000'.repeat(21)}`, 'a word is -1, and all are whole numbers'],
    ['a log of more entries than places', `${head} 06 0a 00 02 090e 01 05`, 'at byte 0: it says that it has Infinity words'],
    ['a log with more places than it may have', `${head} 0b 0a 00 02 090e 0000 10 000001 ff`, 'it says that it has 520 words'],
    ['a pace that is not in lowest terms', `${head} 08 01 00 03 0a1036 8000`, 'the figures 100 2 6000000 are no limit of the type gcra'],
    ['slots that do not divide a window', `${head} 08 07 00 03 090e18 8000`, 'the figures 10 1000000 3 are no limit'],
  ])('%s', (_, hex, message) => {
    expect(() => readState(bytesOf(hex), 0)).toThrow(expect.objectContaining({ code: 'STORE', message: expect.stringContaining(message) }))
  })
})

test.each([
  ['a word that is not whole', [0.5, 0, 0], 5],
  ['a word that is no number', [Number.NaN, 0, 0], 5],
  ['a word that is too large', [2 ** 53, 0, 0], 5],
  ['a word below 0', [0, 0, -1], 5],
  ['a time that is too large', [0, 0, 0], 2 ** 53],
  ['a time that is negative', [0, 0, 0], -1],
])('%s is not written', (_, words, idleAtUs) => {
  const rule = gcra({ rate: '1/s', burst: 1 })[RULE]
  expect(() => writeState(rule, Float64Array.from(words), 0, idleAtUs, 'default')).toThrow(expect.objectContaining({ code: 'STORE' }))
})

/** Mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

test('any words of any rule are read back as they were', () => {
  const random = randomOf(20_261_117)
  const whole = (most: number) => Math.floor(random() * (most + 1))
  const magnitude = () => Math.floor(2 ** (random() * 53))
  const limits = Object.values(EXAMPLES).map(ruleOf)
  for (let round = 0; round < 5_000; round++) {
    const rule = limits[whole(limits.length - 1)] as Rule
    const idleAtUs = magnitude()
    const count = whole(rule.words)
    const word = () => [0, 0, magnitude(), Math.max(0, idleAtUs - magnitude()), idleAtUs, whole(300)][whole(5)] as number
    const at = whole(3)
    const s = new Float64Array(at + rule.words).fill(-9)
    for (let k = 0; k < rule.words; k++) s[at + k] = k < count ? word() : 0
    // Of a log as many words are written as its ring has places for.
    if (rule.algorithm.neededWords !== undefined) {
      const places = Math.ceil(Math.max(0, count - 10) / 2)
      s.set([0, 0, whole(300), whole(300), places], at)
    }
    const bytes = writeState(rule, s, at, idleAtUs, 'a.b-c_9')
    const state = readState(bytes, 0)
    // What is expected saves work and changes nothing, whether it is right or not.
    const expected = { name: whole(1) === 0 ? 'a.b-c_9' : 'a.b-c_', rule: limits[whole(limits.length - 1)] as Rule }
    const { words, end } = readState(bytes, 0, expected)
    expect([...words, end]).toEqual([...state.words, state.end])
    expect(readState(bytes, 0, { name: 'a.b-c_9', rule }).rule).toBe(rule)
    const padded = new Float64Array(rule.words)
    padded.set(state.words.slice(0, rule.words))
    expect([...padded]).toEqual([...s.slice(at)])
    expect(state).toMatchObject({ name: 'a.b-c_9', idleAtUs, rule: { numbers: rule.numbers } })
  }
})

test('a state is read as the algorithm that wrote it, whatever was expected', () => {
  const written = tokenBucket({ capacity: 7, refill: '3/s' })[RULE]
  const expected = gcra({ burst: 7, rate: '3/s' })[RULE]
  expect(expected.numbers).toBe(written.numbers)
  const bytes = writeState(written, Float64Array.of(NOW_US, 0, NOW_US), 0, NOW_US, 'default')
  expect(readState(bytes, 0, { name: 'default', rule: expected }).rule.algorithm.type).toBe('tokenBucket')
})

test('a label is text below 128, and differs where limit or numbers do', () => {
  const rules = [
    ...Object.values(EXAMPLES).map(ruleOf),
    gcra({ rate: '1000/s', burst: 1_000_000_000 })[RULE],
    fixedWindow({ limit: 9, window: '366d' })[RULE],
  ]
  const labels = rules.flatMap((rule) => ['default', 'a', 'x'.repeat(64)].map((name) => labelOf(rule, name)))
  for (const label of labels) expect([...label].every((letter) => letter.charCodeAt(0) < 128)).toBe(true)
  expect(new Set(labels).size).toBe(3 * new Set(rules.map(({ algorithm, numbers }) => `${algorithm.type} ${numbers}`)).size)
})

test('every algorithm has a format of its own', () => {
  const types = Object.keys({ concurrency, gcra, tokenBucket, leakyBucket, fixedWindow, slidingWindow, slidingLog })
  expect(FORMATS.map(({ algorithm }) => algorithm.type).sort()).toEqual(types.sort())
  for (const { format, algorithm } of FORMATS) expect(formatOf(algorithm.type)).toBe(format)
  for (const { limit } of Object.values(EXAMPLES)) {
    const { figures, algorithm } = limit[RULE]
    expect(figures.length).toBe(FORMATS.find((each) => each.algorithm === algorithm)?.figures)
  }
})

test('no number of a format is used twice or left out, and the formats stand in the order of their numbers', () => {
  const numbers = FORMATS.map(({ format }) => format)
  expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
  const used = [...numbers, ...RETIRED_FORMATS].sort((a, b) => a - b)
  expect(used).toEqual(used.map((_, k) => k + 1))
})

test('a format has as many figures as the rules of its algorithm', () => {
  const rules = [
    concurrency({ max: 2, lease: '1s' }),
    fixedWindow({ limit: 2, window: '1s' }),
    gcra({ rate: '1/s', burst: 2 }),
    leakyBucket({ leak: '1/s', capacity: 2 }),
    slidingLog({ limit: 2, window: '1s' }),
    slidingWindow({ limit: 2, window: '1s' }),
    tokenBucket({ refill: '1/s', capacity: 2 }),
  ].map((limit) => limit[RULE])
  for (const { algorithm, figures } of rules) expect(FORMATS.find((format) => format.algorithm === algorithm)?.figures).toBe(figures.length)
})

test('every small figure is read back', () => {
  for (let limit = 1; limit <= 1_000; limit++) {
    const rule = fixedWindow({ limit, window: '1s' })[RULE]
    expect(readState(writeState(rule, new Float64Array(4), 0, 1, 'default'), 0).rule.numbers).toBe(rule.numbers)
  }
})

describe('a state is large from 21 words on', () => {
  const sizeOf = (rule: Rule, s: Float64Array, i: number) => writeState(rule, s, i, 1, 'default').length

  test('that there are, wherever they lie', () => {
    const [tagged, large] = [16, 17].map((slots) => slidingWindow({ limit: 2, window: `${slots}s`, slots })[RULE]) as [Rule, Rule]
    expect([tagged.words, large.words]).toEqual([20, 21])
    expect([sizeOf(tagged, new Float64Array(20), 0) < 30, sizeOf(large, new Float64Array(21), 0) > 8 * 21]).toEqual([true, true])
    const log = slidingLog({ limit: 100, window: '1s' })[RULE]
    const s = Float64Array.from({ length: 35 }, (_, k) => k - 10)
    s.set([0, 0, 9, 9, 5], 10)
    expect(writeState(log, s, 10, 1, 'default')).toEqual(writeState(log, s.slice(10), 0, 1, 'default'))
  })

  test('and may be as large as that of the largest log', () => {
    const rule = slidingLog({ limit: 100_000, window: '1s' })[RULE]
    const words = Float64Array.from({ length: rule.words }, (_, k) => k)
    words.set([0, 200_000, 200_000, 9, 250_000])
    const read = readState(writeState(rule, words, 0, 1, 'default'), 0).words
    expect([read.length, Buffer.compare(Buffer.from(read.buffer), Buffer.from(words.buffer))]).toEqual([500_010, 0])
  })

  test('and under a smaller limit as large as its entries need', () => {
    const [rule, words] = [slidingLog({ limit: 1, window: '1s' })[RULE], new Float64Array(60)]
    words.set([0, 9, 9, 8, 10])
    expect(readState(writeState(rule, words, 0, 1, 'default'), 0).words.length).toBe(30)
  })

  test('but not larger than anything is', () => {
    const { algorithm } = slidingLog({ limit: 1, window: '1s' })[RULE]
    const rules = [120_000, 120_001].map((limit) => algorithm.ruleOf([limit, 1_000_000]))
    expect(rules.map((rule) => [rule.words, isReadable(rule)])).toEqual([
      [600_010, true],
      [600_014, false],
    ])
    expect(concurrency({ max: 1_000_000_000 })[RULE].words).toBe(MAX_WORDS)
  })
})

test.each([Number.NaN, 0.5, -1, 2 ** 53])('a large state with the word %d is not written', (word) => {
  const rule = slidingWindow({ limit: 2, window: '1s', slots: 40 })[RULE]
  const words = new Float64Array(rule.words).fill(word, 30, 31)
  expect(() => writeState(rule, words, 0, 1_000, 'default')).toThrow(
    `a state cannot be written: the word ${word} is not a whole number in range`,
  )
})

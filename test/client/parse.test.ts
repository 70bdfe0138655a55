/** The headers by which servers tell their limits, in all known forms. */
import fc from 'fast-check'
import { parseDictionary, parseList } from 'structured-headers'
import { describe, expect, test } from 'vitest'
import { parseRateLimit } from '../../src/client/index.ts'
import { dictionaryOf, itemsOf } from '../../src/client/structured-fields.ts'

const SEED = { seed: 20_261_115, numRuns: 3_000 }
const NOW_MS = Date.parse('2026-11-15T12:00:00Z')

function told(headers: Record<string, string>) {
  return parseRateLimit(new Headers(headers), NOW_MS)
}

const limit = (figures: object) => ({
  policy: undefined,
  limit: undefined,
  remaining: undefined,
  resetAfterMs: undefined,
  windowMs: undefined,
  ...figures,
})

describe('Retry-After', () => {
  test.each([
    ['120', 120_000],
    ['0', 0],
    ['120, 120', 120_000],
    ['120,Sun, 15 Nov 2026 12:01:00 GMT', 120_000],
    ['99999999999999999', 100 * 366 * 86_400_000],
    ['9'.repeat(400), 100 * 366 * 86_400_000],
    ['1.5', 1_500],
    ['Sun, 15 Nov 2026 12:01:00 GMT', 60_000],
    ['Sunday, 15-Nov-26 12:01:00 GMT', 60_000],
    ['Sun, 15 Nov 2026 11:59:00 GMT', 0],
    ['2026-11-15T12:00:30Z', 30_000],
    ['1794744060', 60_000],
  ])('%s', (text, expected) => {
    expect(told({ 'retry-after': text }).retryAfterMs).toBe(expected)
  })

  test.each(['', 'soon', '-1', 'NaN', '1e9', 'Infinity', 'May', '12:00', '-5 minutes', 'x'.repeat(10_000)])('%j says nothing', (text) => {
    expect(told({ 'retry-after': text }).retryAfterMs).toBeUndefined()
  })

  test('takes a date without a zone for one of GMT, wherever it is read', () => {
    const zone = process.env.TZ
    process.env.TZ = 'America/New_York'
    try {
      expect(new Date(NOW_MS).getTimezoneOffset()).not.toBe(0)
      for (const date of ['Sun Nov 15 12:01:00 2026', 'Sun, 15 Nov 2026 12:01:00', '2026-11-15T12:01:00', '2026-11-15T12:01:00.000']) {
        expect(told({ 'retry-after': date }).retryAfterMs, date).toBe(60_000)
      }
      for (const date of ['2026-11-15T13:01:00+01:00', 'Sun, 15 Nov 2026 07:01:00 -0500', '2026-11-15T12:01:00Z']) {
        expect(told({ 'retry-after': date }).retryAfterMs, date).toBe(60_000)
      }
    } finally {
      if (zone === undefined) delete process.env.TZ
      else process.env.TZ = zone
    }
  })

  test("counts a date from the server's own", () => {
    const headers = { date: 'Sun, 15 Nov 2026 09:00:00 GMT', 'retry-after': 'Sun, 15 Nov 2026 09:00:10 GMT' }
    expect(told(headers).retryAfterMs).toBe(10_000)
  })
})

describe('limits', () => {
  test.each<[string, Record<string, string>, object[]]>([
    [
      'draft 11, several',
      { ratelimit: '"burst";r=50;t=30, "daily";r=900;t=3600;pk=:YQ==:', 'ratelimit-policy': '"burst";q=100;w=60,"daily";q=1000;w=86400' },
      [
        { policy: 'burst', limit: 100, remaining: 50, resetAfterMs: 30_000, windowMs: 60_000 },
        { policy: 'daily', limit: 1000, remaining: 900, resetAfterMs: 3_600_000, windowMs: 86_400_000 },
      ],
    ],
    ['draft 11 without policies, names escaped', { ratelimit: '"a\\"b";r=1' }, [{ policy: 'a"b', remaining: 1 }]],
    ['draft 8, with tokens for names', { ratelimit: 'default;r=1;t=2' }, [{ policy: 'default', remaining: 1, resetAfterMs: 2_000 }]],
    [
      'draft 7',
      { ratelimit: 'limit=100, remaining=50, reset=5', 'ratelimit-policy': '100;w=60' },
      [{ limit: 100, remaining: 50, resetAfterMs: 5_000, windowMs: 60_000 }],
    ],
    [
      'draft 6',
      { 'ratelimit-limit': '100, 100;w=60', 'ratelimit-remaining': '50', 'ratelimit-reset': '5' },
      [{ limit: 100, remaining: 50, resetAfterMs: 5_000 }],
    ],
    [
      'legacy, seconds since 1970',
      { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1794744060' },
      [{ limit: 60, remaining: 0, resetAfterMs: 60_000 }],
    ],
    [
      'legacy, milliseconds since 1970',
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1794744060000' },
      [{ remaining: 0, resetAfterMs: 60_000 }],
    ],
    ['legacy, seconds from now', { 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': '60' }, [{ remaining: 0, resetAfterMs: 60_000 }]],
    [
      'legacy, ISO 8601',
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '2026-11-15T12:01:00.5Z' },
      [{ remaining: 0, resetAfterMs: 60_500 }],
    ],
    [
      'legacy, seconds from now by another name',
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset-after': '1.25' },
      [{ remaining: 0, resetAfterMs: 1_250 }],
    ],
    [
      'requests and tokens, as spans',
      {
        'x-ratelimit-limit-requests': '60',
        'x-ratelimit-remaining-requests': '59',
        'x-ratelimit-reset-requests': '1s',
        'x-ratelimit-limit-tokens': '150000',
        'x-ratelimit-remaining-tokens': '149984',
        'x-ratelimit-reset-tokens': '6m0.5s',
      },
      [
        { limit: 60, remaining: 59, resetAfterMs: 1_000 },
        { limit: 150_000, remaining: 149_984, resetAfterMs: 360_500 },
      ],
    ],
    [
      'a span of milliseconds',
      { 'x-ratelimit-remaining-requests': '59', 'x-ratelimit-reset-requests': '20ms' },
      [{ remaining: 59, resetAfterMs: 20 }],
    ],
    [
      'a provider that names itself',
      { 'anthropic-ratelimit-requests-remaining': '49', 'anthropic-ratelimit-requests-reset': '2026-11-15T12:00:01Z' },
      [{ remaining: 49, resetAfterMs: 1_000 }],
    ],
    ['nothing', {}, []],
    ['garbage', { ratelimit: '"', 'ratelimit-policy': ';;;', 'x-ratelimit-remaining': 'many', 'x-ratelimit-limit': '-5' }, []],
  ])('%s', (_name, headers, expected) => {
    expect(told(headers).limits).toEqual(expected.map(limit))
  })

  test('with any text in the fields, figures are whole and times are bounded', () => {
    const field = fc.constantFrom(
      'ratelimit',
      'ratelimit-policy',
      'ratelimit-limit',
      'ratelimit-remaining',
      'ratelimit-reset',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
      'retry-after',
      'date',
    )
    const piece = fc.constantFrom(
      '"a"',
      'a',
      ';',
      '=',
      ',',
      ' ',
      'r',
      't',
      'q',
      '1',
      '0',
      '99999999999999',
      '-',
      '.',
      'remaining',
      'limit',
      'reset',
      ':',
      '?',
      '*',
      'GMT',
      'Sun, ',
      '2026-11-15T12:00',
    )
    const text = fc.oneof(
      fc.string({ unit: 'grapheme-ascii' }),
      fc.array(piece, { maxLength: 20 }).map((pieces) => pieces.join('')),
    )
    fc.assert(
      fc.property(fc.dictionary(field, text, { noNullPrototype: true }), (fields) => {
        const headers = { get: (name: string) => fields[name] ?? null }
        const { retryAfterMs, limits } = parseRateLimit(headers, NOW_MS)
        const times = [retryAfterMs, ...limits.flatMap(({ resetAfterMs, windowMs }) => [resetAfterMs, windowMs])]
        for (const ms of times) expect(ms === undefined || (ms >= 0 && ms <= 100 * 366 * 86_400_000)).toBe(true)
        for (const { limit, remaining } of limits)
          for (const each of [limit, remaining]) expect(each === undefined || Number.isSafeInteger(each)).toBe(true)
      }),
      SEED,
    )
  })
})

describe('structured fields are read as another parser reads them', () => {
  const piece = fc.constantFrom(
    '"a"',
    '"a\\"b"',
    '"\\\\"',
    'tok',
    '*x',
    ';',
    '=',
    ',',
    ' ',
    'r',
    'key',
    '1',
    '-7',
    '1.5',
    '99',
    ':YQ==:',
    '?1',
    '?0',
    '\t',
  )
  const nearly = fc.array(piece, { minLength: 1, maxLength: 12 }).map((pieces) => pieces.join(''))

  const theirs = <T>(parse: () => T): T | undefined => {
    try {
      return parse()
    } catch {
      return undefined
    }
  }

  /** What ours do not read at all, and nobody sends in these fields. */
  const isLeftOut = (text: string) => /[(@%]/.test(text) || text.trim() === ''

  test('lists', () => {
    fc.assert(
      fc.property(nearly, (text) => {
        fc.pre(!isLeftOut(text))
        const other = theirs(() => parseList(text))
        const own = itemsOf(text)
        expect(own?.map(({ parameters }) => [...parameters.keys()])).toEqual(other?.map(([, parameters]) => [...parameters.keys()]))
        for (const [k, item] of (own ?? []).entries()) {
          const value = other?.[k]?.[0]
          if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') expect(item.value).toBe(value)
        }
      }),
      SEED,
    )
  })

  test('dictionaries', () => {
    fc.assert(
      fc.property(nearly, (text) => {
        fc.pre(!isLeftOut(text))
        const other = theirs(() => parseDictionary(text))
        expect([...(dictionaryOf(text)?.keys() ?? [])].sort()).toEqual([...(other?.keys() ?? [])].sort())
      }),
      SEED,
    )
  })
})

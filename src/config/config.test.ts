import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Limit, RULE } from '../algorithms/algorithm.ts'
import * as factories from '../algorithms/all.ts'
import { createLimiter } from '../limiter/limiter.ts'
import { limitFrom, limitSchema, limitsFrom } from './index.ts'

type Json = Record<string, unknown>

const TYPES = Object.keys(factories)

/** What a configuration file holds after it was read. */
const throughJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const numbersOf = (limit: Limit): string => limit[RULE].numbers

function refusal(revive: () => unknown): { code?: string; message?: string } {
  try {
    revive()
  } catch (error) {
    return error as { code: string; message: string }
  }
  return {}
}

// What to generate. Every option is drawn in all the ways it can be written.

const capacity = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: 1_000_000_000 }))
const permits = fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: 1_000_000_000 }))
const unit = fc.constantFrom('us', 'ms', 's', 'min', 'h', 'd')
const space = fc.constantFrom('', ' ')
const amount = fc.oneof(
  fc.integer({ min: 1, max: 400 }),
  fc.integer({ min: 1, max: 4_000 }).map((n) => n / 4),
)
const timeText = fc.tuple(amount, space, unit).map((parts) => parts.join(''))
const timeMs = fc
  .oneof(
    fc.integer({ min: 1, max: 31_622_400_000 }),
    fc.integer({ min: 1, max: 10_000_000 }).map((us) => us / 1000),
  )
  .map((ms) => `${ms}ms`)
const duration = fc.oneof(timeText, timeMs)
const rateText = fc
  .tuple(fc.oneof(permits, fc.constantFrom('1e3', '2.5e1', '1.0', '007')), space, space, fc.oneof(unit, timeText))
  .map(([count, before, after, per]) => `${count}${before}/${after}${per}`)
const rate = fc.oneof(rateText, fc.record({ permits, per: duration }))
const anchor = fc.oneof(
  fc.constantFrom('epoch', 'first'),
  fc.integer({ min: -1e9, max: 1e9 }).map((us) => us / 1000),
)

const optional = (required: string[]) => ({ requiredKeys: ['type', ...required] as never[], noNullPrototype: true })

const limitJson: fc.Arbitrary<Json> = fc.oneof(
  fc.record({ type: fc.constant('gcra'), rate, burst: capacity }),
  fc.record({ type: fc.constant('tokenBucket'), capacity, refill: rate }),
  fc.record({ type: fc.constant('leakyBucket'), capacity, leak: rate }),
  fc.record({ type: fc.constant('fixedWindow'), limit: capacity, window: duration, anchor }, optional(['limit', 'window'])),
  fc.record(
    { type: fc.constant('slidingWindow'), limit: capacity, window: duration, slots: fc.constantFrom(1, 2, 4, 5, 7, 10, 50, 100) },
    optional(['limit', 'window']),
  ),
  fc.record({ type: fc.constant('slidingLog'), limit: fc.integer({ min: 0, max: 100_000 }), window: duration }),
  fc.record(
    { type: fc.constant('concurrency'), max: permits, lease: fc.integer({ min: 100, max: 31_622_400_000 }).map((ms) => `${ms}ms`) },
    optional(['max']),
  ),
)

describe('limitFrom', () => {
  test('calls the factory of the name that is the type', () => {
    const limit = limitFrom({ type: 'gcra', rate: '1/s', burst: 5 })
    expect(limit).toEqual(factories.gcra({ rate: '1/s', burst: 5 }))
    expect(createLimiter(limit).consume('key').remaining).toBe(4)
  })

  test('the generator of this file draws every algorithm that there is', () => {
    const drawn = fc.sample(limitJson, 200).map(({ type }) => type as string)
    expect([...new Set(drawn)].sort()).toEqual(TYPES.sort())
  })

  test('JSON of a limit revives to an equal limit', () => {
    let revivals = 0
    fc.assert(
      fc.property(limitJson, (json) => {
        fc.pre(refusal(() => limitFrom(json)).code === undefined)
        const limit = limitFrom(json)
        const revived = limitFrom(throughJson(limit))
        expect(revived).toEqual(limit)
        expect(numbersOf(revived)).toBe(numbersOf(limit))
        revivals += 1
      }),
      { numRuns: 1_000 },
    )
    expect(revivals).toBe(1_000)
  })

  test.each([
    ['nothing', undefined, 'limit undefined must be an object such as {'],
    ['null', null, 'limit null must be an object such as {'],
    ['a list', [{ type: 'gcra' }], 'limit [{"type":"gcra"}] must be an object such as {'],
    ['the name alone', 'gcra', 'limit "gcra" must be an object such as {'],
    ['no type', { rate: '1/s', burst: 5 }, 'limit {"rate":"1/s","burst":5} must have a type, one of concurrency, fixedWindow,'],
    ['a type that is no text', { type: 7 }, 'limit type 7 must be one of concurrency, fixedWindow,'],
    ['a type of another world', { type: 'quantum' }, 'limit type "quantum" must be one of concurrency, fixedWindow,'],
    ['a type that every object inherits', { type: 'constructor' }, 'limit type "constructor" must be one of'],
    ['an option that there is not', { type: 'gcra', rate: '1/s', brust: 5 }, 'gcra "brust" is not an option'],
    [
      'an option of a rate that there is not',
      { type: 'gcra', rate: { permits: 1, pre: '1s' }, burst: 5 },
      'gcra rate "pre" is not an option',
    ],
    ['a span without a unit', { type: 'fixedWindow', limit: 5, window: 3600 }, "window 3600 of what? write '3600s' or '3600ms'"],
    ['a bad value', { type: 'gcra', rate: '1/x', burst: 5 }, 'gcra rate "1/x" must be permits per time with a unit (us, ms, s, min, h, d)'],
    ['a missing value', { type: 'slidingLog', limit: 5 }, 'slidingLog window undefined must be'],
  ])('refuses %s', (_, json, message) => {
    expect(refusal(() => limitFrom(json))).toMatchObject({ code: 'CONFIG', message: expect.stringContaining(message) })
  })

  test.each([
    ['token-bucket', 'tokenBucket'],
    ['TokenBucket', 'tokenBucket'],
    ['TOKEN_BUCKET', 'tokenBucket'],
    ['tokenbuket', 'tokenBucket'],
    ['GCRA', 'gcra'],
    ['gcar', 'gcra'],
    ['sliding window', 'slidingWindow'],
    ['slidinglogs', 'slidingLog'],
  ])('takes %s for a misspelt %s', (written, meant) => {
    expect(refusal(() => limitFrom({ type: written })).message).toMatch(new RegExp(`: did you mean '${meant}'\\?$`))
  })

  test('suggests nothing where nothing is near', () => {
    for (const type of ['', '-', 'concurrency', 'x'.repeat(100_000)]) {
      expect(refusal(() => limitFrom({ type })).message).not.toContain('did you mean')
    }
  })
})

describe('limitsFrom', () => {
  const one = { type: 'gcra', rate: '10/s', burst: 20 }
  const other = { type: 'fixedWindow', limit: 5_000, window: '1d' }

  test('whatever has a type that is a string is one limit', () => {
    expect(limitsFrom(one)).toEqual(limitFrom(one))
  })

  test('anything else is an object of limits by name, in their order', () => {
    const limits = limitsFrom({ burst: one, daily: other }) as Record<string, Limit>
    expect(limits).toEqual({ burst: limitFrom(one), daily: limitFrom(other) })
    expect(Object.keys(createLimiter(limits).peek('key').parts)).toEqual(['burst', 'daily'])
  })

  test('a limit may have the name type', () => {
    expect(limitsFrom({ type: one })).toEqual({ type: limitFrom(one) })
  })

  test.each([
    ['no limits', {}, 'limits {} must be one limit such as {'],
    ['a list', [one], 'must be one limit such as {'],
    ['null', null, 'limits null must be one limit such as {'],
    ['a misspelt type', { typ: 'gcra' }, 'limit "typ": limit "gcra" must be an object such as {'],
    ['one of several that is wrong', { burst: one, daily: { ...other, limit: -1 } }, 'limit "daily": fixedWindow limit -1 must be a whole'],
  ])('refuses %s and says which', (_, json, message) => {
    expect(refusal(() => limitsFrom(json))).toMatchObject({ code: 'CONFIG', message: expect.stringContaining(message) })
  })
})

describe('limitSchema', () => {
  // `strictTypes` would ask for a type beside every `anyOf`, which is a matter of taste.
  const isValid = new Ajv2020({ strict: true, strictTypes: false, allErrors: true }).compile(limitSchema)

  test('has every algorithm, under its name', () => {
    expect(limitSchema.oneOf.map(({ title }) => title).sort()).toEqual(TYPES.sort())
  })

  test('describes every option, with an example that is accepted', () => {
    for (const { title, properties } of limitSchema.oneOf) {
      const { type: _, ...options } = properties as unknown as Record<string, { description: string; examples: unknown[] }>
      const whole = Object.fromEntries(Object.entries(options).map(([name, { examples }]) => [name, examples[0]]))
      for (const [name, { description, examples }] of Object.entries(options)) {
        expect(description, `${title} ${name}`).toMatch(/\w.*\.$/)
        for (const example of examples) expect(() => limitFrom({ type: title, ...whole, [name]: example })).not.toThrow()
      }
    }
  })

  test('gives the default that the factory takes', () => {
    const defaults = limitSchema.oneOf.flatMap(({ title, properties }) =>
      Object.entries(properties as unknown as Record<string, { default?: unknown }>)
        .filter(([, option]) => option.default !== undefined)
        .map(([name, option]) => [title, name, option.default]),
    )
    expect(defaults).toEqual([
      ['fixedWindow', 'anchor', factories.fixedWindow({ limit: 1, window: '1ms' }).anchor],
      ['slidingWindow', 'slots', factories.slidingWindow({ limit: 1, window: '1ms' }).slots],
    ])
  })

  /**
   * The rules that a schema cannot express: what `limitFrom` says when one of them, and nothing
   * else, is broken.
   */
  const BEYOND_A_SCHEMA: Readonly<Record<string, (message: string, json: Json) => boolean>> = {
    'leases of 100 ms at least': (message) => message.includes('must be at least 100 ms'),
    'at most 10 million permits a second': (message) => /must be at most 10 million permits per second$/.test(message),
    'a rate and a burst that can be counted exactly': (message) =>
      /(?:at this rate, to be counted exactly|needs a rounder rate to be counted exactly, such as .*)$/.test(message),
    'whole microseconds': (message) => /must be a whole number of microseconds$|whole to the microsecond$/.test(message),
    'slots of whole microseconds': (message) => /^slidingWindow slots \d+ must cut the window /.test(message),
    'at most 366 days, written with a unit': (message) => /"[^"]*[1-9][^"]*" must be from 1 microsecond to 366 days$/.test(message),
    'whole permits up to 1e9, written with an exponent': (message, json) =>
      /: permits .* must be a whole number/.test(message) && Object.values(json).some((value) => /^[\d.]+e\d+ ?\//.test(`${value}`)),
  }

  const ruleBeyond = (message: string, json: Json) =>
    Object.entries(BEYOND_A_SCHEMA).find(([, applies]) => applies(message, json))?.[0] ?? 'none'

  test.each([
    ['at most 10 million permits a second', { type: 'gcra', rate: '11/us', burst: 1 }],
    ['a rate and a burst that can be counted exactly', { type: 'gcra', rate: '1/366d', burst: 1_000 }],
    ['a rate and a burst that can be counted exactly', { type: 'gcra', rate: '999999999/100s', burst: 1 }],
    ['whole microseconds', { type: 'slidingLog', limit: 1, window: '0.0015ms' }],
    ['whole microseconds', { type: 'fixedWindow', limit: 1, window: '1s', anchor: 0.0001 }],
    ['leases of 100 ms at least', { type: 'concurrency', max: 1, lease: '99ms' }],
    ['slots of whole microseconds', { type: 'slidingWindow', limit: 1, window: '1s', slots: 60 }],
    ['at most 366 days, written with a unit', { type: 'slidingLog', limit: 1, window: '367d' }],
    ['whole permits up to 1e9, written with an exponent', { type: 'gcra', rate: '1e10/1d', burst: 1 }],
    ['whole permits up to 1e9, written with an exponent', { type: 'gcra', rate: '1.55e1/s', burst: 1 }],
  ])('leaves to limitFrom: %s', (rule, json) => {
    expect(ruleBeyond(refusal(() => limitFrom(json)).message as string, json)).toBe(rule)
    expect(isValid(json)).toBe(true)
  })

  test.each([
    ['a rate of zero', { type: 'gcra', rate: '0/s', burst: 1 }],
    ['a rate per no time', { type: 'gcra', rate: '1/0.0s', burst: 1 }],
    ['half a permit', { type: 'gcra', rate: '0.5/s', burst: 1 }],
    ['too many permits', { type: 'gcra', rate: '1000000001/1d', burst: 1 }],
    ['a number, which has no unit', { type: 'slidingLog', limit: 1, window: 3600 }],
    ['a number, which has no unit, as a period', { type: 'gcra', rate: { permits: 1, per: 1000 }, burst: 1 }],
    ['a number, which has no unit, as a lease', { type: 'concurrency', max: 1, lease: 30_000 }],
    ['no time', { type: 'slidingLog', limit: 1, window: '0.0s' }],
  ])('refuses %s, like limitFrom', (_, json) => {
    expect(refusal(() => limitFrom(json)).code).toBe('CONFIG')
    expect(isValid(json)).toBe(false)
  })

  /** Values that are nearly right somewhere. */
  const nearMiss = fc.oneof(
    fc.constantFrom(0, 1, 2, 0.5, 1.5, -1, 1_000, 1_001, 100_000, 100_001, 1e9, 1e9 + 1, 31_622_400_000, 31_622_400_000.5, 0.001, 0.0005),
    fc.constantFrom(
      '',
      '1',
      '1/',
      '/s',
      '1/s',
      '1 / s',
      '1  /s',
      '0/s',
      '1.0/s',
      '1.5/s',
      '-1/s',
      '+1/s',
      '1/-1s',
      '1/1',
      '1e9/1d',
      '1E3/s',
    ),
    fc.constantFrom('10s', '10 s', '10  s', 's', '1S', '1sec', '1.s', '.5s', '0.5s', '00s', '366d', '8784h', '1e3ms', ' 1s', '1s ', '1s\n'),
    fc.constantFrom('epoch', 'first', 'Epoch', 'gcra', 'tokenBucket', null, true, false),
    fc.constantFrom<unknown>(
      [],
      {},
      ['1/s'],
      { permits: 1 },
      { per: '1s' },
      { permits: 1, per: 1 },
      { permits: 1, per: '1s', burst: 1 },
      { permits: '1', per: '1s' },
    ),
    rate,
    duration,
    permits,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.string(),
  )
  const optionName = fc.constantFrom(
    ...['type', 'rate', 'burst', 'capacity', 'refill', 'leak', 'limit', 'window', 'anchor', 'slots', 'Rate', 'x'],
  )
  type Change = (json: Json) => Json
  const change: fc.Arbitrary<Change> = fc.oneof(
    fc.tuple(optionName, nearMiss).map(
      ([name, value]): Change =>
        (json) => ({ ...json, [name]: value }),
    ),
    fc.tuple(fc.nat(3), nearMiss).map(
      ([k, value]): Change =>
        (json) => ({ ...json, [Object.keys(json)[k] ?? 'type']: value }),
    ),
    fc.nat(3).map(
      (k): Change =>
        (json) =>
          Object.fromEntries(Object.entries(json).filter((_, j) => j !== k)),
    ),
  )
  const nearlyLimit = fc
    .tuple(limitJson, fc.array(change, { maxLength: 2 }))
    .map(([json, changes]) => throughJson(changes.reduce((changed, apply) => apply(changed), json)) as Json)

  test('accepts what limitFrom accepts and refuses what it refuses', () => {
    const seen = { accepted: 0, refused: 0, beyond: 0 }
    fc.assert(
      fc.property(nearlyLimit, (json) => {
        const { code, message = '' } = refusal(() => limitFrom(json))
        if (code === undefined) {
          seen.accepted += 1
          expect(isValid(json), JSON.stringify(isValid.errors)).toBe(true)
        } else if (ruleBeyond(message, json) === 'none') {
          seen.refused += 1
          expect(code).toBe('CONFIG')
          expect(isValid(json), message).toBe(false)
        } else {
          seen.beyond += 1
        }
      }),
      { numRuns: 20_000 },
    )
    expect(Math.min(seen.accepted, seen.refused, seen.beyond)).toBeGreaterThan(1_000)
  })

  test.each([null, [], 'gcra', 7, { rate: '1/s', burst: 5 }, {}].map((json) => [JSON.stringify(json), json]))('refuses %s', (_, json) => {
    expect(isValid(json)).toBe(false)
  })
})

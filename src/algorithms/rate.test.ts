import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SluiceError } from '../errors.ts'
import { RULE } from './algorithm.ts'
import { gcra } from './gcra/gcra.ts'
import type { LevelRule } from './level.ts'
import { aheadUs, type Duration, durationUs, lowestTerms, paceOf, type Rate } from './rate.ts'
import { tokenBucket } from './token-bucket/token-bucket.ts'

const MAX_PERIOD_US = 366 * 86_400_000_000

const WHOLE = 'must be a whole number from 1 to 1,000,000,000'
const WHOLE_OR_0 = 'must be a whole number from 0 to 1,000,000,000'
const UNIT = "must be a number with a unit (us, ms, s, min, h, d), such as '500ms' or '10s'"
const RATE_UNIT = "must be permits per time with a unit (us, ms, s, min, h, d), such as '10/s' or '5/10s'"
const SPAN = 'must be from 1 microsecond to 366 days'
const MICROSECONDS = 'must be a whole number of microseconds'
const RATE_OBJECT = "must be permits per time, such as '10/s' or { permits: 10, per: '1s' }"
const AT_LEAST_1 = 'must be at least 1 permit: for a limit that admits nothing write'
const TOO_FAST = 'must be at most 10 million permits per second'
const EXACTLY = 'at this rate, to be counted exactly'

/** A wrong value, the way the message shows it, and the rule it broke. */
type Refusal = readonly [value: unknown, shown: string, rule: string]

/** What the call was refused with. Anything but a refusal by us fails the test. */
function refusal(call: () => unknown): SluiceError {
  try {
    const answer = call()
    throw new Error(`was accepted: ${JSON.stringify(answer)}`)
  } catch (error) {
    expect(error).toBeInstanceOf(SluiceError)
    expect((error as SluiceError).code).toBe('CONFIG')
    return error as SluiceError
  }
}

function expectRefusal(call: () => unknown, message: string): void {
  expect(refusal(call).message).toBe(message)
}

describe('a duration', () => {
  const ACCEPTED: readonly (readonly [Duration, number])[] = [
    ['1ms', 1_000],
    ['250ms', 250_000],
    ['0.5ms', 500],
    ['333.334ms', 333_334],
    ['31622400000ms', MAX_PERIOD_US],
    ['1us', 1],
    ['500ms', 500_000],
    ['0.001ms', 1],
    ['10s', 10_000_000],
    ['10 s', 10_000_000],
    ['0.5s', 500_000],
    ['1.000001s', 1_000_001],
    ['5min', 300_000_000],
    ['1h', 3_600_000_000],
    ['1d', 86_400_000_000],
    ['0.1d', 8_640_000_000],
    ['366d', MAX_PERIOD_US],
    ['31622400000000us', MAX_PERIOD_US],
  ]

  test.each(ACCEPTED)('of %j is %i microseconds', (duration, us) => {
    expect(durationUs(duration, 'window')).toBe(us)
  })

  const REFUSED: readonly Refusal[] = [
    ['0s', '"0s"', SPAN],
    ['0.0ms', '"0.0ms"', SPAN],
    ['31622400000.001ms', '"31622400000.001ms"', SPAN],
    ['31622400000001us', '"31622400000001us"', SPAN],
    ['367d', '"367d"', SPAN],
    [`1${'0'.repeat(308)}ms`, `"1${'0'.repeat(55)}...`, MICROSECONDS],
    ['0.0005ms', '"0.0005ms"', MICROSECONDS],
    ['333.3345ms', '"333.3345ms"', MICROSECONDS],
    ['0.5us', '"0.5us"', MICROSECONDS],
    ['1.0000001s', '"1.0000001s"', MICROSECONDS],
    // Numbers are answered with the lines to write, as far as they can be read.
    [3600, '3600', "of what? write '3600s' or '3600ms'"],
    [0.5, '0.5', "of what? write '0.5s' or '0.5ms'"],
    ['10', '"10"', "of what? write '10s' or '10ms'"],
    [86_400_000, '86400000', "of what? write '86400000ms'"],
    [0, '0', "of what? write '0s' or '0ms'"],
    [-0, '0', "of what? write '0s' or '0ms'"],
    [5n, '5n', "of what? write '5s' or '5ms'"],
    [-1, '-1', UNIT],
    [Number.MAX_VALUE, '1.7976931348623157e+308', UNIT],
    [Number.NaN, 'NaN', UNIT],
    [Number.POSITIVE_INFINITY, 'Infinity', UNIT],
    [null, 'null', UNIT],
    [undefined, 'undefined', UNIT],
    [true, 'true', UNIT],
    [{}, '{}', UNIT],
    [['1s'], '["1s"]', UNIT],
    ['', '""', UNIT],
    ['s', '"s"', UNIT],
    ['-1s', '"-1s"', UNIT],
    ['+1s', '"+1s"', UNIT],
    ['1e3s', '"1e3s"', UNIT],
    ['0x10s', '"0x10s"', UNIT],
    ['.5s', '".5s"', UNIT],
    ['1,5s', '"1,5s"', UNIT],
    ['1  s', '"1  s"', `${UNIT}: did you mean '1s'?`],
    [' 1s', '" 1s"', UNIT],
    ['1s ', '"1s "', UNIT],
    ['1S', '"1S"', `${UNIT}: did you mean '1s'?`],
    ['1m', '"1m"', `${UNIT}: did you mean '1min'?`],
    ['1 hour', '"1 hour"', `${UNIT}: did you mean '1h'?`],
    ['1.5 Hours', '"1.5 Hours"', `${UNIT}: did you mean '1.5h'?`],
    ['5 µs', '"5 µs"', `${UNIT}: did you mean '5us'?`],
    ['1w', '"1w"', `${UNIT}: did you mean '7d'?`],
    ['2 weeks', '"2 weeks"', `${UNIT}: did you mean '14d'?`],
    ['1 fortnight', '"1 fortnight"', UNIT],
    ['undefined', '"undefined"', UNIT],
    ['1constructor', '"1constructor"', UNIT],
  ]

  for (const [value, shown, rule] of REFUSED) {
    test(`of ${shown} is refused: it ${rule}`, () => {
      expectRefusal(() => durationUs(value as Duration, 'window'), `window ${shown} ${rule}`)
    })
  }

  test('of any whole number of microseconds can be written in microseconds and in milliseconds', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: MAX_PERIOD_US }), (us) => {
        expect(durationUs(`${us}us`, 'window')).toBe(us)
        expect(durationUs(`${us / 1000}ms`, 'window')).toBe(us)
      }),
      { numRuns: 20_000, seed: 11 },
    )
  })

  test('to book ahead may also be 0', () => {
    expect(aheadUs(0, 'maxAheadMs')).toBe(0)
    expect(aheadUs(60_000, 'maxAheadMs')).toBe(60_000_000)
    for (const [ms, shown] of [
      [-1, '-1'],
      [Number.NaN, 'NaN'],
      ['60s', '"60s"'],
    ] as const) {
      const rule = 'must be milliseconds: 0, or from 1 microsecond to 366 days'
      expectRefusal(() => aheadUs(ms as number, 'maxAheadMs'), `maxAheadMs ${shown} ${rule}`)
    }
  })
})

describe('a rate', () => {
  const ACCEPTED: readonly (readonly [Rate, number, number])[] = [
    ['10/s', 1, 100_000],
    ['100/min', 1, 600_000],
    ['5/10s', 1, 2_000_000],
    ['7/s', 7, 1_000_000],
    ['10 / s' as Rate, 1, 100_000],
    ['5/10 s' as Rate, 1, 2_000_000],
    ['1/0.5s', 1, 500_000],
    ['1e3/s', 1, 1_000],
    ['999983/d', 999_983, 86_400_000_000],
    ['10/us', 10, 1],
    ['10000000/s', 10, 1],
    ['1000000000/100s', 10, 1],
    ['1000000000/366d', 5, 158_112],
    ['1/366d', 1, MAX_PERIOD_US],
    [{ permits: 10, per: '1000ms' }, 1, 100_000],
    [{ permits: 10, per: '1s' }, 1, 100_000],
    [{ permits: 3, per: '0.001ms' }, 3, 1],
  ]

  test.each(ACCEPTED)('of %j is %i permits every %i microseconds', (rate, permits, periodUs) => {
    expect(paceOf(rate, 'rate')).toEqual({ permits, periodUs })
  })

  const REFUSED: readonly Refusal[] = [
    ['10', '"10"', RATE_UNIT],
    ['s/10', '"s/10"', RATE_UNIT],
    ['-1/s', '"-1/s"', RATE_UNIT],
    ['/s', '"/s"', RATE_UNIT],
    ['10/', '"10/"', RATE_UNIT],
    ['10/10', '"10/10"', RATE_UNIT],
    ['10/-1s', '"10/-1s"', RATE_UNIT],
    ['10/s/s', '"10/s/s"', RATE_UNIT],
    ['10 per s', '"10 per s"', `${RATE_UNIT}: did you mean '10/s'?`],
    ['10/ 2 weeks', '"10/ 2 weeks"', `${RATE_UNIT}: did you mean '10/14d'?`],
    ['10/m', '"10/m"', `${RATE_UNIT}: did you mean '10/min'?`],
    ['10/minute', '"10/minute"', `${RATE_UNIT}: did you mean '10/min'?`],
    ['0.5/minute', '"0.5/minute"', `${RATE_UNIT}: did you mean '1/2min'?`],
    ['0/minute', '"0/minute"', RATE_UNIT],
    ['NaN/s', '"NaN/s"', RATE_UNIT],
    ['Infinity/s', '"Infinity/s"', RATE_UNIT],
    ['0x10/s', '"0x10/s"', RATE_UNIT],
    ['', '""', RATE_UNIT],
    [10, '10', RATE_OBJECT],
    [null, 'null', RATE_OBJECT],
    [undefined, 'undefined', RATE_OBJECT],
    [true, 'true', RATE_OBJECT],
    ['10000001/s', '"10000001/s"', TOO_FAST],
    ['11/us', '"11/us"', TOO_FAST],
    ['1000000000/99s', '"1000000000/99s"', TOO_FAST],
    [{ permits: 11, per: '1us' }, '{"permits":11,"per":"1us"}', TOO_FAST],
  ]

  for (const [value, shown, rule] of REFUSED) {
    test(`of ${shown} is refused: it ${rule}`, () => {
      expectRefusal(() => paceOf(value as Rate, 'rate'), `rate ${shown} ${rule}`)
    })
  }

  const REFUSED_PERMITS: readonly Refusal[] = [
    ['0/s', '0', WHOLE],
    ['0.5/s', '0.5', `${WHOLE}: did you mean '1/2s'?`],
    ['1.5/s', '1.5', `${WHOLE}: did you mean '3/2s'?`],
    ['0.1/2min', '0.1', `${WHOLE}: did you mean '1/20min'?`],
    ['0.3333333333333333/us', '0.3333333333333333', WHOLE],
    ['1000000001/366d', '1000000001', WHOLE],
    ['1e999/s', 'Infinity', WHOLE],
    [{ permits: 0, per: '1s' }, '0', WHOLE],
    [{ permits: -1, per: '1s' }, '-1', WHOLE],
    [{ permits: 1.5, per: '1s' }, '1.5', `${WHOLE}: did you mean '3/2s'?`],
    [{ permits: 1.5, per: 1_000 }, '1.5', WHOLE],
    [{ permits: 1.5, per: Symbol('s') }, '1.5', WHOLE],
    [{ permits: 1_000_000_001, per: '366d' }, '1000000001', WHOLE],
    [{ permits: Number.NaN, per: '1s' }, 'NaN', WHOLE],
    [{ permits: '5', per: '1s' }, '"5"', WHOLE],
    [{ permits: 5n, per: '1s' }, '5n', WHOLE],
    [{ permits: null, per: '1s' }, 'null', WHOLE],
    [{ per: '1s' }, 'undefined', WHOLE],
    [[], 'undefined', WHOLE],
  ]

  for (const [value, shown, rule] of REFUSED_PERMITS) {
    test(`of ${inspect(value)} is refused for its permits: ${shown} ${rule}`, () => {
      expectRefusal(() => paceOf(value as Rate, 'rate'), `rate: permits ${shown} ${rule}`)
    })
  }

  const REFUSED_PERIODS: readonly Refusal[] = [
    ['10/0s', '"0s"', SPAN],
    ['1/367d', '"367d"', SPAN],
    ['1/31622400000001us', '"31622400000001us"', SPAN],
    ['1/0.5us', '"0.5us"', MICROSECONDS],
    [{ permits: 1, per: '0s' }, '"0s"', SPAN],
    [{ permits: 1, per: '0.0005ms' }, '"0.0005ms"', MICROSECONDS],
    [{ permits: 1, per: '31622400000.001ms' }, '"31622400000.001ms"', SPAN],
    [{ permits: 1, per: 1_000 }, '1000', "of what? write '1000s' or '1000ms'"],
    [{ permits: 1, per: Number.NaN }, 'NaN', UNIT],
    [{ permits: 1, per: '10' }, '"10"', "of what? write '10s' or '10ms'"],
    [{ permits: 1, per: null }, 'null', UNIT],
    [{ permits: 1 }, 'undefined', UNIT],
  ]

  for (const [value, shown, rule] of REFUSED_PERIODS) {
    test(`of ${inspect(value)} is refused for its period: ${shown} ${rule}`, () => {
      expectRefusal(() => paceOf(value as Rate, 'rate'), `rate: period ${shown} ${rule}`)
    })
  }
})

/** The two algorithms that are made of a rate and a capacity, each with its own names for them. */
const FACTORIES = [
  {
    name: 'gcra',
    rateName: 'rate',
    capacityName: 'burst',
    make: (options: unknown) => gcra(options as Parameters<typeof gcra>[0]),
    of: (rate: unknown, capacity: unknown) => gcra({ rate: rate as Rate, burst: capacity as number }),
  },
  {
    name: 'tokenBucket',
    rateName: 'refill',
    capacityName: 'capacity',
    make: (options: unknown) => tokenBucket(options as Parameters<typeof tokenBucket>[0]),
    of: (rate: unknown, capacity: unknown) => tokenBucket({ refill: rate as Rate, capacity: capacity as number }),
  },
]

describe.each(FACTORIES)('$name', ({ name, rateName, capacityName, make, of }) => {
  const CORNERS: readonly (readonly [Rate, number])[] = [
    ['7/s', 0],
    ['7/s', 1],
    ['7/s', 1_000_000_000],
    ['999983/d', 1_000_000],
    ['10000000/s', 1],
    ['10000000/s', 1_000_000_000],
    ['10/us', 1_000_000_000],
    ['1/366d', 1],
    ['1/366d', 71],
    ['1000000000/366d', 1_000_000_000],
    ['1/us', 1_000_000_000],
    ['1/d', 26_062],
    ['1/30d', 868],
  ]

  test.each(CORNERS)('accepts %j with a capacity of %i', (rate, capacity) => {
    const rule = of(rate, capacity)[RULE]
    expect(rule.capacity).toBe(capacity)
    expect(rule.algorithm.type).toBe(name)
  })

  const OUTSIDE: readonly (readonly [rate: unknown, capacity: unknown, message: string])[] = [
    ['7/s', -1, `${name} ${capacityName} -1 ${WHOLE_OR_0}`],
    ['7/s', 1.5, `${name} ${capacityName} 1.5 ${WHOLE_OR_0}`],
    ['7/s', 1_000_000_001, `${name} ${capacityName} 1000000001 ${WHOLE_OR_0}`],
    ['7/s', Number.NaN, `${name} ${capacityName} NaN ${WHOLE_OR_0}`],
    ['7/s', Number.POSITIVE_INFINITY, `${name} ${capacityName} Infinity ${WHOLE_OR_0}`],
    ['7/s', '5', `${name} ${capacityName} "5" ${WHOLE_OR_0}`],
    ['7/s', 5n, `${name} ${capacityName} 5n ${WHOLE_OR_0}`],
    ['7/s', null, `${name} ${capacityName} null ${WHOLE_OR_0}`],
    ['7/s', undefined, `${name} ${capacityName} undefined ${WHOLE_OR_0}`],
    ['10000001/s', 1, `${name} ${rateName} "10000001/s" ${TOO_FAST}`],
    ['0/s', 1, `${name} ${rateName} "0/s" ${AT_LEAST_1} ${capacityName}: 0`],
    [{ permits: 0, per: '1s' }, 1, `${name} ${rateName} {"permits":0,"per":"1s"} ${AT_LEAST_1} ${capacityName}: 0`],
    ['-1/s', 1, `${name} ${rateName} "-1/s" ${RATE_UNIT}`],
    ['0.5/s', 1, `${name} ${rateName}: permits 0.5 ${WHOLE}: did you mean '1/2s'?`],
    ['1/31622400000001us', 1, `${name} ${rateName}: period "31622400000001us" ${SPAN}`],
    ['1/0.5us', 1, `${name} ${rateName}: period "0.5us" ${MICROSECONDS}`],
    ['1/fortnight', 1, `${name} ${rateName} "1/fortnight" ${RATE_UNIT}`],
    ['5/sec', 1, `${name} ${rateName} "5/sec" ${RATE_UNIT}: did you mean '5/s'?`],
    ['5/10sec', 1, `${name} ${rateName} "5/10sec" ${RATE_UNIT}: did you mean '5/10s'?`],
    ['10', 1, `${name} ${rateName} "10" ${RATE_UNIT}`],
    [null, 1, `${name} ${rateName} null ${RATE_OBJECT}`],
    [undefined, 1, `${name} ${rateName} undefined ${RATE_OBJECT}`],
  ]

  for (const [rate, capacity, message] of OUTSIDE) {
    test(`refuses ${inspect(rate)} with a capacity of ${inspect(capacity)}`, () => {
      expectRefusal(() => of(rate, capacity), message)
    })
  }

  const TOO_LARGE: readonly (readonly [Rate, number, number])[] = [
    ['1/d', 26_063, 26_062],
    ['1/366d', 72, 71],
    ['1/366d', 1_000_000_000, 71],
    ['1/30d', 1_000, 868],
    [{ permits: 2, per: '596044952309us' }, 10_589, 7_555],
  ]

  test.each(TOO_LARGE)('refuses %j with a capacity of %i, and tells the largest', (rate, capacity, nearest) => {
    const error = refusal(() => of(rate, capacity))
    expect(error.message).toBe(`${name} ${capacityName} ${capacity} must be at most ${nearest} ${EXACTLY}`)
    expect(error.nearest).toBe(nearest)
  })

  test('refuses options that are no object', () => {
    for (const [options, shown] of [
      [null, 'null'],
      [undefined, 'undefined'],
      ['10/s', '"10/s"'],
      [5, '5'],
      [gcra, 'a function'],
    ] as const) {
      expect(refusal(() => make(options)).message).toBe(`${name} ${shown} must be an object with ${known()}`)
    }
  })

  test('refuses the options of another type', () => {
    const message = `${name} "fixedWindow" is another type: leave it out or say '${name}'`
    expect(refusal(() => make({ type: 'fixedWindow', [rateName]: '7/s', [capacityName]: 5 })).message).toBe(message)
    expect(make({ type: name, [rateName]: '7/s', [capacityName]: 5 }).type).toBe(name)
  })

  test('refuses an option it does not know, so that a misspelt one is not silently ignored', () => {
    const message = `${name} "bursts" is not an option: it has ${known()}`
    expectRefusal(() => make({ [rateName]: '10/s', [capacityName]: 5, bursts: 3 }), message)
  })

  test('keeps any rate and capacity that fit as asked', () => {
    fc.assert(
      fc.property(domain, writing, (figures, write) => {
        const rule = of(write(figures), figures.capacity)[RULE] as LevelRule
        expect(rule.capacity).toBe(figures.capacity)
        expect(BigInt(rule.permits) * BigInt(figures.periodUs)).toBe(BigInt(figures.permits) * BigInt(rule.periodUs))
        expect(rule.asked).toBeUndefined()
        expect(rule.windowUs).toBe(fillUs(figures))
      }),
      { numRuns: 10_000, seed: 12 },
    )
  })

  test('refuses what breaks a single rule of the domain, always as a CONFIG error', () => {
    const seen = new Map<string, number>()
    fc.assert(
      fc.property(domain, violation, (figures, { kind, breaks }) => {
        const { permits, per, capacity, extra } = breaks(figures)
        seen.set(kind, (seen.get(kind) ?? 0) + 1)
        refusal(() => make({ [rateName]: { permits, per }, [capacityName]: capacity, ...extra }))
      }),
      { numRuns: 10_000, seed: 13 },
    )
    for (const kind of VIOLATIONS) expect(seen.get(kind), kind).toBeGreaterThan(500)
  })

  test('throws nothing but a CONFIG error, whatever it is given', () => {
    const tally = { refused: 0, accepted: 0 }
    fc.assert(
      fc.property(anyOptions(rateName, capacityName), (options) => {
        try {
          make(options)
          tally.accepted += 1
        } catch (error) {
          expect(error).toBeInstanceOf(SluiceError)
          expect((error as SluiceError).code).toBe('CONFIG')
          tally.refused += 1
        }
      }),
      { numRuns: 10_000, seed: 14 },
    )
    expect(tally.refused).toBeGreaterThan(5_000)
    expect(tally.accepted).toBeGreaterThan(50)
  })

  function known(): string {
    return name === 'gcra' ? 'rate, burst' : 'capacity, refill'
  }
})

interface Figures {
  permits: number
  periodUs: number
  capacity: number
}

function fillUs({ permits, periodUs, capacity }: Figures): number {
  return Number((BigInt(capacity) * BigInt(periodUs) + BigInt(permits) - 1n) / BigInt(permits))
}

/** In lowest terms 2 x capacity x periodUs + a minute x permits is below 2^52. */
function mostCapacity(permits: number, periodUs: number): number {
  const pace = lowestTerms(permits, periodUs)
  return Math.min(1_000_000_000, Math.floor((2 ** 52 - 1 - 60_000_000 * pace.permits) / (2 * pace.periodUs)))
}

/** From 0 to 1, evenly: `fc.double` would nearly always be next to 0. */
const share = fc.maxSafeNat().map((n) => n / 2 ** 53)

/** From 1 to `most`, every magnitude as likely as every other, and both ends often. */
function upTo(most: number): fc.Arbitrary<number> {
  const magnitude = share.map((part) => Math.floor(most ** part))
  return fc.oneof({ weight: 1, arbitrary: fc.constantFrom(1, most) }, { weight: 4, arbitrary: magnitude })
}

const domain: fc.Arbitrary<Figures> = upTo(MAX_PERIOD_US).chain((periodUs) =>
  upTo(Math.min(1_000_000_000, 10 * periodUs))
    .filter((permits) => mostCapacity(permits, periodUs) >= 1)
    .chain((permits) => upTo(mostCapacity(permits, periodUs)).map((capacity) => ({ permits, periodUs, capacity }))),
)

/** The ways in which the same rate can be written. */
const writing = fc.constantFrom<((figures: Figures) => Rate)[]>(
  ({ permits, periodUs }) => `${permits}/${periodUs}us`,
  ({ permits, periodUs }) => ({ permits, per: `${periodUs}us` }),
  ({ permits, periodUs }) => ({ permits, per: `${periodUs / 1000}ms` }),
  ({ permits, periodUs }) => ({ permits, per: `${(periodUs / 1000).toFixed(3) as `${number}`}ms` }),
  ({ permits, periodUs }) => `${permits}/${(periodUs / 1_000_000).toFixed(6) as `${number}`}s`,
)

interface Broken {
  permits: unknown
  per: unknown
  capacity: unknown
  extra?: Record<string, unknown>
}

interface Violation {
  kind: (typeof VIOLATIONS)[number]
  breaks(figures: Figures): Broken
}

const VIOLATIONS = ['permits', 'period', 'capacity', 'too fast', 'too large', 'unknown option'] as const

const noNumber = fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, '5', null, undefined, true, 5n, Symbol('five'), {}, [5], () => 5)
const noCapacity = fc.oneof(
  noNumber,
  fc.integer({ max: -1 }),
  fc.integer({ min: 1_000_000_001 }),
  fc.maxSafeNat().map((n) => (n % 1_000_000_000) + 0.5),
)
const noPermits = fc.oneof(fc.constant(0), noCapacity)
const noPeriod = fc.oneof(
  noNumber,
  fc.integer(),
  fc.integer({ max: 0 }).map((ms) => `${ms}ms`),
  fc.maxSafeNat().map((n) => `${(n % 1_000_000) + 0.0005}ms`),
  fc.integer({ min: 1, max: 1_000_000 }).map((more) => `${MAX_PERIOD_US + more}us`),
  fc.constantFrom('1', '1 week', 'second', '-1s', '1e3s', '0s'),
)

function written({ permits, periodUs, capacity }: Figures): Broken {
  return { permits, per: `${periodUs}us`, capacity }
}

/** Each takes figures of the domain and breaks one thing about them. */
const violation: fc.Arbitrary<Violation> = fc.oneof(
  noPermits.map((permits): Violation => ({ kind: 'permits', breaks: (figures) => ({ ...written(figures), permits }) })),
  noPeriod.map((per): Violation => ({ kind: 'period', breaks: (figures) => ({ ...written(figures), per }) })),
  noCapacity.map((capacity): Violation => ({ kind: 'capacity', breaks: (figures) => ({ ...written(figures), capacity }) })),
  upTo(99_999_999).map(
    (periodUs): Violation => ({
      kind: 'too fast',
      breaks: ({ capacity }) => ({ permits: 10 * periodUs + 1, per: `${periodUs}us`, capacity: Math.min(capacity, 1_000) }),
    }),
  ),
  fc.nat({ max: 1_000 }).map((more): Violation => ({ kind: 'too large', breaks: (figures) => tooLarge(figures, more) })),
  fc.string({ minLength: 1 }).map(
    (option): Violation => ({
      kind: 'unknown option',
      breaks: (figures) => ({ ...written(figures), extra: { [`x${option}`]: 1 } }),
    }),
  ),
)

/**
 * One permit in a period for which 1e9 are too many, and a capacity just beyond what fits: no
 * slower pace does either.
 */
function tooLarge({ periodUs }: Figures, more: number): Broken {
  const slow = Math.min(MAX_PERIOD_US, Math.max(periodUs, 2_300_000))
  return written({ permits: 1, periodUs: slow, capacity: mostCapacity(1, slow) + 1 + more })
}

function anyOptions(rateName: string, capacityName: string): fc.Arbitrary<unknown> {
  const anything = fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true, withMap: true, withSparseArray: true })
  const text = fc.oneof(fc.string(), fc.constantFrom('10/s', '5/10s', '1/d', '1s', '10', 's/10'))
  const number = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(1, 10, 1_000))
  const rate = fc.oneof(anything, text, fc.record({ permits: fc.oneof(anything, number), per: fc.oneof(anything, text, number) }))
  const capacity = fc.oneof(anything, number)
  const shaped = fc.record({ [rateName]: rate, [capacityName]: capacity }, { requiredKeys: [] })
  return fc.oneof({ weight: 1, arbitrary: anything }, { weight: 4, arbitrary: shaped })
}

test.each(['windowMs', 'max', 'points', 'duration', 'ttl'])(
  'the option %s of other libraries is answered with the line to write',
  (name) => {
    const hint = "Did you mean fixedWindow({ limit: 100, window: '1min' })?"
    const message = `gcra "${name}" is not an option: it has rate, burst. ${hint}`
    expect(() => gcra({ rate: '1/s', burst: 1, [name]: 5 } as Parameters<typeof gcra>[0])).toThrow(
      expect.objectContaining({ code: 'CONFIG', message }),
    )
  },
)

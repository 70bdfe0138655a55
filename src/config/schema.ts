/**
 * One limit as JSON Schema (draft 2020-12), for editors and for services that check what they are sent before it gets here.
 *
 * It accepts all that `limitFrom` accepts. Four rules are beyond a schema and are left to `limitFrom`: at most 10 million permits a second,
 * at most 100 years to fill up, times that are whole microseconds, and the size of a number that is written with a unit or an exponent
 * (`'400d'`, `'1e10/s'`).
 */
const UNIT = '(?:us|ms|s|min|h|d)'
/** A decimal number that is not zero. */
const AMOUNT = '(?=[0.]*[1-9])\\d+(?:\\.\\d+)?'
/** Whole, 1 to 1e9; or with an exponent. */
const PERMITS = '(?:0*(?:[1-9]\\d{0,8}|1000000000)(?:\\.0+)?|(?=[0.]*[1-9])\\d+(?:\\.\\d+)?e\\d+)'

const DAYS_366_MS = 31_622_400_000

const duration = {
  description:
    'A length of time: milliseconds, or a number with a unit (us, ms, s, min, h, d). From 1 microsecond to 366 days, whole microseconds.',
  examples: [500, '500ms', '10s', '5min', '1h', '1d'],
  anyOf: [
    { type: 'number', minimum: 0.001, maximum: DAYS_366_MS },
    { type: 'string', pattern: `^${AMOUNT} ?${UNIT}$` },
  ],
}

const permits = { type: 'integer', minimum: 1, maximum: 1_000_000_000 }

const rate = {
  description: 'A pace: permits per time. At most 10 million permits a second.',
  examples: ['10/s', '100/min', '5/10s', { permits: 5, per: '10s' }],
  anyOf: [
    { type: 'string', pattern: `^${PERMITS} ?/ ?(?:${AMOUNT})? ?${UNIT}$` },
    {
      type: 'object',
      properties: {
        permits: { ...permits, description: 'How many permits: whole, 1 to 1e9.', examples: [5] },
        per: { $ref: '#/$defs/duration', description: 'In how much time: milliseconds, or with a unit.', examples: ['10s'] },
      },
      required: ['permits', 'per'],
      additionalProperties: false,
    },
  ],
}

const rateOf = (description: string) => ({ $ref: '#/$defs/rate', description, examples: ['10/s', '100/min', '5/10s'] })
const permitsOf = (description: string, example: number) => ({ ...permits, description, examples: [example] })
const windowOf = (description: string) => ({ $ref: '#/$defs/duration', description, examples: ['10s', '1h', 500] })

const gcra = limit('gcra', 'A steady pace with a burst, in one number per key: the default choice.', {
  rate: rateOf('The steady pace: permits per time. Required.'),
  burst: permitsOf('What an idle key admits at once: whole permits, 1 to 1e9. Required.', 20),
})

const tokenBucket = limit('tokenBucket', 'A steady refill with a bucket to save up in.', {
  capacity: permitsOf('How many tokens an idle bucket holds, and so admits at once: whole, 1 to 1e9. Required.', 20),
  refill: rateOf('The pace at which tokens come back: permits per time. Required.'),
})

const leakyBucket = limit('leakyBucket', 'A queue that drains at a steady pace: whoever honours delayMs leaves it evenly spaced.', {
  capacity: permitsOf('How much water the bucket holds: whole permits, 1 to 1e9. Required.', 20),
  leak: rateOf('The pace at which it leaks: permits per time. Required.'),
})

const fixedWindow = limit(
  'fixedWindow',
  'So many per calendar window: the cheapest count, and the one people can check by hand.',
  {
    limit: permitsOf('How many one window admits: whole permits, 1 to 1e9. Required.', 5000),
    window: windowOf('How long a window is: milliseconds, or with a unit; 1 microsecond to 366 days. Required.'),
  },
  {
    anchor: {
      description:
        "Where windows begin. 'epoch': at whole multiples since 1970, the same for all keys. 'first': with the first call of a key. " +
        "A number: milliseconds after the epoch's windows, whole to the microsecond; -28800000 with a window of '1d' is midnight in UTC+8.",
      default: 'epoch',
      examples: ['epoch', 'first', -28_800_000],
      anyOf: [
        { enum: ['epoch', 'first'] },
        { type: 'number', minimum: Number.MIN_SAFE_INTEGER / 1000, maximum: Number.MAX_SAFE_INTEGER / 1000 },
      ],
    },
  },
)

const slidingWindow = limit(
  'slidingWindow',
  'A window that slides in small steps: no burst at the boundary, at a fixed cost per key.',
  {
    limit: permitsOf('How many are admitted in a window: whole permits, 1 to 1e9. Required.', 100),
    window: windowOf('How long the window is: milliseconds, or with a unit; 1 microsecond to 366 days. Required.'),
  },
  {
    slots: {
      description: 'Into how many sub-windows it is cut: whole, 1 to 1000. More are smoother and take 8 bytes per key each.',
      default: 10,
      examples: [10, 60],
      type: 'integer',
      minimum: 1,
      maximum: 1000,
    },
  },
)

const slidingLog = limit('slidingLog', 'Never more than the limit in any window: exact, at the price of remembering every admission.', {
  limit: {
    description: 'How many any window admits at most: whole permits, 1 to 100,000. Each admission held takes 16 bytes. Required.',
    examples: [100],
    type: 'integer',
    minimum: 1,
    maximum: 100_000,
  },
  window: windowOf('How long the window is: milliseconds, or with a unit; 1 microsecond to 366 days. Required.'),
})

/** The JSON Schema of one limit: `{ "type": "gcra", "rate": "1/s", "burst": 5 }`. */
export const limitSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Sluice limit',
  description: 'One rate limit: the name of its algorithm, and the options of that algorithm.',
  type: 'object',
  required: ['type'],
  oneOf: [gcra, tokenBucket, leakyBucket, fixedWindow, slidingWindow, slidingLog],
  $defs: { rate, duration },
}

type Options = Readonly<Record<string, object>>

function limit(type: string, description: string, required: Options, optional: Options = {}) {
  return {
    title: type,
    description,
    type: 'object',
    properties: { type: { const: type }, ...required, ...optional },
    required: ['type', ...Object.keys(required)],
    additionalProperties: false,
  }
}

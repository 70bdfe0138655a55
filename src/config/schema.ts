/**
 * One limit as JSON Schema (draft 2020-12), for editors and for services that check what they are
 * sent before it gets here.
 *
 * It accepts all that `limitFrom` accepts. Five rules are beyond a schema and are left to
 * `limitFrom`: at most 10 million permits a second, a rate and a burst that can be counted exactly,
 * times and slots that are whole microseconds, leases of 100 ms at least, and the size of a number
 * that is written with a unit or an exponent (`'400d'`, `'1e10/s'`).
 */
import { permits } from '../algorithms/about.ts'
import { ABOUTS } from '../algorithms/list.ts'

const UNIT = '(?:us|ms|s|min|h|d)'
/** A decimal number that is not zero. */
const AMOUNT = '(?=[0.]*[1-9])\\d+(?:\\.\\d+)?'
/** Whole, 1 to 1e9; or with an exponent. */
const PERMITS = '(?:0*(?:[1-9]\\d{0,8}|1000000000)(?:\\.0+)?|(?=[0.]*[1-9])\\d+(?:\\.\\d+)?e\\d+)'

const duration = {
  description: 'A length of time: a number with a unit (us, ms, s, min, h, d). From 1 microsecond to 366 days, whole microseconds.',
  examples: ['500ms', '10s', '5min', '1h', '1d'],
  type: 'string',
  pattern: `^${AMOUNT} ?${UNIT}$`,
}

const rate = {
  description: 'A pace: permits per time. At most 10 million permits a second.',
  examples: ['10/s', '100/min', '5/10s', { permits: 5, per: '10s' }],
  anyOf: [
    { type: 'string', pattern: `^${PERMITS} ?/ ?(?:${AMOUNT})? ?${UNIT}$` },
    {
      type: 'object',
      properties: {
        permits: { ...permits, description: 'How many permits: whole, 1 to 1e9.', examples: [5] },
        per: { $ref: '#/$defs/duration', description: 'In how much time, with a unit.', examples: ['10s'] },
      },
      required: ['permits', 'per'],
      additionalProperties: false,
    },
  ],
}

/** The JSON Schema of one limit: `{ "type": "gcra", "rate": "1/s", "burst": 5 }`. */
export const limitSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Sluice limit',
  description: 'One rate limit: the name of its algorithm, and the options of that algorithm.',
  type: 'object',
  required: ['type'],
  oneOf: ABOUTS.map(({ schema }) => schema),
  $defs: { rate, duration },
}

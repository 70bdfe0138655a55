/** The JSON Schema of a configuration file, for editors. `sluice check` reports the rest. */
import { limitSchema } from '../sluice.ts'
import { DEFAULT_BOUNDS, DEFAULT_MAX_QUEUE, HEADER_CHOICES, MOST_WAITERS, SIGNAL_NAMES } from './config.ts'

const { $schema, $defs, title: _title, oneOf, ...rest } = limitSchema
const isHeld = ({ title }: { readonly title: string }) => title === 'concurrency'
/** The place of a caller that died is free after its lease: without one it never would be. */
const held = oneOf.filter(isHeld).map((schema) => ({ ...schema, required: [...schema.required, 'lease'] }))
/** What has gone by when it is decided: Envoy does not say when a request is done. */
const ruleLimit = { ...rest, oneOf: oneOf.filter((schema) => !isHeld(schema)) }
const limit = { ...rest, oneOf: [...ruleLimit.oneOf, ...held] }

const tuning = {
  onStoreError: {
    description: "The policy when Redis fails or is late. 'throw': the caller gets an error. 'local': this process, with its share.",
    enum: ['throw', 'allow', 'deny', 'local'],
    default: 'throw',
  },
  storeTimeoutMs: {
    description: 'How long Redis may take for a decision, in milliseconds.',
    type: 'number',
    exclusiveMinimum: 0,
    default: 1000,
  },
  localShare: {
    description: "With onStoreError 'local': the share of each limit that this process gives out.",
    type: 'number',
    exclusiveMinimum: 0,
    maximum: 1,
    default: 1,
  },
}

const level = (description: string) => ({ description, type: 'number' })

const follow = {
  description:
    'The rate of the limit follows the load of this process: max up to one level of the signal, min from another on, linear between them.',
  type: 'object',
  properties: {
    limit: { description: 'The name of the limit, where there are several.', type: 'string' },
    signal: {
      description: 'eventLoopDelay: milliseconds, 99 of 100. eventLoopUtilization, cpu (by its quota) and heap: 0 to 1.',
      enum: SIGNAL_NAMES,
    },
    min: { $ref: '#/$defs/rate' },
    max: { $ref: '#/$defs/rate' },
    from: level('The level of the signal up to which the rate is max.'),
    to: level('The level from which on it is min.'),
    everyMs: {
      description: 'How often the signal is read, in milliseconds.',
      type: 'number',
      minimum: 10,
      maximum: 600_000,
      default: 1000,
    },
    share: {
      description: 'The share of min and max that this process has. Required on a store that others share.',
      type: 'number',
      exclusiveMinimum: 0,
      maximum: 1,
    },
  },
  required: ['signal', 'min', 'max', 'from', 'to'],
  additionalProperties: false,
}

const limits = {
  description: 'One limit (it has a type), or several by name, which are decided as one: all are charged or none.',
  anyOf: [{ $ref: '#/$defs/limit' }, { type: 'object', minProperties: 1, additionalProperties: { $ref: '#/$defs/limit' } }],
}

const shadow = { description: 'Decide and count, but refuse no call: to try a limit out on real traffic.', type: 'boolean', default: false }

const limiter = {
  type: 'object',
  properties: {
    limits: { $ref: '#/$defs/limits' },
    plans: {
      description: 'Other numbers for some callers, by the name of the plan: the same limits with the same algorithms.',
      type: 'object',
      additionalProperties: { $ref: '#/$defs/limits' },
    },
    follow: { $ref: '#/$defs/follow' },
    shadow,
    ...tuning,
    maxQueue: { description: 'How many may wait for one key.', type: 'integer', minimum: 0, default: DEFAULT_MAX_QUEUE },
    maxAheadMs: { description: 'How far a wait may be booked ahead, in milliseconds.', type: 'number', minimum: 0, default: 60_000 },
  },
  required: ['limits'],
  additionalProperties: false,
}

const bounds = {
  description: 'What the service holds at most.',
  type: 'object',
  properties: {
    maxKeys: {
      description: 'Keys of each limit, in memory. Read when the service starts.',
      type: 'integer',
      minimum: 1,
      maximum: 16_000_000,
      default: DEFAULT_BOUNDS.maxKeys,
    },
    onFull: {
      description: "A new key when a limit holds maxKeys that are in use. 'deny': it is refused. 'allow': it passes uncounted.",
      enum: ['deny', 'allow'],
      default: DEFAULT_BOUNDS.onFull,
    },
    maxWaiters: {
      description: 'How many may wait at /v1/acquire, for whatever limiters and keys.',
      type: 'integer',
      minimum: 0,
      maximum: MOST_WAITERS,
      default: DEFAULT_BOUNDS.maxWaiters,
    },
  },
  additionalProperties: false,
}

const text = { type: ['string', 'number', 'boolean'] }

const descriptor = {
  type: 'object',
  properties: {
    key: { ...text, description: 'The key of the entry.' },
    value: { ...text, description: 'Its value; with * at the end, what it begins with. Left out: any value, each counted by itself.' },
    limit: { $ref: '#/$defs/ruleLimit' },
    unlimited: { description: 'Let everything pass, and count nothing.', type: 'boolean', default: false },
    denied: { description: 'Let nothing pass: a block list.', type: 'boolean', default: false },
    charge: {
      description:
        "Charge the hits that a descriptor brings along whether they fit or not: what Envoy's apply_on_stream_done reports was used already.",
      type: 'boolean',
      default: false,
    },
    follow: { $ref: '#/$defs/follow' },
    shadow,
    ...tuning,
    descriptors: { $ref: '#/$defs/descriptors' },
  },
  required: ['key'],
  additionalProperties: false,
}

export const configSchema = {
  $schema,
  title: 'Sluice service configuration',
  type: 'object',
  properties: {
    bounds,
    shadow: { ...shadow, description: 'The whole service, whatever its limiters and rules say: decide and count, but refuse no call.' },
    limiters: {
      description: 'Limiters by name, for /v1/decide, /v1/acquire, /v1/charge, /v1/settle, /v1/release and /v1/renew.',
      type: 'object',
      propertyNames: { pattern: '^(?!rls\\.)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' },
      additionalProperties: { $ref: '#/$defs/limiter' },
    },
    domains: {
      description: "Domains of Envoy's rate limit service, by name.",
      type: 'object',
      propertyNames: { minLength: 1 },
      additionalProperties: {
        type: 'object',
        properties: {
          descriptors: { $ref: '#/$defs/descriptors' },
          headers: {
            description: 'Which headers Envoy is asked to add to its responses: RateLimit of a draft of the IETF, or X-RateLimit.',
            enum: HEADER_CHOICES,
            default: 'none',
          },
        },
        required: ['descriptors'],
        additionalProperties: false,
      },
    },
  },
  // Of several files one may have only bounds.
  minProperties: 1,
  additionalProperties: false,
  $defs: {
    ...$defs,
    limit,
    ruleLimit,
    limits,
    follow,
    limiter,
    descriptor,
    descriptors: { type: 'array', items: { $ref: '#/$defs/descriptor' } },
  },
}

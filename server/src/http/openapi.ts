/**
 * The service as an OpenAPI 3.1 document. The tests hold every answer against it, and see that
 * everything in it happens.
 */
import { HEADER_CHOICES } from '../config/config.ts'
import { MAX_LISTENERS } from '../live/hub.ts'
import { MAX_BODY_BYTES } from './body.ts'
import { DEFAULT_TIMEOUT_MS, MAX_BATCH, MAX_TIMEOUT_MS, VERBS } from './input.ts'
import { MAX_AT_ONCE } from './requests.ts'

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })
const answer = (description: string, schema: object) => ({ description, content: { 'application/json': { schema } } })
const problem = (description: string) => ({ description, content: { 'application/problem+json': { schema: ref('Problem') } } })

const milliseconds = (description: string) => ({ description, type: 'number', minimum: 0 })
const orNever = (description: string) => ({ description: `${description} null: never.`, type: ['number', 'null'], minimum: 0 })
const permits = { type: 'integer', minimum: 0, maximum: 1_000_000_000 }
const usedPermits = { type: 'integer', minimum: 0, maximum: 1_000_000_000_000 }
const outcome = { enum: ['allowed', 'limited', 'impossible'] }

const BAD_INPUT = {
  400: problem('Something in the request is wrong: the detail names the value and the rule. Nothing was touched.'),
  404: problem('There is no limiter of this name. Nothing was touched.'),
}
const BAD_BODY = {
  ...BAD_INPUT,
  413: problem(`The body is larger than ${MAX_BODY_BYTES} bytes.`),
  415: problem('The body is not sent as application/json.'),
}
const NO_TOKEN = { 401: problem('The service wants a token for this, and there was none that it knows. Nothing was touched.') }
const NO_STORE = { 503: problem('The store failed, and the failure policy of the limiter is to say so.') }
const NO_STORE_OR_ROOM = {
  503: problem('The store failed, and the failure policy of the limiter is to say so. Or the body came too slowly while many did (BUSY).'),
}

const FOREIGN = {
  403: problem('A page of another site sent it, or it was sent to a name that is not of this service. Nothing was touched.'),
}

const STORE_STATES = ['up', 'full', 'down']

const figures = {
  limit: { ...permits, description: 'What an idle key admits at once.' },
  remaining: { ...permits, description: 'Whole permits left.' },
  retryAfterMs: orNever('How long until the same call would be allowed; 0 when it is.'),
  resetAfterMs: milliseconds('How long until the key is idle again.'),
  delayMs: milliseconds('How long to wait before acting: from leaky buckets and reservations.'),
}

const decided = {
  limiter: { type: 'string' },
  allowed: { description: 'What to obey.', type: 'boolean' },
  outcome: { ...outcome, description: 'What the limits said. In shadow it may differ from allowed.' },
  ...figures,
  atMs: { description: "The store's time of the decision.", type: 'number' },
  policy: { description: 'The limit that binds.', type: 'string' },
  parts: { description: 'The figures of each limit.', type: 'object', additionalProperties: ref('Part') },
  degraded: { description: 'The store did not answer, and the failure policy decided.', type: 'boolean' },
  shadow: { description: 'The limiter refuses no call.', type: 'boolean' },
}

/** Only where it was refused. */
const refused = {
  reason: {
    description:
      'limit: by the limit that binds. full: there is no room for a new key. store: it did not answer, and the failure policy refuses.',
    enum: ['limit', 'full', 'store'],
  },
}

/** Only where a limit is held until it is released. */
const held = {
  permit: { description: 'Of limits that are held until they are released: what /v1/release and /v1/renew take.', type: 'string' },
  token: { description: 'Above those of all permits of the key before it: for fencing writes.', type: 'integer', minimum: 0 },
  leaseMs: milliseconds('After how long the permit is over, unless it is renewed.'),
}

const total = (description: string) => ({ description: `${description} Since the service started.`, type: 'integer', minimum: 0 })

function exactly(properties: Readonly<Record<string, object>>, optional: readonly string[] = []) {
  const required = Object.keys(properties).filter((name) => !optional.includes(name))
  return { type: 'object', properties, required, additionalProperties: false }
}

const asked = {
  limiter: { description: 'The name of a limiter.', type: 'string', examples: ['api'] },
  key: {
    description:
      'Whom to count: one key for all limits, or one for each by name. 1 to 1024 characters. In memory, one of more than 128 is kept as its digest.',
    anyOf: [{ type: 'string' }, { type: 'object', additionalProperties: { type: 'string' } }],
    examples: ['user:42'],
  },
  cost: {
    description: 'How many permits: whole, or one for each limit by name.',
    anyOf: [permits, { type: 'object', additionalProperties: permits }],
    default: 1,
  },
  plan: { description: 'Decide by the numbers of this plan.', type: 'string' },
}

const used = (description: string) => ({
  description,
  anyOf: [usedPermits, { type: 'object', additionalProperties: usedPermits }],
})

const settled = {
  ...asked,
  cost: { ...used('What the decision charged.'), default: 1 },
  actual: used('What the call really cost: whole, or one for each limit by name. May be above every limit.'),
  of: {
    description: 'The decision, as it was answered. Of its parts only these are needed; the rest may stay.',
    type: 'object',
    properties: {
      atMs: { type: 'number', minimum: 0 },
      parts: {
        type: 'object',
        additionalProperties: {
          type: 'object',
          properties: {
            resetAfterMs: { type: 'number', minimum: 0 },
            delayMs: {
              description: 'How long its caller had to wait, of a reservation or a leaky bucket. Default 0.',
              type: 'number',
              minimum: 0,
            },
          },
          required: ['resetAfterMs'],
        },
      },
    },
    required: ['atMs', 'parts'],
  },
}

const question = {
  ...asked,
  verb: {
    description:
      'consume takes if allowed; peek only asks; reserve takes, maybe ahead of time; refund gives back as of now: a call is given back by /v1/settle.',
    enum: VERBS,
    default: 'consume',
  },
  maxWaitMs: milliseconds('Of reserve: take nothing if acting would have to wait longer.'),
}

const schemas = {
  Question: exactly(question, ['cost', 'plan', 'verb', 'maxWaitMs']),
  Wait: exactly(
    {
      ...asked,
      timeoutMs: {
        description: 'Give up if the turn cannot come within this time.',
        type: 'number',
        minimum: 0,
        maximum: MAX_TIMEOUT_MS,
        default: DEFAULT_TIMEOUT_MS,
      },
    },
    ['cost', 'plan', 'timeoutMs'],
  ),
  Used: exactly(
    { ...asked, cost: { ...used('What was used: whole, or one for each limit by name. May be above every limit.'), default: 1 } },
    ['cost', 'plan'],
  ),
  Settlement: exactly(settled, ['cost', 'plan']),
  Settled: exactly({ limiter: { type: 'string' }, settled: { const: true } }),
  Part: exactly({ outcome, ...figures }),
  Decision: exactly({ ...decided, ...refused, ...held }, Object.keys({ ...refused, ...held })),
  Acquired: exactly(
    { ...decided, ...refused, ...held, waitedMs: milliseconds('How long it waited.') },
    Object.keys({ ...refused, ...held }),
  ),
  Permit: exactly({ permit: { description: 'The permit of a decision, as it was answered.', type: 'string' } }),
  Released: exactly({
    limiter: { type: 'string' },
    released: { description: 'Whether it was held. Not if its lease was over, or it was released before.', type: 'boolean' },
  }),
  Renewed: exactly({
    limiter: { type: 'string' },
    renewed: { description: 'false: it is held no longer, and another may have its place. Stop what it was held for.', type: 'boolean' },
    leaseMs: milliseconds('After how long it is over, unless it is renewed again. 0 if it is over.'),
  }),
  Refunded: exactly({ limiter: { type: 'string' }, refunded: { const: true } }),
  Failed: exactly({ error: ref('Problem') }),
  Limiter: exactly({
    name: { type: 'string' },
    limits: { type: 'object' },
    plans: { type: 'object' },
    options: { type: 'object' },
    follow: { description: 'How its rate follows the load. null where it does not.', type: ['object', 'null'] },
    now: {
      description: 'What limits are now that follow the load (permits per second), or are held until they are released.',
      type: 'object',
      additionalProperties: { type: 'number' },
    },
    shadow: { type: 'boolean' },
    waiting: { description: 'How many wait for their turn.', type: 'integer', minimum: 0 },
    inflight: {
      description: 'Permits that this instance has lent, and that were not released here and are not over. null where nothing is held.',
      type: ['integer', 'null'],
      minimum: 0,
    },
    store: { enum: STORE_STATES },
  }),
  RateLimitResponse: exactly({
    overallCode: { enum: ['OK', 'OVER_LIMIT'] },
    statuses: {
      type: 'array',
      items: exactly(
        {
          code: { enum: ['OK', 'OVER_LIMIT'] },
          currentLimit: exactly({ name: { type: 'string' }, requestsPerUnit: { type: 'integer' }, unit: { type: 'string' } }),
          limitRemaining: { type: 'integer', minimum: 0 },
          durationUntilReset: { type: 'string', pattern: '^[0-9.]+s$' },
        },
        ['currentLimit', 'durationUntilReset'],
      ),
    },
    responseHeadersToAdd: { type: 'array', items: exactly({ key: { type: 'string' }, value: { type: 'string' } }) },
  }),
  Domain: exactly({ name: { type: 'string' }, headers: { enum: HEADER_CHOICES }, rules: { type: 'array', items: ref('Rule') } }),
  Rule: exactly({
    rule: { description: 'Domain, keys and values as the file has them: its name in metrics, in the log and in Live.', type: 'string' },
    limit: { description: 'null where there is none.', type: ['object', 'null'] },
    unlimited: { description: 'Everything passes, and nothing is counted.', type: 'boolean' },
    denied: { description: 'Nothing passes.', type: 'boolean' },
    charge: { description: 'Hits that a descriptor brings along are charged, whether they fit or not.', type: 'boolean' },
    shadow: { type: 'boolean' },
    options: { type: 'object' },
    store: { description: 'null where nothing is counted.', enum: [...STORE_STATES, null] },
  }),
  /** What an event of the live stream carries. */
  Live: exactly({
    atMs: { description: 'The time of the day, in milliseconds since 1970.', type: 'number' },
    startedAtMs: { description: 'When the service started.', type: 'number' },
    limiters: { type: 'array', items: ref('LiveLimiter') },
    topRefused: {
      description: 'The keys that are refused most often, counts halved every five minutes; null unless the service was told to keep them.',
      anyOf: [{ type: 'null' }, { type: 'array', items: ref('RefusedKey') }],
    },
  }),
  LiveLimiter: exactly({
    name: { description: 'Of a limiter, or the rule of a domain as the file has it.', type: 'string' },
    rule: { description: 'The same, where it is the rule of a domain. Else null.', type: ['string', 'null'] },
    allowed: total('Decisions that were allowed.'),
    denied: total('Decisions that were not, impossible ones included.'),
    shadowed: total('Decisions that would have been denied, had the limiter not been in shadow.'),
    errors: total('Decisions that failed because the store did.'),
    waiting: { description: 'How many wait for their turn now.', type: 'integer', minimum: 0 },
    waits: exactly({
      count: total('Waits that ended with a turn.'),
      sumMs: milliseconds('All of them together.'),
      maxMs: milliseconds('The longest since the event before this one.'),
    }),
    store: {
      description: 'down: it does not answer, and the failure policy decides. full: it has no room for new keys.',
      enum: STORE_STATES,
    },
    keys: {
      description: 'Keys held in memory, of the limit that holds most; null where they are in Redis.',
      type: ['integer', 'null'],
      minimum: 0,
    },
  }),
  RefusedKey: exactly({
    limiter: { type: 'string' },
    key: { description: 'Cut, with … at its end, if it is long.', type: 'string' },
    count: { description: 'How often it was refused, lately.', type: 'integer', minimum: 1 },
    atMost: { description: 'The true count may be lower.', type: 'boolean' },
  }),
  Problem: exactly(
    {
      type: { type: 'string' },
      title: { type: 'string' },
      status: { type: 'integer' },
      detail: { description: 'In words, with the value that was wrong and the rule.', type: 'string' },
      code: { description: 'For programs.', type: 'string' },
      'violated-policies': { description: 'The limits that refused.', type: 'array', items: { type: 'string' } },
      retryAfterMs: orNever('How long until it would be allowed.'),
    },
    ['violated-policies', 'retryAfterMs'],
  ),
}

const body = (schema: object) => ({ required: true, content: { 'application/json': { schema } } })
const inPath = (name: string, description: string) => ({ name, in: 'path', required: true, description, schema: { type: 'string' } })
const OF_KEY = [inPath('name', 'The name of a limiter.'), inPath('key', 'The key, percent-encoded.')]
const status = (value: string) => exactly({ status: { const: value } })

/** Only where the service was given tokens. */
const TOKEN = [{ token: [] }, {}]

const text = (description: string, type: string) => ({ description, content: { [type]: { schema: { type: 'string' } } } })
const NOT_MODIFIED = { 304: { description: 'It is what if-none-match names.' } }

const document = {
  openapi: '3.1.0',
  info: {
    title: 'Sluice',
    version: '1',
    description: `An exact rate limiter over HTTP. A connection with more than ${MAX_AT_ONCE} unanswered requests is refused as a whole: a 429 (PIPELINE) in place of the first answer, and then its end. When every connection is taken by a request, a new one may only ask for /healthz, /readyz and /metrics: everything else is a 503 (BUSY).`,
    license: { name: 'MIT', identifier: 'MIT' },
  },
  paths: {
    '/': {
      get: {
        operationId: 'page',
        summary: 'The page, for browsers.',
        responses: {
          200: text('The page.', 'text/html'),
          ...NOT_MODIFIED,
          404: problem('It was turned off, or not built.'),
        },
      },
    },
    '/assets/{file}': {
      get: {
        operationId: 'asset',
        summary: 'What the page is made of.',
        parameters: [inPath('file', 'Its name.')],
        responses: {
          200: { description: 'The file.', content: { '*/*': { schema: {} } } },
          ...NOT_MODIFIED,
          404: problem('There is no such file.'),
        },
      },
    },
    '/v1/decide': {
      post: {
        operationId: 'decide',
        security: TOKEN,
        summary: `Decides one question, or up to ${MAX_BATCH} at once. A refusal is an answer too: its status is 200.`,
        requestBody: body({
          anyOf: [ref('Question'), exactly({ decisions: { type: 'array', minItems: 1, maxItems: MAX_BATCH, items: ref('Question') } })],
        }),
        responses: {
          200: answer('The answer, or the answers in the order of the questions.', {
            anyOf: [
              ref('Decision'),
              ref('Refunded'),
              exactly({ decisions: { type: 'array', items: { anyOf: [ref('Decision'), ref('Refunded'), ref('Failed')] } } }),
            ],
          }),
          ...NO_TOKEN,
          ...BAD_BODY,
          ...NO_STORE_OR_ROOM,
        },
      },
    },
    '/v1/acquire': {
      post: {
        operationId: 'acquire',
        security: TOKEN,
        summary: 'Waits its turn, first come, first served. A caller that hangs up leaves the queue and takes nothing.',
        requestBody: body(ref('Wait')),
        responses: {
          200: answer('It is your turn.', ref('Acquired')),
          ...NO_TOKEN,
          ...BAD_BODY,
          429: problem('Your turn cannot come in time, or never, or too many are waiting (QUEUE_FULL). Nothing was taken.'),
          ...NO_STORE_OR_ROOM,
        },
      },
    },
    '/json': {
      post: {
        operationId: 'shouldRateLimit',
        security: TOKEN,
        summary: "The question of Envoy's rate limit service as JSON, at the path of its own service: to try the rules of domains.",
        requestBody: body({ type: 'object', required: ['domain', 'descriptors'] }),
        responses: {
          200: answer('All descriptors are within their limits.', ref('RateLimitResponse')),
          ...NO_TOKEN,
          400: BAD_INPUT[400],
          413: BAD_BODY[413],
          415: BAD_BODY[415],
          429: answer('One of them is over its limit.', ref('RateLimitResponse')),
          ...NO_STORE_OR_ROOM,
        },
      },
    },
    '/v1/charge': {
      post: {
        operationId: 'charge',
        security: TOKEN,
        summary: 'Writes down what was used, whether it fits or not. What does not fit is debt: the key is limited until it has drained.',
        requestBody: body(ref('Used')),
        responses: {
          200: answer('It is charged. limited: as debt; retryAfterMs says until when there is nothing for one more.', ref('Decision')),
          ...NO_TOKEN,
          ...BAD_BODY,
          ...NO_STORE_OR_ROOM,
        },
      },
    },
    '/v1/settle': {
      post: {
        operationId: 'settle',
        security: TOKEN,
        summary: 'Says what a call really cost that was decided before. It is not remembered that it was: settle a decision once.',
        requestBody: body(ref('Settlement')),
        responses: {
          200: answer('It is settled. Nothing was changed if the decision had charged nothing.', ref('Settled')),
          ...NO_TOKEN,
          ...BAD_BODY,
          ...NO_STORE_OR_ROOM,
        },
      },
    },
    '/v1/release': {
      post: {
        operationId: 'release',
        security: TOKEN,
        summary: 'Gives back what is held until it is released. Any instance on the same store can. A second time it does nothing.',
        requestBody: body(ref('Permit')),
        responses: { 200: answer('It is free.', ref('Released')), ...NO_TOKEN, ...BAD_BODY, ...NO_STORE_OR_ROOM },
      },
    },
    '/v1/renew': {
      post: {
        operationId: 'renew',
        security: TOKEN,
        summary: 'Lets the lease of a permit run anew: for work that takes longer. Every third of the lease is often enough.',
        requestBody: body(ref('Permit')),
        responses: { 200: answer('Whether it is held.', ref('Renewed')), ...NO_TOKEN, ...BAD_BODY, ...NO_STORE_OR_ROOM },
      },
    },
    '/v1/limiters': {
      get: {
        operationId: 'limiters',
        security: TOKEN,
        summary: 'What the configuration has.',
        responses: {
          ...NO_TOKEN,
          200: answer(
            'All limiters, and the rules of all domains.',
            exactly({ limiters: { type: 'array', items: ref('Limiter') }, domains: { type: 'array', items: ref('Domain') } }),
          ),
        },
      },
    },
    '/v1/limiters/{name}/keys/{key}': {
      get: {
        operationId: 'peek',
        security: TOKEN,
        summary: 'How a key stands. Takes nothing.',
        parameters: [
          ...OF_KEY,
          { name: 'cost', in: 'query', schema: { ...permits, default: 1 } },
          { name: 'plan', in: 'query', schema: { type: 'string' } },
        ],
        responses: { 200: answer('What consume would answer.', ref('Decision')), ...NO_TOKEN, ...BAD_INPUT, ...NO_STORE },
      },
      delete: {
        operationId: 'reset',
        security: TOKEN,
        summary: 'Forgets a key.',
        parameters: OF_KEY,
        responses: { 204: { description: 'It is forgotten.' }, ...NO_TOKEN, ...BAD_INPUT, ...NO_STORE },
      },
    },
    '/v1/live': {
      get: {
        operationId: 'live',
        security: TOKEN,
        summary: 'What the limiters do, at once and then every second: server-sent events named live, whose data is Live.',
        responses: {
          200: text('The stream.', 'text/event-stream'),
          ...NO_TOKEN,
          503: problem(`${MAX_LISTENERS} listen already, all of them since less than ten seconds ago, or the service is stopping.`),
        },
      },
    },
    '/healthz': {
      get: { operationId: 'healthz', summary: 'Whether the process is alive.', responses: { 200: answer('It is.', status('ok')) } },
    },
    '/readyz': {
      get: {
        operationId: 'readyz',
        summary: 'Whether it can decide.',
        responses: {
          200: answer('It can.', status('ready')),
          503: problem('It is stopping, or its store is down and no policy decides instead.'),
        },
      },
    },
    '/metrics': {
      get: {
        operationId: 'metrics',
        security: TOKEN,
        summary: 'For Prometheus.',
        responses: { 200: text('Its text format.', 'text/plain'), ...NO_TOKEN },
      },
    },
    '/openapi.json': {
      get: { operationId: 'openapi', summary: 'This document.', responses: { 200: answer('This document.', { type: 'object' }) } },
    },
  },
  components: { schemas, securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
}

/** Any request can be one that a page of another site has sent. */
for (const operations of Object.values(document.paths)) {
  for (const operation of Object.values(operations) as { responses: object }[]) Object.assign(operation.responses, FOREIGN)
}

export const openApi = document

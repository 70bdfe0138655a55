/**
 * Configuration files: what they may contain, and the errors about wrong ones, which always name
 * the place.
 */
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { ConfigError } from '../src/config/config.ts'
import { explained } from '../src/config/explain.ts'
import { readConfig, readConfigs } from '../src/config/read.ts'
import { configSchema } from '../src/config/schema.ts'
import { limitFrom } from '../src/sluice.ts'

const sample = readFileSync(new URL('../sample.yaml', import.meta.url), 'utf8')

function messageFor(text: string): string {
  try {
    readConfig(text, 'x.yaml')
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as Error).message
  }
  return ''
}

describe('a good file', () => {
  test('has limiters with one limit or several, plans, a failure policy and shadow', () => {
    const { limiters } = readConfig(sample, 'sample.yaml')
    expect([...limiters.keys()]).toEqual(['api', 'llm', 'login'])
    expect(limiters.get('api')).toEqual({
      name: 'api',
      limits: { default: limitFrom({ type: 'gcra', rate: '10/s', burst: 20 }) },
      plans: { pro: { default: limitFrom({ type: 'gcra', rate: '100/s', burst: 200 }) } },
      options: { onStoreError: 'local', storeTimeoutMs: 50 },
      shadow: false,
    })
    expect(Object.keys(limiters.get('llm')?.limits ?? {})).toEqual(['requests', 'tokens'])
    expect(limiters.get('login')?.shadow).toBe(true)
  })

  test('has domains with trees of descriptors', () => {
    const [address, login, assets, tenant] = readConfig(sample, 'sample.yaml').domains.get('edge')?.descriptors ?? []
    expect(address).toMatchObject({ key: 'remote_address', value: undefined, wildcard: false, unlimited: false })
    expect(login).toMatchObject({ value: '/login', limiter: { limits: { default: { type: 'fixedWindow' } } } })
    expect(assets).toMatchObject({ value: '/static/', wildcard: true, unlimited: true, limiter: undefined })
    expect(tenant).toMatchObject({ limiter: undefined, descriptors: [{ key: 'verb', value: 'write' }] })
  })

  test('may use every algorithm', () => {
    const limits = [
      '{ type: gcra, rate: 1/s, burst: 1 }',
      '{ type: tokenBucket, capacity: 1, refill: { permits: 1, per: 1s } }',
      '{ type: leakyBucket, capacity: 1, leak: 1/s }',
      '{ type: fixedWindow, limit: 1, window: 1s, anchor: first }',
      '{ type: slidingWindow, limit: 1, window: 1s, slots: 4 }',
      '{ type: slidingLog, limit: 1, window: 1s }',
    ]
    const { limiters } = readConfig(`limiters:\n${limits.map((limit, k) => `  l${k}: { limits: ${limit} }`).join('\n')}`, 'x.yaml')
    expect(limiters.size).toBe(limits.length)
  })

  test('keeps the name under which a rule counts when other rules and its numbers change', () => {
    const rule = (burst: number) => `      - { key: ip, limit: { type: gcra, rate: 1/s, burst: ${burst} } }\n`
    const nameIn = (text: string) =>
      readConfig(text, 'x.yaml')
        .domains.get('d')
        ?.descriptors.find(({ key }) => key === 'ip')?.limiter?.name
    const head = 'domains:\n  d:\n    descriptors:\n'
    expect(nameIn(head + rule(1))).toBe(nameIn(`${head}      - { key: path, unlimited: true }\n${rule(9)}`))
  })

  test('may say things once, by anchors and merge keys', () => {
    const text = 'limiters:\n  a: &a\n    limits: { type: gcra, rate: 1/s, burst: 1 }\n  b:\n    <<: *a\n    shadow: true\n'
    expect(readConfig(text, 'x.yaml').limiters.get('b')).toMatchObject({ shadow: true, limits: { default: { type: 'gcra' } } })
  })
})

describe('a mistake is shown with its line and column:', () => {
  const LIMIT = '{ type: gcra, rate: 1/s, burst: 1 }'

  test.each([
    ['no YAML', 'limiters: [', 'x.yaml:1:12: '],
    ['a key twice', `limiters:\n  a: { limits: ${LIMIT} }\n  a: { limits: ${LIMIT} }\n`, 'x.yaml:3:3: Map keys must be unique'],
    ['an empty file', '', 'x.yaml:1:1: the configuration is empty: it must be a mapping of limiters, domains'],
    ['a list', '- 1', 'x.yaml:1:1: the configuration [1] must be a mapping'],
    ['nothing in it', '{}', 'x.yaml:1:1: the configuration must have limiters, domains or both'],
    [
      'an unknown section',
      `limits: {}\nlimiters: {}`,
      'x.yaml:1:1: "limits" is not an option of the configuration: there is limiters, domains',
    ],
    [
      'what is held without a lease',
      'limiters:\n  a: { limits: { type: concurrency, max: 2 } }',
      'x.yaml:2:16: concurrency lease is missing: it must be a duration such as 30s',
    ],
    [
      'what is held, in a descriptor',
      'domains:\n  d:\n    descriptors:\n      - { key: k, limit: { type: concurrency, max: 2, lease: 30s } }',
      'x.yaml:4:34: type "concurrency" must not be the limit of a descriptor, because Envoy does not say when a request is done',
    ],
    ['a limiter that is none', 'limiters:\n  api: 5', 'x.yaml:2:8: limiter "api" 5 must be a mapping of limits, plans'],
    [
      'a limit where the limiter should be',
      'limiters:\n  api: { type: gcra, rate: 1/s, burst: 1 }',
      'x.yaml:2:8: limiter "api" must have its limit one step further in, below limits',
    ],
    ['no limits', 'limiters:\n  api: { shadow: true }', 'x.yaml:2:3: limits is missing: it must be a mapping'],
    ['limits without any', 'limiters:\n  api:\n    limits: {}', 'x.yaml:3:13: limits {} must be one limit with a type'],
    [
      'a misspelt option',
      `limiters:\n  api:\n    limits: ${LIMIT}\n    shadw: true`,
      'x.yaml:4:5: "shadw" is not an option of limiter "api"',
    ],
    [
      'a bad number',
      'limiters:\n  api:\n    limits: { type: gcra, rate: 1/s, burst: -1 }',
      'x.yaml:3:45: gcra burst -1 must be a whole number from 0 to',
    ],
    [
      'a burst that is too large for its rate',
      'limiters:\n  api:\n    limits: { type: gcra, rate: 1/30d, burst: 1000 }',
      'x.yaml:3:47: gcra burst 1000 must be at most 868 at this rate, to be counted exactly',
    ],
    [
      'bookings too far ahead for a plan',
      `limiters:\n  api:\n    limits: ${LIMIT}\n    plans: { pro: { type: gcra, rate: 999983/d, burst: 25000 } }\n    maxAheadMs: 31622400000`,
      "x.yaml:5:17: plan 'pro': limit 'default': gcra burst 25000 at this rate allows a maxAheadMs of at most 21544003502.49",
    ],
    [
      'a rate to follow that is too slow for the burst',
      'limiters:\n  api:\n    limits: { type: gcra, rate: 10/s, burst: 1000000 }\n    follow: { signal: cpu, min: 1/d, max: 10/s, from: 0.5, to: 0.9 }',
      'x.yaml:4:33: follow min "1/d": gcra burst 1000000 must be at most',
    ],
    [
      'a bad rate',
      'limiters:\n  api:\n    limits: { type: gcra, rate: 1/x, burst: 1 }',
      'x.yaml:3:33: gcra rate "1/x" must be permits per time with a unit',
    ],
    ['a missing number', 'limiters:\n  api:\n    limits: { type: gcra, rate: 1/s }', 'x.yaml:3:13: gcra burst is missing: it must be'],
    ['an unknown algorithm', 'limiters:\n  api:\n    limits: { type: gcar }', 'x.yaml:3:21: limit type "gcar" must be one of'],
    [
      'a misspelt option of a limit',
      'limiters:\n  api:\n    limits:\n      type: gcra\n      rate: 1/s\n      brust: 4',
      'x.yaml:6:7: gcra "brust" is not an option',
    ],
    ['one of several limits', `limiters:\n  api:\n    limits:\n      a: ${LIMIT}\n      b: 7`, 'x.yaml:5:10: limit 7 must be an object'],
    [
      'a plan of other limits',
      `limiters:\n  api:\n    limits: ${LIMIT}\n    plans:\n      pro: { type: slidingLog, limit: 1, window: 1s }`,
      "x.yaml:5:12: plan 'pro' with",
    ],
    [
      'a policy that there is not',
      `limiters:\n  api:\n    limits: ${LIMIT}\n    onStoreError: panic`,
      'x.yaml:4:19: onStoreError "panic" must be one of',
    ],
    ['a value that was forgotten', `limiters:\n  api:\n    limits: ${LIMIT}\n    maxQueue:`, 'x.yaml:4:14: maxQueue must have a value'],
    [
      'shadow that is no truth',
      `limiters:\n  api:\n    limits: ${LIMIT}\n    shadow: yes`,
      'x.yaml:4:13: shadow "yes" must be true or false',
    ],
    [
      'a window without a unit',
      'limiters:\n  api:\n    limits: { type: fixedWindow, limit: 5, window: 3600 }',
      "x.yaml:3:52: fixedWindow window 3600 of what? write '3600s' or '3600ms'",
    ],
    [
      'a period without a unit',
      'limiters:\n  api:\n    limits: { type: gcra, rate: { permits: 5, per: 1000 }, burst: 1 }',
      "gcra rate: period 1000 of what? write '1000s' or '1000ms'",
    ],
    [
      'a lease without a unit',
      'limiters:\n  api:\n    limits: { type: concurrency, max: 2, lease: 30 }',
      "x.yaml:3:49: concurrency lease 30 of what? write '30s' or '30ms'",
    ],
    ['a unit of another tool', 'limiters:\n  api:\n    limits: { type: gcra, rate: 10/m, burst: 1 }', "or '5/10s': did you mean '10/min'?"],
    [
      'no keys',
      `bounds: { maxKeys: 0 }\nlimiters:\n  api: { limits: ${LIMIT} }`,
      'x.yaml:1:20: memoryStore maxKeys 0 must be a whole number',
    ],
    [
      'another end of a full memory',
      `bounds: { onFull: forget }\nlimiters:\n  api: { limits: ${LIMIT} }`,
      'x.yaml:1:19: memoryStore onFull "forget" must be',
    ],
    [
      'half a waiter',
      `bounds: { maxWaiters: 0.5 }\nlimiters:\n  api: { limits: ${LIMIT} }`,
      'x.yaml:1:23: maxWaiters 0.5 must be a whole number from 0 to 1000000',
    ],
    [
      'a bound that there is not',
      `bounds: { maxBytes: 1 }\nlimiters:\n  api: { limits: ${LIMIT} }`,
      'x.yaml:1:11: "maxBytes" is not an option',
    ],
    ['a bound without a value', `bounds: { maxKeys: }\nlimiters:\n  api: { limits: ${LIMIT} }`, 'maxKeys must have a value'],
    ['a name with a space', `limiters:\n  "a b": { limits: ${LIMIT} }`, 'x.yaml:2:3: the name of a limiter "a b" must be'],
    ['a name of a limit with a space', `limiters:\n  a: { limits: { "b c": ${LIMIT} } }`, 'x.yaml:2:18: the name of a limit "b c" must be'],
    [
      'a name that is reserved',
      `limiters:\n  rls.x: { limits: ${LIMIT} }`,
      'x.yaml:2:3: the name of a limiter "rls.x" must not begin with \'rls.\'',
    ],
    ['descriptors that are no list', 'domains:\n  d:\n    descriptors: 5', 'x.yaml:3:18: descriptors 5 must be a list'],
    [
      'headers of no kind',
      `domains:\n  d:\n    headers: true\n    descriptors: []`,
      'x.yaml:3:14: headers true must be one of none, draft-11, draft-7, draft-6, legacy',
    ],
    ['no key', `domains:\n  d:\n    descriptors:\n      - limit: ${LIMIT}`, 'x.yaml:4:9: key is missing: it must be a text'],
    ['nothing to do', 'domains:\n  d:\n    descriptors:\n      - key: a', 'x.yaml:4:9: descriptor "a" must have a limit'],
    [
      'a wildcard in the middle',
      `domains:\n  d:\n    descriptors:\n      - { key: a, value: b*c, limit: ${LIMIT} }`,
      'x.yaml:4:26: value "b*c" must have its wildcard',
    ],
    [
      'unlimited with a limit',
      `domains:\n  d:\n    descriptors:\n      - { key: a, unlimited: true, limit: ${LIMIT} }`,
      'x.yaml:4:43: limit must not stand',
    ],
    [
      'a rule twice',
      `domains:\n  d:\n    descriptors:\n      - { key: a, limit: ${LIMIT} }\n      - { key: a, limit: ${LIMIT} }`,
      'x.yaml:5:9: descriptor "a" "of any value" stands here twice',
    ],
  ])('%s', (_, text, message) => {
    expect(messageFor(text)).toContain(message)
  })

  test('all of them at once', () => {
    const text = 'limiters:\n  a: { limits: { type: gcra, rate: 1/s, burst: -1 } }\n  b: { limits: { type: gcra, rate: 0/s, burst: 1 } }\n'
    expect(messageFor(text).split('\n')).toHaveLength(2)
  })

  test('all of one limit too, in the order of the file, though the domains are read last', () => {
    const text = `domains:
  edge:
    descriptors:
      - { key: a, denied: true, unlimited: true }
      - { key: b, denied: true, limit: ${LIMIT} }
      - { key: c }
limiters:
  a: { limits: { type: gcra, rate: ten, burst: x, foo: 1 } }
  b: { limits: { type: fixedWindow } }
  c: { limits: { type: slidingWindow, limit: x, window: y, slots: z } }
`
    expect(
      messageFor(text)
        .split('\n')
        .map((line) => line.replace(/ (must|is not|is missing).*/, '')),
    ).toEqual([
      'x.yaml:4:27: denied: true',
      'x.yaml:5:40: limit',
      'x.yaml:6:9: descriptor "c"',
      'x.yaml:8:36: gcra rate "ten"',
      'x.yaml:8:48: gcra burst "x"',
      'x.yaml:8:51: gcra "foo"',
      'x.yaml:9:16: fixedWindow window',
      'x.yaml:9:16: fixedWindow limit',
      'x.yaml:10:46: slidingWindow limit "x"',
      'x.yaml:10:57: slidingWindow window "y"',
      'x.yaml:10:67: slidingWindow slots "z"',
    ])
  })

  test('aliases that unfold without end', () => {
    const levels = Array.from({ length: 12 }, (_, k) => `l${k}: &l${k} [${Array(9).fill(k === 0 ? 'x' : `*l${k - 1}`)}]`)
    expect(messageFor(levels.join('\n'))).toMatch(/^x\.yaml:\d+:\d+: /)
  })

  test('in any text', () => {
    const parts = fc.constantFrom(
      'limiters',
      'domains',
      ':',
      '\n',
      '  ',
      '- ',
      '{',
      '}',
      '[',
      ']',
      '&a',
      '*a',
      '<<',
      '"',
      '!!x',
      'type',
      '5',
      '__proto__',
      '? ',
      '|',
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(parts, fc.string({ maxLength: 3 })), { maxLength: 30 }), (pieces) => {
        const message = messageFor(pieces.join(''))
        if (message !== '') expect(message).toMatch(/^x\.yaml:\d+:\d+: ./)
      }),
      { numRuns: 2_000, seed: 9 },
    )
  })
})

describe('the JSON Schema', () => {
  const isValid = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allowUnionTypes: true }).compile(configSchema)

  test('is the file that editors are given', () => {
    const file = readFileSync(new URL('../sluice.schema.json', import.meta.url), 'utf8')
    expect(JSON.parse(file), 'node server/dist/server/src/main.js schema > server/sluice.schema.json').toEqual(
      JSON.parse(JSON.stringify(configSchema)),
    )
  })

  test('accepts the sample', () => {
    expect(isValid(parse(sample)), JSON.stringify(isValid.errors)).toBe(true)
  })

  test.each([
    '{}',
    'limits: {}',
    'limiters: { a: {} }',
    'limiters: { rls.a: { limits: { type: gcra, rate: 1/s, burst: 1 } } }',
    'domains: { d: {} }',
    'bounds: { maxWaiters: -1 }',
    'limiters: { a: { limits: { type: concurrency, max: 1 } } }',
    'domains: { d: { descriptors: [{ key: k, limit: { type: concurrency, max: 1, lease: 1s } }] } }',
  ])('refuses %s, as reading it does', (text) => {
    expect(isValid(parse(text))).toBe(false)
    expect(messageFor(text)).not.toBe('')
  })
})

const guide = readFileSync(new URL('../../docs/guides/service.md', import.meta.url), 'utf8')

test.each([...guide.matchAll(/^```yaml\n(.*?)^```/gms)].map(([, text]) => text as string))(
  'the guide shows files that are accepted: %#',
  (text) => {
    expect(messageFor(text)).toBe('')
  },
)

test('a limit of 0 is explained as what it does, and a rate as it was written', () => {
  const limits = '{ a: { type: gcra, rate: 10/s, burst: 0 }, b: { type: gcra, rate: 99991/d, burst: 99991 } }'
  const text = explained(readConfig(`limiters: { api: { limits: ${limits} } }`, 'x.yaml'))
  expect(text).toContain('  a: nothing passes (gcra)\n  b: 99991 per d, up to 99991 at once after a rest (gcra)\n')
})

test('hits that are charged whether they fit or not stand beside a limit, and are explained', () => {
  const domain = (rule: string) => `domains:\n  ai:\n    descriptors:\n      - ${rule}\n`
  const text = domain(`{ key: user, charge: true, limit: { type: fixedWindow, limit: 1000, window: 1h } }`)
  expect(explained(readConfig(text, 'x.yaml'))).toContain(
    'user, each value by itself: 1000 in each 1h (fixedWindow), charged with hits whether they fit or not',
  )
  expect(messageFor(domain('{ key: user, charge: true, denied: true }'))).toContain('x.yaml:4:30: charge: true must stand beside a limit')
  expect(messageFor(domain('{ key: user, charge: 1, limit: { type: gcra, rate: 1/s, burst: 1 } }'))).toContain(
    'x.yaml:4:30: charge 1 must be',
  )
})

test('a configuration is explained in words', () => {
  expect(explained(readConfig(sample, 'sample.yaml'))).toBe(`limiter api
  10 per s, up to 20 at once after a rest (gcra)
  on plan pro
    100 per s, up to 200 at once after a rest (gcra)
  if Redis fails or takes more than 50 ms, this process decides by itself, with 100 % of each limit
  at most 1000 wait for one key
limiter llm
  requests: about 60 in any 1min, which slides in 10 steps (slidingWindow)
  tokens: up to 90000 at once, which come back at 90000 per min (tokenBucket)
  all of them are charged or none
  if Redis fails or takes more than 1000 ms, the caller is told that there is no decision
  at most 1000 wait for one key
limiter login
  never more than 5 in any 15min (slidingLog)
  in shadow: decides and counts, and refuses no call
  if Redis fails or takes more than 1000 ms, the caller is told that there is no decision
  at most 1000 wait for one key
domain edge
  remote_address, each value by itself: 50 per s, up to 100 at once after a rest (gcra)
  path = /login: 10 in each 1min (fixedWindow)
  path = /static/*: unlimited
  tenant, each value by itself: no limit by itself, with
    verb = write: up to 20 at once, which come back at 5 per s (tokenBucket)
the service
  holds at most 100000 keys of each limit in memory, and a new one is refused while all are in use
  lets at most 10000 wait at once`)
})

test('several files are one configuration, in which everything stands once', () => {
  const api = { file: 'a.yaml', text: 'limiters: { api: { limits: { type: gcra, rate: 1/s, burst: 1 } } }\nshadow: true' }
  const edge = { file: 'b.yaml', text: 'domains: { edge: { descriptors: [{ key: ip, limit: { type: gcra, rate: 1/s, burst: 1 } }] } }' }
  const bounds = { file: 'c.yaml', text: 'bounds: { maxKeys: 5 }' }
  const joined = readConfigs([bounds, api, edge])
  expect([[...joined.limiters.keys()], [...joined.domains.keys()], joined.bounds.maxKeys]).toEqual([['api'], ['edge'], 5])
  // What one file says of the whole service holds for the others, too.
  expect(joined.domains.get('edge')?.descriptors).toMatchObject([{ shadow: true, limiter: { shadow: true } }])
  expect(explained(joined)).toContain('  is in shadow: decides and counts, and refuses no call')
  const twice = [api, edge, bounds].map(({ file, text }) => ({ file: `again-${file}`, text }))
  const message = (() => {
    try {
      readConfigs([api, edge, bounds, ...twice, { file: 'd.yaml', text: 'limiters: [' }])
    } catch (error) {
      return (error as Error).message.split('\n')
    }
  })()
  expect(message?.slice(0, 4)).toEqual([
    'again-a.yaml:1:13: limiter "api" stands in a.yaml already',
    'again-a.yaml:2:1: shadow stands in a.yaml already',
    'again-b.yaml:1:12: domain "edge" stands in b.yaml already',
    'again-c.yaml:1:1: bounds stands in c.yaml already',
  ])
  expect(message?.[4]).toContain('d.yaml:1:')
})

test('permits are explained', () => {
  const text = 'limiters: { a: { limits: { type: concurrency, max: 2, lease: 30s } } }'
  expect(explained(readConfig(text, 'x.yaml'))).toContain(
    'no more than 2 at once, each free again 30s after it was taken or renewed (concurrency)',
  )
})

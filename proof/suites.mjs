// Which tests judge the mutants of a file: a few that are quick and kill most, then more for those
// that survive, then long ones.
//
// Mutants of TypeScript are judged by tests of TypeScript alone: the Lua in Redis is generated from
// it beforehand, and stays what it is. Those of the Lua that is written by hand are judged in the
// real Redis.
import { existsSync } from 'node:fs'
import { basename } from 'node:path'

/** The seed of every random trace. */
export const SEED = 20_260_417

/** The Lua that is written by hand. */
export const LUA_SOURCES = [
  'src/algorithms/tags.lua',
  'src/algorithms/word-tag.lua',
  'src/algorithms/word-by-tag.lua',
  'src/algorithms/codec.lua',
  'src/algorithms/labels.lua',
  'src/algorithms/large-states.lua',
  'src/stores/redis/run.lua',
  'src/stores/redis/fast-path.lua',
  'src/stores/redis/fast-word.lua',
  'src/stores/redis/slow-path.lua',
  'src/stores/redis/long-path.lua',
  'src/stores/redis/general-path.lua',
  'src/stores/redis/pages.lua',
  'scripts/lua/prelude.lua',
]

/**
 * By algorithm: its folder, what the names of its tests contain, and which of the shared suites it
 * is in.
 */
const KINDS = {
  gcra: { folder: 'gcra', names: 'gcra', family: '' },
  tokenBucket: { folder: 'token-bucket', names: '(token ?bucket|tokenBucket)', family: '' },
  leakyBucket: { folder: 'leaky-bucket', names: '(leaky ?bucket|leakyBucket)', family: '' },
  fixedWindow: { folder: 'fixed-window', names: 'fixedWindow', family: '-windows' },
  slidingWindow: { folder: 'sliding-window', names: 'slidingWindow', family: '-windows' },
  slidingLog: { folder: 'sliding-log', names: 'slidingLog', family: '-windows' },
}

/**
 * By source: the algorithms that show what it does. For the source of an algorithm it is that one,
 * and for any other all of them.
 */
const SHOWN_BY = {
  arithmetic: ['gcra', 'slidingWindow'],
  level: ['gcra', 'tokenBucket', 'leakyBucket'],
  decide: ['gcra', 'leakyBucket', 'fixedWindow', 'slidingLog'],
  algorithm: ['gcra', 'fixedWindow'],
  rate: ['gcra', 'slidingLog'],
  words: ['slidingWindow', 'slidingLog'],
  'at-rate': ['gcra', 'slidingWindow'],
  'large-states': ['slidingWindow', 'slidingLog'],
  'fast-path': ['gcra', 'tokenBucket', 'leakyBucket', 'fixedWindow'],
  'long-path': ['slidingWindow', 'slidingLog'],
  'general-path': ['gcra', 'leakyBucket', 'fixedWindow', 'slidingLog'],
  pages: ['slidingWindow', 'slidingLog'],
}

/** Sources whose tests take permits of `concurrency`, too. */
const SHOWN_BY_PERMITS = ['decide', 'codec', 'formats']

/** Sources that nothing but bytes shows. */
const OF_BYTES = ['codec', 'formats']

/**
 * The stores in this process. SQLite and PostgreSQL decide by the same functions, and have to be
 * installed.
 */
const IN_PROCESS = '^(?!.*(redis|postgres|sqlite))'
const IN_REDIS = '^(?!.*(memory|postgres|sqlite))'

/** Every algorithm has the number of its format beside it. */
const OF_FORMATS = { path: 'src/algorithms/codec.test.ts' }

const OF_TYPESCRIPT = [
  OF_FORMATS,
  ...['limiter/limiter', 'limiter/settle', 'model/equal-faces'].map(testNamed),
  ...['conformance/store-cases', 'conformance/vectors', 'model/resized-states'].map((name) => ({ ...testNamed(name), only: IN_PROCESS })),
]

/** By source: tests of it alone, besides those of the algorithms that show it. */
const OF_SOURCE = {
  rate: [testNamed('limiter/bad-input'), { path: 'src/config/config.test.ts' }],
  'at-rate': [testNamed('load/follow-load')],
  decide: [testNamed('permits/permits')],
}

/** Permits: the state after each step beside a list of leases, and what callers see of it. */
const OF_PERMITS = [
  OF_FORMATS,
  { path: 'src/algorithms/concurrency/concurrency.test.ts' },
  { ...testNamed('model/concurrency'), only: '^(on|in) memory' },
  testNamed('permits/permits'),
  { ...testNamed('conformance/store-cases'), only: '^(?=.*permits)(?!.*(redis|postgres|sqlite))' },
]

/** Permits in Redis. */
const OF_PERMITS_IN_REDIS = [
  { ...testNamed('model/concurrency'), only: '^on redis' },
  { ...testNamed('redis/runs'), only: '^permits' },
]

/** Any states, as bytes in both languages. */
const ANY_BYTES = { ...testNamed('redis/codec-twin'), traces: 40 }

/** What stores hold in Redis, and what of it others have touched. */
const OF_STATES = [
  testNamed('redis/limits-in-one-key'),
  { ...testNamed('redis/batching'), only: '^(one turn|errors stay)' },
  { ...testNamed('redis/servers'), only: '^(gcra|fixedWindow|slidingLog) ' },
  { ...testNamed('conformance/store-cases'), only: 'redis' },
  testNamed('conformance/redis'),
]

/** When a write sets the time to live of its key. */
const OF_LIVES = testNamed('redis/time-to-live')

/** Large states, which are read and written in part. */
const OF_LARGE_STATES = [testNamed('redis/large-states'), testNamed('redis/logs')]

/** The Lua of bytes: single states show it sooner than tapes do. */
const OF_BYTES_IN_LUA = ['tags', 'codec', 'labels']

/** The Lua that touches Redis. */
const RUNNING = ['run', 'fast-path', 'fast-word', 'slow-path', 'long-path', 'general-path', 'pages']

/** By Lua source: the tests that are quick for it. */
const OF_LUA = {
  tags: [ANY_BYTES, ...OF_STATES],
  'word-tag': [ANY_BYTES, testNamed('redis/runs'), ...OF_STATES],
  'word-by-tag': [ANY_BYTES, ...OF_STATES],
  codec: [ANY_BYTES, ...OF_STATES, ...OF_PERMITS_IN_REDIS],
  labels: [ANY_BYTES, ...OF_STATES],
  'large-states': [ANY_BYTES, ...OF_LARGE_STATES, ...OF_PERMITS_IN_REDIS],
  pages: [...OF_LARGE_STATES, OF_LIVES, ...OF_PERMITS_IN_REDIS],
  run: [OF_LIVES, ...OF_STATES, ...OF_PERMITS_IN_REDIS],
  'fast-path': [testNamed('redis/runs'), OF_LIVES, ...OF_STATES],
  'fast-word': [testNamed('redis/runs'), ...OF_STATES],
  'slow-path': [OF_LIVES, ...OF_STATES, ...OF_PERMITS_IN_REDIS],
  'long-path': [testNamed('redis/runs'), OF_LIVES, ...OF_STATES, ...OF_PERMITS_IN_REDIS],
  'general-path': [
    testNamed('redis/runs'),
    testNamed('redis/logs'),
    ...OF_STATES,
    { ...testNamed('model/concurrency'), only: '^on redis' },
  ],
  prelude: [{ ...testNamed('lua/language'), only: '^what becomes Lua' }, ANY_BYTES, ...OF_STATES],
}

/** Servers with users that may do little, and the faults that other limiters have had. */
const OF_SERVERS = [
  { ...testNamed('redis/servers'), only: 'a server of its own a user' },
  // Fake timers are vitest's own business.
  { ...testNamed('conformance/seed-faults'), only: '^(?!time from the client)' },
  testNamed('redis/settle'),
]

/** What only the general path does: several keys of a decision, and other numbers. */
const OF_ANY_DECISION = [
  testNamed('redis/states-in-place'),
  testNamed('faults/rights'),
  { ...testNamed('model/plans-in-turn'), only: IN_REDIS },
  { ...testNamed('model/mixed-limits'), only: '^redis ' },
  { ...testNamed('model/turns'), only: '^redis ' },
]

/** The tests { path, only, traces, quick } for a source, in the order in which they are run. */
export function testsFor(root, file) {
  const [name, extension] = basename(file).split('.')
  const kinds = kindsShowing(name)
  if (extension === 'lua') return luaTests(name, kinds)
  if (OF_BYTES.includes(name)) return byteTests()
  if (isOfPermits(file)) return permitTests()
  const beside = { path: `src/algorithms/${name}.test.ts` }
  return typeScriptTests(name, kinds, existsSync(`${root}/${beside.path}`) ? [beside] : [])
}

function kindsShowing(name) {
  const own = Object.keys(KINDS).filter((kind) => KINDS[kind].folder === name)
  return (SHOWN_BY[name] ?? (own.length > 0 ? own : Object.keys(KINDS))).map((kind) => KINDS[kind])
}

/**
 * Whether the tests of a TypeScript source run the algorithm in this folder, so that a verdict may
 * change with it.
 */
export function isShownBy(file, folder) {
  const [name] = basename(file).split('.')
  if (folder === 'concurrency') return isOfPermits(file) || SHOWN_BY_PERMITS.includes(name)
  return !isOfPermits(file) && kindsShowing(name).some((kind) => kind.folder === folder)
}

function typeScriptTests(name, kinds, beside) {
  const agreeing = kinds.map((kind) => agreement(kind, '(memory answers|yes or no)'))
  const levels = kinds.filter(({ family }) => family === '')
  const lawByLaw = levels.map(({ names }) => ({ ...testNamed('model/laws'), only: `^(${names}|several)` }))
  const ownTests = [...kinds.map(ownTest), ...kinds.map(anywhere), ...kinds.map(laws), ...beside, ...agreeing]
  return [
    ...withTraces(20, ownTests, true),
    ...withTraces(30, [...kinds.map(mixtures), ...OF_TYPESCRIPT, ...(OF_SOURCE[name] ?? [])], true),
    ...withTraces(30, [...lawByLaw, ...kinds.map(settled), ...kinds.map(lives)]),
    ...withTraces(200, kinds.map(laws)),
    ...withTraces(50, agreeing),
  ]
}

/** Its algorithm is in three files. */
function isOfPermits(file) {
  return file.includes('/concurrency/')
}

function permitTests() {
  return [...withTraces(5, OF_PERMITS, true), ...withTraces(60, [{ ...testNamed('model/concurrency'), only: '^(on|in) memory' }])]
}

/** The bytes themselves, and those that Lua writes and reads. */
function byteTests() {
  const quick = [OF_FORMATS, ANY_BYTES, testNamed('redis/limits-in-one-key')]
  return [...withTraces(5, quick, true), ...withTraces(5, [testNamed('conformance/redis'), { ...ANY_BYTES, traces: 300 }])]
}

function luaTests(name, kinds) {
  const agreeing = kinds.map((kind) => agreement(kind, 'Redis answers'))
  return [
    ...withTraces(5, [...(OF_BYTES_IN_LUA.includes(name) ? [] : agreeing), ...OF_LUA[name]], true),
    ...withTraces(5, longLuaTests(name)),
  ]
}

/** States that others have touched, or that were written by other numbers. */
const OF_STRANGE_STATES = ['redis/damaged-states', 'model/resized-states'].map((name) => ({ ...testNamed(name), only: IN_REDIS }))

function longLuaTests(name) {
  if (name === 'prelude') return ['lua/algorithms', 'lua/decide'].map(testNamed)
  // Only a script that runs shows the Lua that touches Redis; the other Lua is a library for tests.
  if (!RUNNING.includes(name)) return [...OF_STRANGE_STATES, { ...ANY_BYTES, traces: 300 }]
  const ofPaths = [...OF_STRANGE_STATES, ...OF_SERVERS]
  if (name === 'fast-path' || name === 'fast-word') return ofPaths
  return [...ofPaths, testNamed('redis/large-states'), ...(name === 'long-path' ? [] : OF_ANY_DECISION)]
}

/** So many traces, unless a test has a number of its own. */
function withTraces(traces, tests, quick = false) {
  return tests.map((test) => ({ traces, ...test, quick }))
}

function testNamed(name) {
  return { path: `test/${name}.test.ts` }
}

const ownTest = ({ folder }) => ({ path: `src/algorithms/${folder}/${folder}.test.ts` })
const anywhere = ({ names }) => ({ path: 'src/algorithms/algorithm.test.ts', only: `^${names} ` })
const laws = ({ folder }) => ({ path: `test/model/laws-${folder}.test.ts` })
const mixtures = ({ names }) => ({ path: 'test/model/changed-numbers.test.ts', only: `^${names} ` })
const settled = ({ names }) => ({ path: 'test/model/settle.test.ts', only: `^${names} ` })
const lives = ({ names }) => ({ path: 'test/model/lives.test.ts', only: `^${names}:` })

/**
 * The tests of what stores agree on, whose names contain the algorithm's and `what`, in any order.
 */
function agreement({ family, names }, what) {
  return { path: `test/model/stores-agree${family}.test.ts`, only: `^(?=.*${names})(?=.*${what})` }
}

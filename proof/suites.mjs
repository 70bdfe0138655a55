// Which tests judge the mutants of a file: a few that are quick and kill most, then more for those that survive, then long ones.
import { existsSync } from 'node:fs'
import { basename } from 'node:path'

/** The seed of every random trace. */
export const SEED = 20_260_417

/** By algorithm: its folder, what the names of its tests contain, and which of the shared suites it is in. */
const KINDS = {
  gcra: { folder: 'gcra', names: 'gcra', family: '' },
  tokenBucket: { folder: 'token-bucket', names: '(token ?bucket|tokenBucket)', family: '' },
  leakyBucket: { folder: 'leaky-bucket', names: '(leaky ?bucket|leakyBucket)', family: '' },
  fixedWindow: { folder: 'fixed-window', names: 'fixedWindow', family: '-windows' },
  slidingWindow: { folder: 'sliding-window', names: 'slidingWindow', family: '-windows' },
  slidingLog: { folder: 'sliding-log', names: 'slidingLog', family: '-windows' },
}

/** By source: the algorithms that show what it does. For the source of an algorithm it is that one, and for any other all of them. */
const SHOWN_BY = {
  arithmetic: ['gcra', 'slidingWindow'],
  packed: ['gcra', 'fixedWindow'],
  level: ['gcra', 'tokenBucket'],
  bucket: ['tokenBucket', 'leakyBucket'],
  decide: ['gcra', 'leakyBucket', 'fixedWindow'],
  algorithm: ['gcra', 'fixedWindow'],
  rate: ['gcra', 'slidingLog'],
}

/** Those that judge every source. */
const OF_EVERYBODY = ['conformance/store-cases', 'conformance/vectors', 'model/resized-states'].map(testNamed)

const OF_LUA = [
  testNamed('conformance/redis'),
  // Fake timers are vitest's own business.
  { ...testNamed('conformance/seed-faults'), only: '^(?!time from the client)' },
]

/** Keys that others have touched, errors of the server, and what only a long state shows. */
const OF_RUNNER = [
  { ...testNamed('redis/servers'), only: '^(gcra|tokenBucket|slidingWindow|slidingLog) |may not touch the key|use SETRANGE' },
  { ...testNamed('model/lua-twins-windows'), only: '^the runner' },
  { ...testNamed('redis/batching'), only: '^(one turn|errors stay)' },
  testNamed('redis/sections'),
]

const OF_TYPESCRIPT = [
  ...['limiter/limiter', 'model/equal-faces'].map(testNamed),
  { ...testNamed('stores/memory'), only: '^(?!ten million|a store that is full)' },
]

/** The options of the factories and what is refused. */
const OF_RATES = [testNamed('limiter/bad-input'), { path: 'src/config/config.test.ts' }]

/** The tests { path, only, traces, quick } for a source, in the order in which they are run. */
export function testsFor(root, file) {
  const [name, extension] = basename(file).split('.')
  const own = Object.keys(KINDS).filter((kind) => KINDS[kind].folder === name)
  const kinds = (SHOWN_BY[name] ?? (own.length > 0 ? own : Object.keys(KINDS))).map((kind) => KINDS[kind])
  if (extension === 'lua') return luaTests(name, kinds)
  const beside = { path: `src/algorithms/${name}.test.ts` }
  return typeScriptTests(name, kinds, existsSync(`${root}/${beside.path}`) ? [beside] : [])
}

function typeScriptTests(name, kinds, beside) {
  const agreeing = kinds.map((kind) => agreement(kind, '(shared memory answers|the short )'))
  const levels = kinds.filter(({ family }) => family === '')
  const lawByLaw = levels.map(({ names }) => ({ ...testNamed('model/laws'), only: `^(${names}|several)` }))
  const ownTests = [...kinds.map(ownTest), ...kinds.map(anywhere), ...kinds.map(laws), ...beside, ...agreeing]
  return [
    ...withTraces(20, ownTests, true),
    ...withTraces(30, [...OF_TYPESCRIPT, ...OF_EVERYBODY, ...(name === 'rate' ? OF_RATES : [])], true),
    ...withTraces(30, [...lawByLaw, ...sharedTwins(name), ...kinds.map(twins)]),
    ...withTraces(200, kinds.map(laws)),
    ...withTraces(50, agreeing),
  ]
}

function luaTests(name, kinds) {
  const agreeing = kinds.map((kind) => agreement(kind, 'Redis answers'))
  return [
    ...withTraces(
      5,
      [
        ...agreeing,
        ...OF_EVERYBODY,
        ...OF_LUA,
        ...(['packed', 'gcra', 'fixed-window'].includes(name) ? [testNamed('model/lives')] : []),
        ...(['lone', 'runner', 'sections', 'section-forms', 'long-way', 'fixed-window'].includes(name) ? OF_RUNNER : []),
      ],
      true,
    ),
    ...withTraces(5, [...sharedTwins(name), ...kinds.map(twins)]),
    ...withTraces(30, agreeing),
  ]
}

function withTraces(traces, tests, quick = false) {
  return tests.map((test) => ({ ...test, traces, quick }))
}

function testNamed(name) {
  return { path: `test/${name}.test.ts` }
}

const ownTest = ({ folder }) => ({ path: `src/algorithms/${folder}/${folder}.test.ts` })
const anywhere = ({ names }) => ({ path: 'src/algorithms/algorithm.test.ts', only: `^${names} ` })
const laws = ({ folder }) => ({ path: `test/model/laws-${folder}.test.ts` })
const twins = ({ family, names }) => ({ path: `test/model/lua-twins${family}.test.ts`, only: `^${names} ` })

/** The tests of what stores agree on, whose names contain the algorithm's and `what`, in any order. */
function agreement({ family, names }, what) {
  return { path: `test/model/stores-agree${family}.test.ts`, only: `^(?=.*${names})(?=.*${what})` }
}

function sharedTwins(name) {
  const only = { arithmetic: '^mulDiv', packed: '^packedNumbers', decide: '^decide' }[name]
  return only === undefined ? [] : [{ path: 'test/model/lua-twins.test.ts', only }]
}

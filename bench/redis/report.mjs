// The report: what was measured, in tables.
import { spreadOf, timesAsFast } from '../statistics.mjs'
import { plain, spread, table } from '../tables.mjs'
import { FILLS, KEYS } from './bytes.mjs'
import { CLIENTS } from './clients.mjs'
import { HEADLINE, TWO_LIMITS } from './contestants.mjs'
import { STORES, VERBS } from './denied.mjs'
import { BATCHED, FLOORS, MINIMAL } from './floors.mjs'
import { GOALS, redisTimes, worstFirst } from './goals.mjs'
import { PEER_NAMES } from './peers.mjs'

export function reportOf(results, { quick, versions }) {
  const parts = [
    heading(quick, versions),
    goals(results),
    method(results),
    ...CLIENTS.map((client) => throughputTable(results.of('throughput', client), client)),
    ...CLIENTS.map((client) => latencyTable(results.of('latency', client), client)),
    ...CLIENTS.map((client) => deniedTable(results.of('denied', client), client)),
    bytesTable(results.of('bytes')),
  ]
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`
}

function heading(quick, { machine, packages }) {
  const command = `npm run bench:redis${quick ? ' -- --quick' : ''}`
  const warning = quick ? '\n\n**A `--quick` run: too few and too short rounds to rely on.**' : ''
  return `# Results of \`${command}\`\n\nWritten by the bench, not by hand. ${machine}; ${packages}.${warning}`
}

function goals(results) {
  const rows = GOALS.map((goal) => {
    const [worst, ...others] = worstFirst(goal, results)
    if (worst === undefined) return [goal.title, goal.target, 'not measured', '', '', '']
    const verdict = goal.reached(worst[0].median) ? 'reached' : '**not reached**'
    return [
      goal.title,
      goal.target,
      figure(worst[0]),
      worst[1],
      others.map(([each, where]) => `${figure(each)} ${where}`).join('; '),
      verdict,
    ]
  })
  return `## Goals\n\n${table(['goal', 'target', 'at worst', 'where', 'the others', ''], rows, '---')}`
}

/** What was measured once has no spread. */
function figure(each) {
  return each.low === each.high ? plain(each.median) : spread(each)
}

function method({ done }) {
  const lengths = done.filter(({ rounds }) => rounds !== undefined)
  const lengthOf = ({ roundMs, roundCalls }) => (roundMs === undefined ? `${roundCalls} calls` : `about ${roundMs} ms`)
  const rounds = [...new Map(lengths.map((job) => [job.part, `${job.part} ${job.rounds} of ${lengthOf(job)}`])).values()].join(', ')
  return `## How it was measured

- One run, one redis-server of the bench's own: a free port of this machine (TCP), nothing written to disk, nobody else on it. In
  each table the contestants, each with a database and one connection of the same client library, take interleaved rounds, another one first in
  every round, after a warm-up: ${rounds}. With 256 in flight each is in a process of its own; one at a time all are in one process, and take turns
  after a few calls, because a call is mostly two processes waking each other; those that are denied are in one process, because they are
  nanoseconds apart.
- Figures are medians of the rounds with their quartiles in parentheses. Ratios are taken within each round, then their median. Of the clients
  the worse counts for a goal.
- 256 in flight: 256 callers, each of which asks for its next key when it has been answered. 10,000 keys, drawn uniformly, all called once before;
  one decision of cost 1 at a time by each caller. Limits are those of \`npm run bench\` for 10,000 keys: 10 per minute and 1e7 at once,
  windows 1e7 per hour, so that all is allowed and no key expires.
- Sluice is called by \`consume\`, with the options it has by default. \`${MINIMAL}\` is the floor: one EVALSHA for each decision.
  \`${BATCHED}\` (\`redis/minimal-batched.lua\`) is the same decision with 128 keys to a call, two calls under way, by one
  MGET and with one promise for all: it shows how far batching can go, and is no limiter. \`INCR\` decides nothing; with 256 in flight it is two pipelines of 128, one at a time it is one command.
- Peers are called as their middleware or their users do, without the web framework around them: rate-limiter-flexible by \`consume\`,
  rate-limit-redis by \`increment\`, @fastify/rate-limit's RedisStore by \`incr\`, redis-gcra by \`limit\`. The last two are for ioredis only.
- Redis processor time is \`used_cpu_user\` + \`used_cpu_sys\` of INFO, after a round less before it, divided by the decisions. Script calls are those of
  EVAL and EVALSHA by INFO.`
}

function throughputTable(speeds, client) {
  if (speeds === undefined) return ''
  const rows = [...Object.keys(FLOORS), HEADLINE, ...TWO_LIMITS, ...PEER_NAMES[client]].map((name) => throughputRow(speeds, name))
  const columns = [
    '',
    'thousand decisions/s',
    `to ${MINIMAL}`,
    `${HEADLINE} to it`,
    'Redis µs',
    `Redis µs to ${MINIMAL}`,
    'script calls',
    'allowed',
  ]
  return `## 256 in flight, 10,000 keys, ${client}\n\nRedis µs and script calls are per decision.\n\n${table(columns, rows)}`
}

function throughputRow(speeds, name) {
  const { [name]: own, [MINIMAL]: floor, [HEADLINE]: headline } = speeds
  const ofCosts = (cost) => spreadOf(own.costs.map((round) => round[cost]))
  return [
    name,
    spread(thousandPerSecond(own)),
    own === floor ? '1' : spread(timesAsFast(own, floor)),
    own === headline ? '' : spread(timesAsFast(headline, own)),
    spread(ofCosts('redisUs')),
    own === floor ? '1' : spread(redisTimes(own, floor)),
    plain(ofCosts('scriptCalls').median),
    share(own),
  ]
}

function thousandPerSecond({ ns }) {
  return spreadOf(ns.map((each) => 1e6 / each))
}

function latencyTable(latencies, client) {
  if (latencies === undefined) return ''
  const rows = Object.entries(latencies).map(([name, own]) => [
    name,
    spread(spreadOf(own.ns.map((each) => each / 1000))),
    name === MINIMAL ? '1' : spread(timesAsFast(latencies[MINIMAL], own)),
    share(own),
  ])
  return `## One decision at a time, ${client}\n\nThe median of a round; below 1 is faster than \`${MINIMAL}\`.\n\n${table(['', 'µs', `to ${MINIMAL}`, 'allowed'], rows)}`
}

function deniedTable(speeds, client) {
  if (speeds === undefined) return ''
  const rows = Object.values(STORES).flatMap((store) =>
    VERBS.map((verb) => {
      const own = speeds[`${store} ${verb}`]
      const memory = speeds[`${STORES.memory} ${verb}`]
      return [
        `${store}, ${verb}`,
        spread(spreadOf(own.ns)),
        own === memory ? '1' : spread(timesAsFast(memory, own)),
        `${own.costs.reduce((sum, { scriptCalls }) => sum + scriptCalls * own.calls, 0).toFixed(0)} of ${(own.calls * own.costs.length).toLocaleString('en')}`,
        share(own),
      ]
    }),
  )
  return `## One hot key, denied, ${client}

1 per hour; each call is awaited before the next one, in both stores. Below 1 is faster than the memory store.

${table(['', 'ns per call', 'to the memory store', 'calls that went to Redis', 'allowed'], rows)}`
}

function bytesTable(measured) {
  if (measured === undefined) return ''
  const kinds = Object.keys(KEYS)
  const rows = Object.entries(measured).map(([algorithm, byKind]) => {
    const { type, encoding } = byKind[kinds[0]]
    return [
      algorithm,
      `${type}, ${encoding}`,
      ...kinds.map((kind) => [...new Set(FILLS.map((fill) => byKind[kind].used[fill]))].join(' to ')),
    ]
  })
  const { [HEADLINE]: headline } = measured
  rows.push(['bare string', 'string, int', ...kinds.map((kind) => `${headline[kind].bare}`)])
  return `## Bytes per key

\`MEMORY USAGE\` of the one key that stands in Redis for a key under a limit of 100 per minute (or as it says): after one decision, and after 100 spread evenly over
the minute, which is when the encoding was looked at. It does not count the key's entry in the table of expiries. Redis allots memory in steps, so the
length of a key matters: ${kinds.map((kind) => `${kind} is \`${KEYS[kind]}\``).join(', ')}; in Redis that is \`${headline[kinds[0]].redisKey}\` and so on. The bare string is the arrival time that
\`${MINIMAL}\` writes under the same key in Redis, which Redis holds as an integer.

${table(['', 'in Redis', ...kinds], rows)}`
}

function share({ allowedShare }) {
  return `${(allowedShare * 100).toFixed(allowedShare > 0 && allowedShare < 1 ? 1 : 0)} %`
}

// The report: what was measured, in tables.
import { spreadOf, timesAsFast } from '../statistics.mjs'
import { plain, spread, table } from '../tables.mjs'
import { KEYS, MEASURED } from './bytes.mjs'
import { CLIENTS } from './clients.mjs'
import { CHARGED, OWN, PLAIN, REFUSED, SETTLED } from './contestants.mjs'
import { STORES } from './denied.mjs'
import { BATCHED, INCR } from './floors.mjs'
import { GOALS, redisTimes, scriptTime, worstFirst } from './goals.mjs'
import { growthTables } from './growth-report.mjs'
import { IN_FLIGHT, MAIN } from './in-flight.mjs'
import { ALGORITHMS, ENTRIES, SLOTS } from './limits.mjs'

export function reportOf(results, { quick, versions }) {
  const parts = [
    heading(quick, versions),
    goals(results),
    ...CLIENTS.map((client) => overview(results, client)),
    method(results),
    ...CLIENTS.flatMap((client) =>
      ALGORITHMS.map((algorithm) => throughputTable(results.of({ part: 'throughput', client, algorithm }), algorithm, client)),
    ),
    ...CLIENTS.map((client) => latencyTable(results, client)),
    ...CLIENTS.map((client) => deniedTable(results.of({ part: 'denied', client }), client)),
    bytesTable(results.of({ part: 'bytes' })),
    growthTables(results),
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
    return [goal.title, goal.target, figure(worst[0]), worst[1], mentioned(others), verdict]
  })
  return `## Goals\n\n${table(['goal', 'target', 'at worst', 'where', 'the next ones', ''], rows, '---')}`
}

/** A single measurement has no spread. */
function figure(each) {
  return each.low === each.high ? plain(each.median) : spread(each)
}

const MENTIONED = 3

function mentioned(others) {
  const words = others.slice(0, MENTIONED).map(([each, where]) => `${figure(each)} ${where}`)
  const more = others.length - words.length
  return [...words, ...(more > 0 ? [`${more} more`] : [])].join('; ')
}

/** All algorithms beside their plain scripts, by one client. */
function overview(results, client) {
  const rows = ALGORITHMS.flatMap((algorithm) => {
    const measured = results.of({ part: 'throughput', client, algorithm })
    const latencies = results.of({ part: 'latency', client, algorithm })
    if (measured === undefined || latencies === undefined) return []
    const main = measured[MAIN]
    return [
      [
        algorithm,
        ...IN_FLIGHT.map((count) => spread(timesAsFast(measured[count][OWN], measured[count][PLAIN]))),
        spread(redisTimes(main[OWN], main[PLAIN])),
        spread(timesAsFast(latencies[PLAIN], latencies[OWN])),
        spread(redisTimes(main[REFUSED], main[OWN])),
      ],
    ]
  })
  if (rows.length === 0) return ''
  const columns = [
    '',
    ...IN_FLIGHT.map((count) => `decisions/s, ${count.toLocaleString('en')} in flight`),
    'Redis time',
    'one at a time',
    'refused, Redis time',
  ]
  return `## Sluice to the plain scripts, ${client}

Decisions/s: above 1 is faster than the plain script. Times: below 1 is less than that of the plain script. The last column is the server's time for a refused decision to that for an admitted one.

${table(columns, rows)}`
}

function method({ done }) {
  const lengthOf = ({ rounds, roundMs, roundCalls }) =>
    `${rounds} of ${roundMs === undefined ? `${roundCalls} calls` : `about ${roundMs} ms`}`
  const lengths = done.flatMap(({ part, main, besides, ...rest }) => {
    if (main !== undefined)
      return [
        [MAIN, `${MAIN} in flight ${lengthOf(main)}`],
        ['besides', `more or fewer in flight ${lengthOf(besides)}`],
      ]
    return rest.rounds === undefined ? [] : [[part, `${part === 'latency' ? 'one at a time' : part} ${lengthOf(rest)}`]]
  })
  return `## How it was measured

- One run, one redis-server of the bench's own: a free port of this machine (TCP), nothing written to disk, nobody else on it. In
  each table the contestants, each with a database and one connection of the same client library, take interleaved rounds, another one first in
  every round, after a warm-up: ${[...new Map(lengths).values()].join(', ')}. With many in flight each is in a process of its own; one at a time all of a table are in one process, and take turns
  after a few calls, because a call is mostly two processes waking each other; those that are denied are in one process, because they are
  nanoseconds apart.
- Figures are medians of the rounds with their quartiles in parentheses. Ratios are taken within each round, then their median. They are what can be relied on: times and
  speeds are those of one machine on one day. Of the clients, and of whatever else a goal is for, the worst counts.
- ${MAIN} in flight: ${MAIN} callers, each of which asks for its next key when it has been answered. 10,000 keys, drawn uniformly;
  one decision of cost 1 at a time by each caller. Limits are those of \`npm run bench\` for 10,000 keys: 10 per minute and 1e7 at once, windows 1e7 per hour, so that all is allowed and no key expires. All keys
  were called once before. Each sliding window has counts in its ${SLOTS} slots, which are so long (100 hours) that none leaves. Each log holds ${ENTRIES} entries at the start of every round (100,000 per hour); each call adds one to them.
- Sluice is called by \`consume\`, with the options it has by default. \`${REFUSED}\` has limits that the keys have used up (1 per hour; ${SLOTS} in ${SLOTS} slots; ${ENTRIES} entries), and no denial cache, which would answer for Redis. \`${CHARGED}\` writes one permit down whether it fits or not; \`${SETTLED}\` takes two, awaits the decision, and settles it as one.
- The plain scripts are \`minimal.lua\` and those in \`redis/plain\`: what one would write for one algorithm, with the server's time and a time to live. One EVALSHA for each decision.
- \`${BATCHED}\` (\`redis/minimal-batched.lua\`) is the plain script of gcra with half of those in flight in one call, two calls under way, by one
  MGET and with one promise for all: it shows how far batching can go, and is no limiter. \`${INCR}\` decides nothing; with ${MAIN} in flight it is two pipelines of ${MAIN / 2}, one at a time it is one command.
- Peers stand beside the algorithm that they have. They are called as their middleware or their users do, without the web framework around them: rate-limiter-flexible by \`consume\`,
  rate-limit-redis by \`increment\`, @fastify/rate-limit's RedisStore by \`incr\`, redis-gcra by \`limit\`. The last two are for ioredis only. None of them has a bucket, a sliding window or a log in Redis.
- Redis time is \`used_cpu_user\` + \`used_cpu_sys\` of INFO, after a round less before it, divided by the decisions. Script calls, and how long one takes, are those of
  EVAL and EVALSHA by \`INFO commandstats\`.`
}

function throughputTable(measured, algorithm, client) {
  if (measured === undefined) return ''
  const besides = IN_FLIGHT.filter((count) => count !== MAIN)
  const rows = Object.keys(measured[MAIN]).map((name) => throughputRow(measured, name, besides))
  const columns = [
    '',
    'thousand decisions/s',
    'to the plain script',
    ...besides.map((count) => `${count.toLocaleString('en')} in flight`),
    'Redis µs',
    'to the plain script',
    'script calls',
    'ms of one',
    'allowed',
  ]
  return `## ${algorithm}, ${MAIN} in flight, 10,000 keys, ${client}\n\nRedis µs and script calls are per decision. With fewer and more in flight: decisions/s to the plain script.\n\n${table(columns, rows)}`
}

function throughputRow(measured, name, besides) {
  const { [name]: own, [PLAIN]: floor } = measured[MAIN]
  const ofCosts = (cost) => spreadOf(own.costs.map((round) => round[cost]))
  const scriptCalls = ofCosts('scriptCalls').median
  return [
    name,
    spread(thousandPerSecond(own)),
    own === floor ? '1' : spread(timesAsFast(own, floor)),
    ...besides.map((count) =>
      measured[count][name] === undefined ? '' : own === floor ? '1' : spread(timesAsFast(measured[count][name], measured[count][PLAIN])),
    ),
    spread(ofCosts('redisUs')),
    own === floor ? '1' : spread(redisTimes(own, floor)),
    plain(scriptCalls),
    scriptCalls === 0 ? '' : plain(scriptTime(own.costs).median),
    share(own),
  ]
}

function thousandPerSecond({ ns }) {
  return spreadOf(ns.map((each) => 1e6 / each))
}

function latencyTable(results, client) {
  const rows = ALGORITHMS.flatMap((algorithm) => {
    const latencies = results.of({ part: 'latency', client, algorithm }) ?? {}
    return Object.entries(latencies).map(([name, own]) => [
      `${algorithm}, ${name}`,
      spread(spreadOf(own.ns.map((each) => each / 1000))),
      name === PLAIN ? '1' : spread(timesAsFast(latencies[PLAIN], own)),
      share(own),
    ])
  })
  if (rows.length === 0) return ''
  return `## One decision at a time, ${client}\n\nThe median of a round; below 1 is faster than the plain script.\n\n${table(['', 'µs', 'to the plain script', 'allowed'], rows)}`
}

function deniedTable(speeds, client) {
  if (speeds === undefined) return ''
  const memory = speeds[STORES.memory]
  const rows = Object.values(STORES).map((store) => {
    const own = speeds[store]
    return [
      store,
      spread(spreadOf(own.ns)),
      own === memory ? '1' : spread(timesAsFast(memory, own)),
      `${own.costs.reduce((sum, { scriptCalls }) => sum + scriptCalls * own.calls, 0).toFixed(0)} of ${(own.calls * own.costs.length).toLocaleString('en')}`,
      share(own),
    ]
  })
  return `## One hot key, denied, ${client}

1 per hour, by \`consume\`; each call is awaited before the next one, in both stores. Below 1 is faster than the memory store.

${table(['', 'ns per call', 'to the memory store', 'calls that went to Redis', 'allowed'], rows)}`
}

function bytesTable(measured) {
  if (measured === undefined) return ''
  const kinds = Object.keys(KEYS)
  const rows = Object.entries(MEASURED).flatMap(([name, { fills }]) =>
    fills.map((fill) => [
      name,
      fill.toLocaleString('en'),
      measured[name][kinds[0]].stands,
      ...kinds.map((kind) => {
        const { own, plain: plainBytes } = measured[name][kind]
        return `${own[fill]} to ${plainBytes[fill]}: ${plain(own[fill] / plainBytes[fill])}`
      }),
    ]),
  )
  return `## Bytes per key

\`MEMORY USAGE\` of what stands in Redis for a key, to that of the plain script under the same key in Redis: under a limit of 100 per minute (or as it says), after so many decisions spread evenly over
the minute, the last of which is when the encoding was looked at. It does not count the key's entry in the table of expiries. Redis allots memory in steps, so the
length of a key matters: ${kinds.map((kind) => `${kind} is \`${KEYS[kind]}\``).join(', ')}; in Redis that is \`${measured.gcra[kinds[0]].redisKeys[0]}\` and so on.

${table(['', 'decisions', 'in Redis', ...kinds], rows)}`
}

function share({ allowedShare }) {
  return `${(allowedShare * 100).toFixed(allowedShare > 0 && allowedShare < 1 ? 1 : 0)} %`
}

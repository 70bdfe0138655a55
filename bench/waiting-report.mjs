// The part of the report that is about waiting.
import { CROWDS } from './crowds.mjs'
import { BOOKED, COSTING_OWN, OUTSIDE, SETTLE_MS, WAITING_HEADLINE, WAITING_OWN, WAITING_SIZES } from './jobs.mjs'
import { spreadOf, timesAsFast } from './statistics.mjs'
import { plain, spread, table } from './tables.mjs'
import { ownBeside, WAITING_PEER_NAMES } from './waiting-peers.mjs'

export function waitingTables(results) {
  const crowds = Object.keys(CROWDS)
  const tables = [
    ...crowds.map((crowd) => speedTable(results, crowd)),
    ...crowds.map((crowd) => costTable(results, crowd)),
    memoryTable(results),
  ]
  return tables.some((each) => each !== '') ? [METHOD, ...tables] : []
}

const METHOD = `## Waiting: how it was measured

- Peers are called as their documentation shows: bottleneck by \`group.key(key).schedule(job)\`, p-throttle by the throttled job, limiter by
  \`removeTokens(1)\`, rate-limiter-flexible by \`removeTokens(1, key)\` of its RateLimiterQueue over RateLimiterMemory. p-throttle and limiter
  have no keys and stand behind a Map. Where the call takes a job, as \`wrap\` does, it gets an empty function; where it hands out a permit, as
  \`acquire\` does, its caller goes on by itself. Either way one promise is awaited, and counts as one job.
- A crowd is 10,000 calls made at once and awaited together by \`Promise.all\`. Each peer has a process of its own, in which it and
  what of ours does the same (\`gcra.wrap\` for a job, \`gcra.acquire\` for a permit) take turns in interleaved rounds, another one first each time. All keys have been called once before.
- No limit reached: the limits are those of the scenarios above in which all is allowed; bottleneck has no limit at all, in its favour. A
  round is as many crowds, one after the other, as fill it; bottleneck's are few, because a crowd on one key takes it half a minute. The
  floor is \`floor.mjs\` with its answer in a promise.
- Really waiting, on one key: 20,000 per second, evenly for gcra, 2,000 per 100 ms for windows. On 10,000 keys: 1 per 2 s, used up by a
  crowd just before; "all waited" are the rounds in which every key was called again within these 2 s. Waiting takes as long as it takes, so what is compared is the processor time of the whole process from the first call
  until all are served, garbage collection included. "Late" is how long after the earliest possible moment all were served: one key, 500 ms after
  the calls began (evenly) or 400 ms (windows; those of \`fixedWindow\` begin with the clock's, up to 100 ms earlier); many keys, 2 s after
  the crowd before was served. Its permits were taken a little earlier than that, hence figures below 0.
- Left out: bottleneck on one key, where one job after the other goes through timers of its own before it may run: some hundreds a second,
  whatever the limit; \`fixedWindow\` on many keys, because a window that ends by the clock does not keep a key used up for 2 s. On many
  keys bottleneck is so far behind when it looks at its limits that they are free again: its figures are those of its own work.`

function speedTable(results, crowd) {
  const own = WAITING_OWN.map((name) => speedRow(results.of('waiting-speed', crowd, name), name))
  const peers = WAITING_PEER_NAMES.map((name) => peerSpeedRow(results.of('waiting-speed', crowd, name), name))
  const floor = speedRow(results.of('waiting-speed', crowd, WAITING_HEADLINE), 'floor')
  const rows = [floor, ...own, ...peers].filter((row) => row !== undefined)
  if (rows.length === 0) return ''
  const columns = ['', 'thousand jobs/s', 'to the floor', 'ours to it']
  return `## Waiting, no limit reached: ${CROWDS[crowd].title}\n\n${table(columns, rows)}`
}

function speedRow(speeds, name) {
  return speeds && [name, spread(thousandPerSecond(speeds[name])), spread(timesAsFast(speeds[name], speeds.floor)), '']
}

function peerSpeedRow(speeds, name) {
  return speeds && speedRow(speeds, name).with(3, `${spread(timesAsFast(speeds[ownBeside(name)], speeds[name]))} ${ownBeside(name)}`)
}

function thousandPerSecond({ ns }) {
  return spreadOf(ns.map((each) => 1e6 / each))
}

function costTable(results, crowd) {
  const rows = [...COSTING_OWN, ...WAITING_PEER_NAMES].flatMap((name) => {
    const costs = results.of('waiting-cost', crowd, name)
    return costs ? [costRow(costs, name)] : []
  })
  if (rows.length === 0) return ''
  const columns = [
    '',
    'processor µs per waiter',
    `${WAITING_HEADLINE} to it`,
    'first served after ms',
    'last served late by ms',
    'all waited',
  ]
  return `## Waiting, limit reached: ${CROWDS[crowd].title}\n\n${table(columns, rows)}`
}

function costRow(costs, name) {
  const figures = (figure) => costs[name].map((round) => round[figure])
  const spreads = ['cpuUs', 'firstMs', 'lateMs'].map((figure) => spread(spreadOf(figures(figure))))
  const own = costs[WAITING_HEADLINE]
  const isPeer = own !== undefined && name !== WAITING_HEADLINE
  return [name, spreads[0], isPeer ? spread(timesAsCheap(own, costs[name])) : '', ...spreads.slice(1), waitedShare(costs[name])]
}

/** On one key it is not looked at: who is called late enough there finds a permit. */
function waitedShare(rounds) {
  if (rounds.every(({ allWaited }) => allWaited === undefined)) return ''
  return `${rounds.filter(({ allWaited }) => allWaited).length} of ${rounds.length}`
}

/** Above 1: `one` took less processor time than `other`. */
function timesAsCheap(one, other) {
  return spreadOf(one.map(({ cpuUs }, round) => other[round].cpuUs / cpuUs))
}

function memoryTable(results) {
  const crowds = Object.keys(CROWDS)
  const rows = [BOOKED, OUTSIDE, ...WAITING_PEER_NAMES].flatMap((name) => {
    const bytes = crowds.map((crowd) => results.of('waiting-memory', crowd, name))
    if (bytes.every((each) => each === undefined)) return []
    return [[name, ...bytes.flatMap((each) => WAITING_SIZES.map((size) => (each?.[size] === undefined ? '' : plain(each[size]))))]]
  })
  if (rows.length === 0) return ''
  const columns = crowds.flatMap((crowd) =>
    WAITING_SIZES.map((size) => `${size.toLocaleString('en')}, ${crowd === 'one-key' ? 'one key' : 'a key each'}`),
  )
  const [oneKeySeconds, keysSeconds] = crowds.map((crowd) => SETTLE_MS[crowd] / 1000)
  return `## Waiting: memory

All in, the promise too: heap and external memory after a forced collection, less what was there before the calls, with their keys used up
and an array for the promises. Waits up to \`maxAheadMs\` are booked; who would wait longer stands outside. Bottleneck is measured after
${oneKeySeconds} s (one key) and ${keysSeconds} s, because it takes that long to take the calls in.

${table(['bytes per waiter', ...columns], rows)}`
}

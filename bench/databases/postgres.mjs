// Sluice with Postgres beside rate-limiter-flexible's store and one plain statement, on a server of
// its own with its default settings.
import { startPostgres } from '../../scripts/postgres-server.mjs'
import { spreadOf } from '../statistics.mjs'
import { spread, table } from '../tables.mjs'
import { inTurn, medianMs, perSecond } from './loop.mjs'
import { openAll } from './postgres-contestants.mjs'

const IN_FLIGHT = 256
const MANY = 10_000
const FLEXIBLE = 'rate-limiter-flexible'
const UPSERT = 'one upsert'

/** What was measured, as rows of the goals, and as text. */
export async function postgresResults(isQuick) {
  const rounds = isQuick ? 2 : 7
  const ms = isQuick ? 300 : 2_000
  const calls = isQuick ? 100 : 300
  const server = await startPostgres()
  try {
    const contestants = await openAll(server.url)
    const many = await inTurn(contestants, rounds, (ask) => perSecond(ask, { keys: MANY, inFlight: IN_FLIGHT, ms }))
    const hot = await inTurn(contestants, rounds, (ask) => perSecond(ask, { keys: 1, inFlight: IN_FLIGHT, ms }))
    const alone = await inTurn(contestants, rounds, (ask) => medianMs(ask, { keys: MANY, calls }))
    return { goals: goalsOf({ many, hot, alone }), text: textOf({ many, hot, alone }, rounds) }
  } finally {
    await server.remove()
  }
}

function ratio(figures, one, other) {
  return spreadOf(figures[one].map((figure, round) => figure / figures[other][round]))
}

function goalsOf({ many, hot, alone }) {
  const of = (title, target, figures, isReached) => [
    title,
    target,
    spread(figures),
    isReached(figures.median) ? 'reached' : '**not reached**',
  ]
  return [
    of(
      `Postgres, decisions/s, ${IN_FLIGHT} in flight, ${MANY} keys, to ${FLEXIBLE}`,
      'at least 3',
      ratio(many, 'Sluice', FLEXIBLE),
      (r) => r >= 3,
    ),
    of(
      `Postgres, decisions/s, ${IN_FLIGHT} in flight, one key, to ${FLEXIBLE}`,
      'at least 5',
      ratio(hot, 'Sluice', FLEXIBLE),
      (r) => r >= 5,
    ),
    of(`Postgres, one at a time, median, to ${UPSERT}`, 'at most 2.5', ratio(alone, 'Sluice', UPSERT), (r) => r <= 2.5),
  ]
}

function textOf({ many, hot, alone }, rounds) {
  const rows = Object.keys(many).map((name) => [
    name,
    spread(spreadOf(many[name].map((rate) => rate / 1000))),
    spread(spreadOf(hot[name].map((rate) => rate / 1000))),
    spread(spreadOf(alone[name])),
  ])
  return `## Postgres

${table(['', `${MANY} keys, thousand/s`, 'one key, thousand/s', 'one at a time, ms'], rows)}

Medians of ${rounds} rounds that take turns, quartiles in parentheses; ratios are taken within each round. One process, a pool of ten
connections each, ${IN_FLIGHT} decisions in flight. The server has its default settings, so that each commit is written to disk; no table is
unlogged.`
}

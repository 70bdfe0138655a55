// Writes RESULTS-http.md.
import { writeFileSync } from 'node:fs'
import { FRAMEWORKS } from './http-apps.mjs'
import { spreadOf } from './statistics.mjs'
import { plain, table } from './tables.mjs'

/**
 * The goal for ours, as a share of the time that the usual one adds. On Hono setting headers is
 * nearly all of it, for both.
 */
const MOST = { express: 0.7, fastify: 0.7, nest: 0.7, hono: 1 }

/**
 * The time that the limiters add to a request: { none, ours, usual, headers, share, shares }, in
 * microseconds of processor time: the middle of the processes.
 * `shares` is how far they differ.
 */
function addedBy({ measured }) {
  const processes = measured.map(addedInOne)
  const [none, ours, usual, headers] = [0, 1, 2, 3].map((at) => spreadOf(processes.map((figures) => figures[at])).median)
  return {
    none,
    ours,
    usual,
    headers,
    share: shareOf(ours, usual),
    shares: spreadOf(processes.map(([, one, other]) => shareOf(one, other))),
  }
}

/**
 * Each round by itself: the machine is faster in some than in others, by more than what is
 * measured, and then for all who take turns in it.
 */
function addedInOne([none, ...others]) {
  return [spreadOf(none).median, ...others.map((rounds) => spreadOf(rounds.map((us, round) => us - none[round])).median)]
}

/** Refusing may cost less than answering: then nothing is added, and the share is 0. */
function shareOf(ours, usual) {
  if (ours <= 0) return 0
  return usual <= 0 ? Number.POSITIVE_INFINITY : ours / usual
}

/** The same from the fast rounds of each one, whichever they were, to see how far the two agree. */
function addedByFastRounds({ measured }) {
  const added = (contestants, at) => spreadOf(contestants[at]).low - spreadOf(contestants[0]).low
  return [1, 2].map((at) => spreadOf(measured.map((contestants) => added(contestants, at))).median)
}

function reached(result) {
  const { ours, usual } = addedBy(result)
  return ours <= usual * (usual > 0 ? MOST[result.framework] : 1)
}

export function goalLines(results) {
  return results.map((result) => {
    const { none, ours, usual, headers, share, shares } = addedBy(result)
    const [oursFast, usualFast] = addedByFastRounds(result)
    const added = `ours +${plain(ours)} (${plain(oursFast)}), usual +${plain(usual)} (${plain(usualFast)}), headers +${plain(headers)}`
    const figures = `none ${plain(none)}, ${added} µs`
    return `${result.name}: ${figures}: ${shareText(share, shares)} ${reached(result) ? 'reached' : 'NOT REACHED'}`
  })
}

/** What this version has to reach of an older one's speed. */
const LEAST = 0.95

/**
 * Requests a second of this version, to those of the older one, round by round: above 1 is faster.
 * Median and quartiles of the processes.
 */
export function ratioLine({ name, measured }) {
  const ratios = measured.map(([older, ours]) => spreadOf(older.map((us, round) => us / ours[round])).median)
  const { low, median, high } = spreadOf(ratios)
  return `${name}: ${median.toFixed(3)} (${low.toFixed(3)}–${high.toFixed(3)}) ${median >= LEAST ? 'reached' : 'NOT REACHED'}`
}

function shareText(share, { low, high }) {
  return share === 0 ? 'nothing added' : `${plain(share)} (${plain(low)}–${plain(high)})`
}

export function writeHttpReport(results, { node, cpu, cores }, sockets) {
  const [{ calls }] = results
  const inEachMode = (of) => [...new Map(results.map((job) => [job.mode, `${of(job)} ${job.mode}`])).values()].join(' and ')
  const rows = results.map((result) => {
    const { none, ours, usual, headers, share, shares } = addedBy(result)
    const [oursFast, usualFast] = addedByFastRounds(result)
    const { title, usual: name } = FRAMEWORKS[result.framework]
    const figures = [plain(none), `${plain(ours)} (${plain(oursFast)})`, `${plain(usual)} (${plain(usualFast)}) ${name}`]
    // Of a refusal they are the smaller part, and it goes without the answer.
    const floor = result.scenario === 'admitted' ? plain(headers) : ''
    const verdict = reached(result) ? 'reached' : '**not reached**'
    return [title, result.mode, result.scenario, ...figures, floor, shareText(share, shares), `at most ${MOST[result.framework]}`, verdict]
  })
  const added = ['ours adds, µs', 'the usual one adds, µs', 'headers alone, µs']
  const columns = ['framework', 'how', 'requests', 'without a limiter, µs', ...added, 'share', 'goal', '']
  const headers = Object.values(FRAMEWORKS).map(({ title, usual, headers }) => `${title}: ${headers}, by ${usual} and by ours`)
  const text = `# Results of \`npm run bench:http\`

Written by the bench, not by hand. Node ${node}, ${cpu}, ${cores} cores.

${table(columns, rows, '---')}

## How it was measured

- Each row is several processes (${inEachMode(({ processes }) => processes)}), one after the other, each of which holds the framework four times: without a limiter, with ours, with the usual
  one, and with something that only sets as many headers, which is what no limiter can do without. They take turns, another one first in every
  round, after a warm-up: rounds of ${calls.toLocaleString('en')} requests each, ${inEachMode(({ rounds }) => rounds)}. Several processes, because they differ by where code and data come
  to lie, and by who was made first: that is another one each time.
- Figures are microseconds of processor time (user and system) of such a process for one request: the median of what was added, round by round, to
  the one without a limiter in the same round, and of the processes the median. In parentheses is what the lower quartiles of the rounds say. The
  share is that of the first two, in parentheses the quartiles of the processes.
- "In process": \`inject\` of light-my-request (Express, Fastify, Nest), \`app.request\` (Hono). "Sockets": ${sockets} connections that stay open, from
  another process, one request at a time on each.
- Everybody counts by address, in memory, in windows of an hour (@nestjs/throttler walks over all hits of its window at every call: where nothing is
  refused its window is a millisecond, in its favour). Admitted: a limit that is never reached. Refused: a limit of 1. Bodies of
  refusals are each one's own. Below 0 means that refusing takes less time than answering.
- Equally many headers: ${headers.join('; ')}.
`
  writeFileSync(new URL('./RESULTS-http.md', import.meta.url), text)
}

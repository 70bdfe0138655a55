// Writes RESULTS-http.md.
import { writeFileSync } from 'node:fs'
import { FRAMEWORKS } from './http-apps.mjs'
import { spreadOf } from './statistics.mjs'
import { plain, spread, table } from './tables.mjs'

/** What ours may add, as a share of what the usual one adds. On Hono setting headers is nearly all of it, for both. */
const MOST = { express: 0.7, fastify: 0.7, nest: 0.7, hono: 1 }

/** What the limiters add to a request, round by round: { ours, usual, share }, in microseconds of processor time. */
function addedBy({ measured: [none, ours, usual] }) {
  const added = { ours: ours.map((us, k) => us - none[k]), usual: usual.map((us, k) => us - none[k]) }
  const [own, other] = [added.ours, added.usual].map((each) => spreadOf(each).median)
  // Refusing may cost less than answering: whoever adds nothing adds a share of nothing.
  const share = own <= 0 ? 0 : other <= 0 ? Number.POSITIVE_INFINITY : own / other
  return { ...added, share, faster: share <= 1 }
}

function reached(result) {
  const { ours, usual } = addedBy(result)
  const [own, other] = [spreadOf(ours).median, spreadOf(usual).median]
  return own <= other * (other > 0 ? MOST[result.framework] : 1)
}

export function goalLines(results) {
  return results.map((result) => {
    const { ours, usual, share } = addedBy(result)
    return `${result.name}: ours ${spread(spreadOf(ours))}, usual ${spread(spreadOf(usual))} µs: ${shareText(share)} ${reached(result) ? 'reached' : 'NOT REACHED'}`
  })
}

function shareText(share) {
  return share === 0 ? 'nothing added' : plain(share)
}

export function writeHttpReport(results, { node, cpu, cores }, quick) {
  const warning = quick ? '\n\n**From a `--quick` run: too few and too short rounds to rely on.**' : ''
  const [{ rounds, calls }] = results
  const rows = results.map((result) => {
    const { ours, usual, share } = addedBy(result)
    const [none] = result.measured
    const { title, usual: name } = FRAMEWORKS[result.framework]
    const target = `at most ${MOST[result.framework]}`
    const verdict = reached(result) ? 'reached' : '**not reached**'
    return [
      title,
      result.mode,
      result.scenario,
      spread(spreadOf(none)),
      spread(spreadOf(ours)),
      `${spread(spreadOf(usual))} ${name}`,
      shareText(share),
      target,
      verdict,
    ]
  })
  const columns = ['framework', 'how', 'requests', 'without a limiter, µs', 'ours adds, µs', 'the usual one adds, µs', 'share', 'goal', '']
  const headers = Object.values(FRAMEWORKS).map(({ title, usual, headers }) => `${title}: ${headers}, by ${usual} and by ours`)
  const text = `# Results of \`npm run bench:http\`

Written by the bench, not by hand. Node ${node}, ${cpu}, ${cores} cores.${warning}

${table(columns, rows, '---')}

## How it was measured

- Each row is a process of its own that holds the framework three times: without a limiter, with ours, with the usual one. They take turns,
  another one first in every round, after a warm-up: ${rounds} rounds of ${calls.toLocaleString('en')} requests each.
- Figures are microseconds of processor time (user and system) of that process for one request: the median of the rounds, with the quartiles in
  parentheses. What a limiter adds is its time less the time without one in the same round. The share is that of the medians.
- "In process": \`inject\` of light-my-request (Express, Fastify, Nest), \`app.request\` (Hono). "Sockets": ${'16'} connections that stay open, from
  another process, one request at a time on each.
- Everybody counts by address, in memory, in windows of an hour. Admitted: a limit that is never reached. Refused: a limit of 1. Bodies of
  refusals are each one's own. Below 0 means that refusing takes less time than answering.
- Equally many headers: ${headers.join('; ')}.
`
  writeFileSync(new URL('./RESULTS-http.md', import.meta.url), text)
}

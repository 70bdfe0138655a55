// The part of the report about growth: tables, and the charts beside them.
import { spreadOf } from '../statistics.mjs'
import { plain, spread, table } from '../tables.mjs'
import { chart } from './chart.mjs'
import { ratiosOf } from './goals.mjs'
import { BATCH, CASES, GROWTHS } from './growth-cases.mjs'

const TITLES = {
  entries: { title: 'A sliding log, by its entries', unit: 'entries', goal: 1.5, scale: Math.log },
  slots: { title: 'A sliding window, by its slots', unit: 'slots', goal: 2, scale: Math.log },
  limits: { title: 'One limiter, by its limits', unit: 'limits', scale: (size) => size },
}
/** What a turn tells: of the call, and of its script. */
const FIGURES = { ns: 'call', scriptUs: 'script' }

/** The charts of what was measured: names of files and what goes into them. */
export function growthCharts(results) {
  return measuredGrowths(results).map(([growth, { measured }]) => {
    const { title, unit, goal, scale } = TITLES[growth]
    const names = Object.keys(measured).filter((name) => name !== 'batch')
    const curves = names.flatMap((name) =>
      Object.entries(FIGURES).map(([figure, what]) => ({ name: `${CASES[name]}, ${what}`, points: timesOf(measured[name], figure) })),
    )
    const sizes = Object.keys(measured.decision).map(Number)
    return [chartFile(growth), chart({ title: `${title}: times the smallest`, sizes, unit, scale, curves, goal })]
  })
}

export function growthTables(results) {
  const parts = measuredGrowths(results).map(([growth, measured]) => growthPart(growth, measured))
  return parts.length === 0 ? '' : [METHOD, ...parts].join('\n\n')
}

const METHOD = `## Growth

One decision of cost 1 at a time, on one client (ioredis), all sizes in one process and in turns of 20 calls. Time is a clock that the limiter is given, so that a key is
filled at once: evenly over one window. With each decision that clock goes on by one entry, or slot: one leaves, one comes. "Half" and "refund" are called on copies of the key: half a window after the last charge; and the
oldest entry or slot, then the next one, ten of each copy. A batch is ${BATCH} decisions on as many copies, called at once. Script time is that of \`EVALSHA\` by \`INFO commandstats\`, the average of a turn. Medians of
the turns, quartiles in parentheses; "times" is to the size with the smallest median, turn by turn.`

function growthPart(growth, { sizes, measured }) {
  const { title, unit } = TITLES[growth]
  const tables = Object.entries(measured).map(
    ([name, bySize]) => `**${CASES[name]}**\n\n${name === 'batch' ? batchTable(bySize, unit) : caseTable(bySize, unit)}`,
  )
  const missing = sizes.filter((size) => measured.decision[size] === undefined)
  const note =
    missing.length === 0
      ? ''
      : `\n\nNot measured, because they took more than a minute to fill: ${missing.map((size) => size.toLocaleString('en')).join(', ')}.`
  return `### ${title}\n\n![${title}](${chartFile(growth)})\n\n${tables.join('\n\n')}${note}`
}

function caseTable(bySize, unit) {
  const [calls, scripts] = [ratiosOf(bySize, 'ns'), ratiosOf(bySize, 'scriptUs')].map(Object.fromEntries)
  const rows = Object.entries(bySize).map(([size, turns]) => [
    Number(size).toLocaleString('en'),
    spread(spreadOf(turns.map(({ ns }) => ns / 1000))),
    calls[size] === undefined ? '1' : spread(calls[size]),
    spread(spreadOf(turns.map(({ scriptUs }) => scriptUs))),
    scripts[size] === undefined ? '1' : spread(scripts[size]),
  ])
  return table([unit, 'call, µs', 'times', 'script, µs', 'times'], rows)
}

function batchTable(bySize, unit) {
  const rows = Object.entries(bySize).map(([size, turns]) => [
    Number(size).toLocaleString('en'),
    spread(spreadOf(turns.map(({ scriptUs }) => scriptUs / 1000))),
    plain(BATCH / spreadOf(turns.map(({ scriptCalls }) => scriptCalls)).median),
  ])
  return table([unit, 'one script call, ms', 'decisions in it'], rows)
}

/** Of each size how many times the smallest median it is, for a curve. */
function timesOf(bySize, figure) {
  const medians = Object.entries(bySize).map(([size, turns]) => [Number(size), spreadOf(turns.map((turn) => turn[figure])).median])
  const least = Math.min(...medians.map(([, median]) => median))
  return medians.map(([size, median]) => [size, median / least])
}

function measuredGrowths(results) {
  return Object.keys(GROWTHS)
    .map((growth) => [growth, results.of({ part: 'growth', growth })])
    .filter(([, measured]) => measured !== undefined)
}

function chartFile(growth) {
  return `RESULTS-redis-${growth}.svg`
}

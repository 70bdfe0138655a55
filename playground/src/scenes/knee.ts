/**
 * A server that gets faster and slower: a governor looks for the best number in flight, beside a
 * limit that stays.
 */
import { h } from '../dom.ts'
import { counted, plain, seconds } from '../numbers.ts'
import { secondTicks } from '../playground/frame.ts'
import { labelled, table } from '../playground/tables.ts'
import {
  BOUNDS,
  GOVERNED_MS,
  type GovernedJob,
  type GovernedRun,
  type GovernedSide,
  SERVICE_MS,
  TOO_LATE_MS,
} from '../simulation/governed.ts'
import { columnAt, type Line, most, SAMPLES } from '../simulation/samples.ts'
import type { Texts } from '../text/en.ts'
import { type Chart, type ChartRow, roundTop, type Series } from './chart.ts'
import type { SceneKind } from './kind.ts'
import { BOARDS } from './state.ts'

const FIXED_DASH = [6, 3]
const BEST_DASH = [2, 3]
/** Beyond these a figure is marked. */
const LEAST_SHARE = 0.9
const MOST_TIMES = 3

export const kneeScene: SceneKind<GovernedJob> = {
  chart: (job, run, texts): Chart => ({
    label: texts.scenes.knee.label,
    lengthUs: GOVERNED_MS * 1000,
    ticks: (frame) => secondTicks(frame, GOVERNED_MS * 1000, texts.picture.seconds),
    rows: [handRow(job, texts), inflightRow(job, run, texts), answersRow(job, run, texts), latencyRow(job, run, texts)],
  }),

  conclusion(job, run, { scenes: { knee } }) {
    const said = (side: GovernedSide) => {
      const { share, times } = figures(side, run)
      return knee.figures(
        marked(knee.percent(plain(Math.round(share * 100))), share < LEAST_SHARE),
        marked(tenths(times), times > MOST_TIMES),
      )
    }
    return knee.governed(job.governor, said(run.governed)) + knee.fixed(counted(job.fixed), said(run.fixed))
  },

  totals(job, run, texts) {
    const { knee } = texts.scenes
    const rows = [
      sideRow('governed', job.governor, run.governed, run, texts),
      sideRow('fixed', knee.fixedName(counted(job.fixed)), run.fixed, run, texts),
    ]
    return table(knee.columns, h('tbody', {}, ...rows), texts.totals.heading, 'cards')
  },

  moment(job, { governed, fixed }, sample, { scenes: { knee } }) {
    const at = (line: Line) => (Number.isNaN(line[sample]) ? '–' : counted(line[sample] as number))
    return knee.moment(
      seconds(((sample + 1) * GOVERNED_MS * 1000) / SAMPLES),
      knee.value(counted(columnAt(job.columns, sample, SAMPLES))),
      knee.side(job.governor, at(governed.limit), at(governed.inflight), at(governed.perSecond), at(governed.latencyMs)),
      knee.side(knee.fixedShort, at(fixed.limit), at(fixed.inflight), at(fixed.perSecond), at(fixed.latencyMs)),
    )
  },

  first: () => SAMPLES / 4 - 1,
  valueText: (value, { scenes }) => scenes.knee.value(counted(value)),
  changed: (value, isSlower) => (isSlower ? Math.ceil(value / 2) : value * 2),
  note: ({ perSecond }, { scenes }) =>
    scenes.knee.note(counted(SERVICE_MS), counted(perSecond), seconds(TOO_LATE_MS * 1000), plain(MOST_TIMES), plain(LEAST_SHARE * 100)),

  code: ({ governor, fixed }) => `import { concurrency, createLimiter } from 'sluice'
import { govern, ${governor} } from 'sluice/load'

export const limiter = createLimiter({ inflight: concurrency({ max: ${fixed} }) })
export const governed = govern(limiter, { limit: 'inflight', by: ${governor}({ min: ${BOUNDS.min}, max: ${BOUNDS.max} }) })

const permit = limiter.consume('server')
if (permit.allowed) permit.release() // when the call has ended
else console.log('too busy')
`,
}

const marked = (text: string, isMarked: boolean): string => (isMarked ? `*${text}*` : text)
const tenths = (value: number): string => String(Math.round(value * 10) / 10)

/** Of the best: the share of its answers, and how many times its time. */
const figures = ({ inTime, meanMs }: GovernedSide, { bestInTime }: GovernedRun) => ({
  share: Math.min(1, inTime / bestInTime),
  times: meanMs / SERVICE_MS,
})

function handRow({ columns }: GovernedJob, { scenes }: Texts): ChartRow {
  return { title: scenes.knee.hand, top: BOARDS.knee.most, series: [{ colour: 'calls', kind: 'bars', values: columns }] }
}

/** The governor, the limit that stays, and the best, in each row alike. */
function lines(job: GovernedJob, governed: Line, fixed: Line, best: ArrayLike<number>, { scenes: { knee } }: Texts): Series[] {
  return [
    { name: job.governor, colour: 'admitted', kind: 'line', values: governed },
    { name: knee.fixedName(counted(job.fixed)), colour: 'gauge', kind: 'line', values: fixed, dash: FIXED_DASH },
    { name: knee.best, colour: 'ink', kind: 'line', values: best, dash: BEST_DASH },
  ]
}

function inflightRow(job: GovernedJob, { governed, fixed, bestLimit }: GovernedRun, texts: Texts): ChartRow {
  const { knee } = texts.scenes
  return {
    title: knee.limit,
    top: roundTop(1.05 * Math.max(most(governed.limit), most(fixed.limit), most(bestLimit))),
    series: [
      { name: knee.inflight(job.governor), colour: 'admitted', kind: 'area', values: governed.inflight },
      ...lines(job, governed.limit, fixed.limit, bestLimit, texts),
    ],
  }
}

function answersRow(job: GovernedJob, { governed, fixed, bestPerSecond }: GovernedRun, texts: Texts): ChartRow {
  const top = roundTop(Math.max(most(governed.perSecond), most(fixed.perSecond), most(bestPerSecond)))
  return { title: texts.scenes.knee.answers, top, series: lines(job, governed.perSecond, fixed.perSecond, bestPerSecond, texts) }
}

function latencyRow(job: GovernedJob, { governed, fixed }: GovernedRun, texts: Texts): ChartRow {
  const top = roundTop(Math.max(most(governed.latencyMs), most(fixed.latencyMs), 2 * SERVICE_MS))
  const best = new Float64Array(SAMPLES).fill(SERVICE_MS)
  return { title: texts.scenes.knee.latency, top, series: lines(job, governed.latencyMs, fixed.latencyMs, best, texts) }
}

function sideRow(id: string, name: string, side: GovernedSide, run: GovernedRun, { scenes: { knee }, live }: Texts): HTMLElement {
  const { share, times } = figures(side, run)
  return labelled(
    knee.columns,
    [
      h('th', { scope: 'row' }, name),
      h('td', { class: share < LEAST_SHARE ? 'number above' : 'number' }, knee.percent(plain(Math.round(share * 100)))),
      h('td', { class: times > MOST_TIMES ? 'number above' : 'number' }, live.ms(counted(side.meanMs))),
      h('td', { class: 'number' }, counted(side.mostInflight)),
      h('td', { class: 'number admitted' }, counted(side.inTime)),
      h('td', { class: 'number refused' }, counted(side.refused)),
    ],
    { 'data-side': id },
  )
}

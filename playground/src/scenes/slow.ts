/**
 * Calls get slow rather than many: what a rate limit alone lets run at once, and what concurrency
 * keeps.
 */
import { h } from '../dom.ts'
import { counted, plain, seconds, time } from '../numbers.ts'
import { secondTicks } from '../playground/frame.ts'
import { labelled, table } from '../playground/tables.ts'
import { columnAt, SAMPLES } from '../simulation/samples.ts'
import { CALLERS, PATIENCE_MS, SLOW_MS, SLOW_UNIT_MS, SLOW_WORKERS, type SlowJob, type SlowRun, type SlowSide } from '../simulation/slow.ts'
import type { Texts } from '../text/en.ts'
import { type Chart, type ChartRow, roundTop } from './chart.ts'
import type { SceneKind } from './kind.ts'
import { BOARDS } from './state.ts'

const LIMIT_DASH = [2, 3]
const CALLER_COLOURS = ['gauge', 'admitted', 'calls'] as const

export const slowScene: SceneKind<SlowJob> = {
  chart: (job, run, texts): Chart => ({
    label: texts.scenes.slow.label,
    lengthUs: SLOW_MS * 1000,
    ticks: (frame) => secondTicks(frame, SLOW_MS * 1000, texts.picture.seconds),
    rows: [handRow(job, texts), bothRow(job, run, texts), atOnceRow(job, run, texts), waitingRow(run, texts)],
  }),

  conclusion(job, { rateAlone, atOnce }, { scenes: { slow } }) {
    const factor = Math.max(...job.columns) / Math.min(...job.columns)
    const alone = rateAlone.mostInflight > job.max ? `*${counted(rateAlone.mostInflight)}*` : counted(rateAlone.mostInflight)
    const before = factor > 1 ? slow.slower(plain(factor)) : ''
    return (
      before +
      slow.alone(alone, counted(rateAlone.late), factor > 1) +
      slow.kept(counted(atOnce.mostInflight), counted(atOnce.gaveUp), counted(atOnce.late))
    )
  },

  totals(job, { rateAlone, atOnce }, texts) {
    const { slow } = texts.scenes
    const rows = [
      sideRow('rate', slow.sides.rate(job.rate), rateAlone, job, texts),
      sideRow('both', slow.sides.both(job.rate, job.max), atOnce, job, texts),
    ]
    return table(slow.columns, h('tbody', {}, ...rows), texts.totals.heading, 'cards')
  },

  moment(job, { rateAlone, atOnce }, sample, { scenes: { slow } }) {
    const counts = atOnce.waiting.map((line) => line[sample] as number)
    const waiting = counts.reduce((sum, count) => sum + count, 0)
    const callers = counts.map((count, k) => `${slow.callers[CALLERS[k] as (typeof CALLERS)[number]]} ${counted(count)}`)
    return slow.moment(
      seconds(((sample + 1) * SLOW_MS * 1000) / SAMPLES),
      counted(columnAt(job.columns, sample, SAMPLES) * SLOW_UNIT_MS),
      counted(rateAlone.inflight[sample] as number),
      `${counted(atOnce.inflight[sample] as number)}`,
      counted(waiting),
      waiting === 0 ? [] : callers,
    )
  },

  first: ({ rateAlone: { inflight } }) => inflight.indexOf(Math.max(...inflight)),
  valueText: (value, { scenes }) => scenes.slow.value(counted(value * SLOW_UNIT_MS)),
  changed: (value, isSlower) => (isSlower ? value * 2 : Math.ceil(value / 2)),
  note: ({ waitMs }, { scenes }) => scenes.slow.note(counted(SLOW_WORKERS), seconds(PATIENCE_MS * 1000), counted(waitMs)),

  code: ({ rate, max, waitMs }) => `import { concurrency, createLimiter, gcra } from 'sluice'

export const limiter = createLimiter({
  rate: gcra({ rate: '${rate}/s', burst: ${rate} }),
  inflight: concurrency({ max: ${max} }),
})

const query = async () => 'rows'
console.log(await limiter.run('database', () => query(), { timeoutMs: ${waitMs} }))
`,
}

function handRow({ columns }: SlowJob, { scenes }: Texts): ChartRow {
  const values = columns.map((value) => value * SLOW_UNIT_MS)
  return { title: scenes.slow.hand, top: BOARDS.slow.most * SLOW_UNIT_MS, series: [{ colour: 'calls', kind: 'bars', values }] }
}

const level = (value: number) => new Float64Array(SAMPLES).fill(value)

function bothRow({ max }: SlowJob, { rateAlone, atOnce }: SlowRun, { scenes: { slow } }: Texts): ChartRow {
  const kept = rateAlone.inflight.map((count) => Math.min(count, max))
  return {
    title: slow.inflight,
    top: roundTop(Math.max(rateAlone.mostInflight, max)),
    series: [
      { colour: 'admitted', kind: 'area', values: kept },
      { name: slow.aloneAbove(counted(max)), colour: 'refused', kind: 'area', values: rateAlone.inflight, base: kept },
      { name: slow.withMax, colour: 'admitted', kind: 'line', values: atOnce.inflight },
    ],
  }
}

function atOnceRow({ max }: SlowJob, { atOnce }: SlowRun, { scenes: { slow } }: Texts): ChartRow {
  return {
    title: slow.zoomed,
    top: roundTop(max * 1.15),
    series: [
      { name: slow.withMax, colour: 'admitted', kind: 'area', values: atOnce.inflight },
      { name: slow.max(counted(max)), colour: 'ink', kind: 'line', values: level(max), dash: LIMIT_DASH },
    ],
  }
}

/** One upon the other, so that the whole is how many wait. */
function waitingRow({ atOnce }: SlowRun, { scenes: { slow } }: Texts): ChartRow {
  let base = new Float64Array(SAMPLES)
  const series = CALLERS.map((caller, k) => {
    const from = base
    base = from.map((below, sample) => below + (atOnce.waiting[k]?.[sample] as number))
    return {
      name: slow.callers[caller],
      colour: CALLER_COLOURS[k] as (typeof CALLER_COLOURS)[number],
      kind: 'area' as const,
      values: base,
      base: from,
    }
  })
  return { title: slow.waiting, top: roundTop(Math.max(4, atOnce.mostWaiting)), series }
}

function sideRow(id: string, name: string, side: SlowSide, { max }: SlowJob, { scenes: { slow } }: Texts): HTMLElement {
  const { mostInflight, inTime, late, gaveUp, longestMs } = side
  const isOver = mostInflight > max
  return labelled(
    slow.columns,
    [
      h('th', { scope: 'row' }, name),
      h('td', { class: isOver ? 'number above' : 'number' }, slow.mostOf(counted(mostInflight), counted(max))),
      h('td', { class: 'number admitted' }, counted(inTime)),
      h('td', { class: 'number refused' }, counted(late)),
      h('td', { class: 'number' }, counted(gaveUp)),
      h('td', { class: 'number' }, time(longestMs * 1000)),
    ],
    { 'data-side': id },
  )
}

/**
 * The pictures of docs/guides that show what happens over time: real runs of the library, drawn as
 * the page draws them, for light and dark.
 */
import { readFileSync } from 'node:fs'
import { followLoad } from '../../src/load/follow-load.ts'
import { svgOf } from '../src/playground/export-buttons.ts'
import { PALETTE_NAMES, type Palette, secondTicks } from '../src/playground/frame.ts'
import { type Chart, chartDrawing } from '../src/scenes/chart.ts'
import { kneeScene } from '../src/scenes/knee.ts'
import { slowScene } from '../src/scenes/slow.ts'
import { FIRST_SCENES } from '../src/scenes/state.ts'
import { playGoverned } from '../src/simulation/governed.ts'
import { playSlow } from '../src/simulation/slow.ts'
import { createLimiter, fakeClock, gcra } from '../src/sluice.ts'
import { en } from '../src/text/en.ts'

/** Files of docs/pictures, by name. */
export async function guidePictures(styleSheet: URL): Promise<Readonly<Record<string, string>>> {
  const { slow, knee } = FIRST_SCENES
  const charts = {
    'at-once': slowScene.chart(slow, await playSlow(slow), en),
    'load-knee': kneeScene.chart(knee, playGoverned(knee), en),
    'load-follow': followChart(),
  }
  const [light, dark] = palettes(readFileSync(styleSheet, 'utf8'))
  const files = Object.entries(charts).flatMap(([name, chart]) => [
    [`${name}.svg`, svgOf(chartDrawing(chart), light)],
    [`${name}-dark.svg`, svgOf(chartDrawing(chart), dark)],
  ])
  return Object.fromEntries(files)
}

/** Colours have one place, the style sheet of the page: `--ink: light-dark(#17202e, #e8edf5);`. */
function palettes(css: string): [light: Palette, dark: Palette] {
  const colours = PALETTE_NAMES.map((name) => {
    const found = new RegExp(`--${name}: light-dark\\((#\\w{6}), (#\\w{6})\\)`).exec(css)
    if (found === null) throw new Error(`the style sheet has no colour ${name} for light and dark`)
    return [name, rgb(found[1] as string), rgb(found[2] as string)] as const
  })
  const side = (k: 1 | 2) => Object.fromEntries(colours.map((colour) => [colour[0], colour[k]])) as unknown as Palette
  return [side(1), side(2)]
}

const rgb = (hex: string): string => `rgb(${[1, 3, 5].map((from) => Number.parseInt(hex.slice(from, from + 2), 16)).join(', ')})`

const SECONDS = 90
const [MIN, MAX, FROM_MS, TO_MS] = [20, 100, 20, 120]

/** A rate of 20 to 100 a second by an event loop that is late: a little, much, and no longer. */
function followChart(): Chart {
  const clock = fakeClock()
  const limiter = createLimiter(gcra({ rate: { permits: MAX, per: '1s' }, burst: 20 }), { clock })
  let delayMs = 0
  const bounds = { min: { permits: MIN, per: '1s' }, max: { permits: MAX, per: '1s' } } as const
  const following = followLoad(limiter, { ...bounds, signal: () => delayMs, from: FROM_MS, to: TO_MS, clock })
  const delays: number[] = []
  const rates: number[] = []
  for (let second = 0; second < SECONDS; second++) {
    delayMs = second < 15 ? 10 : second < 30 ? 70 : second < 55 ? 200 : 15
    clock.advanceMs(1000)
    delays.push(delayMs)
    rates.push(following.rate)
  }
  following.close()
  return chartOf(delays, rates)
}

function chartOf(delays: readonly number[], rates: readonly number[]): Chart {
  const level = (value: number, name: string, dash: number[]) =>
    ({ name, colour: 'calls', kind: 'line', values: new Float64Array(SECONDS).fill(value), dash }) as const
  return {
    label: 'The rate falls while the event loop is late, by at most a tenth a second, and comes back',
    lengthUs: SECONDS * 1e6,
    ticks: (frame) => secondTicks(frame, SECONDS * 1e6, 's'),
    rows: [
      {
        title: 'Event loop delay, ms',
        top: 240,
        series: [
          level(TO_MS, `to: ${TO_MS}`, [6, 3]),
          level(FROM_MS, `from: ${FROM_MS}`, [2, 3]),
          { name: 'the signal', colour: 'refused', kind: 'line', values: delays },
        ],
      },
      {
        title: 'Rate, a second',
        top: 120,
        series: [
          level(MAX, `max: ${MAX}`, [6, 3]),
          level(MIN, `min: ${MIN}`, [2, 3]),
          { name: 'followLoad', colour: 'admitted', kind: 'line', values: rates },
        ],
      },
    ],
  }
}

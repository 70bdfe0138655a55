/** Calls per second and longest waits of the last ten minutes. */
import { h, put } from '../dom.ts'
import { plain, rounded } from '../numbers.ts'
import type { Frame, Tick } from '../playground/frame.ts'
import { TimePicture } from '../playground/time-picture.ts'
import { type ChartRow, chartDrawing, roundTop } from '../scenes/chart.ts'
import type { Texts } from '../text/en.ts'
import type { Values } from './history.ts'

/** Seconds since 1970, admitted, refused, and the longest waits. */
export type ChartData = [number[], Values, Values, Values]

const CALLS_HEIGHT = 170
/** Less than a minute is no picture of anything. */
const SHORTEST_S = 60
/** Between two times on the axis. Parts of a second would be written alike. */
const TICKS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600]
const TICK_WIDTH = 90

export class Chart {
  readonly element: HTMLElement
  readonly #texts: Texts
  readonly #picture = new TimePicture(() => undefined)
  /** The figures of the second under the pointer. */
  readonly #said = h('p', { class: 'note', 'data-part': 'pointed' })
  readonly #clock: Intl.DateTimeFormat
  #data: ChartData = [[], [], [], []]
  #pointedS: number | undefined

  constructor(texts: Texts) {
    this.#texts = texts
    const locale = texts.language === 'zh' ? 'zh-CN' : 'en-GB'
    this.#clock = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
    this.element = h('div', { class: 'chart' }, this.#picture.element, this.#said)
    this.#listen()
  }

  /** What was touched stays told when the finger has left. */
  #listen(): void {
    const { element } = this.#picture
    const point = ({ clientX }: PointerEvent) => this.#point(this.#picture.usAt(clientX))
    element.addEventListener('pointerdown', point)
    element.addEventListener('pointermove', point)
    element.addEventListener('pointerleave', ({ pointerType }) => pointerType !== 'touch' && this.#point(undefined))
  }

  show(data: ChartData, label: string): void {
    this.#data = data
    this.#picture.show(chartDrawing({ label, lengthUs: this.#lengthS * 1e6, ticks: (frame) => this.#ticks(frame), rows: this.#rows() }))
    this.#showPointed()
  }

  repaint(): void {
    this.#picture.redraw()
  }

  close(): void {
    this.#picture.close()
  }

  get #endS(): number {
    return this.#data[0].at(-1) ?? SHORTEST_S
  }

  get #startS(): number {
    return Math.min(this.#data[0][0] ?? 0, this.#endS - SHORTEST_S)
  }

  get #lengthS(): number {
    return this.#endS - this.#startS
  }

  #share(second: number): number {
    return (second - this.#startS) / this.#lengthS
  }

  #ticks({ plotWidth }: Frame): Tick[] {
    const stepS = TICKS_S.find((step) => (step / this.#lengthS) * plotWidth >= TICK_WIDTH) ?? (TICKS_S.at(-1) as number)
    const ticks: Tick[] = []
    for (let second = Math.ceil(this.#startS / stepS) * stepS; second <= this.#endS; second += stepS) {
      ticks.push({ share: this.#share(second), text: this.#clock.format(second * 1000) })
    }
    return ticks
  }

  /** The row of waits is there when a caller has waited: until then it would say nothing. */
  #rows(): ChartRow[] {
    const { live } = this.#texts
    const [seconds, admitted, refused, waits] = this.#data
    const shares = seconds.map((second) => this.#share(second))
    const line = { kind: 'line', shares } as const
    const calls: ChartRow = {
      title: live.calls,
      height: CALLS_HEIGHT,
      top: roundTop(1.05 * highest(admitted, refused)),
      series: [
        { ...line, name: `▲ ${live.columns.admitted}`, colour: 'admitted', values: numbers(admitted) },
        { ...line, name: `▼ ${live.columns.refused}`, colour: 'refused', values: numbers(refused), dash: [7, 4] },
      ],
    }
    if (highest(waits) === 0) return [calls]
    return [
      calls,
      { title: live.waits, top: roundTop(1.05 * highest(waits)), series: [{ ...line, colour: 'gauge', values: numbers(waits) }] },
    ]
  }

  #point(us: number | undefined): void {
    this.#pointedS = us === undefined ? undefined : this.#startS + us / 1e6
    this.#showPointed()
  }

  #showPointed(): void {
    const [seconds, admitted, refused, waits] = this.#data
    const k = this.#pointedS === undefined ? -1 : nearest(seconds, this.#pointedS)
    const second = seconds[k]
    this.#picture.point(second === undefined ? undefined : (second - this.#startS) * 1e6, false)
    const shown = (values: Values) => (values[k] == null ? '–' : plain(rounded(values[k])))
    const { columns, waits: waitsName, hover } = this.#texts.live
    if (second === undefined) put(this.#said, hover)
    else
      put(
        this.#said,
        `${this.#clock.format(second * 1000)}: ▲ ${columns.admitted} ${shown(admitted)}, ▼ ${columns.refused} ${shown(refused)}, ${waitsName} ${shown(waits)}`,
      )
  }
}

const numbers = (values: Values): Float64Array => Float64Array.from(values, (value) => value ?? Number.NaN)

const highest = (...lines: readonly Values[]): number => lines.flat().reduce<number>((most, value) => Math.max(most, value ?? 0), 0)

function nearest(seconds: readonly number[], wanted: number): number {
  return seconds.reduce((best, second, k) => (Math.abs(second - wanted) < Math.abs((seconds[best] ?? Infinity) - wanted) ? k : best), -1)
}

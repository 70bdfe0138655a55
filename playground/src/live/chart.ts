/** Calls per second and longest waits of the last ten minutes. */
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { h } from '../dom.ts'
import { palette } from '../playground/canvas.ts'
import type { Texts } from '../text/en.ts'
import type { Values } from './history.ts'

export type ChartData = [number[], Values, Values, Values]

const HEIGHT = 260
/** Less than a minute is no picture of anything. */
const SHORTEST_S = 60
/** Between two times on the axis. Parts of a second would be written alike. */
const TICKS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600]

export class Chart {
  readonly element = h('div', { class: 'chart', role: 'img' })
  readonly #texts: Texts
  readonly #resized = new ResizeObserver(() => this.#fit())
  #plot: uPlot | undefined
  #data: ChartData = [[], [], [], []]
  #hasWaits = false

  constructor(texts: Texts) {
    this.#texts = texts
    this.#resized.observe(this.element)
  }

  show(data: ChartData, label: string): void {
    this.#data = data
    this.element.setAttribute('aria-label', label)
    // The axis of waits is there when somebody has waited: until then it would say nothing, from 0 to 1.
    const hasWaits = data[3].some((ms) => ms !== null && ms > 0)
    const isChange = hasWaits !== this.#hasWaits
    this.#hasWaits = hasWaits
    if (this.#plot === undefined || isChange) this.repaint()
    else this.#plot.setData(data as uPlot.AlignedData)
  }

  /** Colours are part of what a chart is made with. */
  repaint(): void {
    this.#plot?.destroy()
    this.#plot = undefined
    if (this.element.clientWidth === 0) return
    this.#plot = new uPlot(this.#options(), this.#data as uPlot.AlignedData, this.element)
  }

  close(): void {
    this.#resized.disconnect()
    this.#plot?.destroy()
  }

  #fit(): void {
    if (this.#plot === undefined) this.repaint()
    else this.#plot.setSize({ width: this.element.clientWidth, height: HEIGHT })
  }

  #options(): uPlot.Options {
    const { quiet, grid, admitted, refused, gauge } = palette()
    const { live, language } = this.#texts
    const axis = { stroke: quiet, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: '11px system-ui, sans-serif' }
    const line = (label: string, stroke: string, more: Partial<uPlot.Series> = {}): uPlot.Series => ({
      label,
      stroke,
      width: 2,
      points: { show: false },
      value: (_, value) => (value === null ? '–' : String(Math.round(value * 10) / 10)),
      ...more,
    })
    const clock = new Intl.DateTimeFormat(language === 'zh' ? 'zh-CN' : 'en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
    return {
      width: this.element.clientWidth,
      height: HEIGHT,
      scales: {
        x: { range: (_, least, most) => (most === null ? [0, SHORTEST_S] : [Math.min(least, most - SHORTEST_S), most]) },
        y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] },
        ms: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] },
      },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map((second) => clock.format(second * 1000)), space: 90, incrs: TICKS_S },
        { ...axis, size: 46 },
        { ...axis, scale: 'ms', side: 1, grid: { show: false }, size: 46, label: live.waits, labelSize: 18, show: this.#hasWaits },
      ],
      series: [
        { value: (_, second) => (second === null ? '–' : clock.format(second * 1000)), label: live.time },
        line(`▲ ${live.columns.admitted}`, admitted),
        line(`▼ ${live.columns.refused}`, refused, { dash: [7, 4] }),
        line(live.waits, gauge, { scale: 'ms', width: 1, dash: [2, 3] }),
      ],
      cursor: { drag: { x: false, y: false } },
    }
  }
}

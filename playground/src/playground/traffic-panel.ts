/** The arrivals: a kind of traffic with its numbers. */
import { field, foldingPanel, h, put, select } from '../dom.ts'
import { tapeOf } from '../simulation/tapes.ts'
import { COLUMNS, MAX_IN_COLUMN, NUMBERS, NUMBERS_OF, type NumberName, type Traffic, type TrafficKind } from '../simulation/traffic.ts'
import type { Texts } from '../text/en.ts'
import { DrawingBoard } from './drawing.ts'
import { freshTraffic } from './state.ts'

/** Takes the element that draws by hand; undefined: nothing does. */
type ByHand = (board: HTMLElement | undefined) => void

export class TrafficPanel {
  readonly element: HTMLElement
  readonly #texts: Texts['traffic']
  readonly #changed: (traffic: Traffic) => void
  readonly #byHand: ByHand
  readonly #controls = h('div', { class: 'stack' })
  readonly #error = h('p', { class: 'error', role: 'alert' })
  #current: Traffic

  constructor(first: Traffic, { traffic: texts }: Texts, changed: (traffic: Traffic) => void, byHand: ByHand) {
    this.#current = first
    this.#texts = texts
    this.#changed = changed
    this.#byHand = byHand
    this.element = h('div', {}, foldingPanel(texts.heading, this.#controls), this.#error)
    this.show(first)
  }

  /** Shows a traffic that came from elsewhere. */
  show(traffic: Traffic): void {
    this.#current = traffic
    if (traffic.kind !== 'drawn') this.#byHand(undefined)
    const numbers = NUMBERS_OF[traffic.kind].map((name) => this.#numberField(name))
    put(this.#controls, this.#kindSelect(), ...numbers, ...this.#ownControls())
  }

  /** Says what is wrong with the traffic, or nothing. */
  fail(message: string): void {
    put(this.#error, message)
  }

  /** Of what is there now: other controls may have changed since this one was made. */
  #change(part: Partial<Record<string, unknown>>): void {
    this.#current = { ...this.#current, ...part } as Traffic
    this.#changed(this.#current)
  }

  /** All controls are made anew: the focus goes to the one that was used. */
  #replace(traffic: Traffic, used: string): void {
    this.show(traffic)
    this.#changed(traffic)
    this.#controls.querySelector<HTMLElement>(used)?.focus()
  }

  #kindSelect(): HTMLElement {
    const { kind: current } = this.#current
    const kinds = (Object.keys(NUMBERS_OF) as TrafficKind[]).filter((kind) => kind !== 'tape' || current === 'tape')
    const options = kinds.map((kind) => [kind, this.#texts.kinds[kind]] as const)
    return field(
      this.#texts.kind,
      select(options, current, (kind) => this.#replace(freshTraffic(kind), 'select')),
    )
  }

  #numberField(name: NumberName): HTMLElement {
    const { min, max } = NUMBERS[name]
    const value = (this.#current as unknown as Record<NumberName, number>)[name]
    const input = h('input', { type: 'number', min, max, step: 'any', value, inputmode: 'decimal', 'data-number': name })
    input.addEventListener('input', () => this.#change({ [name]: input.value === '' ? Number.NaN : Number(input.value) }))
    return field(this.#texts.numbers[name], input)
  }

  #ownControls(): HTMLElement[] {
    const current = this.#current
    if (current.kind === 'drawn') return [this.#drawn(current.columns, current.seconds)]
    if (current.kind === 'pasted') return [this.#pasted(current.text)]
    if (current.kind === 'tape') return [h('p', { class: 'note' }, this.#texts.source(tapeOf(current.id)?.source ?? ''))]
    return []
  }

  #drawn(columns: readonly number[], seconds: number): HTMLElement {
    const { kinds, column, draw, clear } = this.#texts
    const options = { least: 0, most: MAX_IN_COLUMN, seconds, label: kinds.drawn, column }
    this.#byHand(new DrawingBoard(columns, options, (next) => this.#change({ columns: next })).element)
    const onclick = () => this.#replace({ ...this.#current, columns: new Array<number>(COLUMNS).fill(0) } as Traffic, '[data-part=clear]')
    const button = h('button', { type: 'button', class: 'small', 'data-part': 'clear', onclick }, clear)
    return h('div', { class: 'stack' }, h('p', { class: 'note' }, draw), button)
  }

  #pasted(text: string): HTMLElement {
    const area = h('textarea', { rows: 5, spellcheck: 'false' })
    area.value = text
    area.addEventListener('input', () => this.#change({ text: area.value }))
    return field(this.#texts.paste, area)
  }
}

/** The arrivals: a kind of traffic with its numbers. */
import { field, foldingPanel, h, put, select } from '../dom.ts'
import { tapeOf } from '../simulation/tapes.ts'
import { COLUMNS, MAX_IN_COLUMN, NUMBERS, NUMBERS_OF, type NumberName, type Traffic, type TrafficKind } from '../simulation/traffic.ts'
import type { Texts } from '../text/en.ts'
import { drawingBoard } from './drawing.ts'
import { freshTraffic } from './state.ts'

export interface TrafficPanel {
  readonly element: HTMLElement
  /** Shows a traffic that came from elsewhere. */
  show(traffic: Traffic): void
  /** Says what is wrong with the traffic, or nothing. */
  fail(message: string): void
}

/** `byHand` puts what draws by hand in its place. */
export function trafficPanel(
  first: Traffic,
  texts: Texts,
  changed: (traffic: Traffic) => void,
  byHand: (board: HTMLElement | undefined) => void,
): TrafficPanel {
  let current = first
  const controls = h('div', { class: 'stack' })
  const error = h('p', { class: 'error', role: 'alert' })
  const element = h('div', {}, foldingPanel(texts.traffic.heading, controls), error)
  show(first)
  return {
    element,
    show,
    fail: (message) => put(error, message),
  }

  function show(traffic: Traffic): void {
    current = traffic
    if (traffic.kind !== 'drawn') byHand(undefined)
    put(controls, kindSelect(), ...NUMBERS_OF[traffic.kind].map(numberField), ...ownControls())
  }

  /** Of what is there now: other controls may have changed since this one was made. */
  function change(part: Partial<Record<string, unknown>>): void {
    current = { ...current, ...part } as Traffic
    changed(current)
  }

  function kindSelect(): HTMLElement {
    const kinds = (Object.keys(NUMBERS_OF) as TrafficKind[]).filter((kind) => kind !== 'tape' || current.kind === 'tape')
    return field(
      texts.traffic.kind,
      select(
        kinds.map((kind) => [kind, texts.traffic.kinds[kind]] as const),
        current.kind,
        (kind) => {
          show(freshTraffic(kind))
          changed(current)
          controls.querySelector('select')?.focus()
        },
      ),
    )
  }

  function numberField(name: NumberName): HTMLElement {
    const { min, max } = NUMBERS[name]
    const value = (current as unknown as Record<NumberName, number>)[name]
    const input = h('input', { type: 'number', min, max, step: 'any', value, inputmode: 'decimal', 'data-number': name })
    input.addEventListener('input', () => change({ [name]: input.value === '' ? Number.NaN : Number(input.value) }))
    return field(texts.traffic.numbers[name], input)
  }

  function ownControls(): HTMLElement[] {
    if (current.kind === 'drawn') return [drawn(current.columns, current.seconds)]
    if (current.kind === 'pasted') return [pasted(current.text)]
    if (current.kind === 'tape') return [h('p', { class: 'note' }, texts.traffic.source(tapeOf(current.id)?.source ?? ''))]
    return []
  }

  function drawn(columns: readonly number[], seconds: number): HTMLElement {
    const { kinds, column } = texts.traffic
    const options = { least: 0, most: MAX_IN_COLUMN, seconds, label: kinds.drawn, column }
    const board = drawingBoard(columns, options, (next) => change({ columns: next }))
    const clear = () => {
      show({ ...current, columns: new Array<number>(COLUMNS).fill(0) } as Traffic)
      changed(current)
      controls.querySelector<HTMLElement>('[data-part=clear]')?.focus()
    }
    byHand(board)
    return h(
      'div',
      { class: 'stack' },
      h('p', { class: 'note' }, texts.traffic.draw),
      h('button', { type: 'button', class: 'small', 'data-part': 'clear', onclick: clear }, texts.traffic.clear),
    )
  }

  function pasted(text: string): HTMLElement {
    const area = h('textarea', { rows: 5, spellcheck: 'false' })
    area.value = text
    area.addEventListener('input', () => change({ text: area.value }))
    return field(texts.traffic.paste, area)
  }
}

/** What arrives: an example, or a kind of traffic with its numbers. */
import { field, foldingPanel, h, put, select } from '../dom.ts'
import { TAPES, tapeOf } from '../simulation/tapes.ts'
import { COLUMNS, NUMBERS, NUMBERS_OF, type NumberName, type Traffic, type TrafficKind } from '../simulation/traffic.ts'
import type { Texts } from '../text/en.ts'
import { drawingBoard } from './drawing.ts'
import { freshTraffic, SCENES, type State, tapeState, toAddress } from './state.ts'

export interface TrafficPanel {
  readonly element: HTMLElement
  readonly example: HTMLElement
  /** Shows a state that came from elsewhere. */
  show(state: State): void
  /** Says what is wrong with the traffic, or nothing. */
  fail(message: string): void
}

export function trafficPanel(
  first: State,
  texts: Texts,
  change: (traffic: Traffic) => void,
  replace: (state: State) => void,
): TrafficPanel {
  const example = h('div')
  const controls = h('div', { class: 'stack' })
  const error = h('p', { class: 'error', role: 'alert' })
  const element = h('div', {}, foldingPanel(texts.traffic.heading, controls), error)
  show(first)
  return {
    element,
    example,
    show,
    fail: (message) => put(error, message),
  }

  function show(state: State): void {
    put(example, field(texts.example.label, exampleSelect(state, texts, replace)))
    showTraffic(state.traffic)
  }

  function showTraffic(traffic: Traffic): void {
    put(controls, kindSelect(traffic.kind), ...numberFields(traffic), ...ownControls(traffic))
  }

  function kindSelect(chosen: TrafficKind): HTMLElement {
    const kinds = (Object.keys(NUMBERS_OF) as TrafficKind[]).filter((kind) => kind !== 'tape' || chosen === 'tape')
    return field(
      texts.traffic.kind,
      select(
        kinds.map((kind) => [kind, texts.traffic.kinds[kind]] as const),
        chosen,
        (kind) => {
          const traffic = freshTraffic(kind)
          showTraffic(traffic)
          change(traffic)
          controls.querySelector('select')?.focus()
        },
      ),
    )
  }

  function numberFields(traffic: Traffic): HTMLElement[] {
    let current = traffic
    return NUMBERS_OF[traffic.kind].map((name: NumberName) => {
      const { min, max } = NUMBERS[name]
      const value = (traffic as unknown as Record<NumberName, number>)[name]
      const input = h('input', { type: 'number', min, max, step: 'any', value, inputmode: 'decimal', 'data-number': name })
      input.addEventListener('input', () => {
        current = { ...current, [name]: input.value === '' ? Number.NaN : Number(input.value) } as Traffic
        change(current)
      })
      return field(texts.traffic.numbers[name], input)
    })
  }

  function ownControls(traffic: Traffic): (HTMLElement | false)[] {
    if (traffic.kind === 'drawn') return [drawn(traffic)]
    if (traffic.kind === 'pasted') return [pasted(traffic)]
    if (traffic.kind === 'tape') return [h('p', { class: 'note' }, texts.traffic.source(tapeOf(traffic.id)?.source ?? ''))]
    return []
  }

  function drawn(traffic: Traffic & { kind: 'drawn' }): HTMLElement {
    const secondsNow = () => Number(controls.querySelector<HTMLInputElement>('[data-number=seconds]')?.value ?? traffic.seconds)
    const board = drawingBoard(traffic.columns, traffic.seconds, texts, (columns) =>
      change({ kind: 'drawn', columns, seconds: secondsNow() }),
    )
    const clear = () => {
      const empty: Traffic = { kind: 'drawn', columns: new Array<number>(COLUMNS).fill(0), seconds: secondsNow() }
      showTraffic(empty)
      change(empty)
    }
    return h(
      'div',
      { class: 'stack' },
      board,
      h('p', { class: 'note' }, texts.traffic.draw),
      h('button', { type: 'button', class: 'small', onclick: clear }, texts.traffic.clear),
    )
  }

  function pasted(traffic: Traffic & { kind: 'pasted' }): HTMLElement {
    const area = h('textarea', { rows: 5, spellcheck: 'false' })
    area.value = traffic.text
    area.addEventListener('input', () => change({ kind: 'pasted', text: area.value }))
    return field(texts.traffic.paste, area)
  }
}

function exampleSelect(state: State, texts: Texts, replace: (state: State) => void): HTMLSelectElement {
  const address = toAddress(state)
  const options = new Map<string, State>()
  const option = (id: string, name: string, example: State | undefined) => {
    if (example !== undefined) options.set(id, example)
    return h('option', { value: id, selected: example !== undefined && toAddress(example) === address }, name)
  }
  const scenes = Object.entries(SCENES).map(([id, scene]) => option(id, texts.example.names[id as keyof typeof SCENES], scene))
  const tapes = Object.entries(TAPES).map(([group, list]) =>
    h(
      'optgroup',
      { label: texts.example.groups[group as keyof typeof TAPES] },
      ...list.map(({ id }) => option(id, tapeName(id, texts), tapeState(id))),
    ),
  )
  const own = h('option', { value: '' }, texts.example.own)
  const element = h('select', { 'data-part': 'example' }, h('optgroup', { label: texts.example.scenes }, ...scenes), ...tapes, own)
  if (![...options.values()].some((example) => toAddress(example) === address)) own.selected = true
  element.addEventListener('change', () => {
    const chosen = options.get(element.value)
    if (chosen !== undefined) replace(chosen)
  })
  return element
}

/** Their ids are sentences already: 'gcra-7-per-second-is-exact'. */
function tapeName(id: string, texts: Texts): string {
  const words = id.replaceAll('-', ' ')
  return texts.language === 'en'
    ? words.replace(/^gcra/, 'GCRA').replace(/^./, (letter) => letter.toUpperCase())
    : words.replace(/^gcra/, 'GCRA')
}

/** Scenes and worked examples to begin with. It always says which of them is shown, or that it is none. */
import { h } from '../dom.ts'
import { TAPES } from '../simulation/tapes.ts'
import type { Texts } from '../text/en.ts'
import { addressOf, SCENES, type State, tapeState, toAddress } from './state.ts'

export interface ExampleSelect {
  readonly element: HTMLSelectElement
  show(address: string | undefined): void
}

export function exampleSelect(first: State, texts: Texts, replace: (state: State) => void): ExampleSelect {
  const examples = new Map<string, State>()
  const option = (id: string, name: string, example: State | undefined) => {
    if (example !== undefined) examples.set(id, example)
    return h('option', { value: id }, name)
  }
  const scenes = Object.entries(SCENES).map(([id, scene]) => option(id, texts.example.names[id as keyof typeof SCENES], scene))
  const tapes = Object.entries(TAPES).map(([group, list]) =>
    h(
      'optgroup',
      { label: texts.example.groups[group as keyof typeof TAPES] },
      ...list.map(({ id }) => option(id, texts.example.tape(id), tapeState(id))),
    ),
  )
  const own = h('option', { value: '' }, texts.example.own)
  const element = h('select', { 'data-part': 'example' }, h('optgroup', { label: texts.example.scenes }, ...scenes), ...tapes, own)
  const addresses = new Map([...examples].map(([id, example]) => [toAddress(example), id]))
  element.addEventListener('change', () => {
    const chosen = examples.get(element.value)
    if (chosen !== undefined) replace(chosen)
  })
  show(addressOf(first))
  return { element, show }

  function show(address: string | undefined): void {
    element.value = addresses.get(address ?? '') ?? ''
  }
}

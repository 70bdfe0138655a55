/**
 * Scenes and worked examples to begin with. It always says which of them is shown, or that it is
 * none.
 */
import { h } from '../dom.ts'
import { FIRST_SCENES, sceneAddress } from '../scenes/state.ts'
import { TAPES } from '../simulation/tapes.ts'
import type { Texts } from '../text/en.ts'
import { SCENES, tapeState, toAddress } from './state.ts'

export interface ExampleSelect {
  readonly element: HTMLSelectElement
  show(address: string | undefined): void
}

/** Examples are told by their addresses. */
export function exampleSelect(first: string | undefined, texts: Texts, choose: (address: string) => void): ExampleSelect {
  const { example } = texts
  const addresses = new Map<string, string>()
  const group = (label: string, examples: readonly (readonly [id: string, name: string, address: string])[]) => {
    for (const [id, , address] of examples) addresses.set(id, address)
    return h('optgroup', { label }, ...examples.map(([value, name]) => h('option', { value }, name)))
  }
  const rates = Object.entries(SCENES).map(([id, scene]) => [id, example.names[id as keyof typeof SCENES], toAddress(scene)] as const)
  const loads = Object.values(FIRST_SCENES).map((scene) => [scene.scene, example.names[scene.scene], sceneAddress(scene)] as const)
  const tapes = Object.entries(TAPES).map(([name, list]) =>
    group(
      example.groups[name as keyof typeof TAPES],
      list.map(({ id }) => [id, example.tape(id), toAddress(tapeState(id) ?? SCENES.boundary)] as const),
    ),
  )
  const own = h('option', { value: '' }, example.own)
  const element = h('select', { 'data-part': 'example' }, group(example.scenes, rates), group(example.atOnce, loads), ...tapes, own)
  element.addEventListener('change', () => {
    const address = addresses.get(element.value)
    if (address !== undefined) choose(address)
  })
  show(first)
  return { element, show }

  function show(address: string | undefined): void {
    element.value = [...addresses].find(([, known]) => known === address)?.[0] ?? ''
  }
}

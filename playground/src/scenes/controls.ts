/** The numbers of a scene, and which governor is watched. */
import { field, foldingPanel, h, put, select } from '../dom.ts'
import { counted } from '../numbers.ts'
import { GOVERNOR_NAMES } from '../simulation/governed.ts'
import type { Texts } from '../text/en.ts'
import { isNumberOf, numberIn, numbersOf, type SceneState } from './state.ts'

type Change = (part: Readonly<Record<string, unknown>>) => void

export function sceneControls(first: SceneState, texts: Texts, change: Change): HTMLElement {
  const fields = Object.keys(numbersOf(first.scene)).map((name) => numberField(first, name, texts, change))
  const chosen = first.scene === 'knee' ? [governorField(first.governor, texts, change)] : []
  const draw = h('p', { class: 'note' }, texts.scenes.draw(texts.scenes[first.scene].hand))
  return foldingPanel(texts.scenes.numbers, h('div', { class: 'stack' }, ...chosen, ...fields, draw))
}

function governorField(first: (typeof GOVERNOR_NAMES)[number], texts: Texts, change: Change): HTMLElement {
  const { governor, governors } = texts.scenes.knee
  const choice = select(
    GOVERNOR_NAMES.map((name) => [name, governors[name]] as const),
    first,
    (name) => change({ governor: name }),
  )
  choice.dataset.part = 'governor'
  return field(governor, choice)
}

function numberField(first: SceneState, name: string, texts: Texts, change: Change): HTMLElement {
  const { min, max } = numbersOf(first.scene)[name] as { readonly min: number; readonly max: number }
  const label = (texts.scenes[first.scene].fields as Readonly<Record<string, string>>)[name] as string
  const input = h('input', { type: 'number', min, max, value: numberIn(first, name), inputmode: 'numeric', 'data-number': name })
  const error = h('p', { class: 'error', role: 'alert' })
  input.addEventListener('input', () => {
    const value = input.value === '' ? Number.NaN : Number(input.value)
    const isRight = isNumberOf(first.scene, name, value)
    input.setAttribute('aria-invalid', String(!isRight))
    put(error, !isRight && texts.limits.mistake(label, input.value, texts.scenes.whole(counted(min), counted(max))))
    if (isRight) change({ [name]: value })
  })
  const element = field(label, input)
  element.append(error)
  return element
}

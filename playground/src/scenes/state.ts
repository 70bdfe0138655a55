/**
 * What scenes with a simulated server show, and how it stands in an address. A scene's job says all
 * of it.
 */
import { GOVERNED_MS, GOVERNOR_NAMES, type GovernedJob, type GovernorName } from '../simulation/governed.ts'
import { SLOW_MS, type SlowJob } from '../simulation/slow.ts'
import { COLUMNS } from '../simulation/traffic.ts'

export type SceneState = SlowJob | GovernedJob
export type SceneName = SceneState['scene']

/** From the column `from` until `to` there is another value. */
const stepped = (usual: number, other: number, from: number, to: number): number[] =>
  Array.from({ length: COLUMNS }, (_, k) => (k >= from && k < to ? other : usual))

export const FIRST_SCENES: { readonly slow: SlowJob; readonly knee: GovernedJob } = {
  slow: { scene: 'slow', perSecond: 40, rate: 50, max: 10, waitMs: 500, columns: stepped(1, 10, 8, 18) },
  knee: { scene: 'knee', governor: 'knee', fixed: 60, perSecond: 800, columns: stepped(20, 8, 11, 21) },
}

/** What may be entered for each number. */
export const SCENE_NUMBERS = {
  slow: { perSecond: { min: 1, max: 200 }, rate: { min: 1, max: 1_000 }, max: { min: 1, max: 100 }, waitMs: { min: 1, max: 10_000 } },
  knee: { fixed: { min: 1, max: 200 }, perSecond: { min: 1, max: 2_000 } },
} as const

type Numbers = Readonly<Record<string, { readonly min: number; readonly max: number }>>

export const numbersOf = (scene: SceneName): Numbers => SCENE_NUMBERS[scene]

/** The row that is drawn by hand: values of a column, and what all of them span. */
export const BOARDS = {
  slow: { least: 1, most: 20, seconds: SLOW_MS / 1000 },
  knee: { least: 1, most: 40, seconds: GOVERNED_MS / 1000 },
} as const

export const isSceneAddress = (address: string): boolean => Object.hasOwn(FIRST_SCENES, new URLSearchParams(address).get('scene') ?? '')

export function sceneAddress(state: SceneState): string {
  const parts = new URLSearchParams({ scene: state.scene })
  if (state.scene === 'knee') parts.set('governor', state.governor)
  for (const name of Object.keys(numbersOf(state.scene))) parts.set(name, String(numberIn(state, name)))
  parts.set('columns', state.columns.join('.'))
  return parts.toString()
}

/** Whatever in it makes no sense is as if it were not there. */
export function sceneFrom(address: string): SceneState {
  const parts = new URLSearchParams(address)
  const first = FIRST_SCENES[parts.get('scene') as SceneName] ?? FIRST_SCENES.slow
  const numbers = Object.keys(numbersOf(first.scene)).map((name) => [name, numberFrom(parts.get(name), first, name)])
  const state = { ...first, ...Object.fromEntries(numbers), columns: columnsFrom(parts.get('columns'), first) }
  const governor = parts.get('governor') as GovernorName
  return state.scene === 'knee' && GOVERNOR_NAMES.includes(governor) ? { ...state, governor } : state
}

export const numberIn = (state: SceneState, name: string): number => (state as unknown as Record<string, number>)[name] as number

/** Whole numbers within their bounds. */
export function isNumberOf(scene: SceneName, name: string, value: number): boolean {
  const { min, max } = numbersOf(scene)[name] as Numbers[string]
  return Number.isInteger(value) && value >= min && value <= max
}

function numberFrom(text: string | null, first: SceneState, name: string): number {
  const value = Number(text === null || text === '' ? Number.NaN : text)
  return isNumberOf(first.scene, name, value) ? value : numberIn(first, name)
}

function columnsFrom(text: string | null, { scene, columns }: SceneState): readonly number[] {
  if (text === null) return columns
  const { least, most } = BOARDS[scene]
  const values = text.split('.').map(Number)
  return columns.map((first, k) => {
    const value = values[k] as number
    return Number.isInteger(value) && value >= least && value <= most ? value : first
  })
}

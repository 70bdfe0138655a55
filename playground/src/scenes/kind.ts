/** What a scene with a simulated server says of itself; the view is the same for all. */
import type { RunOf } from '../simulation/job.ts'
import type { Texts } from '../text/en.ts'
import type { Chart } from './chart.ts'
import type { SceneState } from './state.ts'

export interface SceneKind<S extends SceneState> {
  chart(state: S, run: RunOf<S>, texts: Texts): Chart
  /** The sentence over the picture; what is above a limit stands between asterisks. */
  conclusion(state: S, run: RunOf<S>, texts: Texts): string
  totals(state: S, run: RunOf<S>, texts: Texts): HTMLElement
  /** How it stands at one sample. */
  moment(state: S, run: RunOf<S>, sample: number, texts: Texts): string
  /** The sample to look at first. */
  first(run: RunOf<S>): number
  /** What a value of the hand-drawn row is. */
  valueText(value: number, texts: Texts): string
  /** The value of a column when the server is made slower (or faster) by one step. */
  changed(value: number, isSlower: boolean): number
  /** Under the picture: what is given. */
  note(state: S, texts: Texts): string
  code(state: S): string
}

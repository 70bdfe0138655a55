import type { Verdict } from '../../algorithms/decide.ts'
import type { Part } from '../store.ts'

/** What was taken and when the store entered it, to give it back by: servers of a cluster answer with a time each. */
export type Taken = readonly { readonly atUs: number; readonly places: readonly number[] }[]

/** What is given back to the store in one step. */
export interface Given {
  readonly parts: readonly Part[]
  /** When it was entered; -1 where the tickets of the parts say that. */
  readonly ofUs: number
}

/** The places of the parts, together where the store's time is the same: mostly all. */
export function takenOf(verdicts: readonly Verdict[]): Taken {
  const places = new Map<number, number[]>()
  verdicts.forEach(({ enteredUs }, place) => {
    places.set(enteredUs, [...(places.get(enteredUs) ?? []), place])
  })
  return [...places].map(([atUs, together]) => ({ atUs, places: together }))
}

/** What gives it back, together what was taken together. */
export function givenOf(parts: readonly Part[], taken: Taken): Given[] {
  return taken.map(({ atUs, places }) => ({ parts: places.map((place) => parts[place] as Part), ofUs: atUs }))
}

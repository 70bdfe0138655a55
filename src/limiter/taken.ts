import type { Verdict } from '../algorithms/decide.ts'
import type { Part } from '../stores/store.ts'

/** What was taken and when the store entered it, to give it back by: servers of a cluster answer with a time each. */
export type Taken = readonly { readonly atUs: number; readonly places: readonly number[] }[]

/** The places of the parts, together where the store's time is the same: mostly all. */
export function takenOf(verdicts: readonly Verdict[]): Taken {
  const places = new Map<number, number[]>()
  verdicts.forEach(({ enteredUs }, place) => {
    places.set(enteredUs, [...(places.get(enteredUs) ?? []), place])
  })
  return [...places].map(([atUs, together]) => ({ atUs, places: together }))
}

/** The parts that were taken together. */
export function partsAt(parts: readonly Part[], places: readonly number[]): Part[] {
  return places.map((place) => parts[place] as Part)
}

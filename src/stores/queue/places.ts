/**
 * The place that a waiter has in line at the store, at each limit that others release: nobody gets
 * a released permit before it.
 */
import type { Ticket, Verdict } from '../../algorithms/decide.ts'
import { type Settlement, settlement } from '../settlement.ts'
import { allAllowed, type Part } from '../store.ts'
import type { Question } from './question.ts'
import type { Waiter } from './waiter.ts'

/** Its places after an answer. A grant uses them up; one that is refused forever has none. */
export function placesAfter({ waiter, parts }: Question, verdicts: readonly Verdict[]): Waiter['places'] {
  if (verdicts[0]?.degraded) return waiter.places
  if (allAllowed(verdicts) || verdicts.some(({ outcome }) => outcome === 'impossible')) return undefined
  return parts.map((part, k) => placeAfter(waiter.places?.[k], part, verdicts[k] as Verdict))
}

/** The same, a new one, or none. */
function placeAfter(before: Ticket | undefined, { rule, cost }: Part, { given = -1, enteredUs }: Verdict): Ticket | undefined {
  if (!rule.algorithm.untilReleased || cost === 0 || given < 0) return undefined
  return given > 0 ? before : { numbers: rule.numbers, words: Float64Array.of(enteredUs) }
}

/** Gives up the places that were not used up. */
export function giveUpPlaces(waiter: Waiter): Settlement[] {
  const { places = [], parts } = waiter
  waiter.places = undefined
  return places.flatMap((place, k) => (place === undefined ? [] : settlement('give', place.words[0] as number, [parts[k] as Part])))
}

import type { Verdict } from '../../algorithms/decide.ts'
import type { Part } from '../store.ts'

/** What is given back to the store in one step. */
export interface Given {
  readonly parts: readonly Part[]
  /** When it was entered; -1 where the tickets of the parts say that. */
  readonly ofUs: number
}

/** What gives back what verdicts say was taken: together what was entered at one time, which is mostly all. Servers of a cluster have a time each. */
export function givenOf(parts: readonly Part[], verdicts: readonly Pick<Verdict, 'enteredUs'>[]): Given[] {
  const times = new Set(verdicts.map(({ enteredUs }) => enteredUs))
  return [...times].map((ofUs) => ({ ofUs, parts: parts.filter((_, k) => verdicts[k]?.enteredUs === ofUs) }))
}

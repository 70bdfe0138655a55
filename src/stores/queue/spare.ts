/**
 * Permits whose waiter left, where others may have booked behind them: given back, they would be
 * lost. So the first waiter that holds none has them, or they are spare, for the next caller.
 */
import type { Part } from '../store.ts'
import type { Book } from './book.ts'
import type { Line } from './line.ts'
import type { Answer } from './question.ts'
import type { Waiter } from './waiter.ts'

/** All of it is for calls that ask for the same. */
export class Spare {
  readonly #kept: { readonly parts: readonly Part[]; readonly answer: Answer }[] = []

  get length(): number {
    return this.#kept.length
  }

  keep(parts: readonly Part[], answer: Answer): void {
    this.#kept.push({ parts, answer })
  }

  /** Whether there is nothing that a waiter has no use for. */
  suits(waiter: Waiter): boolean {
    const [first] = this.#kept
    return first === undefined || waiter.asksForTheSameAs(first.parts)
  }

  /** The answer whose permits are the waiter's from now on, if it can wait so long. */
  takeFor(waiter: Waiter, book: Book): Answer | undefined {
    if (this.length === 0 || !this.suits(waiter)) return undefined
    if (book.dueFromEndUs(waiter.parts, this.length - 1) > waiter.deadlineUs) return undefined
    return this.#kept.pop()?.answer
  }

  /** All that is kept, and no longer is. */
  clear(): (readonly Part[])[] {
    return this.#kept.splice(0).map(({ parts }) => parts)
  }
}

/** Whether all who are here ask for the same. */
export function allAskFor({ isMixed, first }: Line, asking: Line, parts: readonly Part[]): boolean {
  return !isMixed && first?.asksForTheSameAs(parts) !== false && [...asking].every((waiter) => waiter.asksForTheSameAs(parts))
}

/**
 * The first who holds nothing, asks for the same and is still there at that time. `asking`: if
 * given, those who are asking right now may have it, too.
 */
export function firstWithout({ firstOutside }: Line, parts: readonly Part[], forUs: number, asking: Line | undefined): Waiter | undefined {
  const mayHave = (waiter: Waiter) =>
    (asking !== undefined || waiter.state === 'outside') && waiter.deadlineUs >= forUs && waiter.asksForTheSameAs(parts)
  let outside = firstOutside
  while (outside !== undefined && !mayHave(outside)) outside = outside.behind
  if (asking === undefined) return outside
  for (const waiter of asking) {
    if (outside !== undefined && outside.number < waiter.number) break
    if (mayHave(waiter)) return waiter
  }
  return outside
}

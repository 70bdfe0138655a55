/**
 * The short form for one limit, where the key is held and was written under the same numbers: no step, no cells, no objects. Functions that close over
 * what they need, as in chains.ts.
 */
import type { Rule } from '../../algorithms/algorithm.ts'
import { type Cell, decide, emptyVerdict, takeOne } from '../../algorithms/decide.ts'
import type { Lane } from '../store.ts'
import type { Cells } from './cells.ts'
import { ABSENT, type Address, type Chains, fixedDoubles } from './chains.ts'

/** `onLost` is told how often in a row another thread was faster. */
export function sharedLane(
  chains: Chains,
  cells: Cells,
  address: Address,
  rule: Rule,
  clock: () => number,
  onLost: (lost: number) => void,
): Lane {
  const { nextLookUs } = cells
  const { find, replace, idleAtUs } = chains
  const { algorithm, capacity } = rule
  const { resetUs } = algorithm
  const { scope } = address
  const first = rule.figures.length
  const figures = fixedDoubles(first)
  figures.set(rule.figures)
  const words = fixedDoubles(first + rule.words)
  const verdict = emptyVerdict()
  const cell: Cell = { rule, cost: 0, ticket: undefined, s: words, i: first, own: rule, isHeld: true, changed: false }
  const asked = [cell]
  const verdicts = [verdict]

  /** `tells` if the verdict is wanted. Kept small, so that the compiler can fit it and the algorithm into its callers. */
  function attempts(key: unknown, cost: number, tells: boolean): boolean | undefined {
    if (typeof key !== 'string' || cost < 1 || cost > capacity) return undefined
    for (let lost = 0; ; lost++) {
      const place = find(key, address, words)
      if (place >= 0) {
        if (!isPresent()) return undefined
        // Not before the record was seen, and anew for each: a thread that is held up in between would take a newer record for one from the future.
        const nowUs = clock()
        if (nowUs >= (nextLookUs[0] as number)) cells.look(nowUs)
        cell.cost = cost
        const taken = tells ? decide('take', asked, nowUs, -1, -1, verdicts) : takeOne(cell, nowUs)
        // A refusal that changed the state repaired its clock, and that is written.
        if (!cell.changed) return false
        idleAtUs[0] = nowUs + resetUs(rule, words, first, nowUs)
        if (replace(place, scope, words)) return taken
      } else if (place === ABSENT) return undefined
      onLost(lost)
    }
  }

  /** Written under the same numbers. Anything else takes the long way once. */
  function isPresent(): boolean {
    for (let k = 0; k < first; k++) if (words[k] !== figures[k]) return false
    return true
  }

  return {
    tryTake: (key, cost) => attempts(key, cost, false),
    take: (key, cost) => (attempts(key, cost, true) === undefined ? undefined : verdict),
  }
}

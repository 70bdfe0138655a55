/**
 * State in the memory of one process: the default. A step is atomic because JavaScript runs it to its end.
 *
 * Each limit of each limiter has a table: a Map from key to row, and one typed array in which the rows' states lie one after the other.
 * There is no timer. Idle keys leave a few at a time, whenever a new key arrives, so that the table never holds many more keys than are in use.
 */
import type { EncodedState } from '../../algorithms/algorithm.ts'
import { type Cell, decide, emptyVerdict, type Verdict } from '../../algorithms/decide.ts'
import type { Part, Step, SyncStore } from '../store.ts'
import { Table } from './table.ts'

export interface MemoryStore extends SyncStore {
  /** The state held for a key as text, or undefined. For tests and for looking. */
  inspect(limiter: string, limit: string, key: string): EncodedState | undefined
  /** How many keys are held, idle ones that have not left yet included. */
  readonly size: number
}

export function memoryStore(): MemoryStore {
  const tables = new Map<string, Table>()
  const cells: Cell[] = []
  const verdicts: Verdict[] = []

  function tableOf(limiter: string, { limit, rule }: Part): Table {
    const name = `${limiter}\n${limit}`
    let table = tables.get(name)
    if (table === undefined) {
      table = new Table(rule.algorithm.words(rule))
      tables.set(name, table)
    }
    return table
  }

  return {
    mode: 'sync',

    apply(step) {
      const { parts } = step
      if (step.op === 'forget') {
        for (const part of parts) tableOf(step.scope.name, part).remove(part.key)
        return []
      }
      const nowUs = step.nowUs as number
      resize(cells, verdicts, parts)
      for (let k = 0; k < parts.length; k++) {
        const part = parts[k] as Part
        tableOf(step.scope.name, part).load(part, cells[k] as Cell)
      }
      decide(step.op, cells, nowUs, step.aheadUs, step.ofUs, verdicts)
      for (let k = 0; k < parts.length; k++) {
        const part = parts[k] as Part
        tableOf(step.scope.name, part).save(part, cells[k] as Cell, nowUs)
      }
      return verdicts
    },

    inspect: (limiter, limit, key) => tables.get(`${limiter}\n${limit}`)?.inspect(key),

    get size() {
      let size = 0
      for (const table of tables.values()) size += table.size
      return size
    },
  }
}

function resize(cells: Cell[], verdicts: Verdict[], parts: Step['parts']): void {
  while (cells.length < parts.length) {
    const { rule } = parts[cells.length] as Part
    cells.push({ rule, cost: 0, ticket: undefined, s: NOTHING, i: 0, written: undefined, changed: false })
    verdicts.push(emptyVerdict())
  }
  cells.length = parts.length
  verdicts.length = parts.length
}

const NOTHING = new Float64Array(0)

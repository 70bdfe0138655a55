/**
 * State in the memory of one process: the default. A step is atomic because JavaScript runs it to its end. See table.ts.
 */
import type { EncodedState } from '../../algorithms/algorithm.ts'
import { type Cell, decide, emptyVerdict, type Verdict } from '../../algorithms/decide.ts'
import { onlyKnown, refused } from '../../algorithms/rate.ts'
import type { Lane, Part, Scope, Step, SyncStore } from '../store.ts'
import { Table } from './table.ts'

export interface MemoryStoreOptions {
  /** How many keys each limit holds at most: whole, 1 to 16 million. Default 1,000,000. */
  readonly maxKeys?: number
  /**
   * What happens to a new key when the limit holds `maxKeys` keys and all that were looked at (1,000 of them) are in use.
   * `'deny'` (default): it is limited, until a held key is idle. `'allow'`: it is let through uncounted.
   * A key that is in use is never forgotten to make room.
   */
  readonly onFull?: 'deny' | 'allow'
}

export interface MemoryStore extends SyncStore {
  /** The state held for a key as text, or undefined. For tests and for looking. */
  inspect(limiter: string, limit: string, key: string): EncodedState | undefined
  /** How many keys are held, idle ones that have not left yet included. */
  readonly size: number
  /** How many of them one limit of a limiter holds. */
  sizeOf(limiter: string, limit: string): number
}

const DEFAULT_MAX_KEYS = 1_000_000
/** What one JavaScript Map can hold. */
const MOST_KEYS = 16_000_000

export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  onlyKnown(options, ['maxKeys', 'onFull'], 'memoryStore')
  const { maxKeys = DEFAULT_MAX_KEYS, onFull = 'deny' } = options
  if (!Number.isInteger(maxKeys) || maxKeys < 1 || maxKeys > MOST_KEYS) {
    throw refused('memoryStore maxKeys', maxKeys, `must be a whole number from 1 to ${MOST_KEYS}`)
  }
  if (onFull !== 'deny' && onFull !== 'allow') throw refused('memoryStore onFull', onFull, "must be 'deny' or 'allow'")
  return new ProcessMemory(maxKeys, onFull)
}

class ProcessMemory implements MemoryStore {
  readonly mode = 'sync'
  readonly shared = false
  readonly #maxKeys: number
  readonly #onFull: 'deny' | 'allow'
  readonly #tables = new Map<string, Table>()
  readonly #cells: Cell[] = []
  readonly #verdicts: Verdict[] = []
  /** The tables of the limiter that was here last, in the order of its limits: most stores serve one limiter. */
  #lastScope: Scope | undefined = undefined
  #lastTables: readonly Table[] = []

  constructor(maxKeys: number, onFull: 'deny' | 'allow') {
    this.#maxKeys = maxKeys
    this.#onFull = onFull
  }

  apply(step: Step): readonly Verdict[] {
    const { op, scope, parts } = step
    if (op === 'forget') {
      for (const { limit, key } of parts) this.#table(scope, limit).remove(key)
      return []
    }
    const nowUs = step.nowUs as number
    this.#load(scope, parts)
    const fullForUs = op !== 'give' && this.#onFull === 'deny' ? this.#fullForUs(scope, parts, nowUs) : 0
    decide(fullForUs > 0 ? 'ask' : op, this.#cells, nowUs, step.aheadUs, step.ofUs, this.#verdicts)
    for (let k = 0; k < parts.length; k++) {
      const { limit, key } = parts[k] as Part
      this.#table(scope, limit).save(key, this.#cells[k] as Cell, nowUs)
      if (fullForUs > 0) limitedFor(this.#verdicts[k] as Verdict, fullForUs)
    }
    return this.#verdicts
  }

  lane(scope: Scope, nowUs: () => number): Lane {
    const [table] = this.#tablesOf(scope) as [Table]
    const [{ rule }] = scope.limits as [Scope['limits'][number]]
    return table.lane(rule, nowUs)
  }

  inspect(limiter: string, limit: string, key: string): EncodedState | undefined {
    return this.#tables.get(tableName(limiter, limit))?.inspect(key)
  }

  get size(): number {
    let size = 0
    for (const table of this.#tables.values()) size += table.size
    return size
  }

  sizeOf(limiter: string, limit: string): number {
    return this.#tables.get(tableName(limiter, limit))?.size ?? 0
  }

  #tablesOf(scope: Scope): readonly Table[] {
    if (scope === this.#lastScope) return this.#lastTables
    this.#lastTables = scope.limits.map(({ name, rule }) => {
      const known = this.#tables.get(tableName(scope.name, name))
      const table = known ?? new Table(name, rule, this.#maxKeys)
      if (known === undefined) this.#tables.set(tableName(scope.name, name), table)
      return table
    })
    this.#lastScope = scope
    return this.#lastTables
  }

  #table(scope: Scope, limit: string): Table {
    const tables = this.#tablesOf(scope)
    return tables[tables.length === 1 ? 0 : scope.limits.findIndex(({ name }) => name === limit)] as Table
  }

  #load(scope: Scope, parts: readonly Part[]): void {
    if (this.#cells.length !== parts.length) this.#resize(parts)
    for (let k = 0; k < parts.length; k++) {
      const { limit, rule, key, cost, ticket } = parts[k] as Part
      const cell = this.#cells[k] as Cell
      cell.rule = rule
      cell.cost = cost
      cell.ticket = ticket
      this.#table(scope, limit).load(key, cell)
    }
  }

  #resize(parts: readonly Part[]): void {
    this.#cells.length = 0
    this.#verdicts.length = 0
    for (const { rule, cost, ticket } of parts) {
      this.#cells.push({ rule, cost, ticket, s: NOTHING, i: 0, written: undefined, changed: false })
      this.#verdicts.push(emptyVerdict())
    }
  }

  /** How long a new key has to wait for room; 0 when there is room for all of them. */
  #fullForUs(scope: Scope, parts: readonly Part[], nowUs: number): number {
    let fullForUs = 0
    for (let k = 0; k < parts.length; k++) {
      const { limit, cost } = parts[k] as Part
      if ((this.#cells[k] as Cell).written !== undefined || cost === 0) continue
      const table = this.#table(scope, limit)
      if (!table.hasRoom(nowUs)) fullForUs = Math.max(fullForUs, table.soonestIdleUs)
    }
    return fullForUs
  }
}

function tableName(limiter: string, limit: string): string {
  return `${limiter}\n${limit}`
}

function limitedFor(verdict: Verdict, us: number): void {
  if (verdict.outcome === 'impossible') return
  verdict.outcome = 'limited'
  verdict.retryUs = Math.max(verdict.retryUs, us)
  verdict.delayUs = 0
}

const NOTHING = new Float64Array(0)

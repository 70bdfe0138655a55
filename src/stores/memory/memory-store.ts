/**
 * State in the memory of one process: the default. A step is atomic because JavaScript runs it to its end. See table.ts.
 */
import type { StateFields } from '../../algorithms/algorithm.ts'
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
  /** The state held for a key by the names of its numbers, or undefined. For tests and for looking. */
  inspect(limiter: string, limit: string, key: string): StateFields | undefined
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

/** What is held for the limiters of one name: their tables, and how often it was opened. */
class Held {
  readonly name: string
  tables: readonly Table[] = []
  open = 0

  constructor(name: string) {
    this.name = name
  }

  /** `place`: where it probably is. */
  table(limit: string, place = 0): Table | undefined {
    const likely = this.tables[place]
    return likely?.limit === limit ? likely : this.tables.find((table) => table.limit === limit)
  }

  add(table: Table): Table {
    // Not by spreading, which leaves room for more.
    this.tables = this.tables.concat(table)
    return table
  }

  get size(): number {
    return this.tables.reduce((size, table) => size + table.size, 0)
  }
}

class ProcessMemory implements MemoryStore {
  readonly mode = 'sync'
  readonly shared = false
  readonly #maxKeys: number
  readonly #onFull: 'deny' | 'allow'
  readonly #held = new Map<string, Held>()
  /** What nobody has open. It leaves when all its keys are idle, so a limiter that is made again finds what was used. */
  #closed: Set<Held> | undefined = undefined
  /** Where the sweep of those goes on. */
  #hand: IterableIterator<Held> | undefined = undefined
  #cells: Cell[] = []
  #verdicts: Verdict[] = []
  /** The tables of the limiter that was here last, in the order of its limits: most stores serve one limiter. */
  #lastScope: Scope | undefined = undefined
  #lastTables: readonly Table[] = []

  constructor(maxKeys: number, onFull: 'deny' | 'allow') {
    this.#maxKeys = maxKeys
    this.#onFull = onFull
  }

  open(scope: Scope): void {
    const held = this.#heldFor(scope.name)
    held.open += 1
    this.#closed?.delete(held)
    try {
      this.#tablesOf(scope)
    } catch (error) {
      this.release(scope)
      throw error
    }
  }

  release({ name }: Scope): void {
    const held = this.#held.get(name) as Held
    held.open -= 1
    if (held.open > 0) return
    if (held.size > 0) this.#keepUntilIdle(held)
    else this.#drop(held)
  }

  apply(step: Step): readonly Verdict[] {
    const { op, parts } = step
    const tables = this.#tablesOf(step.scope)
    if (op === 'forget') {
      for (let k = 0; k < parts.length; k++) tableOf(tables, parts, k).remove((parts[k] as Part).key)
      return []
    }
    const nowUs = step.nowUs as number
    this.#load(tables, parts)
    const fullForUs = op !== 'give' && this.#onFull === 'deny' ? this.#fullForUs(tables, parts, nowUs) : 0
    decide(fullForUs > 0 ? 'ask' : op, this.#cells, nowUs, step.aheadUs, step.ofUs, this.#verdicts)
    let isNew = false
    for (let k = 0; k < parts.length; k++) {
      if (tableOf(tables, parts, k).save((parts[k] as Part).key, this.#cells[k] as Cell, nowUs)) isNew = true
      if (fullForUs > 0) limitedFor(this.#verdicts[k] as Verdict, fullForUs)
    }
    if (isNew && this.#closed !== undefined) this.#sweepClosed(this.#closed, nowUs)
    return this.#verdicts
  }

  lane(scope: Scope, nowUs: () => number): Lane {
    const [table] = this.#tablesOf(scope) as [Table]
    const [{ rule }] = scope.limits as [Scope['limits'][number]]
    return table.lane(rule, nowUs)
  }

  inspect(limiter: string, limit: string, key: string): StateFields | undefined {
    return this.#held.get(limiter)?.table(limit)?.inspect(key)
  }

  get size(): number {
    let size = 0
    for (const held of this.#held.values()) size += held.size
    return size
  }

  sizeOf(limiter: string, limit: string): number {
    return this.#held.get(limiter)?.table(limit)?.size ?? 0
  }

  #tablesOf(scope: Scope): readonly Table[] {
    if (scope === this.#lastScope) return this.#lastTables
    const held = this.#heldFor(scope.name)
    if (held.open === 0) this.#keepUntilIdle(held)
    this.#lastTables = scope.limits.map(({ name, rule }, k) => {
      const table = held.table(name, k) ?? held.add(new Table(name, rule, this.#maxKeys))
      table.check(rule)
      return table
    })
    this.#lastScope = scope
    return this.#lastTables
  }

  #heldFor(name: string): Held {
    const known = this.#held.get(name)
    if (known !== undefined) return known
    const held = new Held(name)
    this.#held.set(name, held)
    return held
  }

  #keepUntilIdle(held: Held): void {
    this.#closed ??= new Set()
    this.#closed.add(held)
  }

  #drop(held: Held): void {
    this.#held.delete(held.name)
    this.#closed?.delete(held)
    if (this.#lastScope?.name === held.name) this.#lastScope = undefined
  }

  /** Looks at some keys of what nobody has open: more than one, so that it shrinks faster than it grows. */
  #sweepClosed(closed: Set<Held>, nowUs: number): void {
    for (let k = 0; k < 2; k++) {
      this.#hand ??= closed.values()
      const { value: held, done } = this.#hand.next()
      if (done) {
        this.#hand = undefined
        continue
      }
      for (const table of held.tables) table.sweep(nowUs, 0)
      if (held.size === 0) this.#drop(held)
    }
  }

  #load(tables: readonly Table[], parts: readonly Part[]): void {
    if (this.#cells.length !== parts.length) this.#resize(parts)
    for (let k = 0; k < parts.length; k++) {
      const { rule, key, cost, ticket } = parts[k] as Part
      const cell = this.#cells[k] as Cell
      cell.rule = rule
      cell.cost = cost
      cell.ticket = ticket
      tableOf(tables, parts, k).load(key, cell, k)
    }
  }

  #resize(parts: readonly Part[]): void {
    this.#cells = parts.map(({ rule, cost, ticket }) => ({
      rule,
      cost,
      ticket,
      s: NOTHING,
      i: 0,
      own: rule,
      isHeld: false,
      changed: false,
    }))
    this.#verdicts = parts.map(emptyVerdict)
  }

  /** How long a new key has to wait for room; 0 when there is room for all of them. */
  #fullForUs(tables: readonly Table[], parts: readonly Part[], nowUs: number): number {
    let fullForUs = 0
    for (let k = 0; k < parts.length; k++) {
      const { key, cost } = parts[k] as Part
      if ((this.#cells[k] as Cell).isHeld || cost === 0) continue
      fullForUs = Math.max(fullForUs, tableOf(tables, parts, k).fullForUs(key, nowUs))
    }
    return fullForUs
  }
}

/** The table of a part. Mostly the parts are all limits of the scope, in their order. */
function tableOf(tables: readonly Table[], parts: readonly Part[], k: number): Table {
  const { limit } = parts[k] as Part
  const likely = tables[k]
  return likely?.limit === limit ? likely : (tables.find((table) => table.limit === limit) as Table)
}

function limitedFor(verdict: Verdict, us: number): void {
  if (verdict.outcome === 'impossible') return
  verdict.outcome = 'limited'
  verdict.retryUs = Math.max(verdict.retryUs, us)
  verdict.delayUs = 0
}

const NOTHING = new Float64Array(0)

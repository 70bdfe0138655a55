/**
 * State in the memory of one process: the default. A step is atomic because JavaScript runs it to
 * its end. See table.ts.
 */
import type { StateFields } from '../../algorithms/algorithm.ts'
import { decide } from '../../algorithms/decide.ts'
import { invalid, onlyKnown } from '../../algorithms/rate.ts'
import { FullStore, type OnFull, refusedByFull } from '../full.ts'
import { checkKey } from '../key.ts'
import type { OpenStates, Part, Scope, Step, SyncStore } from '../store.ts'
import { Table } from './table.ts'

export interface MemoryStoreOptions {
  /** How many keys each limit holds at most: whole, 1 to 16 million. Default 1,000,000. */
  readonly maxKeys?: number
  /**
   * The answer to a new key when the limit holds `maxKeys` keys and all that were looked at (1,000
   * of them) are in use. `'deny'` (default): it is limited, until a held key is idle. `'allow'`: it
   * is let through uncounted.
   * A key that is in use is never forgotten to make room.
   */
  readonly onFull?: 'deny' | 'allow'
}

export interface MemoryStore extends SyncStore {
  /**
   * The state held for a key by the names of its numbers, or undefined. For tests and for looking.
   */
  inspect(limiter: string, limit: string, key: string): StateFields | undefined
  /** How many keys are held, idle ones that have not left yet included. */
  readonly size: number
  /** How many of them one limit of a limiter holds. */
  sizeOf(limiter: string, limit: string): number
  /** The tables, by limiter: for `dump` and `restore` of `sluice/store`. */
  readonly limiters: ReadonlyMap<string, HeldLimiter>
}

/** What is held for the limiters of one name. */
export interface HeldLimiter {
  readonly tables: readonly Table[]
  /** Reads the clock of the limiter that was opened last. */
  readonly nowUs: () => number
}

const DEFAULT_MAX_KEYS = 1_000_000
/** The most that one JavaScript Map can hold. */
const MOST_KEYS = 16_000_000

/** States in this process. `dump` and `restore` of `sluice/store` keep them over a restart. */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  onlyKnown(options, ['maxKeys', 'onFull'], 'memoryStore')
  const { maxKeys = DEFAULT_MAX_KEYS, onFull = 'deny' } = options
  if (!Number.isInteger(maxKeys) || maxKeys < 1 || maxKeys > MOST_KEYS) {
    throw invalid('memoryStore maxKeys', maxKeys, `must be a whole number from 1 to ${MOST_KEYS}`)
  }
  if (onFull !== 'deny' && onFull !== 'allow') throw invalid('memoryStore onFull', onFull, "must be 'deny' or 'allow'")
  return new ProcessMemory(maxKeys, onFull === 'deny')
}

/** The tables of the limiters of one name, and how often they were opened. */
class HeldTables implements HeldLimiter {
  readonly name: string
  tables: readonly Table[] = []
  open = 0
  declare nowUs: () => number

  constructor(name: string) {
    this.name = name
  }

  table(limit: string): Table | undefined {
    return tableNamed(this.tables, limit)
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
  readonly deniesWhenFull: boolean
  readonly full: FullStore
  readonly #maxKeys: number
  readonly #held = new Map<string, HeldTables>()
  /**
   * Those that no limiter has open. It leaves when all its keys are idle, so a limiter that is made
   * again finds what was used.
   */
  #closed: Set<HeldTables> | undefined = undefined
  /** Where the sweep of those goes on. */
  #hand: IterableIterator<HeldTables> | undefined = undefined

  constructor(maxKeys: number, deniesWhenFull: boolean) {
    this.#maxKeys = maxKeys
    this.deniesWhenFull = deniesWhenFull
    this.full = new FullStore(`memoryStore({ maxKeys: ${maxKeys} })`, deniesWhenFull)
  }

  open(scope: Scope, nowUs: () => number, onFull?: OnFull): OpenStates {
    const held = this.#held.get(scope.name) ?? new HeldTables(scope.name)
    // All of them first: what is refused must leave nothing behind.
    for (const { name, rule } of scope.limits) held.table(name)?.check(rule)
    const tables = scope.limits.map(({ name, rule }) => {
      const table = held.table(name) ?? held.add(new Table(name, rule, this.#maxKeys))
      table.makeRoomFor(rule)
      return table
    })
    this.#held.set(scope.name, held)
    held.open += 1
    held.nowUs = nowUs
    this.#closed?.delete(held)
    return new MemoryStates(this, scope.name, tables, nowUs, onFull, () => this.#close(held))
  }

  inspect(limiter: string, limit: string, key: string): StateFields | undefined {
    return this.#held.get(limiter)?.table(limit)?.inspect(key)
  }

  get limiters(): ReadonlyMap<string, HeldLimiter> {
    return this.#held
  }

  get size(): number {
    let size = 0
    for (const held of this.#held.values()) size += held.size
    return size
  }

  sizeOf(limiter: string, limit: string): number {
    return this.#held.get(limiter)?.table(limit)?.size ?? 0
  }

  /**
   * Looks at some keys of what nobody has open: more than one, so that it shrinks faster than it
   * grows.
   */
  sweepClosed(nowUs: number): void {
    if (this.#closed === undefined) return
    for (let k = 0; k < 2; k++) {
      this.#hand ??= this.#closed.values()
      const { value: held, done } = this.#hand.next()
      if (done) {
        this.#hand = undefined
        continue
      }
      for (const table of held.tables) table.sweep(nowUs, 0)
      if (held.size === 0) this.#drop(held)
    }
  }

  #close(held: HeldTables): void {
    held.open -= 1
    if (held.open > 0) return
    if (held.size === 0) {
      this.#drop(held)
      return
    }
    this.#closed ??= new Set()
    this.#closed.add(held)
  }

  #drop(held: HeldTables): void {
    this.#held.delete(held.name)
    this.#closed?.delete(held)
  }
}

class MemoryStates implements OpenStates {
  readonly checksKeys = true
  readonly #store: ProcessMemory
  readonly #limiter: string
  readonly #tables: readonly Table[]
  /** Of a limiter with one limit, its table. */
  readonly #only: Table | undefined
  readonly #nowUs: () => number
  readonly #onFull: OnFull | undefined
  readonly #onClose: () => void

  constructor(
    store: ProcessMemory,
    limiter: string,
    tables: readonly Table[],
    nowUs: () => number,
    onFull: OnFull | undefined,
    onClose: () => void,
  ) {
    this.#store = store
    this.#limiter = limiter
    this.#tables = tables
    this.#only = tables.length === 1 ? tables[0] : undefined
    this.#nowUs = nowUs
    this.#onFull = onFull
    this.#onClose = onClose
  }

  apply(step: Step, isTold: boolean): boolean {
    // First, because nobody else writes here: behind the look-up it would wait until that has come
    // from memory.
    const nowUs = this.#nowUs()
    const op = step.op
    const table = this.#only
    const part = step.parts[0] as Part
    // Mostly one limit is asked for one key that is held, under the numbers it was written by. The
    // rest is in a function of its own, because the compiler inlines only what is small.
    if (table === undefined || op === 'forget' || !table.load(part, 0) || part.own !== part.rule) return this.#applyAny(step, nowUs, isTold)
    return decide(op, step.parts, nowUs, step.aheadUs, step.ofUs, isTold)
  }

  close(): void {
    this.#onClose()
  }

  /** Any step: several limits, keys that are new, for which there may be no room. */
  #applyAny(step: Step, nowUs: number, isTold: boolean): boolean {
    const { op, parts } = step
    if (op === 'forget') return this.#forget(parts)
    const areHeld = this.#load(parts)
    const fullForUs = areHeld || op === 'give' || !this.#store.deniesWhenFull ? 0 : this.#fullForUs(parts, nowUs)
    const granted = decide(fullForUs > 0 ? 'ask' : op, parts, nowUs, step.aheadUs, step.ofUs, isTold)
    this.#keep(parts, nowUs)
    if (!areHeld) this.#store.sweepClosed(nowUs)
    if (fullForUs === 0) return granted
    for (const { verdict } of parts) refusedByFull(verdict, fullForUs)
    this.#tellFull()
    return false
  }

  #tellFull(): void {
    this.#store.full.tell(this.#onFull, this.#limiter)
  }

  #forget(parts: readonly Part[]): boolean {
    for (let k = 0; k < parts.length; k++) tableOf(this.#tables, parts[k] as Part, k).remove((parts[k] as Part).key)
    return true
  }

  /**
   * Points the parts at the states of their keys, and checks those that are new. Tells whether all
   * are held.
   */
  #load(parts: readonly Part[]): boolean {
    let areHeld = true
    for (let k = 0; k < parts.length; k++) {
      const part = parts[k] as Part
      const table = tableOf(this.#tables, part, k)
      // A step may bring numbers that were never opened. A row that is too short would run into the
      // next one.
      table.makeRoomFor(part.rule)
      if (table.load(part, k)) continue
      checkKey(part.key)
      areHeld = false
    }
    return areHeld
  }

  /**
   * Notes what was changed. States that were held have been changed in place: only the rule that
   * they are written under may be another.
   */
  #keep(parts: readonly Part[], nowUs: number): void {
    for (let k = 0; k < parts.length; k++) {
      const part = parts[k] as Part
      if (!part.changed) continue
      const table = tableOf(this.#tables, part, k)
      if (part.isHeld) table.sign(part)
      else if (!table.insert(part, nowUs)) this.#tellFull()
    }
  }

  /** How long a new key has to wait for room; 0 when there is room for all of them. */
  #fullForUs(parts: readonly Part[], nowUs: number): number {
    let fullForUs = 0
    for (let k = 0; k < parts.length; k++) {
      const part = parts[k] as Part
      if (part.isHeld || part.cost <= 0) continue
      fullForUs = Math.max(fullForUs, tableOf(this.#tables, part, k).fullForUs(part.key, nowUs))
    }
    return fullForUs
  }
}

/** Mostly the parts are all limits of the limiter, in their order. */
function tableOf(tables: readonly Table[], { limit }: Part, k: number): Table {
  const likely = tables[k]
  return likely !== undefined && likely.limit === limit ? likely : (tableNamed(tables, limit) as Table)
}

function tableNamed(tables: readonly Table[], limit: string): Table | undefined {
  return tables.find((table) => table.limit === limit)
}

/**
 * The tables in the file, and transactions on them. A row of `sluice_states` is one state: the
 * record of codec.ts, and when it is idle. `sluice_clock` has one row: the anchor of the common
 * time (time.ts), and where the sweep of idle rows goes on.
 *
 * A lock that another connection holds is waited for here, a fraction of a millisecond at a time:
 * SQLite itself would sleep for whole ones.
 */
import { SluiceError } from '../../errors.ts'
import { withoutNul } from '../nul.ts'
import { rest } from '../shared-memory/thread.ts'
import { prepared, type SqliteDatabase } from './driver.ts'
import { isBusy, storeError } from './failure.ts'
import type { Anchor } from './time.ts'

/** The version of the tables. */
const LAYOUT = 1

/** So many pages a process writes, about, and then it copies the log into the file. */
const PAGES_FOR_A_CHECKPOINT = 4_000
/** A new row comes with the sweep's hand, and now and then with another page. */
const PAGES_OF_A_NEW_ROW = 3
/**
 * How often it tries to have the log begin anew after that. Others read and write meanwhile, for
 * some microseconds at a time.
 */
const RESTARTS = 20

/**
 * A decision writes whole pages, so they are small. SQLite itself copies the log only where many
 * processes write a few rows each: it would try so after every commit from then on, and wait for
 * the disk each time, until for one moment nobody reads.
 */
const SETTINGS = 'PRAGMA page_size = 1024; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 16000'

const TABLES = `
CREATE TABLE IF NOT EXISTS sluice_states (id TEXT PRIMARY KEY, idle_at INTEGER NOT NULL, state BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sluice_clock (layout INTEGER, steady_us INTEGER, time_us INTEGER, lead_us INTEGER, hand TEXT)`

/**
 * How many rows are looked at when a new one comes: more than one, so that the file has few more
 * than are in use.
 */
const SWEEP = 2
/** Idle keys may come back: their rows leave only after they have been idle for this long. */
const GRACE_US = 1_000_000

const SHORTEST_REST_MS = 0.05
/** After so many attempts the rests between them grow no longer. */
const LONGEST_REST = 5

/** What stands in a row. */
export interface Row {
  /** Which anchor is in force: each has its own reading of the steady clock. */
  readonly steadyUs: number
  /** Null where there is nothing. */
  readonly state: Uint8Array | null
}

/**
 * `api:user:42:default`. Names have no colon, so it can be read back in one way only. The limits of
 * a key stand side by side.
 */
export function idOf(limiter: string, key: string, limit: string): string {
  return `${limiter}:${withoutNul(key)}:${limit}`
}

export class StateFile {
  readonly #database: SqliteDatabase
  readonly #isOurs: boolean
  readonly #busyTimeoutMs: number
  readonly #sql: ReturnType<typeof statementsOn>
  #isClosed = false
  /** Pages, about, since the log was last copied into the file. */
  #written = 0
  /** How often it was started over because another connection was in the way. */
  collisions = 0

  /**
   * `isOurs`: whether nobody else uses the connection. Only then its settings are changed, and it
   * is closed.
   */
  constructor(database: SqliteDatabase, isOurs: boolean, busyTimeoutMs: number, anchor: Anchor) {
    this.#database = database
    this.#isOurs = isOurs
    this.#busyTimeoutMs = busyTimeoutMs
    if (isOurs) this.#whenFree(() => setUp(database))
    this.#whenFree(() => makeTables(database, anchor))
    this.#sql = statementsOn(database)
  }

  /** Runs what reads and writes under the file's lock. All of it is written, or nothing. */
  write<T>(work: () => T): T {
    this.#check()
    const result = this.#whenFree(() => this.#inTransaction('begin', work))
    if (this.#isOurs && this.#written >= PAGES_FOR_A_CHECKPOINT) this.#checkpoint()
    return result
  }

  /**
   * Runs what only reads: all of it sees the file at one moment. `isOne`: whether it reads once.
   */
  read<T>(isOne: boolean, work: () => T): T {
    this.#check()
    return this.#whenFree(isOne ? work : () => this.#inTransaction('look', work))
  }

  row(id: string): Row {
    const row = this.#sql.row.get(id)
    if (row === undefined)
      throw new SluiceError('STORE', 'SQLite: the table sluice_clock is empty (drop both tables of Sluice, or move the file away)')
    return row as Row
  }

  update(id: string, idleAtUs: number, state: Uint8Array): void {
    this.#written += 1
    this.#sql.update.run(idleAtUs, state, id)
  }

  /**
   * Puts a state where there is none. For each, `sweep` is to be called in the same transaction.
   */
  insert(id: string, idleAtUs: number, state: Uint8Array): void {
    this.#written += PAGES_OF_A_NEW_ROW
    this.#sql.insert.run(id, idleAtUs, state)
  }

  remove(id: string): void {
    this.#written += 1
    this.#sql.remove.run(id)
  }

  /**
   * Lets a few rows go that have been idle for a while. The hand goes round all rows, whichever
   * process moves it.
   */
  sweep(nowUs: number): void {
    const { hand } = this.#sql.hand.get() as { hand: string }
    const rows = this.#sql.next.all(hand, SWEEP) as { readonly id: string; readonly idleAtUs: number }[]
    for (const { id, idleAtUs } of rows) if (idleAtUs <= nowUs - GRACE_US) this.remove(id)
    this.#sql.moveHand.run(rows[SWEEP - 1]?.id ?? '')
  }

  anchor(): Anchor {
    return this.#sql.anchor.get() as Anchor
  }

  writeAnchor({ steadyUs, timeUs, leadUs }: Anchor): void {
    this.#sql.writeAnchor.run(steadyUs, timeUs, leadUs)
  }

  get size(): number {
    return this.read(true, () => (this.#sql.count.get() as { count: number }).count)
  }

  close(): void {
    if (this.#isOurs && !this.#isClosed) this.#database.close()
    this.#isClosed = true
  }

  #check(): void {
    if (this.#isClosed) throw new SluiceError('CLOSED', 'the store was closed')
    if (this.#isOurs) return
    const { isTransaction, inTransaction } = this.#database
    if (isTransaction !== true && inTransaction !== true) return
    // A decision that it would take back later was told to a caller already.
    throw new SluiceError('STORE', 'SQLite: the database has a transaction open: end it first, or give the store a connection of its own', {
      isolated: true,
    })
  }

  #inTransaction<T>(begin: 'begin' | 'look', work: () => T): T {
    this.#sql[begin].run()
    try {
      const result = work()
      this.#sql.commit.run()
      return result
    } catch (error) {
      rollBack(() => this.#sql.rollback.run())
      throw error
    }
  }

  /**
   * Copies the log into the file, and has it begin anew. Most of it is copied while others write;
   * what they wrote meanwhile is copied under the file's lock, because a log that grows all the
   * time would never be copied to its end. Where it fails, the log is longer for a while.
   */
  #checkpoint(): void {
    this.#written = 0
    try {
      this.#sql.copyLog.get()
      for (let k = 0; k < RESTARTS && (this.#sql.restartLog.get() as { busy: number }).busy !== 0; k++) rest(SHORTEST_REST_MS)
    } catch {
      // The decision that was just written stands.
    }
  }

  /** Starts over for as long as another connection is in the way. */
  #whenFree<T>(work: () => T): T {
    let sinceMs = -1
    for (let lost = 0; ; lost++) {
      try {
        return work()
      } catch (error) {
        const nowMs = performance.now()
        if (sinceMs < 0) sinceMs = nowMs
        if (!isBusy(error) || nowMs - sinceMs >= this.#busyTimeoutMs) throw storeError(error, 'SQLite')
        this.collisions += 1
        rest(SHORTEST_REST_MS * (1 + Math.random()) * 2 ** Math.min(lost, LONGEST_REST))
      }
    }
  }
}

function setUp(database: SqliteDatabase): void {
  database.exec(SETTINGS)
  const { journal_mode: mode } = database.prepare('PRAGMA journal_mode = WAL').get() as { journal_mode: string }
  if (mode === 'wal') return
  throw new SluiceError(
    'STORE',
    `SQLite: the file cannot have a write-ahead log, its journal stays '${mode}': it must lie on a disk of this machine`,
  )
}

function makeTables(database: SqliteDatabase, { steadyUs, timeUs, leadUs }: Anchor): void {
  if (layoutIn(database) === LAYOUT) return
  database.exec('BEGIN IMMEDIATE')
  try {
    database.exec(TABLES)
    const layout = layoutIn(database)
    if (layout === undefined) database.prepare("INSERT INTO sluice_clock VALUES (?, ?, ?, ?, '')").run(LAYOUT, steadyUs, timeUs, leadUs)
    else if (layout !== LAYOUT)
      throw new SluiceError(
        'STORE',
        `SQLite: another version of Sluice made the tables: they have the layout ${layout}, and this one knows ${LAYOUT}`,
      )
    database.exec('COMMIT')
  } catch (error) {
    rollBack(() => database.exec('ROLLBACK'))
    throw error
  }
}

function rollBack(run: () => unknown): void {
  try {
    run()
  } catch {
    // After some errors SQLite has done so itself.
  }
}

/** The version of the tables that are there. */
function layoutIn(database: SqliteDatabase): number | undefined {
  const isMade = prepared(database, "SELECT 1 FROM sqlite_master WHERE name = 'sluice_clock'").get() !== undefined
  const row = isMade ? prepared(database, 'SELECT layout FROM sluice_clock').get() : undefined
  return (row as { layout: number } | undefined)?.layout
}

function statementsOn(database: SqliteDatabase) {
  const statement = (sql: string) => prepared(database, sql)
  return {
    begin: statement('BEGIN IMMEDIATE'),
    look: statement('BEGIN'),
    commit: statement('COMMIT'),
    rollback: statement('ROLLBACK'),
    row: statement('SELECT steady_us AS steadyUs, state FROM sluice_clock LEFT JOIN sluice_states ON id = ?'),
    update: statement('UPDATE sluice_states SET idle_at = ?, state = ? WHERE id = ?'),
    insert: statement('INSERT INTO sluice_states (id, idle_at, state) VALUES (?, ?, ?)'),
    remove: statement('DELETE FROM sluice_states WHERE id = ?'),
    anchor: statement('SELECT steady_us AS steadyUs, time_us AS timeUs, lead_us AS leadUs FROM sluice_clock'),
    writeAnchor: statement('UPDATE sluice_clock SET steady_us = ?, time_us = ?, lead_us = ?'),
    hand: statement('SELECT hand FROM sluice_clock'),
    next: statement('SELECT id, idle_at AS idleAtUs FROM sluice_states WHERE id > ? ORDER BY id LIMIT ?'),
    moveHand: statement('UPDATE sluice_clock SET hand = ?'),
    copyLog: statement('PRAGMA wal_checkpoint(PASSIVE)'),
    restartLog: statement('PRAGMA wal_checkpoint(RESTART)'),
    count: statement('SELECT count(*) AS count FROM sluice_states'),
  }
}

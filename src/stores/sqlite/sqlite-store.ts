/** State in a file of SQLite, which all processes of a machine share: what a user holds. */
import type { StateFields } from '../../algorithms/algorithm.ts'
import { readState } from '../../algorithms/codec.ts'
import { invalid, onlyKnown } from '../../algorithms/rate.ts'
import { SluiceError } from '../../errors.ts'
import type { QueueClass } from '../queue/room.ts'
import { SharedQueue } from '../queue/shared-queue.ts'
import { checkLeases } from '../step.ts'
import type { OpenStates, Scope, SyncStore } from '../store.ts'
import { openDatabase, type SqliteDatabase } from './driver.ts'
import { idOf, StateFile } from './file.ts'
import { SqliteStates } from './states.ts'
import { CommonTime, machineClocks } from './time.ts'

export interface SqliteStoreOptions {
  /**
   * How long a decision may wait for the lock of the file while other processes hold it, in
   * milliseconds. The event loop stands still meanwhile; then `STORE` is thrown. 0 to 60,000,
   * default 1,000.
   */
  readonly busyTimeoutMs?: number
}

export interface SqliteStore extends SyncStore {
  /** How many states the file holds, of all limiters and idle ones included. Counts them. */
  readonly size: number
  /** How often a step of this store waited for the lock of the file and tried again. */
  readonly collisions: number
  /**
   * The state held for a key by the names of its numbers, or undefined. For tests and for looking.
   */
  inspect(limiter: string, limit: string, key: string): StateFields | undefined
  /** Closes the file, if the store was given its path. Every later step throws `CLOSED`. */
  close(): void
}

const DEFAULT_BUSY_TIMEOUT_MS = 1_000
const MOST_BUSY_TIMEOUT_MS = 60_000

/**
 * Given the path of a file, which is made if it is not there; or a database of `node:sqlite` or
 * `better-sqlite3`, which stays yours.
 */
export function sqliteStore(file: string | SqliteDatabase, options: SqliteStoreOptions = {}): SqliteStore {
  onlyKnown(options, ['busyTimeoutMs'], 'sqliteStore')
  const { busyTimeoutMs = DEFAULT_BUSY_TIMEOUT_MS } = options
  if (typeof busyTimeoutMs !== 'number' || !(busyTimeoutMs >= 0 && busyTimeoutMs <= MOST_BUSY_TIMEOUT_MS)) {
    throw invalid('sqliteStore busyTimeoutMs', busyTimeoutMs, `must be 0 to ${MOST_BUSY_TIMEOUT_MS} milliseconds`)
  }
  if (typeof file === 'string') return opened(file, busyTimeoutMs)
  if (isDatabase(file)) return new FileStore(file, false, busyTimeoutMs)
  throw invalid('sqliteStore', file, 'must be the path of a file, or a database of node:sqlite or better-sqlite3')
}

function opened(path: string, busyTimeoutMs: number): FileStore {
  if (path === '' || path.startsWith(':memory:') || path.includes('\0')) {
    throw invalid('sqliteStore', path, 'must be the path of a file; without one, memoryStore() is faster')
  }
  const database = openDatabase(path)
  try {
    return new FileStore(database, true, busyTimeoutMs)
  } catch (error) {
    database.close()
    throw atPath(error, path)
  }
}

function atPath(error: unknown, path: string): unknown {
  return error instanceof SluiceError ? new SluiceError(error.code, `${path}: ${error.message}`, { cause: error.cause ?? error }) : error
}

function isDatabase(value: unknown): value is SqliteDatabase {
  const { prepare, exec, close } = Object(value) as Partial<SqliteDatabase>
  return [prepare, exec, close].every((each) => typeof each === 'function')
}

class FileStore implements SqliteStore {
  readonly mode = 'sync'
  readonly shared = true
  readonly queue: QueueClass = SharedQueue
  readonly nowUs: () => number
  readonly #time = new CommonTime(machineClocks)
  readonly #file: StateFile

  constructor(database: SqliteDatabase, isOurs: boolean, busyTimeoutMs: number) {
    this.#file = new StateFile(database, isOurs, busyTimeoutMs, this.#time.anchor)
    this.nowUs = this.#time.nowUs
    // What is read before the first step is by the file's time, too.
    this.#time.follow(this.#file.read(true, () => this.#file.anchor()))
  }

  get size(): number {
    return this.#file.size
  }

  get collisions(): number {
    return this.#file.collisions
  }

  open(scope: Scope, nowUs: () => number): OpenStates {
    checkLeases(scope, 'in a file of SQLite')
    return new SqliteStates(this.#file, scope.name, nowUs, nowUs === this.nowUs ? this.#time : undefined)
  }

  inspect(limiter: string, limit: string, key: string): StateFields | undefined {
    const { state } = this.#file.read(true, () => this.#file.row(idOf(limiter, key, limit)))
    if (state === null) return undefined
    const { rule, words } = readState(state, 0)
    return rule.algorithm.fields(rule, words, 0)
  }

  close(): void {
    this.#file.close()
  }
}

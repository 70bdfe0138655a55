/**
 * How Postgres decides a batch of steps, in two trips whatever their number. The first reads
 * states, versions and the server's time; `decide` decides here; the second writes the rows that
 * nobody has written since, and answers with the others, which are decided again. No lock is held
 * while anything travels, so a process that stands still or dies in between holds up nobody. See
 * docs/decisions/postgres.md.
 *
 * A decision is never sent twice unless Postgres said that it did not happen: one that was not
 * answered may have been charged.
 */
import { systemClock } from '../../clock/clock.ts'
import { SluiceError } from '../../errors.ts'
import type { Step } from '../step.ts'
import type { Failures, StoreDriver } from '../store.ts'
import { Calls } from './calls.ts'
import type { Query, SqlRow } from './client.ts'
import { isCollision, isMissing, isOfTheData, storeError } from './failure.ts'
import { type Group, groupsOf, Job, type Row } from './groups.ts'
import { rowId } from './keys.ts'
import { migrationToRun, type Names } from './schema.ts'
import { arrayOf, hexOf, quoted, type RowAnswer, rowAnswerOf } from './wire.ts'

export interface PostgresDriverOptions {
  readonly names: Names
  /** Whether to make the table where it is missing; and then, unlogged. */
  readonly isMigrating: boolean
  readonly isUnlogged: boolean
  readonly mostCalls: number
  /** In weights of steps: see batches.ts. */
  readonly mostWeight: number
}

/** Of several writers of a row at the same time one succeeds each time. */
const MOST_ATTEMPTS = 1_000
/**
 * A statement that is not answered for so long is on a connection that is dead: what waits for its
 * rows shall not wait for ever.
 */
const SILENCE_US = 10_000_000
/** New rows that pay for a sweep: see schema.ts. */
const ROWS_FOR_A_SWEEP = 16
const MOST_SWEEPS = 8

type OnDone = (jobs: readonly Job[]) => void

export class PostgresDriver implements StoreDriver {
  readonly shared = true
  readonly #query: Query
  readonly #options: PostgresDriverOptions
  readonly #calls: Calls
  /** New rows since the last sweep. */
  #newRows = 0

  constructor(query: Query, options: PostgresDriverOptions) {
    this.#query = query
    this.#options = options
    this.#calls = new Calls((jobs, onDone) => this.#run(jobs, onDone), options.mostCalls, options.mostWeight)
  }

  apply(steps: readonly Step[]): Promise<Failures> {
    return new Promise((resolve) => {
      let left = steps.length
      const onDone = () => {
        left -= 1
        if (left === 0) resolve(jobs.map(({ failure }) => failure))
      }
      const jobs = steps.map((step) => new Job(step, idsOf(step), onDone))
      this.#calls.add(jobs)
    })
  }

  /**
   * Leaves nothing behind, but is refused as long as a decision would be, and waits for what one
   * waits for. It deletes one row and updates one, and no row has that version. Then it
   * inserts the same row twice in one group. That fails and is undone, but it was written to the
   * log, so the commit waits for the disk.
   */
  async probe({ scope }: Step): Promise<void> {
    const ids = arrayOf(new Array<string>(4).fill(`${scope.name}::`), quoted)
    const values = [ids, '{-1,-1,NULL,NULL}', '{NULL,"","",""}', '{0,0,0,0}', '{NULL,NULL,1,1}', NEVER_LATE, '0']
    await this.#migrated(this.#swapText, values).catch((error) => Promise.reject(storeError(error)))
  }

  async #run(jobs: readonly Job[], onDone: OnDone): Promise<void> {
    const groups = groupsOf(jobs)
    const left = new Set(groups)
    const tell = (done: readonly Group[]) => {
      for (const group of done) left.delete(group)
      onDone(done.flatMap((group) => group.jobs))
    }
    try {
      await this.#decide(groups, tell)
    } catch (error) {
      if (isOfTheData(error) && left.size > 1) await this.#runApart([...left], onDone)
      else failAll([...left], error, tell)
    }
  }

  /** Nothing was done because of the data of one: the others need not suffer for it. */
  async #runApart(groups: readonly Group[], onDone: OnDone): Promise<void> {
    for (const group of groups) await this.#run(group.jobs, onDone)
  }

  async #decide(groups: readonly Group[], tell: (done: readonly Group[]) => void): Promise<void> {
    let left = groups
    let isRead = false
    for (let attempt = 0; attempt < MOST_ATTEMPTS && left.length > 0; attempt++) {
      try {
        if (!isRead) await this.#read(left)
        isRead = true
        const changed = left.filter((group) => group.encode())
        tell(without(left, changed))
        left = changed
        const lost = await this.#swap(changed)
        tell(without(left, lost))
        left = lost
      } catch (error) {
        if (!isCollision(error)) throw error
        isRead = false
      }
    }
    failAll(left, new SluiceError('STORE', TOO_MANY, { isolated: true }), tell)
  }

  /** Reads all rows, and decides on them. */
  async #read(groups: readonly Group[]): Promise<void> {
    const rows = groups.flatMap((group) => group.rows)
    const text = `SELECT * FROM ${this.#options.names.read}($1::text::text[])`
    decideOn(groups, rows, await this.#told(text, [arrayOf(rows, ({ id }) => quoted(id))]))
  }

  /**
   * Writes rows. Answers with the groups of which others have written one, or a new one came late:
   * these are decided again.
   */
  async #swap(groups: readonly Group[]): Promise<Group[]> {
    if (groups.length === 0) return []
    const rows = groups.flatMap((group) => group.rows).sort(byId)
    const told = await this.#told(this.#swapText, this.#swapValues(rows, groups))
    const lost = [...new Set(told.map(({ place }) => (rows[place] as Row).group))]
    decideOn(lost, rows, told)
    return lost
  }

  get #swapText(): string {
    const values = ['text[]', 'bigint[]', 'bytea[]', 'bigint[]', 'int[]', 'bigint', 'int'].map((type, k) => `$${k + 1}::text::${type}`)
    return `SELECT * FROM ${this.#options.names.swap}(${values.join(', ')})`
  }

  #swapValues(rows: readonly Row[], groups: readonly Group[]): string[] {
    const numbers = new Map(groups.map((group, k) => [group, group.rows.length === 1 ? undefined : k]))
    return [
      arrayOf(rows, ({ id }) => quoted(id)),
      arrayOf(
        rows.map(({ version }) => version),
        String,
      ),
      arrayOf(
        rows.map((row) => (row.isChanged ? row.bytes : undefined)),
        hexOf,
      ),
      arrayOf(
        rows.map(({ isChanged, goneAtUs }) => (isChanged ? goneAtUs : undefined)),
        String,
      ),
      arrayOf(
        rows.map(({ group }) => numbers.get(group)),
        String,
      ),
      `${Math.min(...groups.map(({ readUs }) => readUs))}`,
      `${this.#sweepsFor(rows)}`,
    ]
  }

  #sweepsFor(rows: readonly Row[]): number {
    for (const { version, isChanged } of rows) if (isChanged && version === undefined) this.#newRows += 1
    const sweeps = Math.min(MOST_SWEEPS, Math.floor(this.#newRows / ROWS_FOR_A_SWEEP))
    this.#newRows -= sweeps * ROWS_FOR_A_SWEEP
    return sweeps
  }

  async #told(text: string, values: readonly string[]): Promise<RowAnswer[]> {
    return (await this.#migrated(text, values)).map(rowAnswerOf)
  }

  /**
   * Where the table is missing nothing has happened, so what was sent is sent again once it is
   * made.
   */
  async #migrated(text: string, values: readonly string[]): Promise<readonly SqlRow[]> {
    const { names, isMigrating, isUnlogged } = this.#options
    try {
      return await this.#answered(text, values)
    } catch (error) {
      if (!isMigrating || !isMissing(error)) throw error
    }
    await this.#answered(migrationToRun(names, isUnlogged), [])
    return this.#answered(text, values)
  }

  #answered(text: string, values: readonly string[]): Promise<readonly SqlRow[]> {
    return new Promise((resolve, reject) => {
      const stopWaiting = systemClock.setTimer(() => reject(new SluiceError('STORE', SILENT)), SILENCE_US, false)
      this.#query(text, values).then(resolve, reject).finally(stopWaiting)
    })
  }
}

/** A time of reading that is still to come. */
const NEVER_LATE = `${Number.MAX_SAFE_INTEGER}`
const TOO_MANY = `Postgres: others wrote the same rows first ${MOST_ATTEMPTS} times in a row, and it is not charged`
const SILENCE_S = SILENCE_US / 1_000_000
const SILENT = `Postgres: no answer for ${SILENCE_S} s, and it may have been charged: make the client with a timeout, and with keepAlive`

function without(groups: readonly Group[], others: readonly Group[]): Group[] {
  const left = new Set(groups)
  for (const other of others) left.delete(other)
  return [...left]
}

function failAll(groups: readonly Group[], error: unknown, tell: (failed: readonly Group[]) => void): void {
  for (const group of groups) group.fail(storeError(error))
  if (groups.length > 0) tell(groups)
}

function idsOf({ scope, parts }: Step): string[] {
  return parts.map((part) => rowId(scope.name, part))
}

function byId(a: Row, b: Row): number {
  return a.id < b.id ? -1 : 1
}

/** Decides groups by rows as they stand now, and by the time that came with them. */
function decideOn(groups: readonly Group[], rows: readonly Row[], told: readonly RowAnswer[]): void {
  for (const { place, version, bytes } of told) rows[place]?.use(version, bytes)
  const nowUs = told[0]?.nowUs as number
  for (const group of groups) group.decide(nowUs)
}

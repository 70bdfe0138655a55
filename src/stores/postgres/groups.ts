/**
 * The steps of a call, decided. Steps that share a row, or are joined by others that do, are a
 * group: its rows are written together or not at all, and if others wrote one of them in the
 * meantime, the steps of the group are decided again, and no others.
 */
import type { StateRecord } from '../../algorithms/codec.ts'
import { readState, writeState } from '../../algorithms/codec.ts'
import { decide } from '../../algorithms/decide.ts'
import { SluiceError, shown } from '../../errors.ts'
import { load } from '../load.ts'
import type { Part, Step } from '../step.ts'

/** A step on its way, and the ids of the rows of its parts. */
export class Job {
  readonly step: Step
  readonly ids: readonly string[]
  /** In the order of its parts, once it is in a group. */
  rows: readonly Row[] = []
  /** Why it failed, once it has. */
  failure: unknown = undefined
  /** Told when it is decided or has failed. */
  readonly onDone: () => void

  constructor(step: Step, ids: readonly string[], onDone: () => void) {
    this.step = step
    this.ids = ids
    this.onDone = onDone
  }
}

/** Written by the clock of a test: the server's says nothing about when it is idle. */
const A_DAY_US = 86_400_000_000

export class Row {
  readonly id: string
  group: Group
  /** The row in the database; undefined: none. */
  version: string | undefined = undefined
  /** The row to write. */
  record: Pick<StateRecord, 'rule' | 'words'> | undefined = undefined
  /** The fault of the row. */
  damage: SluiceError | undefined = undefined
  isChanged = false
  limit = ''
  /**
   * When the state is idle, by the clock that decided, and when the row may go, by the server's.
   */
  idleAtUs = 0
  goneAtUs = 0
  /** The bytes to write; undefined: the row is deleted. */
  bytes: Uint8Array | undefined = undefined

  constructor(id: string, group: Group) {
    this.id = id
    this.group = group
  }

  /** As the database holds it. One without bytes waits for the state of a late insert. */
  use(version: string | undefined, bytes: Uint8Array | undefined): void {
    this.version = version
    this.record = undefined
    this.damage = undefined
    this.isChanged = false
    try {
      if (bytes !== undefined && bytes.length > 0) this.record = readState(bytes, 0)
    } catch (error) {
      this.damage = damaged(this.id, error)
    }
  }

  encode(): void {
    const { record } = this
    this.bytes = record === undefined ? undefined : writeState(record.rule, record.words, 0, this.idleAtUs, this.limit)
  }
}

export class Group {
  readonly jobs: Job[] = []
  readonly rows: Row[] = []
  /** The server's time by which it was decided, read after its rows. */
  readUs = 0

  /** Makes bytes of what has changed. Tells whether there is anything to write. */
  encode(): boolean {
    const changed = this.rows.filter(({ isChanged }) => isChanged)
    try {
      for (const row of changed) row.encode()
      return changed.length > 0
    } catch (error) {
      this.fail(error)
      return false
    }
  }

  /** Decides what is not given up, in the order of the calls. */
  decide(serverUs: number): void {
    this.readUs = serverUs
    for (const job of this.jobs) {
      job.failure = undefined
      try {
        if (job.step.isGivenUp) job.failure = new SluiceError('STORE', 'Postgres: it was not decided in time, and is not charged')
        else decideOn(job.step, job.rows, serverUs)
      } catch (error) {
        job.failure = error
      }
    }
  }

  fail(failure: unknown): void {
    for (const job of this.jobs) job.failure = failure
  }

  join(other: Group): void {
    this.jobs.push(...other.jobs)
    this.rows.push(...other.rows)
    for (const row of other.rows) row.group = this
  }
}

function decideOn(step: Step, rows: readonly Row[], serverUs: number): void {
  const { op, parts, aheadUs, ofUs, nowUs = serverUs } = step
  if (op === 'forget') {
    for (const row of rows) forget(row)
    return
  }
  parts.forEach((part, k) => {
    load(part, recordIn(rows[k] as Row))
  })
  decide(op, parts, nowUs, aheadUs, ofUs, true)
  parts.forEach((part, k) => {
    if (part.changed) keep(rows[k] as Row, part, nowUs, step.nowUs === undefined ? 0 : serverUs + A_DAY_US)
  })
}

function recordIn({ record, damage }: Row): StateRecord | undefined {
  if (damage !== undefined) throw damage
  return record as StateRecord | undefined
}

function forget(row: Row): void {
  row.record = undefined
  row.damage = undefined
  row.isChanged = row.version !== undefined
}

function keep(row: Row, { limit, own, s, verdict }: Part, nowUs: number, leastUs: number): void {
  row.record = { rule: own, words: s }
  row.limit = limit
  row.isChanged = true
  row.idleAtUs = nowUs + verdict.resetUs
  row.goneAtUs = Math.max(row.idleAtUs, leastUs)
}

function damaged(id: string, error: unknown): SluiceError {
  const reason = error instanceof Error ? error.message : String(error)
  const advice = 'another version of Sluice or something else wrote it: run that version, or delete the row'
  return new SluiceError('STORE', `Postgres: the row ${shown(id)} holds what this version of Sluice did not write: ${reason} (${advice})`, {
    cause: error,
    isolated: true,
  })
}

/** The groups of some steps. */
export function groupsOf(jobs: readonly Job[]): Group[] {
  const rows = new Map<string, Row>()
  const groups = new Set<Group>()
  for (const job of jobs) {
    const group = rows.get(job.ids[0] as string)?.group ?? new Group()
    groups.add(group)
    job.rows = job.ids.map((id) => {
      const row = rows.get(id) ?? newRow(id, group)
      if (row.group !== group) {
        groups.delete(row.group)
        group.join(row.group)
      }
      rows.set(id, row)
      return row
    })
    group.jobs.push(job)
  }
  return [...groups]
}

function newRow(id: string, group: Group): Row {
  const row = new Row(id, group)
  group.rows.push(row)
  return row
}

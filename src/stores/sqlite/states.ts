/**
 * The steps of one limiter in the file. A step that may write is one short transaction: it takes
 * the file's lock, reads the states, reads the time, decides and writes what changed. A question
 * takes no lock: the states as they were at one moment are a correct answer of that moment. Nor
 * does a call for a key that was refused before, as long as it is refused again: a client that
 * floods a limiter keeps nobody from writing.
 */
import { type Expected, readState, type StateRecord, writeState } from '../../algorithms/codec.ts'
import { decide } from '../../algorithms/decide.ts'
import { SluiceError, shown } from '../../errors.ts'
import { load } from '../load.ts'
import type { OpenStates, Part, Step } from '../store.ts'
import { idOf, type StateFile } from './file.ts'
import type { CommonTime } from './time.ts'

/** How many keys are known to be refused. Then all are forgotten. */
const MOST_REFUSED = 10_000

export class SqliteStates implements OpenStates {
  readonly #file: StateFile
  readonly #limiter: string
  readonly #nowUs: () => number
  /** The time of all processes, unless the limiter goes by a clock of its own. */
  readonly #time: CommonTime | undefined
  /**
   * Keys that were refused when they last wanted to take. A hint only: it says whether to look
   * first.
   */
  readonly #refused = new Set<string>()

  constructor(file: StateFile, limiter: string, nowUs: () => number, time: CommonTime | undefined) {
    this.#file = file
    this.#limiter = limiter
    this.#nowUs = nowUs
    this.#time = time
  }

  apply(step: Step, isTold: boolean): boolean {
    const { op, parts } = step
    if (op === 'forget') return this.#forget(parts)
    const [{ key }] = parts as [Part]
    const looksFirst = op === 'ask' || (op === 'take' && this.#refused.has(key))
    const seen = looksFirst ? this.#file.read(parts.length === 1, () => this.#decide(step, isTold, false)) : undefined
    const granted = seen ?? this.#file.write(() => this.#decide(step, isTold, true) as boolean)
    if (op === 'take') this.#note(key, granted)
    return granted
  }

  #note(key: string, granted: boolean): void {
    if (granted) this.#refused.delete(key)
    else if (this.#refused.size < MOST_REFUSED) this.#refused.add(key)
    else this.#refused.clear()
  }

  /** Nothing is held for the limiter alone. */
  close(): void {}

  /** Undefined where something has to be written, and may not be. */
  #decide({ op, parts, aheadUs, ofUs }: Step, isTold: boolean, mayWrite: boolean): boolean | undefined {
    for (const part of parts) this.#load(part)
    if (!this.#isInTime(mayWrite)) return undefined
    // Not before the states were read: others may have written them later than that.
    const nowUs = this.#nowUs()
    const granted = decide(op as Exclude<Step['op'], 'forget'>, parts, nowUs, aheadUs, ofUs, isTold)
    for (const part of parts) {
      if (!part.changed) continue
      if (!mayWrite) return undefined
      this.#keep(part, nowUs)
    }
    // Not before all are written: an idle row that the step is about to write must not go.
    for (const { changed, isHeld } of parts) if (changed && !isHeld) this.#file.sweep(nowUs)
    return granted
  }

  /**
   * Follows the clocks of the machine where they have left what the file says. That has to be
   * written.
   */
  #isInTime(mayWrite: boolean): boolean {
    const anchor = this.#time?.corrected()
    if (anchor === undefined) return true
    if (!mayWrite) return false
    this.#file.writeAnchor(anchor)
    this.#time?.follow(anchor)
    return true
  }

  #load(part: Part): void {
    const { steadyUs, state } = this.#file.row(this.#idOf(part))
    if (this.#time !== undefined && steadyUs !== this.#time.anchor.steadyUs) this.#time.follow(this.#file.anchor())
    load(part, state === null ? undefined : recordIn(state, part))
  }

  #keep(part: Part, nowUs: number): void {
    const { own, s, i, limit, isHeld } = part
    const idleAtUs = nowUs + own.algorithm.resetUs(own, s, i, nowUs)
    const state = writeState(own, s, i, idleAtUs, limit)
    if (isHeld) this.#file.update(this.#idOf(part), idleAtUs, state)
    else this.#file.insert(this.#idOf(part), idleAtUs, state)
  }

  #forget(parts: readonly Part[]): true {
    this.#file.write(() => {
      for (const part of parts) this.#file.remove(this.#idOf(part))
    })
    return true
  }

  #idOf({ key, limit }: Part): string {
    return idOf(this.#limiter, key, limit)
  }
}

/** The state of a part, or an error that concerns it alone. */
function recordIn(bytes: Uint8Array, { limit, key, rule }: Part): StateRecord {
  const unreadable = (why: string, cause?: unknown) =>
    new SluiceError(
      'STORE',
      `SQLite: the state of limit '${limit}' for key ${shown(key)} cannot be read: ${why} (reset the key, or write under another name)`,
      {
        cause,
        isolated: true,
      },
    )
  const record = readOr(bytes, { name: limit, rule }, (cause) => unreadable((cause as Error).message, cause))
  if (record.end !== bytes.length) throw unreadable(`${bytes.length - record.end} bytes stand behind it`)
  if (record.name !== limit) throw unreadable(`it is of limit '${record.name}'`)
  return record
}

function readOr(bytes: Uint8Array, expected: Expected, errorOf: (cause: unknown) => SluiceError): StateRecord {
  try {
    return readState(bytes, 0, expected)
  } catch (cause) {
    throw errorOf(cause)
  }
}

/**
 * The steps of one limiter in shared memory. A step reads the record of its key, decides on a private copy and compares and swaps the key's
 * head. A thread that loses the race starts again from what the winner wrote.
 */
import { decide } from '../../algorithms/decide.ts'
import { SluiceError, shown } from '../../errors.ts'
import { limitedFor } from '../step.ts'
import type { OpenStates, Part, Step } from '../store.ts'
import type { Cells } from './cells.ts'
import { ABSENT, type Address, LONGEST_KEY, LOST } from './chains.ts'
import type { RecordShape } from './record-shape.ts'
import type { Table } from './table.ts'

/** When to come again if the table is full and no key was seen that will be idle, because others have the records in hand. */
const NOBODY_SEEN_US = 1_000_000

/** What all limiters of a thread share. */
export interface SharedParts {
  readonly table: Table
  readonly cells: Cells
  readonly recordWords: number
  readonly allowWhenFull: boolean
  /** Called after each race that was lost: how many in a row. */
  onLost(lost: number): void
}

export class SharedStates implements OpenStates {
  readonly shape: RecordShape
  readonly address: Address
  readonly #shared: SharedParts
  readonly #nowUs: () => number
  readonly #onClose: () => void

  constructor(shared: SharedParts, shape: RecordShape, address: Address, nowUs: () => number, onClose: () => void) {
    this.#shared = shared
    this.shape = shape
    this.address = address
    this.#nowUs = nowUs
    this.#onClose = onClose
  }

  apply(step: Step, isTold: boolean): boolean {
    const { parts, op } = step
    const key = onlyKey(parts)
    this.shape.use(parts)
    for (let lost = 0; ; lost++) {
      const granted = this.#attempt(step, key, isTold)
      if (granted !== undefined) {
        if (op === 'forget' || op === 'give' || op === 'settle') this.#shared.table.searchAgain()
        return granted
      }
      this.#shared.onLost(lost)
    }
  }

  /** States stay until they are idle, and the name of a limiter stays in the catalog. */
  close(): void {
    this.#onClose()
  }

  /** Copies the record of a key. False if there is none. */
  find(key: string): boolean {
    let place = LOST
    while (place === LOST) place = this.#find(key)
    return place !== ABSENT
  }

  #find(key: string): number {
    const { chains } = this.#shared.table
    const place = chains.find(key, this.address, this.shape.record)
    if (place < 0 || this.shape.read()) return place
    const whole = new Float64Array(this.#shared.recordWords)
    const again = chains.find(key, this.address, whole)
    if (again >= 0) this.shape.readOther(whole)
    return again
  }

  /** One try at the step. Undefined if another thread was faster. */
  #attempt(step: Step, key: string, isTold: boolean): boolean | undefined {
    const place = this.#find(key)
    if (place === LOST) return undefined
    if (step.op === 'forget') return this.#forget(place)
    if (place === ABSENT) this.shape.clear()
    // Not before the record was seen, and anew in each try: a thread that is held up in between would take a newer record for one from the future.
    const nowUs = this.#nowUs()
    const { cells } = this.#shared
    if (nowUs >= (cells.nextLookUs[0] as number)) cells.look(nowUs)
    const granted = decide(step.op, step.parts, nowUs, step.aheadUs, step.ofUs, isTold)
    if (hasChanged(step.parts)) return this.#publish(step, place, nowUs, isTold, granted)
    // A question about a key for which there is no room is answered as the call would be.
    if (place === ABSENT && this.#mayBeRefused(step) && !this.#shared.table.hasRoom(nowUs)) return this.#refuse(step.parts)
    return granted
  }

  #publish(step: Step, place: number, nowUs: number, isTold: boolean, granted: boolean): boolean | undefined {
    const { table } = this.#shared
    table.chains.idleAtUs[0] = this.shape.idleAtUs(nowUs)
    const record = this.shape.packed()
    if (place !== ABSENT) return table.chains.replace(place, this.address.scope, record) ? granted : undefined
    const inserted = table.insert(this.address.scope, record, nowUs)
    if (inserted === false) return undefined
    if (inserted || this.#shared.allowWhenFull) return granted
    // Nothing is charged: it is decided again as a question, and refused.
    this.shape.clear()
    decide('ask', step.parts, nowUs, step.aheadUs, step.ofUs, isTold)
    return this.#refuse(step.parts)
  }

  #forget(place: number): true | undefined {
    return place === ABSENT || this.#shared.table.chains.replace(place, 0, this.shape.record) ? true : undefined
  }

  #mayBeRefused({ op, parts }: Step): boolean {
    return op !== 'give' && !this.#shared.allowWhenFull && parts.some(({ cost }) => cost > 0)
  }

  /** Says of all limits that they limit until there is room. */
  #refuse(parts: readonly Part[]): false {
    const { soonestIdleUs } = this.#shared.table
    const us = soonestIdleUs === Number.POSITIVE_INFINITY ? NOBODY_SEEN_US : soonestIdleUs
    for (const { verdict } of parts) limitedFor(verdict, us)
    return false
  }
}

function hasChanged(parts: readonly Part[]): boolean {
  for (let k = 0; k < parts.length; k++) if ((parts[k] as Part).changed) return true
  return false
}

function onlyKey(parts: readonly Part[]): string {
  const key = (parts[0] as Part).key
  if (key.length > LONGEST_KEY) throw new SluiceError('KEY', `key ${shown(key)} must have at most ${LONGEST_KEY} characters`)
  for (let k = 1; k < parts.length; k++) {
    if ((parts[k] as Part).key !== key) {
      throw new SluiceError('UNSUPPORTED', 'shared memory decides several limits at once on one key only: give one key for all limits')
    }
  }
  return key
}

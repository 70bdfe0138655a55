/**
 * The steps of one limiter in shared memory. A step reads the record of its key, decides on a
 * private copy and swaps the key's head. A thread that loses the race starts again from what the
 * winner wrote.
 */

import type { Rule, StateFields } from '../../algorithms/algorithm.ts'
import { type Cell, decide } from '../../algorithms/decide.ts'
import { SluiceError, shown } from '../../errors.ts'
import { refusedByFull } from '../full.ts'
import type { OpenStates, Part, Scope, Step } from '../store.ts'
import { ABSENT, type KeyScope, LONGEST_KEY, LOST } from './chain.ts'
import { enter, holderWords } from './holders.ts'
import type { Journals } from './journals.ts'
import { recordCopy, wordsOf } from './record.ts'
import type { SharedTable } from './shared-table.ts'

// As constants of this module: what is imported is read anew at each use.
const [NOWHERE, OUTRUN] = [ABSENT, LOST]

/**
 * When to come again if the table is full and no key was seen that will be idle, because others
 * have the records in hand.
 */
const NOBODY_SEEN_US = 1_000_000

/** What all limiters of a thread share. */
export interface SharedParts {
  readonly table: SharedTable
  readonly journals: Journals
  readonly recordWords: number
  readonly allowWhenFull: boolean
  /** Called after each race that was lost: how many in a row. */
  onLost(lost: number): void
}

export interface SharedStates extends OpenStates {
  /** The limiter's clock. */
  nowUs(): number
  inspect(limit: string, key: string): StateFields | undefined
}

/** The limiter that they are of. */
export interface SharedLimiter {
  nowUs(): number
  /** Called when there was no room for a new key. */
  onFull(): void
  onClose(): void
  /** The same once more: the limiter was closed, and settles or releases what it decided before. */
  openAgain(): OpenStates
}

/** A function that makes functions, as in chain.ts, and for the same reason. */
export function sharedStates(shared: SharedParts, scope: Scope, keyScope: KeyScope, limiter: SharedLimiter): SharedStates {
  const { nowUs, onFull } = limiter
  const { table, journals, recordWords, allowWhenFull, onLost } = shared
  const { find, put, idleAtUs } = table.chain
  const { nextLookUs } = journals
  const { rules, starts, figures, words, cellsFor, clear, load, loadOther, holdersAt, idleInUs, packed } = recordCopy(scope.limits)
  const { thread } = journals
  const hasHolders = thread !== 0 && holderWords(rules) > 0
  const mayBeLonger = rules.some(({ algorithm }) => algorithm.heldWords !== undefined)
  const { scope: number } = keyScope
  const count = scope.limits.length
  let isClosed = false

  /**
   * A step, until no other thread is faster. All in one piece: what is small is compiled into it
   * until it is full, and a time that is passed to what is left over is made an object of. Only
   * here, and not in what is compiled into it, are the arrays constants.
   */
  function apply(step: Step, isWanted: boolean): boolean {
    if (isClosed) return applyLate(step, isWanted)
    const isTold = isWanted || hasHolders
    const { op, parts, aheadUs, ofUs } = step
    const { key } = parts[0] as Part
    const cells = parts.length === count ? parts : cellsFor(parts)
    if (count > 1 || key.length > LONGEST_KEY) checkKeys(parts)
    for (let lost = 0; ; lost++) {
      let place = find(key, keyScope, words)
      let isPresent = place >= 0
      for (let k = 0; isPresent && k < count; k++) {
        const cell = cells[k] as Cell
        const rule = rules[k] as Rule
        const i = starts[k] as number
        // Writing a reference takes longer than looking whether it is there already.
        if (cell.s !== words) cell.s = words
        if (cell.own !== rule) cell.own = rule
        cell.i = i
        cell.isHeld = true
        for (let at = i - rule.figures.length; at < i; at++) if (words[at] !== figures[at]) isPresent = false
      }
      if (mayBeLonger && isPresent) isPresent = areAsLong()
      if (!isPresent) place = readOther(place, key, cells)
      if (op === 'forget') {
        table.searchAgain()
        if (place === NOWHERE || (place >= 0 && put(place, 0, words))) return true
      } else if (place !== OUTRUN) {
        // Not before the record was seen, and anew in each try: a thread that is held up in between
        // would take a newer record for one from the future.
        const atUs = nowUs()
        if (atUs >= (nextLookUs[0] as number)) journals.look(atUs)
        const granted = decide(op, parts, atUs, aheadUs, ofUs, isTold)
        if (op === 'give' || op === 'settle') table.searchAgain()
        if (!hasChanged(parts)) {
          // A question about a key for which there is no room is answered as the call would be.
          if (place === NOWHERE && mayBeRefused(step) && !table.hasRoom(atUs)) {
            onFull()
            return refuse(parts)
          }
          return granted
        }
        if (hasHolders && op !== 'give') noteHolders(step, cells)
        idleAtUs[0] = atUs + idleInUs(cells, atUs, isTold && cells === parts)
        // A step may have brought other numbers than those of the limiter: a claim does
        // (queue/claim.ts).
        for (let k = 0; isPresent && k < count; k++) isPresent = (cells[k] as Cell).own === rules[k]
        const record = isPresent ? words : packed(cells)
        if (place !== NOWHERE) {
          if (put(place, number, record)) return granted
        } else {
          const inserted = table.insert(number, record, atUs)
          if (inserted) return granted
          if (inserted === undefined) {
            onFull()
            if (allowWhenFull) return granted
            // Nothing is charged: it is decided again as a question, and refused.
            clear(cells)
            decide('ask', parts, atUs, aheadUs, ofUs, isTold)
            return refuse(parts)
          }
        }
      }
      onLost(lost)
    }
  }

  /** Whether the states that were read take no more words than the present numbers have. */
  function areAsLong(): boolean {
    return rules.every((rule, k) => wordsOf(rule, words, starts[k] as number) === rule.words)
  }

  /**
   * Notes what this thread holds by a step: a charge, a place in line, or a lease that is counted
   * again.
   */
  function noteHolders({ op, parts }: Step, cells: readonly Cell[]): void {
    for (const part of parts) {
      const { rule, changed, ticket, verdict } = part
      if (!changed || rule.places === undefined) continue
      const token = op === 'renew' ? (ticket?.words[0] as number) : verdict.enteredUs
      enter(part.s, holdersAt(cells), cells, cells.indexOf(part), token, thread)
    }
  }

  /**
   * Points the cells at what was found, if that is not all under the present numbers: a place, or
   * what `find` answers else.
   */
  function readOther(found: number, key: string, cells: readonly Cell[]): number {
    if (found === NOWHERE) clear(cells)
    if (found < 0 || load(cells)) return found
    const whole = new Float64Array(recordWords)
    const place = find(key, keyScope, whole)
    if (place >= 0) loadOther(cells, whole)
    // The other thread that was faster may have dropped it.
    return place === NOWHERE ? OUTRUN : place
  }

  function mayBeRefused({ op, parts }: Step): boolean {
    return op !== 'give' && !allowWhenFull && parts.some(({ cost }) => cost > 0)
  }

  /** Says of all limits that they limit until there is room. */
  function refuse(parts: readonly Part[]): false {
    const us = table.soonestIdleUs === Number.POSITIVE_INFINITY ? NOBODY_SEEN_US : table.soonestIdleUs
    for (const { verdict } of parts) refusedByFull(verdict, us)
    return false
  }

  /** Its number may be another limiter's by now. */
  function applyLate(step: Step, isWanted: boolean): boolean {
    const again = limiter.openAgain()
    try {
      return again.apply(step, isWanted)
    } finally {
      again.close()
    }
  }

  /** States stay until they are idle, so none is freed here. */
  function close(): void {
    if (isClosed) return
    isClosed = true
    limiter.onClose()
  }

  function inspect(limit: string, key: string): StateFields | undefined {
    const cells = cellsFor([])
    while (readOther(find(key, keyScope, words), key, cells) === OUTRUN);
    const cell = cells[scope.limits.findIndex(({ name }) => name === limit)]
    return cell?.isHeld ? cell.own.algorithm.fields(cell.own, cell.s, cell.i) : undefined
  }

  return { apply, close, nowUs, inspect }
}

function hasChanged(parts: readonly Part[]): boolean {
  for (let k = 0; k < parts.length; k++) if ((parts[k] as Part).changed) return true
  return false
}

function checkKeys(parts: readonly Part[]): void {
  const [{ key }] = parts as [Part]
  if (key.length > LONGEST_KEY) throw new SluiceError('KEY', `key ${shown(key)} must have at most ${LONGEST_KEY} characters`)
  for (const part of parts) {
    if (part.key === key) continue
    throw new SluiceError('UNSUPPORTED', 'shared memory decides several limits at once on one key only: give one key for all limits')
  }
}

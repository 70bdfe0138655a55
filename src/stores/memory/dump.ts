/**
 * The states of a memory store as bytes, to go on with after a restart: a head, then every state
 * that is in use. A state is its limiter's name, its key, and the record of codec.ts, which has the
 * name of the limit and the numbers that it is written under.
 *
 *   6 bytes    "sluice"
 *   1          the version of this format
 *   4          how many states follow
 *   each       1 + n   the name of the limiter, with its size before it
 *              2 + n   the key in UTF-8, with its size before it
 *              n       the record, which says where it ends
 */
import { readState, type StateRecord, writeState } from '../../algorithms/codec.ts'
import { SluiceError } from '../../errors.ts'
import { load } from '../load.ts'
import { Part } from '../step.ts'
import type { MemoryStore } from './memory-store.ts'

const MAGIC = 'sluice'
const VERSION = 1
const HEAD_BYTES = MAGIC.length + 1 + 4

/** Names that are given to limiters without one. They are another's in the next process. */
const NOT_NAMED = /^(unnamed|by-request)-\d+$/

/**
 * The states of a memory store, as bytes that `restore` takes in the next process. Limiters need a
 * name for that: states of others are left out, and idle ones, which equal no state; and places
 * that are held without a lease, because their holders end with the process.
 */
export function dump(store: MemoryStore): Uint8Array {
  const parts: Uint8Array[] = []
  for (const [limiter, { tables, nowUs }] of store.limiters) {
    if (NOT_NAMED.test(limiter)) continue
    const atUs = nowUs()
    for (const table of tables) {
      table.each((key, { rule, s, i }) => {
        if (rule.endless) return
        const resetUs = rule.algorithm.resetUs(rule, s, i, atUs)
        if (resetUs > 0) parts.push(joined([sized(limiter, 1), sized(key, 2), writeState(rule, s, i, atUs + resetUs, table.limit)]))
      })
    }
  }
  return joined([new TextEncoder().encode(MAGIC), bytesOf(VERSION, 1), bytesOf(parts.length, 4), ...parts])
}

/**
 * Puts what `dump` gave into a memory store that holds nothing yet. Throws on any other bytes, with
 * nothing restored; and at the first key that has no room.
 */
export function restore(store: MemoryStore, bytes: Uint8Array): void {
  const states = statesIn(bytes)
  if (store.size > 0) throw new SluiceError('CONFIG', `restore needs a store that holds nothing, and this one holds ${store.size} keys`)
  for (const state of states) {
    if (isPut(store, state)) continue
    throw new SluiceError('CONFIG', `restore needs room for ${states.length} keys: make the store with a larger maxKeys`)
  }
}

/**
 * As a limiter of that name would, which is open for this moment: if there is no other, the state
 * leaves when it is idle.
 */
function isPut(store: MemoryStore, { limiter, key, record }: DumpedState): boolean {
  const { name, rule } = record
  const part = new Part(name, rule, key, 0)
  load(part, record)
  const open = store.open({ name: limiter, limits: [{ name, rule }] }, store.limiters.get(limiter)?.nowUs ?? (() => 0))
  const table = store.limiters.get(limiter)?.tables.find(({ limit }) => limit === name)
  table?.insert(part, 0)
  open.close()
  return table?.inspect(key) !== undefined
}

interface DumpedState {
  readonly limiter: string
  readonly key: string
  readonly record: StateRecord
}

function statesIn(bytes: Uint8Array): DumpedState[] {
  if (!(bytes instanceof Uint8Array)) throw foreign('they are no Uint8Array')
  if (bytes.length < HEAD_BYTES || textAt(bytes, 0, MAGIC.length) !== MAGIC) throw foreign('they do not begin as those of dump do')
  const version = bytes[MAGIC.length]
  if (version !== VERSION) throw foreign(`they have the version ${version}, and this version of Sluice knows ${VERSION}`)
  const states: DumpedState[] = []
  let at = HEAD_BYTES
  for (let left = numberAt(bytes, MAGIC.length + 1, 4); left > 0; left--) {
    const state = stateAt(bytes, at)
    states.push(state)
    at = state.record.end
  }
  if (at !== bytes.length) throw foreign(`${bytes.length - at} of them stand behind the last state`)
  return states
}

function stateAt(bytes: Uint8Array, at: number): DumpedState {
  const keyAt = at + 1 + numberAt(bytes, at, 1)
  const recordAt = keyAt + 2 + numberAt(bytes, keyAt, 2)
  if (recordAt >= bytes.length) throw foreign('they are cut off')
  try {
    return { limiter: textAt(bytes, at + 1, keyAt), key: textAt(bytes, keyAt + 2, recordAt), record: readState(bytes, recordAt) }
  } catch (cause) {
    throw foreign((cause as Error).message, cause)
  }
}

function sized(text: string, sizeBytes: number): Uint8Array {
  const bytes = new TextEncoder().encode(text)
  return joined([bytesOf(bytes.length, sizeBytes), bytes])
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

function bytesOf(number: number, size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, k) => Math.floor(number / 256 ** (size - 1 - k)) % 256)
}

/** What lies behind the end counts as 0: the record there is missed then. */
function numberAt(bytes: Uint8Array, at: number, size: number): number {
  let number = 0
  for (let k = at; k < at + size; k++) number = number * 256 + (bytes[k] ?? 0)
  return number
}

function textAt(bytes: Uint8Array, from: number, to: number): string {
  return new TextDecoder().decode(bytes.subarray(from, to))
}

function foreign(what: string, cause?: unknown): SluiceError {
  return new SluiceError('STORE', `these bytes cannot be restored: ${what}`, { cause })
}

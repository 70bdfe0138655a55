/**
 * Which limiters use the memory, so that threads that mean different things by one name are told so at once, and so that no limiter ever reads the
 * records of another. A list that only grows: [next entry, number, length, text...], the newest first. An entry is written privately and then
 * becomes the first by one swap; whoever loses looks at what has come in first.
 */
import { SluiceError } from '../../errors.ts'
import type { Scope } from '../store.ts'
import { CATALOG_END, CATALOG_HEAD, type SharedMemory } from './memory.ts'

const NUMBER = 1
const LENGTH = 2
const TEXT = 3
/** As many as a record has bits for. */
const MOST_SCOPES = 4_095

/** The number of a limiter, entered if it is new. Refuses limits that are not those that another thread gave that name. */
export function scopeNumber(memory: SharedMemory, scope: Scope): number {
  const { ints } = memory
  const text = textOf(scope)
  let own = 0
  for (;;) {
    const first = Atomics.load(ints, CATALOG_HEAD)
    const known = entryNamed(ints, first, scope.name)
    const number = first === 0 ? 1 : (ints[first + NUMBER] as number) + 1
    if (known !== 0 || number > MOST_SCOPES) {
      if (own !== 0) giveBack(ints, own, text)
      if (known !== 0) return numberOf(ints, known, scope, text)
      throw full(scope)
    }
    own ||= written(memory, scope, text)
    ints[own] = first
    ints[own + NUMBER] = number
    if (Atomics.compareExchange(ints, CATALOG_HEAD, first, own) === first) return number
  }
}

function textOf({ name, limits }: Scope): string {
  return `${name}\n${limits.map((limit) => `${limit.name}: ${limit.rule.algorithm.type}`).join(', ')}`
}

function entryNamed(ints: Int32Array, first: number, name: string): number {
  let entry = first
  while (entry !== 0 && !textAt(ints, entry).startsWith(`${name}\n`)) entry = ints[entry] as number
  return entry
}

function textAt(ints: Int32Array, entry: number): string {
  const units = ints.slice(entry + TEXT, entry + TEXT + (ints[entry + LENGTH] as number))
  return String.fromCharCode(...units)
}

function numberOf(ints: Int32Array, entry: number, { name }: Scope, text: string): number {
  const known = textAt(ints, entry)
  if (known === text) return ints[entry + NUMBER] as number
  const limitsOf = (whole: string) => `{ ${whole.slice(name.length + 1)} }`
  throw new SluiceError(
    'CONFIG',
    `limiter '${name}' with ${limitsOf(text)} must have the limits, in the order, that it has in the other threads of this shared store: ${limitsOf(known)}`,
  )
}

/** Room for an entry, with its text. A thread that dies here leaves it unused. */
function written(memory: SharedMemory, scope: Scope, text: string): number {
  const { ints } = memory
  let entry = 0
  let end = 0
  do {
    entry = Atomics.load(ints, CATALOG_END)
    end = entry + TEXT + text.length
    // Before it is taken: one that is refused must leave the room to those that fit.
    if (end > memory.catalogEnd) throw full(scope)
  } while (Atomics.compareExchange(ints, CATALOG_END, entry, end) !== entry)
  ints[entry + LENGTH] = text.length
  for (let k = 0; k < text.length; k++) ints[entry + TEXT + k] = text.charCodeAt(k)
  return entry
}

/** Somebody else was faster. The room is free again, unless more was taken behind it meanwhile. */
function giveBack(ints: Int32Array, entry: number, text: string): void {
  Atomics.compareExchange(ints, CATALOG_END, entry + TEXT + text.length, entry)
}

function full({ name }: Scope): SluiceError {
  return new SluiceError(
    'CONFIG',
    `limiter '${name}' is one too many for this shared store: the names of its limiters and limits must not exceed 4,000 characters`,
  )
}

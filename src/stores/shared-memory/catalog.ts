/**
 * Which limiters use the memory, so that threads that mean different things by one name are told so at once, and so that no limiter ever reads the
 * records of another. A list that only grows: [next entry, number, length, room, text..., width of each limit...], the newest first. An entry is written
 * privately and then becomes the first by one swap; a thread that loses the race looks at what has come in first.
 *
 * A width is how many doubles the limit takes under the largest numbers it has been opened with, in any thread. Numbers change limit by limit, so one record
 * may hold every limit at its widest, and it must fit: the room is what is left of a record then.
 */
import { SluiceError } from '../../errors.ts'
import type { Scope } from '../store.ts'
import { CATALOG_END, CATALOG_HEAD, type SharedMemory } from './layout.ts'
import { wordsOfAll } from './record.ts'

const NUMBER = 1
const LENGTH = 2
const ROOM = 3
const TEXT = 4
/** As many as a record has bits for. */
const MOST_SCOPES = 4_095

/** The number of a limiter, entered if it is new. Refuses limits that are not those that another thread gave that name, or that do not fit. */
export function scopeNumber(memory: SharedMemory, scope: Scope): number {
  const { ints, recordWords } = memory
  const text = textOf(scope)
  const words = sumOf(widthsOf(scope))
  if (words > recordWords) throw tooLarge(scope, words, recordWords)
  let own = 0
  for (;;) {
    const first = Atomics.load(ints, CATALOG_HEAD)
    const known = entryNamed(ints, first, scope.name)
    const number = first === 0 ? 1 : (ints[first + NUMBER] as number) + 1
    if (known !== 0 || number > MOST_SCOPES) {
      if (own !== 0) giveBack(ints, own, text, scope)
      if (known !== 0) return numberOf(memory, known, scope, text)
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

function numberOf(memory: SharedMemory, entry: number, scope: Scope, text: string): number {
  const { ints } = memory
  const known = textAt(ints, entry)
  if (known === text) {
    widen(memory, entry, scope)
    return ints[entry + NUMBER] as number
  }
  const limitsOf = (whole: string) => `{ ${whole.slice(scope.name.length + 1)} }`
  throw new SluiceError(
    'CONFIG',
    `limiter '${scope.name}' with ${limitsOf(text)} must have the limits, in the order, that it has in the other threads of this shared store: ${limitsOf(known)}`,
  )
}

/** Makes every limit of an entry at least as wide as it is now. The room for that is taken first, in one swap: a thread that dies here leaves some unused. */
function widen({ ints, recordWords }: SharedMemory, entry: number, scope: Scope): void {
  const widthsAt = entry + TEXT + (ints[entry + LENGTH] as number)
  const widths = widthsOf(scope)
  let room = 0
  let taken = 0
  do {
    room = Atomics.load(ints, entry + ROOM)
    taken = widths.reduce((sum, width, k) => sum + Math.max(0, width - Atomics.load(ints, widthsAt + k)), 0)
    if (taken > room) throw tooLarge(scope, recordWords - room + taken, recordWords)
  } while (taken > 0 && Atomics.compareExchange(ints, entry + ROOM, room, room - taken) !== room)
  widths.forEach((width, k) => {
    for (let before = Atomics.load(ints, widthsAt + k); width > before; before = Atomics.load(ints, widthsAt + k)) {
      if (Atomics.compareExchange(ints, widthsAt + k, before, width) === before) taken -= width - before
    }
  })
  // Another thread made them wider meanwhile.
  if (taken > 0) Atomics.add(ints, entry + ROOM, taken)
}

function sumOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width)
}

function widthsOf({ limits }: Scope): number[] {
  return limits.map(({ rule }) => wordsOfAll([rule]))
}

/** Room for an entry, with its text and widths. A thread that dies here leaves it unused. */
function written(memory: SharedMemory, scope: Scope, text: string): number {
  const { ints, recordWords } = memory
  const widths = widthsOf(scope)
  let entry = 0
  let end = 0
  do {
    entry = Atomics.load(ints, CATALOG_END)
    end = endOf(entry, text, scope)
    // Before it is taken: one that is refused must leave the room to those that fit.
    if (end > memory.catalogEnd) throw full(scope)
  } while (Atomics.compareExchange(ints, CATALOG_END, entry, end) !== entry)
  ints[entry + LENGTH] = text.length
  ints[entry + ROOM] = recordWords - sumOf(widths)
  for (let k = 0; k < text.length; k++) ints[entry + TEXT + k] = text.charCodeAt(k)
  ints.set(widths, entry + TEXT + text.length)
  return entry
}

/** Another thread was faster. The room is free again, unless more was taken behind it meanwhile. */
function giveBack(ints: Int32Array, entry: number, text: string, scope: Scope): void {
  Atomics.compareExchange(ints, CATALOG_END, endOf(entry, text, scope), entry)
}

function endOf(entry: number, text: string, { limits }: Scope): number {
  return entry + TEXT + text.length + limits.length
}

function tooLarge(scope: Scope, words: number, recordWords: number): SluiceError {
  const now = sumOf(widthsOf(scope))
  const why = words > now ? `, ${now} for these numbers and the rest for limits of it that were larger before` : ''
  return new SluiceError(
    'CONFIG',
    `limiter '${scope.name}' needs recordWords ${words}${why}, the shared store was made with ${recordWords}: make it with sharedStore({ maxKeys, limits }), or with recordWords ${words}`,
  )
}

function full({ name }: Scope): SluiceError {
  return new SluiceError(
    'CONFIG',
    `limiter '${name}' is one too many for this shared store: the names of its limiters and limits must not exceed 4,000 characters`,
  )
}

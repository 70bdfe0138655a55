/**
 * Which limiters use the memory, so that threads that mean different things by one name are told so
 * at once, and so that no limiter ever reads the records of another. A list that only grows: [next
 * entry, number, length, text..., width of each limit...], the newest first. An entry is written
 * privately and then becomes the first by one swap; a thread that loses the race looks at what has
 * come in first.
 *
 * A width is how many doubles the limit takes under the largest numbers it has been opened with, in
 * any thread. Numbers change limit by limit, so one record may hold every limit at its widest, and
 * must have room for that. A limiter of which a limit becomes wider is entered again, under its
 * number.
 */
import { SluiceError } from '../../errors.ts'
import type { Scope } from '../store.ts'
import { CATALOG_END, CATALOG_HEAD, type SharedMemory } from './layout.ts'
import { wordsOfAll } from './record.ts'

const NUMBER = 1
const LENGTH = 2
const TEXT = 3
/** As many as a record has bits for. */
const MOST_SCOPES = 4_095

/**
 * The number of a limiter, entered if it is new. Refuses limits that are not those that another
 * thread gave that name, or that do not fit.
 */
export function scopeNumber(memory: SharedMemory, scope: Scope): number {
  const { ints } = memory
  const text = textOf(scope)
  const widths = scope.limits.map(({ rule }) => wordsOfAll([rule]))
  checkRoom(memory, scope, widths, widths)
  const own = { entry: 0 }
  try {
    for (;;) {
      const number = entered(memory, scope, text, widths, own)
      if (number !== 0) return number
    }
  } finally {
    // Another thread was faster. The room is free again, unless more was taken behind it meanwhile.
    if (own.entry !== 0) Atomics.compareExchange(ints, CATALOG_END, endOf(own.entry, text, widths), own.entry)
  }
}

/**
 * One try at it: 0 if another thread was faster. `own`: where an entry was written that is not in
 * the list.
 */
function entered(memory: SharedMemory, scope: Scope, text: string, widths: readonly number[], own: { entry: number }): number {
  const { ints } = memory
  const first = Atomics.load(ints, CATALOG_HEAD)
  const known = entryNamed(ints, first, scope.name)
  const before = known === 0 ? [] : widthsAt(ints, known, scope, text)
  const widest = widths.map((width, k) => Math.max(width, before[k] ?? 0))
  // A record has one state of a limit that is alone, so its numbers of before do not count.
  if (known !== 0 && (widths.length === 1 || widest.every((width, k) => width === before[k]))) return ints[known + NUMBER] as number
  checkRoom(memory, scope, widest, widths)
  const number = known === 0 ? highest(ints, first) + 1 : (ints[known + NUMBER] as number)
  if (number > MOST_SCOPES) throw full(scope)
  own.entry ||= written(memory, scope, text, widths)
  ints[own.entry] = first
  ints[own.entry + NUMBER] = number
  ints.set(widest, own.entry + TEXT + text.length)
  if (Atomics.compareExchange(ints, CATALOG_HEAD, first, own.entry) !== first) return 0
  own.entry = 0
  return number
}

/**
 * A limiter that some thread has opened: its number, its name and the types of its limits, in their
 * order.
 */
export interface CatalogEntry {
  readonly number: number
  readonly name: string
  readonly types: readonly string[]
}

/** All limiters, each once for every time that a limit of it became wider. */
export function entriesIn({ ints }: SharedMemory): CatalogEntry[] {
  const entries: CatalogEntry[] = []
  for (let entry = Atomics.load(ints, CATALOG_HEAD); entry !== 0; entry = ints[entry] as number) {
    const [name, limits] = textAt(ints, entry).split('\n') as [string, string]
    const types = limits.split(', ').map((limit) => limit.slice(limit.indexOf(': ') + 2))
    entries.push({ number: ints[entry + NUMBER] as number, name, types })
  }
  return entries
}

function textOf({ name, limits }: Scope): string {
  return `${name}\n${limits.map((limit) => `${limit.name}: ${limit.rule.algorithm.type}`).join(', ')}`
}

function entryNamed(ints: Int32Array, first: number, name: string): number {
  let entry = first
  while (entry !== 0 && !textAt(ints, entry).startsWith(`${name}\n`)) entry = ints[entry] as number
  return entry
}

function highest(ints: Int32Array, first: number): number {
  let number = 0
  for (let entry = first; entry !== 0; entry = ints[entry] as number) number = Math.max(number, ints[entry + NUMBER] as number)
  return number
}

function textAt(ints: Int32Array, entry: number): string {
  const units = ints.slice(entry + TEXT, entry + TEXT + (ints[entry + LENGTH] as number))
  return String.fromCharCode(...units)
}

/** How wide the limits of an entry have been, which must be these. */
function widthsAt(ints: Int32Array, entry: number, { name, limits }: Scope, text: string): number[] {
  const known = textAt(ints, entry)
  const from = entry + TEXT + text.length
  if (known === text) return [...ints.subarray(from, from + limits.length)]
  const limitsOf = (whole: string) => `{ ${whole.slice(name.length + 1)} }`
  throw new SluiceError(
    'CONFIG',
    `limiter '${name}' with ${limitsOf(text)} must have the limits, in the order, that it has in the other threads of this shared store: ${limitsOf(known)}`,
  )
}

/** Room for an entry, with its text. A thread that dies here leaves it unused. */
function written(memory: SharedMemory, scope: Scope, text: string, widths: readonly number[]): number {
  const { ints } = memory
  let entry = 0
  let end = 0
  do {
    entry = Atomics.load(ints, CATALOG_END)
    end = endOf(entry, text, widths)
    // Before it is taken: one that is refused must leave the room to those that fit.
    if (end > memory.catalogEnd) throw full(scope)
  } while (Atomics.compareExchange(ints, CATALOG_END, entry, end) !== entry)
  ints[entry + LENGTH] = text.length
  for (let k = 0; k < text.length; k++) ints[entry + TEXT + k] = text.charCodeAt(k)
  return entry
}

function endOf(entry: number, text: string, widths: readonly number[]): number {
  return entry + TEXT + text.length + widths.length
}

function checkRoom({ recordWords }: SharedMemory, { name }: Scope, widest: readonly number[], widths: readonly number[]): void {
  const [words, now] = [widest, widths].map((each) => each.reduce((sum, width) => sum + width)) as [number, number]
  if (words <= recordWords) return
  const why = words > now ? `, ${now} for these numbers and the rest for limits of it that were larger before` : ''
  throw new SluiceError(
    'CONFIG',
    `limiter '${name}' needs recordWords ${words}${why}, the shared store was made with ${recordWords}: make it with sharedStore({ maxKeys, limits }), or with recordWords ${words}`,
  )
}

function full({ name }: Scope): SluiceError {
  return new SluiceError(
    'CONFIG',
    `limiter '${name}' is one too many for this shared store: the names of its limiters and limits must not exceed 4,000 characters`,
  )
}

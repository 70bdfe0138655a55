/**
 * Every interleaving of a few threads. The code under test runs as it is; only the global `Atomics`
 * is replaced, by one that lets another thread go on at each operation.
 *
 * A thread is a plain function and cannot stop in the middle. So it is run again from its start
 * each time: the operations that it has done before are answered from its log, and the shared bytes
 * are put back to what they were then, for the plain reads and writes behind each; one more
 * operation is done on the bytes as they are now, and at the next it is thrown out. What it holds
 * privately is made anew with it, and is the same again. A state of the world is the shared bytes
 * and all logs; states that were seen before are not explored twice, but the schedules that lead
 * through them are counted.
 */
import { CATALOG_HEAD, COMPACTOR, type SharedMemory } from '../../src/stores/shared-memory/layout.ts'

export interface Thread {
  /** Runs one thread's work on the shared memory and returns what it saw. */
  run(): unknown
  /** Whether it begins only when the thread that may be stopped was stopped, or came to its end. */
  readonly isAfterwards?: boolean
}

export interface World {
  readonly buffer: SharedArrayBuffer
  /** Bytes that do not change, from and to: they are left out of everything, to be faster. */
  readonly constant: readonly (readonly [from: number, to: number])[]
  readonly threads: readonly Thread[]
  /**
   * Called in every end: what each thread returned, or undefined for one that was stopped. Throws
   * if something is wrong.
   */
  check(results: readonly unknown[]): void
  /** Where an operation belongs, for the count of collisions: by the index in 32-bit words. */
  siteOf(index: number): string
  /**
   * A site whose operations in a row are done as one, and whose answers make no difference to what
   * comes later: it is tested elsewhere.
   */
  readonly atOnce?: string
}

export interface Explored {
  readonly schedules: bigint
  readonly states: number
  readonly ends: number
  /** Swaps that failed, by where: in how many states one was made that failed. */
  readonly collisions: Readonly<Record<string, number>>
  /** The most operations that one thread made. */
  readonly longest: number
}

/** What the bytes between the constant ones were, as 32-bit words. */
type Copy = Int32Array

/** The shared bytes that change. */
class Changing {
  readonly #parts: readonly Int32Array[]
  readonly #length: number

  constructor({ buffer, constant }: World) {
    const froms = [0, ...constant.map(([, to]) => to)]
    const tos = [...constant.map(([from]) => from), buffer.byteLength]
    this.#parts = froms.map((from, k) => new Int32Array(buffer, from, ((tos[k] as number) - from) / 4))
    this.#length = this.#parts.reduce((sum, { length }) => sum + length, 0)
  }

  slice(): Copy {
    const copy = new Int32Array(this.#length)
    let at = 0
    for (const part of this.#parts) {
      copy.set(part, at)
      at += part.length
    }
    return copy
  }

  set(copy: Copy): void {
    let at = 0
    for (const part of this.#parts) {
      part.set(copy.subarray(at, at + part.length))
      at += part.length
    }
  }
}

type Operation = (...args: never[]) => unknown

/** Thrown out of a thread that has done its next operation. */
const PAUSE = Symbol('pause')

interface Log {
  readonly answers: readonly unknown[]
  /** The shared bytes right after each operation. */
  readonly after: readonly Copy[]
  /** Of all answers, and of whether it is done. */
  readonly digest: Digest
  readonly result: unknown
  readonly isDone: boolean
}

/**
 * 64 bits: among a million states two are taken for one with a probability of one in 40 million.
 */
type Digest = readonly [number, number]

const EMPTY: Digest = [0x9e3779b9, 0x85ebca6b]
const NEW: Log = { answers: [], after: [], digest: EMPTY, result: undefined, isDone: false }
const REAL = globalThis.Atomics

/**
 * Runs one thread alone for so many operations and leaves it there, as one that was terminated:
 * right before its next operation or, `abruptly`, right behind its last, before any plain write
 * that follows. Tells whether it came to its end before.
 */
export function runFor(world: World, thread: Thread, operations: number, { abruptly = false } = {}): boolean {
  const bytes = new Changing(world)
  let log = NEW
  for (let k = 0; k < operations && !log.isDone; k++) log = oneMore(world, bytes, bytes.slice(), thread, log, {}, '')
  if (abruptly && !log.isDone) bytes.set(log.after.at(-1) as Copy)
  return log.isDone
}

/**
 * `brokenSite`: swaps there do not compare, to see that this is noticed. `stoppable`: the thread
 * that may be stopped for ever at any point, right before its next operation or right behind its
 * last; what the others do then is explored too.
 */
export function explore(world: World, { stoppable = -1, brokenSite = '' } = {}): Explored {
  const bytes = new Changing(world)
  const known = new Map<string, bigint>()
  const collisions: Record<string, number> = {}
  let ends = 0
  let longest = 0

  const countFrom = (logs: readonly Log[], isStopped: boolean): bigint => {
    const before = bytes.slice()
    const id = stateId(before, logs, isStopped)
    const counted = known.get(id)
    if (counted !== undefined) return counted
    let schedules = 0n
    let canGoOn = false
    for (const [k, thread] of world.threads.entries()) {
      if ((logs[k] as Log).isDone || (isStopped && k === stoppable)) continue
      if (thread.isAfterwards === true && !isStopped && !(logs[stoppable] as Log).isDone) continue
      canGoOn = true
      const log = oneMore(world, bytes, before, thread, logs[k] as Log, collisions, brokenSite)
      longest = Math.max(longest, log.answers.length)
      const next = logs.map((other, at) => (at === k ? log : other))
      schedules += countFrom(next, isStopped)
      if (k === stoppable && !log.isDone) {
        // Before the plain writes that follow its operation.
        bytes.set(log.after.at(-1) as Copy)
        schedules += countFrom(next, true)
      }
      bytes.set(before)
    }
    if (!canGoOn) {
      ends += 1
      world.check(logs.map(({ isDone, result }) => (isDone ? result : undefined)))
      bytes.set(before)
      schedules = 1n
    } else if (stoppable >= 0 && !isStopped && !(logs[stoppable] as Log).isDone) {
      schedules += countFrom(logs, true)
      bytes.set(before)
    }
    known.set(id, schedules)
    return schedules
  }

  const schedules = countFrom(
    world.threads.map(() => NEW),
    false,
  )
  return { schedules, states: known.size, ends, collisions, longest }
}

/** The thread with one more operation done, on the bytes as they are `now`. */
function oneMore(
  world: World,
  bytes: Changing,
  now: Copy,
  thread: Thread,
  log: Log,
  collisions: Record<string, number>,
  brokenSite: string,
): Log {
  const answers = [...log.answers]
  const after = [...log.after]
  let at = 0
  let isAtOnce = false
  const told: unknown[] = []
  const step = (name: string, operation: Operation) => {
    return (array: Int32Array | BigInt64Array, index: number, ...rest: unknown[]) => {
      // Only what is shared is anybody else's business.
      if (array.buffer !== world.buffer) return operation(...([array, index, ...rest] as never[]))
      const site = world.siteOf(array instanceof BigInt64Array ? index * 2 : index)
      if (at < log.answers.length) {
        bytes.set(log.after[at] as Copy)
        return log.answers[at++]
      }
      if (at > log.answers.length && (!isAtOnce || site !== world.atOnce)) throw PAUSE
      if (at === log.answers.length) bytes.set(now)
      at += 1
      isAtOnce = site === world.atOnce
      const answer = operation(...([array, index, ...rest] as never[]))
      const hasLost = name === 'compareExchange' && answer !== rest[0]
      if (hasLost) collisions[site] = (collisions[site] ?? 0) + 1
      const isBroken = hasLost && site === brokenSite
      if (isBroken) (array as Int32Array)[index] = rest[1] as number
      answers.push(isBroken ? rest[0] : answer)
      if (!isAtOnce) told.push(answers.at(-1))
      after.push(bytes.slice())
      return answers.at(-1)
    }
  }
  const names = ['load', 'store', 'add', 'compareExchange'] as const
  globalThis.Atomics = Object.fromEntries(names.map((name) => [name, step(name, REAL[name] as Operation)])) as unknown as typeof Atomics
  try {
    const result = thread.run()
    return { answers, after, digest: digestOf(log, told, true), result, isDone: true }
  } catch (thrown) {
    if (thrown !== PAUSE) throw thrown
    return { answers, after, digest: digestOf(log, told, false), result: undefined, isDone: false }
  } finally {
    globalThis.Atomics = REAL
  }
}

function digestOf(log: Log, told: readonly unknown[], isDone: boolean): Digest {
  const text = `${told.join()}${isDone ? '.' : ''}`
  return mixed(log.digest, Buffer.from(text))
}

/** Two hashes side by side, each with a multiplier of its own. */
function mixed([low, high]: Digest, numbers: Int32Array | Uint8Array): Digest {
  for (let k = 0; k < numbers.length; k++) {
    const number = numbers[k] as number
    low = Math.imul(low ^ number, 0x01000193)
    low ^= low >>> 15
    high = Math.imul(high ^ number, 0x5bd1e995)
    high ^= high >>> 13
  }
  return [low, high]
}

function stateId(copy: Copy, logs: readonly Log[], isStopped: boolean): string {
  const bytes = mixed(EMPTY, copy)
  const [low, high] = mixed(bytes, Int32Array.from(logs.flatMap(({ digest }) => digest)))
  return `${low},${high},${isStopped}`
}

/**
 * Where an operation on shared memory belongs. What is done about the names of limiters comes
 * before the steps and between no two of them: it has tests of its own.
 */
export function sitesOf(memory: SharedMemory): Pick<World, 'siteOf' | 'atOnce'> {
  const siteOf = (index: number) => {
    if (index >= memory.headsAt) return 'head'
    if (index >= memory.journalsAt) return 'cell'
    return index >= memory.catalogAt || (index >= CATALOG_HEAD && index <= COMPACTOR) ? 'names' : 'header'
  }
  return { siteOf, atOnce: 'names' }
}

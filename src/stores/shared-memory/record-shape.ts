import type { Rule } from '../../algorithms/algorithm.ts'
import { SluiceError } from '../../errors.ts'
import type { Scope } from '../store.ts'

/** A limit and where its share of a record begins: its figures, then its words. */
interface Place {
  readonly limit: string
  readonly rule: Rule
  readonly first: number
}

/**
 * Where each limit of a limiter lies in a record, and a private copy of one record to work on.
 *
 * The words of some algorithms are more under some numbers than under others, so a record is read by the figures in it: they say how many
 * words follow. A limit without state has 0 as its first figure, and as its second how many words follow. Nearly always a record lies as one of
 * the present numbers would; only the first contact after they changed has to unpack it.
 */
export class RecordShape {
  readonly #recordWords: number
  readonly #present: readonly Place[]
  readonly #presentWords: Float64Array
  /** Where a whole record is read to. */
  readonly record: Float64Array
  /** The present places and words, unless the record that was read lies otherwise. */
  #places: readonly Place[]
  #words: Float64Array

  constructor(scope: Scope, recordWords: number) {
    this.#recordWords = recordWords
    this.#present = placesOf(scope.limits, ({ rule }) => wordsOf(rule))
    const size = sizeOf(scope.limits, ({ rule }) => wordsOf(rule))
    if (size > recordWords) throw tooLarge(`limiter '${scope.name}'`, size, recordWords)
    this.#presentWords = new Float64Array(size)
    this.record = new Float64Array(recordWords)
    this.#places = this.#present
    this.#words = this.#presentWords
  }

  /** The private copy. */
  get words(): Float64Array {
    return this.#words
  }

  clear(): void {
    this.#usePresent()
    this.#words.fill(0)
  }

  /** Makes the private copy of what was read into `record`. */
  take(): void {
    this.#usePresent()
    if (this.#present.some(({ rule, first }) => writtenWords(rule, this.record, first) !== wordsOf(rule))) this.#unpack(this.record)
    else for (let k = 0; k < this.#words.length; k++) this.#words[k] = this.record[k] as number
  }

  /** When every limit is idle, if nothing else happens. */
  idleAtUs(nowUs: number): number {
    let idleAtUs = nowUs
    for (const { limit, rule } of this.#places) {
      const written = this.writtenRule(limit, rule)
      if (written === undefined) continue
      idleAtUs = Math.max(idleAtUs, nowUs + written.algorithm.resetUs(written, this.#words, this.wordsAt(limit, rule), nowUs))
    }
    return idleAtUs
  }

  /** Spreads out a record, so that each limit has room for its words under the old numbers and under the present ones. */
  #unpack(record: Float64Array): void {
    const written = firstsIn(record, this.#present)
    const roomOf = ({ rule }: Place, k: number) => Math.max(wordsOf(rule), writtenWords(rule, record, written[k] as number))
    this.#places = placesOf(this.#limits(), (_, k) => roomOf(this.#present[k] as Place, k))
    this.#words = new Float64Array(sizeOf(this.#limits(), (_, k) => roomOf(this.#present[k] as Place, k)))
    this.#places.forEach(({ rule, first }, k) => {
      const from = written[k] as number
      this.#words.set(record.subarray(from, from + rule.figures.length + writtenWords(rule, record, from)), first)
    })
  }

  /** The private copy as a record. */
  packed(): Float64Array {
    for (const { rule, first } of this.#places) if (this.#words[first] === 0) this.#words[first + 1] = wordsOf(rule)
    if (this.#words === this.#presentWords) return this.#presentWords
    const record = this.#places.flatMap(({ rule, first }) => [
      ...this.#words.subarray(first, first + rule.figures.length + writtenWords(rule, this.#words, first)),
    ])
    if (record.length > this.#recordWords) throw tooLarge('a key', record.length, this.#recordWords)
    return Float64Array.from(record)
  }

  /** Where the state of a limit begins in `words`: behind its figures. */
  wordsAt(limit: string, rule: Rule): number {
    return this.#first(limit) + rule.figures.length
  }

  /** The rule that the state of a limit was written under, or undefined if there is no state. */
  writtenRule(limit: string, rule: Rule): Rule | undefined {
    const first = this.#first(limit)
    return this.#words[first] === 0 ? undefined : ruleAt(rule, this.#words, first)
  }

  /** Notes the rule that the state of a limit is now written under. */
  sign(limit: string, rule: Rule): void {
    this.#words.set(rule.figures, this.#first(limit))
  }

  #usePresent(): void {
    this.#places = this.#present
    this.#words = this.#presentWords
  }

  #limits(): Scope['limits'] {
    return this.#present.map(({ limit, rule }) => ({ name: limit, rule }))
  }

  #first(limit: string): number {
    for (const place of this.#places) if (place.limit === limit) return place.first
    throw new SluiceError('STORE', `there is no limit '${limit}' in this limiter`)
  }
}

function tooLarge(what: string, words: number, recordWords: number): SluiceError {
  return new SluiceError(
    'CONFIG',
    `${what} needs recordWords ${words}, the shared store was made with ${recordWords}: make it with sharedStore({ maxKeys, limits }), or with recordWords ${words}`,
  )
}

/** How many doubles the states of these limits take, with the numbers they were written under. */
export function wordsOfAll(rules: readonly Rule[]): number {
  return rules.reduce((words, rule) => words + rule.figures.length + wordsOf(rule), 0)
}

function wordsOf(rule: Rule): number {
  return rule.words
}

/** One limit behind the other, each with as many words as `room` says. */
function placesOf(limits: Scope['limits'], room: (limit: Scope['limits'][number], k: number) => number): Place[] {
  let first = 0
  return limits.map((limit, k) => {
    const place = { limit: limit.name, rule: limit.rule, first }
    first += limit.rule.figures.length + room(limit, k)
    return place
  })
}

function sizeOf(limits: Scope['limits'], room: (limit: Scope['limits'][number], k: number) => number): number {
  return limits.reduce((size, limit, k) => size + limit.rule.figures.length + room(limit, k), 0)
}

/** The rules of other numbers that were met last: most keys that are written under others are written under the same ones. */
const others = new WeakMap<Rule, Rule>()

/** The rule that the figures stand for, which begin at `first`. */
function ruleAt(present: Rule, words: Float64Array, first: number): Rule {
  if (standsAt(present, words, first)) return present
  const known = others.get(present)
  if (known !== undefined && standsAt(known, words, first)) return known
  const other = present.algorithm.ruleOf([...words.subarray(first, first + present.figures.length)])
  others.set(present, other)
  return other
}

function standsAt({ figures }: Rule, words: Float64Array, first: number): boolean {
  for (let k = 0; k < figures.length; k++) if (figures[k] !== words[first + k]) return false
  return true
}

/** How many words stand behind the figures that begin at `first`. */
function writtenWords(present: Rule, words: Float64Array, first: number): number {
  return words[first] === 0 ? (words[first + 1] as number) : wordsOf(ruleAt(present, words, first))
}

/** Where each limit begins in a record, read off the figures before it. */
function firstsIn(record: Float64Array, limits: readonly Place[]): number[] {
  let next = 0
  return limits.map(({ rule }) => {
    const first = next
    next += rule.figures.length + writtenWords(rule, record, first)
    return first
  })
}

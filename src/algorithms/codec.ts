/**
 * A state as bytes: what stores outside of this process keep. Its twin is codec.lua, and
 * redis-keys.md has a worked example of each algorithm.
 *
 * A state is one *record*. Several records may stand behind each other: a record says where it ends
 * and when it is idle, so that an unknown record can be kept until then, and dropped.
 *
 *   7 bytes    when the state is idle, whole microseconds since 1970
 *   1          size of the head
 *   head       1      the format (formats.ts)
 *              1      size of the name, then the name of the limit; empty for `default`
 *              1      size of the figures, then the figures of the rule that the state is written under, packed
 *              0-6    tags: how the words are written
 *   words      as the tags say
 *
 * All numbers are big-endian. The bytes before the tags are the record's *label*: they depend on
 * the limit alone.
 *
 * **Figures** are mostly round. So a figure is its digits, times eight, plus how many zeros follow
 * them, seven at most. That is written six bits to a byte, the lowest first; 64 is added if another
 * follows. The eighth bit stays free: a label is text that every client of Redis sends as it is, so
 * the script compares it and never has to pack a figure.
 *
 * **Words** are written with a tag each: 0 to 7 is so many bytes of the number itself; 8 to 14 is
 * so many less eight of (idle at - number), which is small for most times, and is taken where it is
 * the smaller one. Zeros at the end are left out. The first four words
 * have a tag each, two in a byte. If there are more, four tags stand there, then a byte of two
 * tags, which the words behind the fourth take in turn, then the number of those in three bytes.
 *
 * **Large states** have more than 20 words, which stand as doubles behind each other, all of them,
 * zeros too. Their tags are three bytes: how many words there are. So a word stands at a place of
 * its own, and the script reads and writes those that a decision is about (pages.lua).
 */
import { SluiceError, shown } from '../errors.ts'
import type { Algorithm, Format, Rule } from './algorithm.ts'
import { formatOf, KNOWN_FORMATS } from './formats.ts'
import { FORMATS } from './list.ts'
import { MAX_PERIOD_US } from './rate.ts'

/** The name of the one limit of a limiter that has no name. */
const ONLY = 'default'
const IDLE_BYTES = 7
/** How many words have a tag of their own. */
const LEAD = 4
/** How many bytes the tags take where words stand behind those. */
const LONG_TAGS = 6
/** States of more words are written as doubles. */
export const MOST_TAGGED = 20
/** How many bytes the tags of those take, and one of their words. */
const DOUBLE_TAGS = 3
const DOUBLE_BYTES = 8
/** As many as permits without a lease take, which is more than anything else does. */
export const MAX_WORDS = 600_201
const MAX_ZEROS = 7
/**
 * The tag of a number counted back from when the state is idle, to which its bytes are added. They
 * are six at most.
 */
const BACK = 8
const MAX_BACK = 2 ** 48
const MOST_TAG = 14

/**
 * The limit and the numbers of a state, as a record's head begins: all characters are below 128.
 */
export function labelOf(rule: Rule, name: string): string {
  const written = name === ONLY ? '' : name
  const figures = rule.figures.map(packed).join('')
  return [formatOf(rule.algorithm.type), written.length, written, figures.length, figures]
    .map((part) => (typeof part === 'number' ? String.fromCharCode(part) : part))
    .join('')
}

function packed(figure: number): string {
  let digits = figure
  let zeros = 0
  while (digits > 0 && digits % 10 === 0 && zeros < MAX_ZEROS) {
    digits /= 10
    zeros += 1
  }
  let left = digits * 8 + zeros
  let text = ''
  for (; left >= 64; left = Math.floor(left / 64)) text += String.fromCharCode(64 + (left % 64))
  return text + String.fromCharCode(left)
}

/**
 * The record of the state in `s` from `i` on, which is written under `rule` and idle at `idleAtUs`.
 */
export function writeState(rule: Rule, s: Float64Array, i: number, idleAtUs: number, name: string): Uint8Array {
  if (!isTime(idleAtUs)) throw unwritable(`the time ${idleAtUs} at which it is idle`)
  const most = Math.min(wordsToWrite(rule, s, i), s.length - i)
  return most > MOST_TAGGED ? largeRecord(rule, s.subarray(i, i + most), idleAtUs, name) : taggedRecord(rule, s, i, idleAtUs, name)
}

/** Of a state that grows no more than it needs: a log keeps its entries under a smaller limit. */
function wordsToWrite({ algorithm, words, freshWords }: Rule, s: Float64Array, i: number): number {
  return Math.max(freshWords, algorithm.neededWords?.(s, i) ?? words)
}

/** So many words a state under a rule may have. */
function mostWords({ algorithm, words }: Rule): number {
  return algorithm.neededWords === undefined ? words : MAX_WORDS
}

function largeRecord(rule: Rule, words: Float64Array, idleAtUs: number, name: string): Uint8Array {
  const writer = headWriter(labelBytes(rule, name), inThreeBytes(words.length), idleAtUs, words.length * DOUBLE_BYTES)
  for (const word of words) writer.double(word)
  return writer.bytes
}

function headWriter(label: Uint8Array, tags: readonly number[], idleAtUs: number, wordBytes: number): Writer {
  const writer = new Writer(IDLE_BYTES + 1 + label.length + tags.length + wordBytes)
  writer.number(idleAtUs, IDLE_BYTES)
  writer.number(label.length + tags.length, 1)
  writer.raw(label)
  writer.raw(tags)
  return writer
}

/** Labels as bytes, each made once: stores write many states under one rule. */
const labels = new WeakMap<Rule, Map<string, Uint8Array>>()

function labelBytes(rule: Rule, name: string): Uint8Array {
  const known = labels.get(rule) ?? new Map<string, Uint8Array>()
  const bytes = known.get(name) ?? Uint8Array.from(labelOf(rule, name), (letter) => letter.charCodeAt(0))
  if (known.size === 0) labels.set(rule, known)
  known.set(name, bytes)
  return bytes
}

const inThreeBytes = (number: number) => [number >> 16, (number >> 8) & 255, number & 255]

function taggedRecord(rule: Rule, s: Float64Array, i: number, idleAtUs: number, name: string): Uint8Array {
  const tags = tagsFor(s, i, countOf(s, i, wordsToWrite(rule, s, i)), idleAtUs)
  let size = 0
  for (const tag of tags) size += sizeOf(tag)
  const writer = headWriter(labelBytes(rule, name), tagBytes(tags), idleAtUs, size)
  for (let k = 0; k < tags.length; k++) {
    const tag = tags[k] as number
    const word = s[i + k] as number
    writer.number(tag < BACK ? word : idleAtUs - word, sizeOf(tag))
  }
  return writer.bytes
}

/** One tag for each word. */
function tagsFor(s: Float64Array, i: number, count: number, idleAtUs: number): number[] {
  const tags: number[] = []
  for (let k = 0; k < count; k++) {
    if (k < LEAD) tags.push(tagOf(s, i + k, i + k + 1, 1, idleAtUs))
    else tags.push(k < LEAD + 2 ? tagOf(s, i + k, i + count, 2, idleAtUs) : (tags[k - 2] as number))
  }
  return tags
}

/** How many words are written: all up to the last that is not 0. */
function countOf(s: Float64Array, i: number, most: number): number {
  let count = Math.min(most, s.length - i)
  while (count > 0 && s[i + count - 1] === 0) count -= 1
  return count
}

/** The tag that fits every `step`th word from one place to before another; 0 if there is none. */
function tagOf(s: Float64Array, from: number, to: number, step: number, idleAtUs: number): number {
  let least = 0
  let most = 0
  for (let at = from; at < to; at += step) {
    const word = s[at] as number
    if (!Number.isSafeInteger(word)) throw unwritable(`the word ${word}`)
    least = at === from ? word : Math.min(least, word)
    most = at === from ? word : Math.max(most, word)
  }
  if (least < 0) throw unwritable(`the word ${least}`)
  const back = idleAtUs - least
  const isBack = idleAtUs >= most && back < MAX_BACK && back < most
  return isBack ? BACK + bytesFor(back) : bytesFor(most)
}

/** How many bytes a word with this tag takes. */
function sizeOf(tag: number): number {
  return tag % BACK
}

function bytesFor(number: number): number {
  let size = 0
  for (let left = number; left >= 1; left /= 256) size += 1
  return size
}

function tagBytes(tags: readonly number[]): number[] {
  const pair = (k: number) => (tags[k] ?? 0) * 16 + (tags[k + 1] ?? 0)
  const own = tags.length > 2 ? [pair(0), pair(2)] : tags.length > 0 ? [pair(0)] : []
  return tags.length <= LEAD ? own : [...own, pair(LEAD), ...inThreeBytes(tags.length - LEAD)]
}

class Writer {
  readonly bytes: Uint8Array
  #at = 0

  constructor(size: number) {
    this.bytes = new Uint8Array(size)
  }

  number(number: number, size: number): void {
    let left = number
    for (let at = this.#at + size - 1; at >= this.#at; at--) {
      this.bytes[at] = left % 256
      left = Math.floor(left / 256)
    }
    this.#at += size
  }

  raw(bytes: ArrayLike<number>): void {
    this.bytes.set(bytes, this.#at)
    this.#at += bytes.length
  }

  double(word: number): void {
    if (!isTime(word)) throw unwritable(`the word ${word}`)
    new DataView(this.bytes.buffer).setFloat64(this.#at, word)
    this.#at += DOUBLE_BYTES
  }
}

/** A state that was read. */
export interface StateRecord {
  /** The name of the limit. */
  readonly name: string
  /** The rule that it is written under. */
  readonly rule: Rule
  /** The state from index 0 on, with no room behind it. */
  readonly words: Float64Array
  readonly idleAtUs: number
  /** Where the next record begins, or the bytes end. */
  readonly end: number
}

/** The expected limit of a record: then its head need not be taken apart. */
export interface Expected {
  readonly name: string
  readonly rule: Rule
}

/**
 * The record that begins at a place. Throws on anything that Sluice does not write, and says what
 * is wrong and where.
 */
export function readState(bytes: Uint8Array, at: number, expected?: Expected): StateRecord {
  const reader = new Reader(bytes, at)
  const idleAtUs = reader.number(IDLE_BYTES, 'the time at which it is idle')
  if (!isTime(idleAtUs)) throw foreign(at, `no state of Sluice begins with the byte ${bytes[at]}`)
  const headSize = reader.number(1, 'the size of its head')
  const headEnd = reader.at + headSize
  reader.need(headSize, 'its head')
  const { name, rule } =
    expected !== undefined && reader.passes(labelBytes(expected.rule, expected.name)) ? expected : labelIn(reader, headEnd)
  const words = headEnd - reader.at === DOUBLE_TAGS ? doublesIn(reader, rule) : taggedWordsIn(reader, headEnd, rule, idleAtUs)
  // To make room for one more charge may need a quarter more words than there are.
  const needed = rule.algorithm.neededWords?.(words, 0) ?? 0
  if (needed > 2 * Math.max(rule.words, words.length)) throw foreign(at, `it says that it has ${needed} words`)
  return { name, rule, words, idleAtUs, end: reader.at }
}

function labelIn(reader: Reader, headEnd: number): Expected {
  const { algorithm, figures: count } = formatAt(reader)
  const name = nameIn(reader, headEnd)
  return { name, rule: ruleIn(reader, headEnd, algorithm, count) }
}

function doublesIn(reader: Reader, rule: Rule): Float64Array {
  const { at } = reader
  const count = reader.number(DOUBLE_TAGS, 'the number of its words')
  if (count > mostWords(rule)) throw tooMany(at, count, rule)
  if (count <= MOST_TAGGED) throw foreign(at, `${count} words are no large state: those have more than ${MOST_TAGGED}`)
  reader.need(count * DOUBLE_BYTES, 'its words')
  const words = new Float64Array(Math.max(rule.freshWords, count))
  for (let k = 0; k < count; k++) words[k] = reader.double()
  return words
}

function taggedWordsIn(reader: Reader, headEnd: number, rule: Rule, idleAtUs: number): Float64Array {
  const tags = tagsIn(reader, headEnd, rule)
  const words = new Float64Array(Math.max(rule.freshWords, tags.length))
  for (let k = 0; k < tags.length; k++) words[k] = wordIn(reader, tags[k] as number, idleAtUs)
  // Zeros at the end were left out: the time of an entry may be one.
  const held = Math.min(rule.algorithm.heldWords?.(words, 0) ?? 0, MOST_TAGGED)
  return held > words.length ? Float64Array.from({ length: held }, (_, k) => words[k] ?? 0) : words
}

function formatAt(reader: Reader): Format {
  const { at } = reader
  const byte = reader.number(1, 'its format')
  const format = FORMATS.find((each) => each.format === byte)
  if (format === undefined) throw foreign(at, `the state has the format ${byte}, and this version of Sluice knows ${KNOWN_FORMATS}`)
  return format
}

function nameIn(reader: Reader, headEnd: number): string {
  const { at } = reader
  const name = reader.text(headEnd, 'the name of its limit')
  if (!/^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?$/.test(name) || name === ONLY) throw foreign(at, `${shown(name)} is no name of a limit`)
  return name === '' ? ONLY : name
}

/** Whether a state under these numbers can be read again: others are taken for damage. */
export function isReadable({ algorithm, figures }: Rule): boolean {
  return algorithm.isLimit(figures)
}

function ruleIn(reader: Reader, headEnd: number, algorithm: Algorithm, count: number): Rule {
  const { at } = reader
  const figures = unpacked(reader.text(headEnd, 'its figures'))
  if (figures === undefined || figures.length !== count || !figures.every((figure) => figure <= MAX_PERIOD_US)) {
    throw foreign(at, `${shown(figures ?? [])} are not ${count} figures from 0 to ${MAX_PERIOD_US}`)
  }
  if (algorithm.isLimit(figures)) return algorithm.ruleOf(figures)
  throw foreign(at, `the figures ${figures.join(' ')} are no limit of the type ${algorithm.type}`)
}

/** The figures, or undefined where they are not spelled as they are written. */
function unpacked(text: string): number[] | undefined {
  const figures: number[] = []
  let number = 0
  let unit = 1
  for (let k = 0; k < text.length; k++) {
    const byte = text.charCodeAt(k)
    number += (byte % 64) * unit
    unit *= 64
    if (byte >= 64) continue
    const zeros = number % 8
    const digits = (number - zeros) / 8
    const isShortest = byte > 0 || unit === 64
    if (!isShortest || (digits % 10 === 0 && zeros !== (digits === 0 ? 0 : MAX_ZEROS))) return undefined
    figures.push(digits * 10 ** zeros)
    number = 0
    unit = 1
  }
  return unit === 1 ? figures : undefined
}

/** One tag for each word. */
function tagsIn(reader: Reader, headEnd: number, rule: Rule): number[] {
  const { at } = reader
  const size = headEnd - at
  if (size !== LONG_TAGS && (size < 0 || size > LEAD / 2))
    throw foreign(at, `${size} bytes are no tags: there are 0, 1, 2, ${DOUBLE_TAGS} or ${LONG_TAGS}`)
  const tags: number[] = []
  while (reader.at < Math.min(headEnd, at + LEAD / 2)) tags.push(...pairIn(reader))
  const turns = size < LONG_TAGS ? [] : pairIn(reader)
  const behind = size < LONG_TAGS ? 0 : reader.number(3, 'the number of its words')
  // The last of an odd number has no other beside it in its byte.
  const count = behind === 0 && tags.at(-1) === 0 ? tags.length - 1 : tags.length + behind
  if (count > mostWords(rule)) throw tooMany(at, count, rule)
  if (count > MOST_TAGGED) throw foreign(at, `${count} words have no tags: no more than ${MOST_TAGGED} do`)
  for (let k = 0; k < behind; k++) tags.push(turns[k % 2] as number)
  return tags.slice(0, count)
}

function pairIn(reader: Reader): [number, number] {
  const byte = reader.number(1, 'its tags')
  return [byte >> 4, byte & 15]
}

function wordIn(reader: Reader, tag: number, idleAtUs: number): number {
  const { at } = reader
  if (tag > MOST_TAG) throw foreign(at, `no word has the tag ${tag}`)
  const number = reader.number(sizeOf(tag), 'its words')
  const word = tag < BACK ? number : idleAtUs - number
  if (!isTime(word)) throw foreign(at, `a word is ${word}, and all are whole numbers from 0 to 2^53 - 1`)
  return word
}

/** Walks over the bytes of one record. */
class Reader {
  at: number
  readonly #bytes: Uint8Array
  readonly #start: number

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes
    this.#start = at
    this.at = at
  }

  need(size: number, what: string): void {
    const left = this.#bytes.length - this.at
    if (left < size) throw foreign(this.#start, `the record ends within ${what}: ${left} of ${size} bytes are there`)
  }

  /** Goes on behind these bytes, if they stand here. */
  passes(expected: Uint8Array): boolean {
    for (let k = 0; k < expected.length; k++) if (this.#bytes[this.at + k] !== expected[k]) return false
    this.at += expected.length
    return true
  }

  number(size: number, what: string): number {
    this.need(size, what)
    let number = 0
    for (const end = this.at + size; this.at < end; this.at++) number = number * 256 + (this.#bytes[this.at] as number)
    return number
  }

  /** Its bytes are there. */
  double(): number {
    const { at } = this
    const word = new DataView(this.#bytes.buffer, this.#bytes.byteOffset).getFloat64(at)
    if (!isTime(word)) throw foreign(at, `a word is ${word}, and all are whole numbers from 0 to 2^53 - 1`)
    this.at += DOUBLE_BYTES
    return word
  }

  /** Text with its size before it, within the head. */
  text(headEnd: number, what: string): string {
    const { at } = this
    const size = at < headEnd ? this.number(1, what) : headEnd
    if (this.at + size > headEnd) throw foreign(at, `the head is too short for ${what}`)
    let text = ''
    for (const end = this.at + size; this.at < end; this.at++) text += String.fromCharCode(this.#bytes[this.at] as number)
    return text
  }
}

function tooMany(at: number, count: number, rule: Rule): SluiceError {
  return foreign(at, `${count} words are more than a state of ${rule.numbers} has, ${mostWords(rule)}`)
}

function isTime(us: number): boolean {
  return Number.isSafeInteger(us) && us >= 0
}

function foreign(at: number, what: string): SluiceError {
  return new SluiceError('STORE', `at byte ${at}: ${what}`)
}

function unwritable(what: string): SluiceError {
  return new SluiceError('STORE', `a state cannot be written: ${what} is not a whole number in range`)
}

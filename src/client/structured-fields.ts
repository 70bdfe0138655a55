/**
 * Reads lists and dictionaries of structured fields (RFC 9651) as far as rate limits use them;
 * whatever else stands there is no item.
 */

export type Bare = string | number | boolean

export interface Item {
  /** A String, a Token or a number; of a dictionary, the member's key. */
  readonly value: Bare
  readonly parameters: ReadonlyMap<string, Bare>
}

/**
 * Each alternative is tried at one place, and none can match in two ways: reading takes time in
 * proportion to the length.
 */
const KEY = /[a-z*][a-z0-9_\-.*]*/y
const BARE =
  /(-?\d{1,15}(?:\.\d{1,3})?)|"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"|([A-Za-z*][!#$%&'*+\-.^_`|~0-9A-Za-z:/]*)|:([A-Za-z0-9+/=]*):|\?([01])/y

/** The members of a list; undefined if it is none. */
export function itemsOf(text: string): Item[] | undefined {
  return membersOf(text, (reader) => reader.item())
}

/**
 * The members of a dictionary such as `limit=100, remaining=50` by name; undefined if it is none.
 */
export function dictionaryOf(text: string): Map<string, Bare> | undefined {
  const members = membersOf(text, (reader) => reader.member())
  return members && new Map(members)
}

function membersOf<T>(text: string, read: (reader: Reader) => T | undefined): T[] | undefined {
  const reader = new Reader(text)
  const members: T[] = []
  do {
    const member = read(reader)
    if (member === undefined) return undefined
    members.push(member)
  } while (reader.hasNext)
  return reader.isAtEnd ? members : undefined
}

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    let end = text.length
    while (text[end - 1] === ' ') end -= 1
    this.#text = text.slice(0, end)
    this.#skip(' ')
  }

  get isAtEnd(): boolean {
    return this.#at === this.#text.length
  }

  /** Whether another member follows, past the comma before it. */
  get hasNext(): boolean {
    this.#skip(' \t')
    if (!this.#takes(',')) return false
    this.#skip(' \t')
    return true
  }

  item(): Item | undefined {
    const value = this.#bare()
    const parameters = value === undefined ? undefined : this.#parameters()
    return parameters && { value: value as Bare, parameters }
  }

  member(): [string, Bare] | undefined {
    const key = this.#match(KEY)?.[0]
    if (key === undefined) return undefined
    const value = this.#takes('=') ? this.#bare() : true
    return value === undefined || this.#parameters() === undefined ? undefined : [key, value]
  }

  #parameters(): Map<string, Bare> | undefined {
    const parameters = new Map<string, Bare>()
    while (this.#takes(';')) {
      this.#skip(' ')
      const key = this.#match(KEY)?.[0]
      const value = key === undefined ? undefined : this.#takes('=') ? this.#bare() : true
      if (value === undefined) return undefined
      parameters.set(key as string, value)
    }
    return parameters
  }

  #bare(): Bare | undefined {
    const found = this.#match(BARE)
    if (found === undefined) return undefined
    const [, number, string, token, bytes, boolean] = found
    if (number !== undefined) return Number(number)
    if (string !== undefined) return string.replace(/\\(.)/g, '$1')
    return token ?? bytes ?? boolean === '1'
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)
    if (found === null) return undefined
    this.#at += found[0].length
    return found
  }

  #takes(mark: string): boolean {
    if (this.#text[this.#at] !== mark) return false
    this.#at += 1
    return true
  }

  #skip(spaces: string): void {
    while (!this.isAtEnd && spaces.includes(this.#text[this.#at] as string)) this.#at += 1
  }
}

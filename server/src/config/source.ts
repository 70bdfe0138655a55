/** A YAML file as plain values, each of which can be found again in the text. */
import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml'
import type { Mistake } from './config.ts'

export type Path = readonly (string | number)[]

/** A file that unfolds to more than this by aliases is an attack, or a mistake. */
const MOST_ALIASES = 100

export class Source {
  readonly mistakes: Mistake[] = []
  /** How messages name it. */
  readonly file: string
  readonly #document: Document.Parsed
  readonly #lines = new LineCounter()

  constructor(text: string, file: string) {
    this.file = file
    this.#document = parseDocument(text, { lineCounter: this.#lines, merge: true, prettyErrors: false, stringKeys: true })
    for (const { pos, message } of this.#document.errors) this.#note(pos[0], message)
  }

  /** All that the file holds; undefined if it is no YAML, which is among the mistakes then. */
  value(): unknown {
    if (this.mistakes.length > 0) return undefined
    try {
      return this.#document.toJS({ maxAliasCount: MOST_ALIASES })
    } catch (error) {
      this.#note(0, error instanceof Error ? error.message : String(error))
      return undefined
    }
  }

  /** Notes what is wrong with the value at a path. */
  wrong(path: Path, message: string): void {
    this.#note(this.#valueOffset(path), message)
  }

  /** Notes what is wrong with the name under which a value stands. */
  wrongName(path: Path, message: string): void {
    this.#note(this.#nameOffset(path), message)
  }

  #note(offset: number, message: string): void {
    const { line, col } = this.#lines.linePos(offset)
    this.mistakes.push({ file: this.file, line: Math.max(line, 1), column: Math.max(col, 1), message: inYaml(message) })
  }

  /**
   * What stands nowhere itself (it is missing, or came by an alias) is looked for where it should
   * be.
   */
  #valueOffset(path: Path): number {
    for (let length = path.length; length > 0; length--) {
      const node = this.#document.getIn(path.slice(0, length), true)
      if (isNode(node) && node.range) return length === path.length ? node.range[0] : this.#nameOffset(path.slice(0, length))
    }
    return this.#document.contents?.range?.[0] ?? 0
  }

  #nameOffset(path: Path): number {
    const parent = path.length === 1 ? this.#document.contents : this.#document.getIn(path.slice(0, -1), true)
    const pair = isMap(parent) ? parent.items.find(({ key }) => isScalar(key) && key.value === path.at(-1)) : undefined
    const key = pair?.key
    if (isNode(key) && key.range) return key.range[0]
    const node = this.#document.getIn(path, true)
    return isNode(node) && node.range ? node.range[0] : this.#valueOffset(path.slice(0, -1))
  }
}

/**
 * Authors of YAML see neither `undefined` nor `null`, but a value that is missing, or a name with
 * nothing behind it.
 */
function inYaml(message: string): string {
  return message
    .replace(/^([\w ':".-]+?) undefined must /, '$1 is missing: it must ')
    .replace(/^([\w ':".-]+?) null must /, '$1 is empty: it must ')
}

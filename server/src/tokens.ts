/**
 * Tokens: which callers may write, or read. Only digests are kept, so that no token can end up in a
 * log or a dump.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'

const MIN_LENGTH = 16

export class Tokens {
  #digests: readonly Buffer[]

  constructor(tokens: readonly string[]) {
    this.#digests = tokens.map(digest)
  }

  get count(): number {
    return this.#digests.length
  }

  /** Goes over to those of another. True if they differ. */
  use(next: Tokens): boolean {
    const isSame = Buffer.concat(next.#digests).equals(Buffer.concat(this.#digests))
    this.#digests = next.#digests
    return !isSame
  }

  /**
   * Whether an `Authorization` is one of ours. Every token is compared, and in the same time
   * whatever was sent.
   */
  accept(authorization: string | undefined): boolean {
    const sent = digest(/^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? '')
    let found = false
    for (const known of this.#digests) found = timingSafeEqual(known, sent) || found
    return found
  }
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/**
 * From a file with one on each line, or from a variable with commas between them. Undefined: no
 * token is needed.
 */
export function tokensFrom(file: string | undefined, variable: string | undefined, name = 'SLUICE_TOKENS'): Tokens | undefined {
  if (file === undefined && variable === undefined) return undefined
  const text = file === undefined ? (variable as string).replaceAll(',', '\n') : readFileSync(file, 'utf8')
  const source = file ?? name
  const tokens = text.split('\n').map((line) => line.trim())
  const given = tokens.filter((token) => token !== '')
  if (given.length === 0) throw new Error(`${source} must have a token: to need none, leave it out`)
  const bad = given.findIndex((token) => token.length < MIN_LENGTH || /\s/.test(token))
  // Its place, not its text.
  if (bad >= 0) throw new Error(`token ${bad + 1} of ${source} must be ${MIN_LENGTH} characters or more, without spaces`)
  return new Tokens(given)
}

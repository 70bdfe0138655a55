/** The known name that a misspelt one was probably meant to be. */

/** More wrong letters than this are another word. */
const MOST_TYPOS = 2

/**
 * The same letters in another case or with separators, or a typo or two away. Undefined: none is
 * near.
 */
export function nearest(written: string, known: readonly string[]): string | undefined {
  let found: string | undefined
  let fewest = MOST_TYPOS + 1
  for (const name of known) {
    const typos = distance(lettersOf(written), lettersOf(name))
    if (typos < fewest) {
      found = name
      fewest = typos
    }
  }
  return found
}

/**
 * `token-bucket`, `TOKEN_BUCKET` and `tokenBucket` have the same. The cut keeps a senseless text
 * from costing time.
 */
function lettersOf(name: string): string {
  return name
    .slice(0, 64)
    .toLowerCase()
    .replace(/[^a-z]/g, '')
}

/**
 * How many letters must be added, dropped or replaced to make one word of the other: row by row of
 * Levenshtein's table.
 */
function distance(from: string, to: string): number {
  let above = Array.from({ length: to.length + 1 }, (_, k) => k)
  for (const [row, letter] of [...from].entries()) {
    const current = [row + 1]
    for (let k = 0; k < to.length; k++) {
      const replaced = (above[k] as number) + (letter === to[k] ? 0 : 1)
      current.push(Math.min(replaced, (above[k + 1] as number) + 1, (current[k] as number) + 1))
    }
    above = current
  }
  return above[to.length] as number
}

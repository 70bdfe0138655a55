/**
 * The numbers of a rule in as few characters as can be: a state that is a string in Redis carries them. Its twin is packed.lua.
 *
 * They are mostly round, so a figure is its digits, times eight, and how many zeros follow them, seven at most. That is written six bits to a
 * character, the lowest first; the seventh bit says that more follow. The eighth stays free, because only such characters are one byte each
 * whatever a client does to send them.
 */

/** `100 1 600000`, which is 100 at once and one each 0.6 s, becomes three characters. */
export function packedNumbers(figures: readonly number[]): string {
  return figures.map(packed).join('')
}

function packed(figure: number): string {
  const zeros = Math.min(7, trailingZeros(figure))
  let text = ''
  let left = (figure / 10 ** zeros) * 8 + zeros
  for (; left >= 64; left = Math.floor(left / 64)) text += String.fromCharCode(64 + (left % 64))
  return text + String.fromCharCode(left)
}

function trailingZeros(figure: number): number {
  return figure === 0 ? 0 : (/0*$/.exec(`${figure}`) as RegExpExecArray)[0].length
}

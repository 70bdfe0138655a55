/** Moving many doubles at once. In Lua the prelude has functions of the same names. */

export function moveWords(s: Float64Array, to: number, from: number, count: number): void {
  s.copyWithin(to, from, from + count)
}

export function clearWords(s: Float64Array, from: number, count: number): void {
  s.fill(0, from, from + count)
}

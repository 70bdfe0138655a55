// How tightly the outermost operator of an expression binds in Lua.

export const OR = 1
export const AND = 2
export const COMPARISON = 3
export const SUM = 5
export const PRODUCT = 6
export const UNARY = 7
export const ATOM = 9

export const atom = (text, type) => ({ text, level: ATOM, type })

/** The text of an expression, in parentheses unless it binds at least that tightly. */
export function within(read, level) {
  return read.level >= level ? read.text : `(${read.text})`
}

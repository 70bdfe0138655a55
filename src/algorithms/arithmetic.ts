/**
 * Whole-number arithmetic that never rounds, on plain doubles. In Redis it is the same code,
 * generated as Lua.
 *
 * A level or a time that is not whole is kept as a pair: a whole number and a part, the numerator
 * over a denominator that the rule fixes. Products of two 53-bit numbers do not fit a double, so
 * they only ever appear inside `mulDiv`.
 */

/** Whole numbers up to here are exact in a double, and so is everything Sluice computes with. */
const MAX_EXACT = Number.MAX_SAFE_INTEGER

/**
 * The remainder of the last `mulDiv`. A typed array, so that handing back a second number allocates
 * nothing.
 */
export const remainder: Float64Array = new Float64Array(1)

/**
 * a x b / c: returns the whole quotient, leaves the remainder in `remainder[0]`.
 * Exact for whole operands from 0 (c from 1) to 2^53 - 1 whose quotient is below 2^53.
 */
export function mulDiv(a: number, b: number, c: number): number {
  const product = a * b
  return product <= MAX_EXACT ? divide(product, c) : mulDivWide(a, b, c)
}

/**
 * Exact for a product below 2^53: to be rounded up to a whole number k that it has not reached,
 * product / c would have to lie within half a unit of the last place of k, and then k x c would be
 * at least 2^53.
 */
function divide(product: number, c: number): number {
  const quotient = Math.floor(product / c)
  remainder[0] = product - quotient * c
  return quotient
}

/**
 * Long multiplication in base 2: for each bit of the smaller from the top, double what we have and
 * add the larger, reducing by c at once, so that nothing grows beyond 2c. Sums that could pass 2^53
 * are written as comparisons instead.
 */
function mulDivWide(one: number, other: number, c: number): number {
  const a = Math.min(one, other)
  const b = Math.max(one, other)
  const bWhole = divide(b, c)
  const bRest = remainder[0] as number
  let quotient = 0
  let rest = 0
  let left = a
  let bit = 2 ** 52
  while (bit > a) bit /= 2
  for (; bit >= 1; bit /= 2) {
    quotient *= 2
    if (rest >= c - rest) {
      rest -= c - rest
      quotient += 1
    } else {
      rest += rest
    }
    if (left >= bit) {
      left -= bit
      quotient += bWhole
      if (rest >= c - bRest) {
        rest -= c - bRest
        quotient += 1
      } else {
        rest += bRest
      }
    }
  }
  remainder[0] = rest
  return quotient
}

/**
 * (a x b + add) / c, where c + add is below 2^53: quotient returned, remainder left, like `mulDiv`.
 */
export function mulAddDiv(a: number, b: number, add: number, c: number): number {
  const whole = mulDiv(a, b, c)
  if (add === 0) return whole
  const extra = divide((remainder[0] as number) + add, c)
  return whole + extra
}

/**
 * (a x b + add) / c, rounded up, for the same operands. Leaves no remainder. The quick division is
 * exact for the reason given at `divide`.
 */
export function mulAddDivUp(a: number, b: number, add: number, c: number): number {
  const sum = a * b + add
  return sum <= MAX_EXACT ? Math.ceil(sum / c) : mulAddDivUpWide(a, b, add, c)
}

function mulAddDivUpWide(a: number, b: number, add: number, c: number): number {
  const quotient = mulAddDiv(a, b, add, c)
  return remainder[0] === 0 ? quotient : quotient + 1
}

export function greatestCommonDivisor(a: number, b: number): number {
  while (b !== 0) {
    const rest = a % b
    a = b
    b = rest
  }
  return a
}

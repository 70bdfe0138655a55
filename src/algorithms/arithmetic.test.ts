/** `BigInt` is the oracle: slow, obvious, and it cannot round. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { greatestCommonDivisor, mulAddDiv, mulAddDivUp, mulDiv, remainder } from './arithmetic.ts'

const MAX = 2 ** 53 - 1

/** One call: a x b + add over c. */
interface Operands {
  a: number
  b: number
  add: number
  c: number
}

interface Result {
  quotient: number
  rest: number
}

/** How many calls took which way, so that no test can pass by never going there. */
class Tally {
  fast = 0
  wide = 0

  add({ a, b }: Operands): void {
    if (BigInt(a) * BigInt(b) <= BigInt(MAX)) this.fast += 1
    else this.wide += 1
  }

  get cases(): number {
    return this.fast + this.wide
  }
}

function expected({ a, b, add, c }: Operands): Result {
  const total = BigInt(a) * BigInt(b) + BigInt(add)
  return { quotient: Number(total / BigInt(c)), rest: Number(total % BigInt(c)) }
}

/** For a bare `mulDiv` nothing is added. */
function mulDivAgrees(operands: Operands): boolean {
  const { quotient, rest } = expected({ ...operands, add: 0 })
  return mulDiv(operands.a, operands.b, operands.c) === quotient && remainder[0] === rest
}

function mulAddDivAgrees(operands: Operands): boolean {
  const { quotient, rest } = expected(operands)
  return mulAddDiv(operands.a, operands.b, operands.add, operands.c) === quotient && remainder[0] === rest
}

function mulAddDivUpAgrees(operands: Operands): boolean {
  const { quotient, rest } = expected(operands)
  return mulAddDivUp(operands.a, operands.b, operands.add, operands.c) === quotient + (rest > 0 ? 1 : 0)
}

function clampTo(least: number, value: number, most: number): number {
  return Math.max(least, Math.min(value, most))
}

/** The least divisor that keeps the quotient below 2^53. */
function leastDivisor(a: number, b: number): number {
  return Number((BigInt(a) * BigInt(b)) >> 53n) + 1
}

/**
 * The most that may be added: divisor and addend together stay below 2^53, and so does the quotient
 * rounded up.
 */
function mostAddend(a: number, b: number, c: number): number {
  const untilQuotient = BigInt(c) * BigInt(MAX) - BigInt(a) * BigInt(b)
  const most = untilQuotient < BigInt(MAX - c) ? Number(untilQuotient) : MAX - c
  return Math.max(most, 0)
}

/** From 0 to 1, evenly: `fc.double` would nearly always be next to 0. */
const share = fc.maxSafeNat().map((n) => n / 2 ** 53)
const exponent = fc.integer({ min: 0, max: 53 })
const nudge = fc.integer({ min: -2, max: 2 })

/** Every magnitude is as likely as every other, and the corners are more likely than anything. */
const operand = fc.oneof(
  fc.tuple(exponent, share).map(([k, part]) => clampTo(0, Math.floor(2 ** (k - 1) * (1 + part)), MAX)),
  fc.tuple(exponent, nudge).map(([k, d]) => clampTo(0, 2 ** k + d, MAX)),
  fc.integer({ min: 0, max: 1_000 }).map((less) => MAX - less),
  fc.maxSafeNat(),
  fc.nat({ max: 12 }),
)

/** Two factors, often with a product within a few units of 2^53, where the fast way ends. */
const factors = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(operand, operand) },
  {
    weight: 1,
    arbitrary: fc.tuple(operand, nudge).map(([a, d]): [number, number] => [a, clampTo(0, Math.floor(2 ** 53 / Math.max(a, 1)) + d, MAX)]),
  },
)

/** A divisor from `least` up: the least itself gives the largest quotient. */
function divisorFrom(least: number): fc.Arbitrary<number> {
  return fc.oneof(
    fc.nat({ max: 3 }).map((more) => clampTo(least, least + more, MAX)),
    operand.map((c) => clampTo(least, c, MAX)),
    share.map((part) => clampTo(least, least + Math.floor((MAX - least) * part), MAX)),
  )
}

function addendUpTo(most: number, c: number): fc.Arbitrary<number> {
  return fc.oneof(
    fc.constantFrom(0, 1, c - 1, most).map((add) => clampTo(0, add, most)),
    operand.map((add) => clampTo(0, add, most)),
  )
}

const operands: fc.Arbitrary<Operands> = factors.chain(([a, b]) =>
  divisorFrom(leastDivisor(a, b)).chain((c) => addendUpTo(mostAddend(a, b, c), c).map((add) => ({ a, b, add, c }))),
)

/**
 * Zero, one, the powers of two that matter with their neighbours, and numbers the library really
 * multiplies.
 */
const CORNERS = [
  ...[0, 1, 2, 3, 5, 7, 10],
  ...[26, 27, 31, 32, 52].flatMap((k) => [2 ** k - 1, 2 ** k, 2 ** k + 1]),
  ...[94_906_265, 94_906_266, 94_906_267],
  ...[999_983, 1_000_000_000, 31_622_400_000_000, 5_000_000_000_000_000],
  ...[MAX - 3, MAX - 2, MAX - 1, MAX],
]

function cornerOperands(): Operands[] {
  const found: Operands[] = []
  for (const a of CORNERS) {
    for (const b of CORNERS) {
      for (const c of [...CORNERS, leastDivisor(a, b), leastDivisor(a, b) + 1]) {
        if (c < leastDivisor(a, b) || c > MAX) continue
        const most = mostAddend(a, b, c)
        for (const add of new Set([0, Math.min(1, most), Math.min(c - 1, most), most])) found.push({ a, b, add, c })
      }
    }
  }
  return found
}

function expectBothWays(tally: Tally, name: string, leastCases: number): void {
  console.log(`${name}: ${tally.cases} cases, ${tally.fast} fast, ${tally.wide} wide`)
  expect(tally.cases).toBeGreaterThanOrEqual(leastCases)
  expect(tally.fast).toBeGreaterThan(leastCases / 10)
  expect(tally.wide).toBeGreaterThan(leastCases / 10)
}

/** Runs one function against the oracle on random operands. */
function agreesOnRandomOperands(name: string, agrees: (operands: Operands) => boolean, numRuns: number, seed: number): void {
  const tally = new Tally()
  fc.assert(
    fc.property(operands, (drawn) => {
      tally.add(drawn)
      return agrees(drawn)
    }),
    { numRuns, seed },
  )
  expectBothWays(tally, name, numRuns)
}

test('mulDiv equals BigInt on random operands up to 2^53 - 1', () => {
  agreesOnRandomOperands('mulDiv', mulDivAgrees, 200_000, 1)
})

test('mulAddDiv equals BigInt on random operands up to 2^53 - 1', () => {
  agreesOnRandomOperands('mulAddDiv', mulAddDivAgrees, 100_000, 2)
})

test('mulAddDivUp equals BigInt rounded up on random operands up to 2^53 - 1', () => {
  agreesOnRandomOperands('mulAddDivUp', mulAddDivUpAgrees, 100_000, 3)
})

test('all three equal BigInt on every combination of the corners', () => {
  const tally = new Tally()
  const wrong = cornerOperands().filter((corner) => {
    tally.add(corner)
    return !(mulDivAgrees(corner) && mulAddDivAgrees(corner) && mulAddDivUpAgrees(corner))
  })
  expect(wrong.slice(0, 5)).toEqual([])
  expectBothWays(tally, 'corners', 20_000)
})

test('all three equal BigInt on every combination of small numbers', () => {
  const small = Array.from({ length: 25 }, (_, n) => n)
  const wrong: Operands[] = []
  for (const a of small) {
    for (const b of small) {
      for (const add of small) {
        for (const c of small.slice(1)) {
          const all = { a, b, add, c }
          if (!(mulDivAgrees(all) && mulAddDivAgrees(all) && mulAddDivUpAgrees(all))) wrong.push(all)
        }
      }
    }
  }
  expect(wrong.slice(0, 5)).toEqual([])
})

test('a product of exactly 2^53 - 1 and one of exactly 2^53 both divide exactly', () => {
  expect([mulDiv(6361, 1_416_003_655_831, 10), remainder[0]]).toEqual([900_719_925_474_099, 1])
  expect([mulDiv(2 ** 26, 2 ** 27, 10), remainder[0]]).toEqual([900_719_925_474_099, 2])
})

test('the largest operands of all give the largest quotient', () => {
  expect([mulDiv(MAX, MAX, MAX), remainder[0]]).toEqual([MAX, 0])
  expect([mulDiv(MAX, MAX - 1, MAX), remainder[0]]).toEqual([MAX - 1, 0])
  expect([mulDiv(MAX - 1, MAX - 1, MAX), remainder[0]]).toEqual([MAX - 2, 1])
})

test('greatestCommonDivisor divides both numbers and leaves nothing in common', () => {
  fc.assert(
    fc.property(operand, operand, operand, (a, b, common) => {
      const shared = Math.max(1, common % 1_000_000)
      const x = shared * Math.max(1, a % 1_000_000_000)
      const y = shared * Math.max(1, b % 1_000_000_000)
      const divisor = greatestCommonDivisor(x, y)
      expect(divisor % shared).toBe(0)
      expect([x % divisor, y % divisor]).toEqual([0, 0])
      expect(greatestCommonDivisor(x / divisor, y / divisor)).toBe(1)
      expect(greatestCommonDivisor(y, x)).toBe(divisor)
    }),
    { numRuns: 5_000, seed: 4 },
  )
})

test('greatestCommonDivisor of numbers that everybody knows', () => {
  expect(greatestCommonDivisor(12, 18)).toBe(6)
  expect(greatestCommonDivisor(7, 1_000_000)).toBe(1)
  expect(greatestCommonDivisor(0, 5)).toBe(5)
  expect(greatestCommonDivisor(5, 0)).toBe(5)
  expect(greatestCommonDivisor(1_000_000_000, 31_622_400_000_000)).toBe(200_000_000)
})

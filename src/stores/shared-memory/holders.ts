/**
 * Which thread holds what, of limits that are in use until they are released. Behind the states of
 * a record lies a list of pairs, a token and whose it is, up to a token of 0. It is written with
 * the state, in one swap, so a thread that ends anywhere has its places on the list and nothing
 * else.
 *
 * A token is given out once, so one that was released may stay on the list: such pairs are dropped
 * when there is no more room.
 */
import type { Algorithm, Rule } from '../../algorithms/algorithm.ts'
import type { Cell } from '../../algorithms/decide.ts'

const PAIR = 2

/** How many doubles the list takes for these limits. */
export function holderWords(rules: readonly Rule[]): number {
  let words = 0
  for (const rule of rules) {
    if (rule.places !== undefined) words += PAIR * rule.places + 1
  }
  return words
}

/** How many pairs the list has that begins at `at`. */
export function pairsIn(s: Float64Array, at: number): number {
  let pairs = 0
  while ((s[at + pairs * PAIR] ?? 0) !== 0) pairs += 1
  return pairs
}

/**
 * Notes that a thread holds a token of the limit of cell `k`, if the state has that token and
 * nobody else is on the list with it.
 */
export function enter(s: Float64Array, at: number, cells: readonly Cell[], k: number, token: number, thread: number): void {
  const { own, i } = cells[k] as Cell
  if (!(own.algorithm as Required<Algorithm>).hasToken(s, i, token)) return
  let pairs = pairsIn(s, at)
  for (let pair = 0; pair < pairs; pair++) {
    if (s[at + pair * PAIR] === token && (s[at + pair * PAIR + 1] as number) % cells.length === k) return
  }
  if (at + (pairs + 1) * PAIR >= s.length) pairs = dropReleased(s, at, cells)
  s[at + pairs * PAIR] = token
  s[at + pairs * PAIR + 1] = thread * cells.length + k
  s[at + (pairs + 1) * PAIR] = 0
}

/** Drops the pairs whose tokens the states no longer have. Answers how many are left. */
export function dropReleased(s: Float64Array, at: number, cells: readonly Cell[]): number {
  const pairs = pairsIn(s, at)
  let kept = 0
  for (let pair = 0; pair < pairs; pair++) {
    const token = s[at + pair * PAIR] as number
    const whose = s[at + pair * PAIR + 1] as number
    if (!hasToken(cells[whose % cells.length] as Cell, token)) continue
    s[at + kept * PAIR] = token
    s[at + kept * PAIR + 1] = whose
    kept += 1
  }
  s[at + kept * PAIR] = 0
  return kept
}

function hasToken({ own, s, i, isHeld, changed }: Cell, token: number): boolean {
  return (isHeld || changed) && (own.algorithm as Required<Algorithm>).hasToken(s, i, token)
}

/** Releases all that a thread holds, and its places in line. Tells whether there was anything. */
export function releaseAll(s: Float64Array, at: number, cells: readonly Cell[], thread: number, nowUs: number): boolean {
  const pairs = pairsIn(s, at)
  let isReleased = false
  for (let pair = 0; pair < pairs; pair++) {
    const whose = s[at + pair * PAIR + 1] as number
    const cell = cells[whose % cells.length] as Cell
    if (Math.floor(whose / cells.length) !== thread || !cell.isHeld) continue
    const { own, i } = cell
    const given = own.algorithm.giveBack(own, s, i, nowUs, Number.MAX_SAFE_INTEGER, s[at + pair * PAIR] as number, undefined)
    if (given < 0) continue
    cell.changed = true
    isReleased = true
  }
  return isReleased
}

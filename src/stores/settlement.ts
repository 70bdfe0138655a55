/**
 * Charges that are known by their times, and what a store is told to settle them: to charge what
 * was too little, or give back what was too much.
 */
import type { Rule } from '../algorithms/algorithm.ts'
import type { Ticket, Verdict } from '../algorithms/decide.ts'
import type { Part, Step } from './step.ts'

/** The charge of a decision on one limit. */
export interface Charge {
  /** When the store entered it: servers of a cluster answer with a time each. */
  readonly enteredUs: number
  /** When the key would be idle, had no call come after it, rounded up. */
  readonly drainedUs: number
  /** When its caller may act: later than it was entered only where that was booked ahead. */
  readonly dueUs: number
  /** The numbers that it was charged under. */
  readonly numbers: string
  /** How many permits of it were given back already. Default none. */
  readonly given?: number
}

/**
 * In the order of the parts. To be read at once: a synchronous store overwrites its verdicts with
 * the next step.
 */
export function chargesOf(parts: readonly { readonly rule: Rule }[], verdicts: readonly Verdict[]): Charge[] {
  return parts.map(({ rule: { numbers } }, k) => {
    const { enteredUs, atUs, resetUs, delayUs } = verdicts[k] as Verdict
    return { enteredUs, drainedUs: atUs + resetUs, dueUs: delayUs > 0 ? atUs + delayUs : enteredUs, numbers }
  })
}

/** A step that gives back or settles, without its limiter. */
export type Settlement = Pick<Step, 'op' | 'aheadUs' | 'ofUs' | 'parts'>

/**
 * Settles charges by the costs of these parts: below 0 is given back. In one step what was entered
 * at one time: mostly all. The parts, which no other step has, are told of the charges.
 */
export function settlements(parts: readonly Part[], charges: readonly Charge[]): Settlement[] {
  if (charges.length === 0) return []
  const { enteredUs } = charges[0] as Charge
  for (let k = 0; k < parts.length; k++) {
    const part = parts[k] as Part
    part.ticket = ticketOf(part.rule, charges[k] as Charge)
  }
  if (charges.every((charge) => charge.enteredUs === enteredUs)) return [settlement('settle', enteredUs, parts)]
  const times = new Set(charges.map((charge) => charge.enteredUs))
  return [...times].map((ofUs) =>
    settlement(
      'settle',
      ofUs,
      parts.filter((_, k) => charges[k]?.enteredUs === ofUs),
    ),
  )
}

export function settlement(op: 'give' | 'settle', ofUs: number, parts: readonly Part[]): Settlement {
  return { op, aheadUs: -1, ofUs, parts }
}

/** Gives charges back, whole as far as they are still in use. */
export function giveBacks(parts: readonly Part[], charges: readonly Charge[]): Settlement[] {
  return settlements(
    parts.map((part) => part.with({ cost: -part.cost })),
    charges,
  )
}

/** What levels know of a charge. Windows and logs find it by its time. */
function ticketOf({ algorithm }: Rule, { numbers, drainedUs, enteredUs, dueUs, given = 0 }: Charge): Ticket | undefined {
  return algorithm.bookable ? { numbers, words: Float64Array.of(drainedUs, enteredUs, dueUs, given) } : undefined
}

/** How decisions travel: many steps as the arguments of one script call, and its reply as their verdicts. See runner.lua. */
import type { Outcome, Ticket, Verdict } from '../../algorithms/decide.ts'
import { shown } from '../../errors.ts'
import type { Part, Step } from '../store.ts'

const OUTCOMES: readonly Outcome[] = ['allowed', 'limited', 'impossible']

/** Adds what the script is told of the steps, which have the same `nowUs`. Those in a row that differ only in their keys are written down once. */
export function addArguments(args: string[], errands: readonly { readonly step: Step }[]): void {
  const nowUs = errands[0]?.step.nowUs
  args.push(nowUs === undefined ? '' : `${nowUs}`)
  for (let first = 0; first < errands.length; ) {
    const { step } = errands[first] as { step: Step }
    let next = first + 1
    while (next < errands.length && isAlike(step, (errands[next] as { step: Step }).step)) next += 1
    args.push(`${step.op} ${step.aheadUs} ${step.ofUs}`, `${next - first}`, `${step.parts.length}`)
    for (const { rule, cost, ticket } of step.parts) {
      args.push(rule.algorithm.type, rule.numbers, `${rule.maxAheadUs}`, `${cost}`)
      if (step.op === 'give') args.push(ticket?.numbers ?? '', ticket?.words.join(' ') ?? '')
    }
    first = next
  }
}

function isAlike(a: Step, b: Step): boolean {
  if (a.op !== b.op || a.aheadUs !== b.aheadUs || a.ofUs !== b.ofUs || a.parts.length !== b.parts.length) return false
  for (let k = 0; k < a.parts.length; k++) {
    const [one, other] = [a.parts[k] as Part, b.parts[k] as Part]
    if (one.rule !== other.rule || one.cost !== other.cost || one.ticket !== undefined || other.ticket !== undefined) return false
  }
  return true
}

/** Reads a reply decision by decision. Clients may be told to give numbers as strings, and strings as bytes. */
export class Reply {
  readonly #values: readonly unknown[]
  readonly #atUs: number
  #next = 1

  constructor(values: unknown) {
    if (!Array.isArray(values)) throw new Error(`the reply ${shown(values)} is none of the script's`)
    this.#values = values
    this.#atUs = Number(values[0])
  }

  /** The verdicts of the next decision, or the text of its error. */
  read(step: Step): Verdict[] | string {
    const first = this.#values[this.#next]
    if (isFailure(first)) {
      this.#next += 1
      return `${first}`
    }
    if (step.op === 'forget') {
      this.#number()
      return []
    }
    return step.parts.map((part) => this.#verdict(part, step.aheadUs >= 0))
  }

  #verdict({ rule }: Part, isReservation: boolean): Verdict {
    const first = this.#number()
    if (first >= 0) return this.#verdictOf('allowed', first, 0, this.#number(), 0, undefined)
    const outcome = OUTCOMES[-1 - first] as Outcome
    const remaining = this.#number()
    const retryUs = this.#number()
    const resetUs = this.#number()
    const delayUs = this.#number()
    const ticket = isReservation ? ticketOf(`${this.#values[this.#next++]}`, rule.numbers) : undefined
    return this.#verdictOf(outcome, remaining, outcome === 'impossible' ? Number.POSITIVE_INFINITY : retryUs, resetUs, delayUs, ticket)
  }

  #verdictOf(outcome: Outcome, remaining: number, retryUs: number, resetUs: number, delayUs: number, ticket: Ticket | undefined): Verdict {
    return { outcome, remaining, retryUs, resetUs, delayUs, atUs: this.#atUs, ticket }
  }

  #number(): number {
    const value = this.#values[this.#next++]
    if (typeof value === 'number') return value
    if (value === undefined) throw new Error('the reply is shorter than it should be')
    return Number(value)
  }
}

/** An error stands where there would be a number. */
function isFailure(value: unknown): boolean {
  return typeof value !== 'number' && value !== undefined && !/^-?\d+$/.test(`${value}`)
}

function ticketOf(words: string, numbers: string): Ticket | undefined {
  return words === '' ? undefined : { numbers, words: Float64Array.from(words.split(' '), Number) }
}

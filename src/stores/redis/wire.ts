/** How decisions travel: many steps as the arguments of one script call, and its reply as their verdicts. See run.lua. */
import type { Rule } from '../../algorithms/algorithm.ts'
import { labelOf } from '../../algorithms/codec.ts'
import type { Outcome, Ticket } from '../../algorithms/decide.ts'
import { shown } from '../../errors.ts'
import type { Part, Step } from '../store.ts'

const OUTCOMES: readonly Outcome[] = ['allowed', 'limited', 'impossible']
const ENTERED_LATER = -4

/** A step on its way: its keys, each once, and which of them each part has, from 1 on. */
export class Sent {
  readonly step: Step
  readonly keys: readonly string[]
  readonly places: readonly number[]

  constructor(step: Step, keys: readonly string[], places: readonly number[]) {
    this.step = step
    this.keys = keys
    this.places = places
  }
}

/**
 * Adds what the script is told of the steps, which have the same `nowUs`. Those in a row that differ only in their keys are written down once.
 * Where that is all there is, and they just take by one limit, the limit and the cost are enough.
 */
export function addArguments(args: string[], sent: readonly Sent[]): void {
  const [head] = sent as [Sent]
  if (isPlain(head) && runFrom(sent, 0) === sent.length) {
    const [{ rule, limit, cost }] = head.step.parts as [Part]
    args.push(knownLabel(rule, limit), `${cost}`)
    return
  }
  const { nowUs } = head.step
  args.push(nowUs === undefined ? '' : `${nowUs}`)
  for (let first = 0; first < sent.length; ) {
    const next = runFrom(sent, first)
    addRun(args, sent[first] as Sent, next - first)
    first = next
  }
}

function addRun(args: string[], { step, keys, places }: Sent, count: number): void {
  const { op, aheadUs, ofUs, parts } = step
  args.push(`${op} ${aheadUs} ${ofUs}`, `${count}`, `${parts.length}`, `${keys.length}`)
  parts.forEach(({ rule, limit, cost, ticket }, k) => {
    args.push(knownLabel(rule, limit), `${places[k]}`, `${cost}`)
    if (isGiven(op)) args.push(ticket?.numbers ?? '', ticket?.words.join(' ') ?? '')
  })
}

/** Whether a step may have tickets, and is told how much was given. */
function isGiven(op: Step['op']): boolean {
  return op === 'give' || op === 'settle' || op === 'renew' || op === 'line'
}

/** Where the run ends that begins there. */
function runFrom(sent: readonly Sent[], first: number): number {
  let next = first + 1
  while (next < sent.length && isAlike(sent[first] as Sent, sent[next] as Sent)) next += 1
  return next
}

/** Whether a step takes now, on the server's clock, by one limit. */
function isPlain({ step }: Sent): boolean {
  const { op, aheadUs, ofUs, nowUs, parts } = step
  return op === 'take' && aheadUs === -1 && ofUs === -1 && nowUs === undefined && parts.length === 1
}

const labels = new WeakMap<Rule, Map<string, string>>()

/** The label of a limit, worked out once. */
function knownLabel(rule: Rule, limit: string): string {
  let ofRule = labels.get(rule)
  if (ofRule === undefined) {
    ofRule = new Map()
    labels.set(rule, ofRule)
  }
  let label = ofRule.get(limit)
  if (label === undefined) {
    label = labelOf(rule, limit)
    ofRule.set(limit, label)
  }
  return label
}

/** Whether two steps differ in nothing but their keys. */
function isAlike({ step: a, places }: Sent, { step: b, places: otherPlaces }: Sent): boolean {
  if (a.op !== b.op || a.aheadUs !== b.aheadUs || a.ofUs !== b.ofUs || a.parts.length !== b.parts.length) return false
  for (let k = 0; k < a.parts.length; k++) {
    const [one, other] = [a.parts[k] as Part, b.parts[k] as Part]
    if (one.rule !== other.rule || one.cost !== other.cost || one.ticket !== undefined || other.ticket !== undefined) return false
    if (one.limit !== other.limit || places[k] !== otherPlaces[k]) return false
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

  /** Writes the verdicts of the next decision into its parts. Answers the text of its error, if it failed. */
  read(step: Step): string | undefined {
    const first = this.#values[this.#next]
    if (isFailure(first)) {
      this.#next += 1
      return `${first}`
    }
    if (step.op === 'forget') this.#number()
    else for (const part of step.parts) this.#readVerdict(part, step)
    return undefined
  }

  #readVerdict({ rule, verdict }: Part, { op, aheadUs }: Step): void {
    verdict.atUs = this.#atUs
    verdict.enteredUs = this.#atUs
    let first = this.#number()
    if (first >= 0) {
      verdict.outcome = 'allowed'
      verdict.remaining = first
      verdict.retryUs = 0
      verdict.resetUs = this.#number()
      verdict.delayUs = 0
      return
    }
    if (first === ENTERED_LATER) {
      verdict.enteredUs += this.#number()
      first = this.#number()
    }
    verdict.outcome = OUTCOMES[-1 - first] as Outcome
    verdict.remaining = this.#number()
    const retryUs = this.#number()
    verdict.retryUs = verdict.outcome === 'impossible' ? Number.POSITIVE_INFINITY : retryUs
    verdict.resetUs = this.#number()
    verdict.delayUs = this.#number()
    if (isGiven(op)) verdict.given = this.#number()
    if (aheadUs >= 0) verdict.ticket = ticketOf(`${this.#values[this.#next++]}`, rule.numbers)
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

/** How decisions travel: many steps as the arguments of one script call, and its reply as their verdicts. See runner.lua. */
import type { Rule } from '../../algorithms/algorithm.ts'
import type { Outcome, Ticket, Verdict } from '../../algorithms/decide.ts'
import { packedNumbers } from '../../algorithms/packed.ts'
import { shown } from '../../errors.ts'
import type { Part, Step } from '../store.ts'
import { isSection } from './keys.ts'
import { STRINGS } from './script.ts'

const OUTCOMES: readonly Outcome[] = ['allowed', 'limited', 'impossible']
const ENTERED_LATER = -4

/** A step on its way: its keys, each once, and which of them each part has, from 1 on; undefined if each has its own. */
export class Sent {
  readonly step: Step
  readonly keys: readonly string[]
  readonly places: readonly number[] | undefined

  constructor(step: Step, keys: readonly string[], places: readonly number[] | undefined) {
    this.step = step
    this.keys = keys
    this.places = places
  }
}

/**
 * Adds what the script is told of the steps, which have the same `nowUs`. Those in a row that differ only in their keys are written down once.
 * Where that is all there is, and they just take by one limit, each from another key, the limit and the cost are enough.
 */
export function addArguments(args: string[], sent: readonly Sent[]): void {
  const [head] = sent as [Sent]
  if (isPlain(head) && runFrom(sent, 0) === sent.length && noKeyTwice(sent)) {
    addParts(args, head)
    return
  }
  const { nowUs } = head.step
  args.push(nowUs === undefined ? '' : `${nowUs}`)
  for (let first = 0; first < sent.length; ) {
    const one = sent[first] as Sent
    const next = runFrom(sent, first)
    const { op, aheadUs, ofUs, parts } = one.step
    args.push(`${op} ${aheadUs} ${ofUs}`, `${next - first}`)
    args.push(one.places === undefined ? `${parts.length}` : `${parts.length} ${one.keys.length}`)
    addParts(args, one)
    first = next
  }
}

/** Where the run ends that begins there. */
function runFrom(sent: readonly Sent[], first: number): number {
  let next = first + 1
  while (next < sent.length && isAlike(sent[first] as Sent, sent[next] as Sent)) next += 1
  return next
}

/** Whether a step takes now, on the server's clock, by one limit that has its key for itself. */
function isPlain({ step, places }: Sent): boolean {
  const { op, aheadUs, ofUs, nowUs, parts } = step
  return op === 'take' && aheadUs === -1 && ofUs === -1 && nowUs === undefined && parts.length === 1 && places === undefined
}

/** Of plain steps that are alike, which have one part each. */
function noKeyTwice(sent: readonly Sent[]): boolean {
  if (sent.length === 1) return true
  const keys = new Set<string>()
  for (const { step } of sent) keys.add((step.parts[0] as Part).key)
  return keys.size === sent.length
}

function addParts(args: string[], { step, places }: Sent): void {
  step.parts.forEach((part, k) => {
    const { rule, cost, ticket } = part
    const { type } = rule.algorithm
    args.push(places === undefined ? type : `${type} ${places[k]} ${isSection(part) ? part.limit : ''}`)
    args.push(wiredNumbers(rule), `${rule.maxAheadUs}`, `${cost}`)
    if (step.op === 'give') args.push(ticket?.numbers ?? '', ticket?.words.join(' ') ?? '')
  })
}

const packedRules = new WeakMap<Rule, string>()

/** The numbers of a rule and, if its states carry them, behind a colon as they stand there: so that the script need not pack them in each call. */
export function wiredNumbers(rule: Rule): string {
  if (!STRINGS.includes(rule.algorithm.type)) return rule.numbers
  const known = packedRules.get(rule)
  if (known !== undefined) return known
  const numbers = `${rule.numbers}:${packedNumbers(rule.figures)}`
  packedRules.set(rule, numbers)
  return numbers
}

/** Whether two steps differ in nothing but their keys. */
function isAlike({ step: a, places }: Sent, { step: b, places: otherPlaces }: Sent): boolean {
  if (a.op !== b.op || a.aheadUs !== b.aheadUs || a.ofUs !== b.ofUs || a.parts.length !== b.parts.length) return false
  for (let k = 0; k < a.parts.length; k++) {
    const [one, other] = [a.parts[k] as Part, b.parts[k] as Part]
    if (one.rule !== other.rule || one.cost !== other.cost || one.ticket !== undefined || other.ticket !== undefined) return false
    if (one.limit !== other.limit || places?.[k] !== otherPlaces?.[k]) return false
  }
  return true
}

/** A verdict as Redis told it. */
class Told implements Verdict {
  outcome: Outcome
  remaining: number
  retryUs: number
  resetUs: number
  delayUs: number
  atUs: number
  enteredUs: number
  ticket: Ticket | undefined

  constructor(
    outcome: Outcome,
    remaining: number,
    retryUs: number,
    resetUs: number,
    delayUs: number,
    atUs: number,
    enteredUs: number,
    ticket: Ticket | undefined,
  ) {
    this.outcome = outcome
    this.remaining = remaining
    this.retryUs = retryUs
    this.resetUs = resetUs
    this.delayUs = delayUs
    this.atUs = atUs
    this.enteredUs = enteredUs
    this.ticket = ticket
  }
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
    let first = this.#number()
    if (first >= 0) return this.#verdictOf('allowed', first, 0, this.#number(), 0, undefined)
    const laterUs = first === ENTERED_LATER ? this.#number() : 0
    if (first === ENTERED_LATER) first = this.#number()
    const outcome = OUTCOMES[-1 - first] as Outcome
    const remaining = this.#number()
    const retryUs = this.#number()
    const resetUs = this.#number()
    const delayUs = this.#number()
    const ticket = isReservation ? ticketOf(`${this.#values[this.#next++]}`, rule.numbers) : undefined
    const waitUs = outcome === 'impossible' ? Number.POSITIVE_INFINITY : retryUs
    return this.#verdictOf(outcome, remaining, waitUs, resetUs, delayUs, ticket, laterUs)
  }

  #verdictOf(
    outcome: Outcome,
    remaining: number,
    retryUs: number,
    resetUs: number,
    delayUs: number,
    ticket: Ticket | undefined,
    laterUs = 0,
  ): Verdict {
    return new Told(outcome, remaining, retryUs, resetUs, delayUs, this.#atUs, this.#atUs + laterUs, ticket)
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

/**
 * How decisions travel: many steps as the arguments of one script call, and its reply as their
 * verdicts. See run.lua.
 */
import type { Rule } from '../../algorithms/algorithm.ts'
import { labelOf, MOST_TAGGED } from '../../algorithms/codec.ts'
import type { Outcome, Ticket, Verdict } from '../../algorithms/decide.ts'
import { shown } from '../../errors.ts'
import type { Part, Step } from '../store.ts'

const OUTCOMES: readonly Outcome[] = ['allowed', 'limited', 'impossible']
const ENTERED_LATER = -4

/** The steps of one script call. */
export class ScriptCall {
  readonly steps: Step[]
  /** The place of each in its batch. */
  readonly places: number[]
  /** Their keys, step after step. */
  readonly keys: string[]
  /** Of steps of several keys, each in its place, which keys its parts have. */
  spreads: Spread[] | undefined = undefined

  /** `keys`: of all parts, or of each. */
  constructor(step: Step, place: number, keys: Keys) {
    this.steps = [step]
    this.places = [place]
    this.keys = typeof keys === 'string' ? [keys] : this.#spread(0, keys)
  }

  add(step: Step, place: number, keys: Keys): void {
    if (typeof keys === 'string') this.keys.push(keys)
    else this.keys.push(...this.#spread(this.steps.length, keys))
    this.steps.push(step)
    this.places.push(place)
  }

  /** Notes which keys the parts of a step have. Answers them, each once. */
  #spread(at: number, keyOfEach: readonly string[]): string[] {
    const keys = [...new Set(keyOfEach)]
    this.spreads ??= []
    this.spreads[at] = { keys: keys.length, ofParts: keyOfEach.map((key) => keys.indexOf(key) + 1) }
    return keys
  }
}

/** The one key of all parts of a step, or the key of each. */
export type Keys = string | readonly string[]

/** How many keys a step has, and which of them each part has, from 1 on. */
interface Spread {
  readonly keys: number
  readonly ofParts: readonly number[]
}

/**
 * Adds what the script is told of the steps, which have the same `nowUs`. Those in a row that
 * differ only in their keys are written down once. Where that is all there is, and they take or
 * charge by one limit, the limit and the cost are enough.
 */
export function addArguments(args: string[], call: ScriptCall): void {
  const { steps } = call
  const [head] = steps as [Step]
  const isLarge = steps.some(hasLarge)
  const verb = shortVerb(head)
  let next = runFrom(call, 0)
  if (next === steps.length && head.nowUs === undefined && !isLarge && (verb === 't' || verb === 'c')) {
    const [{ rule, limit, cost }] = head.parts as [Part]
    args.push(knownLabel(rule, limit), `${cost}`)
    if (verb === 'c') args.push(verb)
    return
  }
  args.push(head.nowUs === undefined ? '' : `${head.nowUs}`, isLarge ? '1' : '0')
  for (let first = 0; first < steps.length; first = next) {
    next = runFrom(call, first)
    addRun(args, call, first, next)
  }
}

/** Whether the script has to know how many words there are before it reads them. */
function hasLarge({ parts }: Step): boolean {
  for (const { rule } of parts) if (rule.words > MOST_TAGGED) return true
  return false
}

function addRun(args: string[], call: ScriptCall, first: number, next: number): void {
  const head = call.steps[first] as Step
  const verb = shortVerb(head)
  if (verb === undefined) {
    addAnyRun(args, head, call.spreads?.[first], next - first)
    return
  }
  const [{ rule, limit, cost }] = head.parts as [Part]
  args.push(verb, `${next - first}`, knownLabel(rule, limit))
  if (!isOwnEach(verb)) args.push(`${cost}`)
  else args.push(ownOfEach(verb, call.steps.slice(first, next)))
}

/** Whether what a decision is about is written down for each of a run. */
function isOwnEach(verb: ShortVerb | undefined): boolean {
  return verb === 's' || verb === 'g' || verb === 'r'
}

/**
 * The cost of each of a run and what it is about: to renew, its tokens, several of them as text;
 * else when it was entered. Behind that stands, of a settlement, when the charge would have
 * drained. One text of JSON: Redis makes an object and a string of Lua for every argument.
 */
function ownOfEach(verb: ShortVerb, steps: readonly Step[]): string {
  const own: (number | string)[] = []
  for (const { ofUs, parts } of steps) {
    const [{ cost, ticket }] = parts as [Part]
    if (verb === 'r') own.push(cost, tokensOf(ticket as Ticket))
    else own.push(cost, ofUs)
    if (verb === 's') own.push(ticket === undefined ? 0 : (ticket.words[0] as number))
  }
  return JSON.stringify(own)
}

function tokensOf({ words }: Ticket): number | string {
  return words.length === 1 ? (words[0] as number) : words.join(' ')
}

function addAnyRun(args: string[], { op, aheadUs, ofUs, parts }: Step, spread: Spread | undefined, count: number): void {
  args.push(`${op} ${aheadUs} ${ofUs}`, `${count}`, `${parts.length}`, `${spread?.keys ?? 1}`)
  parts.forEach(({ rule, limit, cost, ticket }, k) => {
    args.push(knownLabel(rule, limit), `${spread?.ofParts[k] ?? 1}`, `${cost}`)
    if (isGiven(op)) args.push(ticket?.numbers ?? '', ticket?.words.join(' ') ?? '')
  })
}

/** Whether a step may have tickets, and is told how much was given. */
function isGiven(op: Step['op']): boolean {
  return op === 'give' || op === 'settle' || op === 'renew' || op === 'line'
}

/** Where the run ends that begins there. */
function runFrom(call: ScriptCall, first: number): number {
  const { steps } = call
  const head = steps[first] as Step
  const verb = shortVerb(head)
  const areOwn = isOwnEach(verb)
  let next = first + 1
  while (next < steps.length && (areOwn ? isOfRun(verb, head, steps[next] as Step) : isAlike(call, first, next))) next += 1
  return next
}

/** By the same verb and the same limit: what each is about is written down for each. */
function isOfRun(verb: ShortVerb | undefined, a: Step, b: Step): boolean {
  const [one, other] = [a.parts[0] as Part, b.parts[0] as Part]
  return one.rule === other.rule && one.limit === other.limit && shortVerb(b) === verb
}

type ShortVerb = 't' | 'c' | 's' | 'g' | 'r'

/**
 * What a step does by one limit, in the script's words. Undefined for anything that takes more
 * words to say.
 */
function shortVerb({ op, aheadUs, ofUs, parts }: Step): ShortVerb | undefined {
  const { cost, ticket, rule } = parts[0] as Part
  if (parts.length > 1 || aheadUs >= 0) return undefined
  if (rule.algorithm.untilReleased && op === 'renew') return 'r'
  if (cost === 0) return undefined
  if (rule.algorithm.untilReleased && op === 'give') return 'g'
  if (op === 'settle') return isPlainCharge(rule, ticket, ofUs) ? 's' : undefined
  if (ofUs >= 0) return undefined
  return op === 'take' ? 't' : op === 'charge' ? 'c' : undefined
}

/**
 * Whether a charge was made under these numbers, was not booked ahead, and nothing of it came back.
 */
function isPlainCharge(rule: Rule, ticket: Ticket | undefined, ofUs: number): boolean {
  if (ofUs < 0) return false
  if (!rule.algorithm.bookable) return ticket === undefined
  const [, enteredUs, dueUs, given] = ticket?.words ?? []
  return ticket?.numbers === rule.numbers && enteredUs === ofUs && dueUs === ofUs && given === 0
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
function isAlike({ steps, spreads }: ScriptCall, first: number, next: number): boolean {
  const [a, b] = [steps[first] as Step, steps[next] as Step]
  if (a.op !== b.op || a.aheadUs !== b.aheadUs || a.ofUs !== b.ofUs || a.parts.length !== b.parts.length) return false
  for (let k = 0; k < a.parts.length; k++) {
    const [one, other] = [a.parts[k] as Part, b.parts[k] as Part]
    if (one.rule !== other.rule || one.cost !== other.cost || one.ticket !== undefined || other.ticket !== undefined) return false
    if (one.limit !== other.limit) return false
  }
  return spreads === undefined || isAlikeSpread(spreads[first], spreads[next])
}

function isAlikeSpread(a: Spread | undefined, b: Spread | undefined): boolean {
  return a?.keys === b?.keys && (a === undefined || a.ofParts.every((key, k) => key === b?.ofParts[k]))
}

/**
 * Reads a reply decision by decision. Clients may be told to give numbers as strings, and strings
 * as bytes.
 */
export class Reply {
  readonly #values: readonly unknown[]
  readonly #atUs: number
  #next = 1

  constructor(values: unknown) {
    if (!Array.isArray(values)) throw new Error(`the reply ${shown(values)} is none of the script's`)
    this.#values = values
    this.#atUs = Number(values[0])
  }

  /**
   * Writes the verdicts of the next decision into its parts. Answers the text of its error, if it
   * failed.
   */
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

  #readVerdict({ verdict }: Part, { op }: Step): void {
    verdict.atUs = this.#atUs
    verdict.enteredUs = this.#atUs
    const first = this.#number()
    if (op === 'settle') {
      verdict.outcome = first >= 0 ? 'allowed' : 'limited'
      verdict.given = Math.max(0, first)
      return
    }
    if (first >= 0) {
      verdict.outcome = 'allowed'
      verdict.remaining = first
      verdict.retryUs = 0
      verdict.resetUs = this.#number()
      verdict.delayUs = 0
    } else this.#readInFull(first, verdict)
    if (isGiven(op)) verdict.given = this.#number()
  }

  #readInFull(first: number, verdict: Verdict): void {
    let outcome = first
    if (outcome === ENTERED_LATER) {
      verdict.enteredUs += this.#number()
      outcome = this.#number()
    }
    verdict.outcome = OUTCOMES[-1 - outcome] as Outcome
    verdict.remaining = this.#number()
    const retryUs = this.#number()
    verdict.retryUs = verdict.outcome === 'impossible' ? Number.POSITIVE_INFINITY : retryUs
    verdict.resetUs = this.#number()
    verdict.delayUs = this.#number()
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

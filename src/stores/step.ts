/**
 * A step: the request of a limiter to its store, with a part for each limit.
 *
 * Both are classes, as is everything that waits for the answer of a remote store. V8 makes objects
 * of a literal in its old generation at once after many of them lived long, and then nothing that
 * hangs on them is swept with the young; that took a process twice the time. Objects made by `new`
 * begin young. (Fields are only declared, because every bundle carries these classes, and the
 * constructor makes them anyway.)
 */
import type { Rule } from '../algorithms/algorithm.ts'
import { type Cell, emptyVerdict, type Op, type Ticket, type Verdict } from '../algorithms/decide.ts'
import { SluiceError } from '../errors.ts'

/**
 * A limiter as a store sees it: its name, under which nobody else's states are, and its limits,
 * which never change their order.
 */
export interface Scope {
  readonly name: string
  readonly limits: readonly { readonly name: string; readonly rule: Rule }[]
  /** How far ahead the limiter may book, where that is known. */
  readonly aheadUs?: number
}

/**
 * The part of a step for one limit. A store that runs `decide` itself uses the part as the cell of
 * it, and says there where the state lies. On every store the answer stands in `verdict`, so a step
 * that is under way shares its parts with no other.
 */
export class Part implements Cell {
  /** The name of the limit within its limiter. */
  declare readonly limit: string
  declare rule: Rule
  declare key: string
  declare cost: number
  /** For `settle`: the charge of a level. For `renew`: tokens. For `line`: the place. */
  declare ticket: Ticket | undefined
  declare s: Float64Array
  declare i: number
  declare own: Rule
  declare isHeld: boolean
  declare changed: boolean
  declare readonly verdict: Verdict

  constructor(limit: string, rule: Rule, key: string, cost: number, ticket?: Ticket) {
    this.limit = limit
    this.rule = rule
    this.key = key
    this.cost = cost
    this.ticket = ticket
    this.s = NOTHING
    this.i = 0
    this.own = rule
    this.isHeld = false
    this.changed = false
    this.verdict = emptyVerdict()
  }

  /** The same under other numbers, or with another cost or ticket. */
  with({ rule = this.rule, key = this.key, cost = this.cost, ticket = this.ticket }: PartChange): Part {
    return new Part(this.limit, rule, key, cost, ticket)
  }
}

interface PartChange {
  readonly rule?: Rule
  readonly key?: string
  readonly cost?: number
  readonly ticket?: Ticket | undefined
}

const NOTHING = new Float64Array(0)

export class Step {
  /** `forget` drops the states of all parts; the rest is `decide`'s. */
  declare readonly op: Op | 'forget'
  declare readonly scope: Scope
  declare readonly parts: readonly Part[]
  /** For a reservation: how far ahead of its time the cost may be taken. -1 for everything else. */
  declare aheadUs: number
  /** For `settle`: when it was charged. For `give`: the token, or -1 where there is none. */
  declare ofUs: number
  /** The time, for a remote store that is to decide by another clock than its own. */
  declare readonly nowUs: number | undefined
  /**
   * Set when a remote store took too long: the caller was told that it failed. If it was not sent
   * by then, it must not be.
   */
  declare isGivenUp: boolean

  constructor(op: Step['op'], scope: Scope, parts: readonly Part[], aheadUs: number, ofUs: number, nowUs: number | undefined) {
    this.op = op
    this.scope = scope
    this.parts = parts
    this.aheadUs = aheadUs
    this.ofUs = ofUs
    this.nowUs = nowUs
    this.isGivenUp = false
  }
}

/** The same parts by the numbers of these limits, which are in the same order. */
export function renumbered(parts: readonly Part[], limits: Scope['limits']): Part[] {
  return parts.map((part, k) => part.with({ rule: (limits[k] as Scope['limits'][number]).rule }))
}

/** Whether some of these limits are in use until they are released. */
export function anyUntilReleased(limits: readonly { readonly rule: Rule }[]): boolean {
  for (const { rule } of limits) if (rule.algorithm.untilReleased) return true
  return false
}

/**
 * Refuses limits without a lease: nobody else would free the place of a process or a thread that
 * has ended.
 */
export function checkLeases({ limits }: Scope, where: string): void {
  const endless = limits.find(({ rule }) => rule.endless)
  if (endless === undefined) return
  throw new SluiceError(
    'CONFIG',
    `limit '${endless.name}' needs a lease ${where}, such as lease: '30s': without one, the place of a holder that died would never be free again`,
  )
}

/** Whether all parts are about the same key, as they mostly are. */
export function hasOneKey({ parts }: Step): boolean {
  const [{ key }] = parts as [Part]
  for (const part of parts) if (part.key !== key) return false
  return true
}

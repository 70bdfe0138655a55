/**
 * What a limiter asks of a store. By classes, as is everything that waits for the answer of a remote store: where many objects of one literal
 * lived long once (a process that begins with hundreds of calls under way), V8 makes all later ones in its old generation at once, and what
 * hangs on them is not swept with the young. That took a process twice the time. What `new` makes begins young. (Fields are only declared, because every
 * bundle carries these classes, and the constructor makes them anyway.)
 */
import type { Rule } from '../algorithms/algorithm.ts'
import type { Part, Scope, Step } from '../stores/store.ts'

export class AskedPart implements Part {
  declare readonly limit: string
  declare readonly rule: Rule
  declare key: string
  declare cost: number
  declare readonly ticket: undefined

  constructor(limit: string, rule: Rule, key: string, cost: number) {
    this.limit = limit
    this.rule = rule
    this.key = key
    this.cost = cost
    this.ticket = undefined
  }
}

export class AskedStep implements Step {
  declare op: Step['op']
  declare readonly scope: Scope
  declare readonly parts: readonly Part[]
  declare aheadUs: number
  declare ofUs: number
  declare readonly nowUs: number | undefined

  constructor(op: Step['op'], scope: Scope, parts: readonly Part[], aheadUs: number, ofUs: number, nowUs: number | undefined) {
    this.op = op
    this.scope = scope
    this.parts = parts
    this.aheadUs = aheadUs
    this.ofUs = ofUs
    this.nowUs = nowUs
  }
}

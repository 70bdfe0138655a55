/**
 * What a limiter asks of a store. By classes, as is everything that waits for the answer of a remote store: where many objects of one literal
 * lived long once (a process that begins with hundreds of calls under way), V8 makes all later ones in its old generation at once, and what
 * hangs on them is not swept with the young. That took a process twice the time. What `new` makes begins young.
 */
import type { Rule } from '../algorithms/algorithm.ts'
import type { Part, Scope, Step } from '../stores/store.ts'

export class AskedPart implements Part {
  readonly limit: string
  readonly rule: Rule
  readonly key: string
  readonly cost: number
  readonly ticket = undefined

  constructor(limit: string, rule: Rule, key: string, cost: number) {
    this.limit = limit
    this.rule = rule
    this.key = key
    this.cost = cost
  }
}

export class AskedStep implements Step {
  readonly op: Step['op']
  readonly scope: Scope
  readonly parts: readonly Part[]
  readonly aheadUs: number
  readonly ofUs: number
  readonly nowUs: number | undefined

  constructor(op: Step['op'], scope: Scope, parts: readonly Part[], aheadUs: number, ofUs: number, nowUs: number | undefined) {
    this.op = op
    this.scope = scope
    this.parts = parts
    this.aheadUs = aheadUs
    this.ofUs = ofUs
    this.nowUs = nowUs
  }
}

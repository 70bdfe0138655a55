/**
 * The loans of one limiter's permits at its store: made from the verdicts of a take, renewed, and
 * given back.
 */
import type { Verdict } from '../algorithms/decide.ts'
import { SluiceError } from '../errors.ts'
import type { GuardedStore } from '../stores/remote/guarded-store.ts'
import { Part, type Scope, Step } from '../stores/step.ts'
import type { OpenStates, SyncStore } from '../stores/store.ts'
import type { LeaseHolder, OnRenewed } from './leases.ts'
import type { NamedRule } from './options.ts'
import { type Entrusted, type Loan, NO_LOANS } from './permit.ts'
import type { Plan, Plans } from './plans.ts'

/** What a grant lent: of each limit that is in use until it is released. */
export function loansOf(limits: Scope['limits'], parts: readonly Part[], verdicts: readonly Verdict[]): readonly Loan[] {
  let loans = NO_LOANS
  for (let k = 0; k < parts.length; k++) {
    const part = parts[k] as Part
    const { rule } = limits[k] as NamedRule
    if (part.cost === 0 || !rule.algorithm.untilReleased) continue
    const loan = loanOf(part, rule.endless ? 0 : rule.windowUs, verdicts[k] as Verdict)
    // Mostly one: an array that grows leaves room for many more.
    loans = loans.length === 0 ? [loan] : loans.concat(loan)
  }
  return loans
}

function loanOf({ limit, key, cost }: Part, leaseUs: number, { enteredUs: token, degraded = false }: Verdict): Loan {
  return { limit, key, cost, token, degraded, leaseUs, lease: undefined }
}

/** A step of one part: of the op, under a plan. */
export type StepOf<Name extends string> = (op: 'renew' | 'give', plan: Plan<Name>, part: Part, ofUs: number) => Step

/** Told undefined, and the error, if the store failed. */
type OnVerdict = (verdict: Verdict | undefined, error?: unknown) => void

export class Loans<Name extends string> implements LeaseHolder {
  readonly #plans: Plans<Name>
  readonly #store: SyncStore | GuardedStore
  readonly #stepOf: StepOf<Name>
  /** The step of the last release, by its plan and limit. */
  #giving: Giving | undefined = undefined

  constructor(plans: Plans<Name>, store: SyncStore | GuardedStore, stepOf: StepOf<Name>) {
    this.#plans = plans
    this.#store = store
    this.#stepOf = stepOf
  }

  leaseUs(plan: string | undefined, limit: string): number {
    const { rule } = limitOf(this.#plans.still(plan).scope, limit)
    return rule.endless ? Number.POSITIVE_INFINITY : rule.windowUs
  }

  renew(plan: string | undefined, loan: Loan, tokens: readonly number[], cost: number, onRenewed: OnRenewed): void {
    const part = this.#renewing(plan, loan, tokens, cost)
    this.#sendFor(loan, 'renew', plan, part, -1, (verdict) => onRenewed(verdict?.given))
  }

  release(plan: string | undefined, loan: Loan, onReleased: (isTold: boolean) => void): void {
    const { limit, key, cost, token } = loan
    const { rule } = limitOf(this.#plans.still(plan).scope, limit)
    const part = new Part(limit, rule, key, cost)
    this.#sendFor(loan, 'give', plan, part, token, (verdict) => onReleased(verdict !== undefined))
  }

  /** The same where the store answers at once. Throws its error. */
  releaseNow(planName: string | undefined, { limit, key, cost, token }: Loan): void {
    const plan = this.#plans.still(planName)
    const { part, step } = this.#givingTo(plan, limit)
    part.key = key
    part.cost = cost
    step.ofUs = token
    ;(plan.states as OpenStates).apply(step, false)
  }

  /** The answer of those who lent it. */
  async ask(op: 'give' | 'renew', plan: string | undefined, loan: Entrusted['loans'][number]): Promise<Verdict> {
    const { limit, key, cost, token } = loan
    const { rule } = limitOf(this.#plans.still(plan).scope, limit)
    const part = op === 'give' ? new Part(limit, rule, key, cost) : this.#renewing(plan, loan, [token], 0)
    return new Promise((resolve, reject) => {
      this.#sendFor(loan, op, plan, part, op === 'give' ? token : -1, (verdict, error) => {
        if (verdict === undefined) reject(error)
        else resolve({ ...verdict })
      })
    })
  }

  #renewing(plan: string | undefined, { limit, key }: Pick<Loan, 'limit' | 'key'>, tokens: readonly number[], cost: number): Part {
    const { rule } = limitOf(this.#plans.still(plan).scope, limit)
    return new Part(limit, rule, key, cost, { numbers: rule.numbers, words: new Float64Array(tokens) })
  }

  /**
   * Asks those who lent it: the store, whose fallback knows nothing of it, or the fallback, which
   * counts what it lent also when the store is back.
   */
  #sendFor(
    { degraded }: Pick<Loan, 'degraded'>,
    op: 'renew' | 'give',
    plan: string | undefined,
    part: Part,
    ofUs: number,
    onVerdict: OnVerdict,
  ): void {
    if (degraded) {
      const step = this.#stepOf(op, this.#plans.still(plan), part, ofUs)
      onVerdict((this.#store as GuardedStore).askFallback(step)[0])
      return
    }
    this.#send(op, plan, part, ofUs, (verdict, error) => {
      if (verdict?.degraded) onVerdict(undefined, new SluiceError('STORE', 'the store did not answer'))
      else onVerdict(verdict, error)
    })
  }

  /** The limiter may have been closed since. */
  #send(op: 'renew' | 'give', planName: string | undefined, part: Part, ofUs: number, onVerdict: OnVerdict): void {
    const plan = this.#plans.still(planName)
    const step = this.#stepOf(op, plan, part, ofUs)
    const store = this.#store
    if (store.mode === 'async') {
      store.ask(step, ([verdict]) => verdict).then(onVerdict, (error) => onVerdict(undefined, error))
      return
    }
    try {
      ;(plan.states as OpenStates).apply(step, true)
    } catch (error) {
      // It may be a timer that sends, and nobody catches what that throws.
      onVerdict(undefined, error)
      return
    }
    onVerdict(part.verdict)
  }

  /**
   * Where the store answers at once: a step that is filled in for each release, so that nothing has
   * to be made.
   */
  #givingTo(plan: Plan<Name>, limit: string): Giving {
    const known = this.#giving
    if (known !== undefined && known.plan === plan && known.part.limit === limit) return known
    const part = new Part(limit, limitOf(plan.scope, limit).rule, '', 0)
    this.#giving = { plan, part, step: new Step('give', plan.scope, [part], -1, -1, undefined) }
    return this.#giving
  }
}

interface Giving {
  readonly plan: unknown
  readonly part: Part
  readonly step: Step
}

function limitOf({ limits }: Scope, name: string): Scope['limits'][number] {
  return limits.find((limit) => limit.name === name) as Scope['limits'][number]
}

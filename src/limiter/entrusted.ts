/**
 * Permits whose holders are in other processes, which renew and release them through any limiter of
 * the same name and store.
 */
import type { Clock } from '../clock/clock.ts'
import type { Leases } from './leases.ts'
import type { Loans } from './loans.ts'
import { type Entrusted, HeldDecision, type Loan } from './permit.ts'

export class EntrustedPermits {
  readonly #clock: Clock
  readonly #loans: Loans<string>
  readonly #leases: Leases
  /** Those that this limiter lent, by each of their loans. */
  readonly #permits = new Map<string, HeldDecision>()

  constructor(clock: Clock, loans: Loans<string>, leases: Leases) {
    this.#clock = clock
    this.#loans = loans
    this.#leases = leases
  }

  /**
   * From now on the holder is in another process, and renews it there. Here it counts as in flight
   * until it is given back here, or its lease is over.
   */
  add(permit: HeldDecision): Entrusted & { readonly leaseMs: number } {
    const loans = HeldDecision.loans(permit)
    const plan = HeldDecision.plan(permit)
    this.#leases.leave(permit)
    for (const loan of loans) this.#permits.set(loanId(loan), permit)
    return { plan, loans, leaseMs: this.#leaseMs({ plan, loans }) }
  }

  /** A permit is held no longer. */
  remove(loans: readonly Loan[]): void {
    if (this.#permits.size > 0) for (const loan of loans) this.#permits.delete(loanId(loan))
  }

  /** Undefined if another process lent it. */
  permitOf({ loans }: Entrusted): HeldDecision | undefined {
    return this.#permits.get(loanId(loans[0] as Loan))
  }

  /** Releases it, whichever process it was lent by. Answers whether it was held. */
  async giveBack({ plan, loans }: Entrusted): Promise<boolean> {
    const given = await Promise.all(loans.map((loan) => this.#loans.ask('give', plan, loan)))
    return given.some(({ outcome }) => outcome === 'allowed')
  }

  /**
   * Lets its lease run anew. Answers for how many milliseconds it is held from now on: 0 if it is
   * held no longer.
   */
  async renew(lent: Entrusted): Promise<number> {
    const askedUs = this.#clock.nowUs()
    const askedWallUs = this.#leases.wallUs()
    const renewed = await Promise.all(lent.loans.map((loan) => this.#loans.ask('renew', lent.plan, loan)))
    const isHeld = renewed.every(({ given }) => given === 1)
    const permit = this.permitOf(lent)
    if (permit !== undefined) {
      this.#leases.renewed(permit, askedUs, askedWallUs)
      if (!isHeld) HeldDecision.lose(permit)
    }
    return isHeld ? this.#leaseMs(lent) : 0
  }

  #leaseMs({ plan, loans }: Entrusted): number {
    return Math.min(...loans.map(({ limit }) => this.#loans.leaseUs(plan, limit))) / 1000
  }
}

function loanId({ limit, key, token }: Pick<Loan, 'limit' | 'key' | 'token'>): string {
  return `${limit}\n${token}\n${key}`
}

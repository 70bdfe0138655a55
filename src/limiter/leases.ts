/**
 * The leases that permits of one limiter hold: each is renewed every third of its lease, all in one turn, and one that could not be renewed in time is
 * lost. What could not be released, because the store was away, is sent again until the lease is over.
 */
import { type Alarm, Alarms } from '../clock/alarms.ts'
import { type Clock, systemClock } from '../clock/clock.ts'
import { HeldDecision, type Loan } from './permit.ts'

/** A holder counts a little less than the store does: clocks may differ in their rate by so much. */
const DRIFT = 0.01
const RENEWALS = 3
/** How often a release is sent again. */
const RESEND_US = 1_000_000

/** What leases need of a limiter. */
export interface LeaseHolder {
  /** How long a lease of this limit runs now, under a plan. */
  leaseUs(plan: string | undefined, limit: string): number
  /** Renews leases of the key of this one. Tells how many are held; undefined if the store did not say. `cost`: above 0 if one that the store lost is counted again. */
  renew(plan: string | undefined, loan: Loan, tokens: readonly number[], cost: number, onRenewed: OnRenewed): void
  /** Tells whether the store was told. */
  release(plan: string | undefined, loan: Loan, onReleased: (isTold: boolean) => void): void
}

export type OnRenewed = (held: number | undefined) => void

/** One lease of a permit. */
interface Held {
  readonly permit: HeldDecision
  readonly loan: Loan
  /** Rings when it may have run out. */
  alarm: Alarm
}

export class Leases {
  readonly #clock: Clock
  readonly #holder: LeaseHolder
  readonly #alarms: Alarms
  /** By plan, limit and key. */
  readonly #groups = new Map<string, Set<Held>>()
  readonly #held = new Map<HeldDecision, readonly Held[]>()
  /** How often all are renewed: a third of the shortest lease. Infinity while there are none. */
  #everyUs = Number.POSITIVE_INFINITY
  #nextTick: Alarm | undefined = undefined

  constructor(clock: Clock, holder: LeaseHolder) {
    this.#clock = clock
    this.#holder = holder
    this.#alarms = new Alarms(clock, false, true)
  }

  /** The wall clock goes on while a machine is suspended. A clock of the caller's own is all there is. */
  wallUs(): number {
    return this.#clock === systemClock ? Date.now() * 1000 : this.#clock.nowUs()
  }

  /** Until when a lease is held for certain that was asked for then. */
  lentUntil(loan: Loan, leaseUs: number, askedUs: number, askedWallUs: number): void {
    const heldUs = Math.floor(leaseUs * (1 - DRIFT))
    loan.untilUs = askedUs + heldUs
    loan.wallUntilUs = askedWallUs + heldUs
  }

  add(permit: HeldDecision): void {
    const { loans, plan } = HeldDecision.lent(permit)
    const leased = loans.filter(({ untilUs }) => untilUs < Number.POSITIVE_INFINITY)
    if (leased.length === 0) return
    const held: Held[] = []
    for (const loan of leased) {
      const each: Held = { permit, loan, alarm: this.#alarms.set(loan.untilUs, () => this.#mayBeOver(each)) }
      held.push(each)
      const id = groupId(plan, loan)
      const group = this.#groups.get(id)
      if (group === undefined) this.#groups.set(id, new Set([each]))
      else group.add(each)
      this.#renewWithin(this.#holder.leaseUs(plan, loan.limit))
    }
    this.#held.set(permit, held)
  }

  remove(permit: HeldDecision): void {
    const held = this.#held.get(permit)
    if (held === undefined) return
    this.leave(permit)
    for (const { alarm } of held) this.#alarms.stop(alarm)
    this.#held.delete(permit)
  }

  /** Renews it no longer: another process does, or nobody. */
  leave(permit: HeldDecision): void {
    const { plan } = HeldDecision.lent(permit)
    for (const each of this.#held.get(permit) ?? []) {
      const id = groupId(plan, each.loan)
      const group = this.#groups.get(id)
      group?.delete(each)
      if (group?.size === 0) this.#groups.delete(id)
    }
  }

  /** Sends a release, and again while the lease runs, until the store was told. */
  release(plan: string | undefined, loan: Loan, onEnd: () => void): void {
    const isEndless = loan.untilUs === Number.POSITIVE_INFINITY
    this.#holder.release(plan, loan, (isTold) => {
      onEnd()
      const againUs = this.#clock.nowUs() + RESEND_US
      if (!isTold && !isEndless && againUs < loan.untilUs) this.#alarms.set(againUs, () => this.release(plan, loan, () => {}))
    })
  }

  /** Also of leases that have become shorter since they were lent. */
  #renewWithin(leaseUs: number): void {
    const everyUs = Math.max(1, Math.floor(leaseUs / RENEWALS))
    if (everyUs >= this.#everyUs) return
    this.#everyUs = everyUs
    this.#setTick()
  }

  /** Ticks lie at multiples of the interval, so that those of all limiters of a process are in one turn. */
  #setTick(): void {
    if (this.#nextTick !== undefined) this.#alarms.stop(this.#nextTick)
    const nextUs = (Math.floor(this.#clock.nowUs() / this.#everyUs) + 1) * this.#everyUs
    this.#nextTick = this.#alarms.set(nextUs, () => this.#tick())
  }

  #tick(): void {
    if (this.#held.size === 0) {
      this.#everyUs = Number.POSITIVE_INFINITY
      return
    }
    // After a standstill some are over before their alarms have rung.
    for (const permit of [...this.#held.keys()]) if (!permit.held) HeldDecision.lose(permit)
    for (const group of [...this.#groups.values()]) this.#renew([...group])
    this.#setTick()
  }

  /** It may have been renewed since the alarm was set. If not, nobody knows whether the store has given the place away. */
  #mayBeOver(held: Held): void {
    if (this.#clock.nowUs() >= held.loan.untilUs) HeldDecision.lose(held.permit)
    else held.alarm = this.#alarms.set(held.loan.untilUs, () => this.#mayBeOver(held))
  }

  /** Those of one key together. If some are no longer held, each is asked for by itself: then a lease that the store has lost is counted again. */
  #renew(held: readonly Held[]): void {
    const [first] = held as [Held]
    const { plan } = HeldDecision.lent(first.permit)
    const { limit, cost } = first.loan
    const askedUs = this.#clock.nowUs()
    const askedWallUs = this.wallUs()
    const leaseUs = this.#holder.leaseUs(plan, limit)
    this.#renewWithin(leaseUs)
    const tokens = held.map(({ loan }) => loan.token)
    this.#holder.renew(plan, first.loan, tokens, held.length === 1 ? cost : 0, (count) => {
      if (count === held.length) for (const { loan } of held) this.lentUntil(loan, leaseUs, askedUs, askedWallUs)
      else if (count !== undefined && held.length > 1) {
        // What was released meanwhile is not to be counted again.
        for (const each of held) if (this.#held.has(each.permit)) this.#renew([each])
      } else if (count !== undefined) HeldDecision.lose(first.permit)
    })
  }
}

function groupId(plan: string | undefined, { limit, key }: Loan): string {
  return `${plan ?? ''}\n${limit}\n${key}`
}

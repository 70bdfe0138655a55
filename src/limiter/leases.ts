/**
 * The leases that permits of one limiter hold: each is renewed every third of its lease, all in one turn, and one that could not be renewed in time is
 * lost. A release that failed, because the store was away, is sent again until the lease is over.
 */
import { type Alarm, Alarms } from '../clock/alarms.ts'
import { type Clock, systemClock } from '../clock/clock.ts'
import { HeldDecision, type Lease, type Loan } from './permit.ts'

/** A holder counts a little less than the store does: clocks may differ in their rate by so much. */
const DRIFT = 0.01
const RENEWALS = 3
/** How often a release is sent again. */
const RESEND_US = 1_000_000

/** The parts of a limiter that leases need. */
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
class HeldLease implements Lease {
  declare readonly permit: HeldDecision
  declare readonly loan: Loan
  declare untilUs: number
  declare wallUntilUs: number
  /** Rings when it may have run out; undefined once it is no longer held. */
  declare alarm: Alarm | undefined

  constructor(permit: HeldDecision, loan: Loan, untilUs: number, wallUntilUs: number) {
    this.permit = permit
    this.loan = loan
    this.untilUs = untilUs
    this.wallUntilUs = wallUntilUs
    this.alarm = undefined
  }
}

export class Leases {
  readonly #clock: Clock
  readonly #holder: LeaseHolder
  readonly #alarms: Alarms
  /** By plan, limit and key. */
  readonly #groups = new Map<string, Set<HeldLease>>()
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

  /** A loan runs from when it was asked for. */
  add(permit: HeldDecision, loan: Loan, askedUs: number): void {
    const plan = HeldDecision.plan(permit)
    const heldUs = surelyUs(loan.leaseUs)
    const held = new HeldLease(permit, loan, askedUs + heldUs, this.wallUs() + heldUs)
    loan.lease = held
    held.alarm = this.#alarms.set(held.untilUs, () => this.#mayBeOver(held))
    const id = groupId(plan, loan)
    const group = this.#groups.get(id)
    if (group === undefined) this.#groups.set(id, new Set([held]))
    else group.add(held)
    this.#renewWithin(this.#holder.leaseUs(plan, loan.limit))
  }

  /** It was released or lost. */
  remove(permit: HeldDecision): void {
    for (const { lease } of HeldDecision.loans(permit)) if (lease !== undefined) this.#remove(HeldDecision.plan(permit), lease as HeldLease)
  }

  /** Renews it no longer: another process does, or nobody. It is lost when its lease is over. */
  leave(permit: HeldDecision): void {
    for (const { lease } of HeldDecision.loans(permit))
      if (lease !== undefined) this.#leaveGroup(HeldDecision.plan(permit), lease as HeldLease)
  }

  /** Another process has renewed it, and asked for that then. */
  renewed(permit: HeldDecision, askedUs: number, askedWallUs: number): void {
    for (const { limit, lease } of HeldDecision.loans(permit)) {
      if (lease !== undefined) runAnew(lease, this.#holder.leaseUs(HeldDecision.plan(permit), limit), askedUs, askedWallUs)
    }
  }

  #remove(plan: string | undefined, held: HeldLease): void {
    if (held.alarm === undefined) return
    this.#alarms.stop(held.alarm)
    held.alarm = undefined
    this.#leaveGroup(plan, held)
  }

  #leaveGroup(plan: string | undefined, held: HeldLease): void {
    const id = groupId(plan, held.loan)
    const group = this.#groups.get(id)
    group?.delete(held)
    if (group?.size === 0) this.#groups.delete(id)
  }

  /** Sends a release, and again while the lease runs, until the store was told. */
  release(plan: string | undefined, loan: Loan, onEnd: () => void): void {
    this.#holder.release(plan, loan, (isTold) => {
      onEnd()
      if (!isTold && loan.lease !== undefined) this.releaseAgain(plan, loan, loan.lease)
    })
  }

  /** A second later, unless the lease is over by then. */
  releaseAgain(plan: string | undefined, loan: Loan, { untilUs }: Lease): void {
    const againUs = this.#clock.nowUs() + RESEND_US
    if (againUs < untilUs) this.#alarms.set(againUs, () => this.release(plan, loan, () => {}))
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
    if (this.#groups.size === 0) {
      this.#everyUs = Number.POSITIVE_INFINITY
      return
    }
    for (const group of [...this.#groups.values()]) this.#tickOf([...group])
    this.#setTick()
  }

  /** After a standstill some are over before their alarms have rung. */
  #tickOf(group: readonly HeldLease[]): void {
    for (const { permit } of group) if (!permit.held) HeldDecision.lose(permit)
    const still = group.filter(({ alarm }) => alarm !== undefined)
    if (still.length > 0) this.#renew(still)
  }

  /** It may have been renewed since the alarm was set. If not, nobody knows whether the store has given the place away. */
  #mayBeOver(held: HeldLease): void {
    if (this.#clock.nowUs() >= held.untilUs) HeldDecision.lose(held.permit)
    else held.alarm = this.#alarms.set(held.untilUs, () => this.#mayBeOver(held))
  }

  /** Those of one key together. If some are no longer held, each is asked for by itself: then a lease that the store has lost is counted again. */
  #renew(held: readonly HeldLease[]): void {
    const [first] = held as [HeldLease]
    const plan = HeldDecision.plan(first.permit)
    const { limit, cost } = first.loan
    const askedUs = this.#clock.nowUs()
    const askedWallUs = this.wallUs()
    const leaseUs = this.#holder.leaseUs(plan, limit)
    this.#renewWithin(leaseUs)
    const tokens = held.map(({ loan }) => loan.token)
    this.#holder.renew(plan, first.loan, tokens, held.length === 1 ? cost : 0, (count) => {
      if (count === held.length) {
        for (const each of held) runAnew(each, leaseUs, askedUs, askedWallUs)
      } else if (count !== undefined && held.length > 1) {
        // A permit that was released meanwhile must not be counted again.
        for (const each of held) if (each.alarm !== undefined) this.#renew([each])
      } else if (count !== undefined) HeldDecision.lose(first.permit)
    })
  }
}

function runAnew(lease: Lease, leaseUs: number, askedUs: number, askedWallUs: number): void {
  const heldUs = surelyUs(leaseUs)
  lease.untilUs = askedUs + heldUs
  lease.wallUntilUs = askedWallUs + heldUs
}

/** How long a lease is held for certain. */
function surelyUs(leaseUs: number): number {
  return Math.floor(leaseUs * (1 - DRIFT))
}

function groupId(plan: string | undefined, { limit, key }: Loan): string {
  return `${plan ?? ''}\n${limit}\n${key}`
}

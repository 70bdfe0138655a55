/**
 * The leases that permits of one limiter hold: each is renewed every third of the shortest of them,
 * and one that could not be renewed in time is lost. A release that failed, because the store was
 * away, is sent again until the lease is over.
 *
 * Leases of one key are renewed together, and those of a few hundred keys in one turn: a round.
 * Where there are more keys, the rounds are spread over the third: thousands of renewals in one
 * turn would stand before all other calls, and fill the young generation of this process with
 * objects that wait.
 */
import { type Alarm, Alarms } from '../clock/alarms.ts'
import { type Clock, wallUs } from '../clock/clock.ts'
import { HeldDecision, type Lease, type Loan } from './permit.ts'

/**
 * A holder counts a little less than the store does: clocks may differ in their rate by so much.
 */
const DRIFT = 0.01
const RENEWALS = 3
/** How many keys are renewed in one turn at most. */
const MOST_IN_ROUND = 256
/** How often a release is sent again. */
const RESEND_US = 1_000_000

/** The parts of a limiter that leases need. */
export interface LeaseHolder {
  /** How long a lease of this limit runs now, under a plan. */
  leaseUs(plan: string | undefined, limit: string): number
  /**
   * Renews leases of the key of this one. Tells how many are held; undefined if the store did not
   * say. `cost`: above 0 if one that the store lost is counted again.
   */
  renew(plan: string | undefined, loan: Loan, tokens: readonly number[], cost: number, onRenewed: OnRenewed): void
  /** Tells whether the store was told. */
  release(plan: string | undefined, loan: Loan, onReleased: (isTold: boolean) => void): void
}

export type OnRenewed = (held: number | undefined) => void

/** One lease of a permit. */
class HeldLease implements Lease {
  declare readonly permit: HeldDecision
  declare readonly loan: Loan
  declare readonly group: Group
  declare untilUs: number
  declare wallUntilUs: number
  /** Neither released nor lost. */
  declare isHeld: boolean
  /** Of one that is not renewed here: rings when it may have run out. */
  declare alarm: Alarm | undefined

  constructor(permit: HeldDecision, loan: Loan, group: Group, untilUs: number, wallUntilUs: number) {
    this.permit = permit
    this.loan = loan
    this.group = group
    this.untilUs = untilUs
    this.wallUntilUs = wallUntilUs
    this.isHeld = true
    this.alarm = undefined
  }
}

/** The leases of one plan, limit and key, lent by the store or by what decided in its place. */
interface Group {
  readonly id: string
  readonly round: Round
  readonly held: Set<HeldLease>
}

/** The groups that are renewed in one turn. */
interface Round {
  /** When its turn comes: so much of the interval after the first round. */
  readonly phase: number
  readonly groups: Set<Group>
  /** When its next turn is; undefined while there are no groups. */
  tick: Alarm | undefined
  /**
   * No lease of it runs out before that; undefined while there are none. One alarm for all: most
   * leases are released long before.
   */
  end: Alarm | undefined
}

export class Leases {
  readonly #clock: Clock
  readonly #holder: LeaseHolder
  readonly #alarms: Alarms
  /** By plan, limit and key. */
  readonly #groups = new Map<string, Group>()
  readonly #rounds: Round[] = []
  /** Those that may have one more group. */
  readonly #roomy = new Set<Round>()
  /** How often all are renewed: a third of the shortest lease. Infinity while there are none. */
  #everyUs = Number.POSITIVE_INFINITY

  constructor(clock: Clock, holder: LeaseHolder) {
    this.#clock = clock
    this.#holder = holder
    this.#alarms = new Alarms(clock, false, true)
  }

  wallUs(): number {
    return wallUs(this.#clock)
  }

  /** A loan runs from when it was asked for: the machine may have been suspended since. */
  add(permit: HeldDecision, loan: Loan): void {
    const plan = HeldDecision.plan(permit)
    const askedUs = HeldDecision.askedUs(permit)
    const askedWallUs = HeldDecision.askedWallUs(permit) ?? this.wallUs()
    const heldUs = surelyUs(loan.leaseUs)
    const id = groupId(plan, loan)
    const group = this.#groups.get(id) ?? this.#newGroup(id)
    const held = new HeldLease(permit, loan, group, askedUs + heldUs, askedWallUs + heldUs)
    loan.lease = held
    group.held.add(held)
    this.#watch(group.round, held.untilUs)
    this.#renewWithin(this.#holder.leaseUs(plan, loan.limit))
  }

  /** It was released or lost. */
  remove(permit: HeldDecision): void {
    for (const { lease } of HeldDecision.loans(permit)) if (lease !== undefined) this.#remove(lease as HeldLease)
  }

  /** Renews it no longer: another process does, or nobody. It is lost when its lease is over. */
  leave(permit: HeldDecision): void {
    for (const { lease } of HeldDecision.loans(permit)) {
      if (lease === undefined) continue
      this.#leaveGroup(lease as HeldLease)
      this.#watchAlone(lease as HeldLease)
    }
  }

  /** Another process has renewed it, and asked for that then. */
  renewed(permit: HeldDecision, askedUs: number, askedWallUs: number): void {
    for (const { limit, lease } of HeldDecision.loans(permit)) {
      if (lease !== undefined) runAnew(lease, this.#holder.leaseUs(HeldDecision.plan(permit), limit), askedUs, askedWallUs)
    }
  }

  #remove(held: HeldLease): void {
    if (!held.isHeld) return
    held.isHeld = false
    if (held.alarm !== undefined) this.#alarms.stop(held.alarm)
    this.#leaveGroup(held)
  }

  #leaveGroup(held: HeldLease): void {
    const { group } = held
    group.held.delete(held)
    // Another group may have its name, if this one was empty before.
    if (group.held.size > 0 || !group.round.groups.delete(group)) return
    this.#groups.delete(group.id)
    this.#roomy.add(group.round)
  }

  #newGroup(id: string): Group {
    const [round = this.#newRound()] = this.#roomy
    const group = { id, round, held: new Set<HeldLease>() }
    this.#groups.set(id, group)
    round.groups.add(group)
    if (round.groups.size === MOST_IN_ROUND) this.#roomy.delete(round)
    if (round.tick === undefined && this.#everyUs < Number.POSITIVE_INFINITY) this.#setTick(round)
    return group
  }

  #newRound(): Round {
    const round: Round = { phase: phaseOf(this.#rounds.length), groups: new Set(), tick: undefined, end: undefined }
    this.#rounds.push(round)
    this.#roomy.add(round)
    return round
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
    // Also of a round that has become empty since its next turn was set: the next group finds that
    // turn.
    for (const round of this.#rounds) if (round.groups.size > 0 || round.tick !== undefined) this.#setTick(round)
  }

  /**
   * Ticks of the first round lie at multiples of the interval, so that those of all limiters of a
   * process are in one turn.
   */
  #setTick(round: Round): void {
    if (round.tick !== undefined) this.#alarms.stop(round.tick)
    const phaseUs = Math.floor(round.phase * this.#everyUs)
    const nextUs = (Math.floor((this.#clock.nowUs() - phaseUs) / this.#everyUs) + 1) * this.#everyUs + phaseUs
    round.tick = this.#alarms.set(nextUs, () => this.#tick(round))
  }

  #tick(round: Round): void {
    round.tick = undefined
    if (this.#groups.size === 0) this.#everyUs = Number.POSITIVE_INFINITY
    if (round.groups.size === 0) return
    for (const { held } of [...round.groups]) this.#tickOf([...held])
    this.#setTick(round)
  }

  /** After a standstill some are over before their alarms have rung. */
  #tickOf(group: readonly HeldLease[]): void {
    for (const { permit } of group) if (!permit.held) HeldDecision.lose(permit)
    const still = group.filter(({ isHeld }) => isHeld)
    if (still.length > 0) this.#renew(still)
  }

  /** A lease of the round runs out then, if it is not renewed. */
  #watch(round: Round, untilUs: number): void {
    if (round.end !== undefined && round.end.atUs <= untilUs) return
    if (round.end !== undefined) this.#alarms.stop(round.end)
    round.end = this.#alarms.set(untilUs, () => this.#mayBeOver(round))
  }

  /**
   * Most leases have been released or renewed since. Of one that was not, nobody knows whether the
   * store has given the place away.
   */
  #mayBeOver(round: Round): void {
    round.end = undefined
    const nowUs = this.#clock.nowUs()
    const all = [...round.groups].flatMap(({ held }) => [...held])
    for (const { permit, untilUs } of all) if (nowUs >= untilUs) HeldDecision.lose(permit)
    const soonestUs = all.reduce((us, { isHeld, untilUs }) => (isHeld ? Math.min(us, untilUs) : us), Number.POSITIVE_INFINITY)
    if (soonestUs < Number.POSITIVE_INFINITY) this.#watch(round, soonestUs)
  }

  /** The same of one that another process renews. */
  #watchAlone(held: HeldLease): void {
    held.alarm = this.#alarms.set(held.untilUs, () => {
      if (this.#clock.nowUs() >= held.untilUs) HeldDecision.lose(held.permit)
      else this.#watchAlone(held)
    })
  }

  /**
   * Those of one key together. If some are no longer held, each is asked for by itself: then a
   * lease that the store has lost is counted again.
   */
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
        for (const each of held) if (each.isHeld) this.#renew([each])
      } else if (count !== undefined) HeldDecision.lose(first.permit)
    })
  }
}

/**
 * 0, 1/2, 1/4, 3/4, 1/8, ...: as evenly spread as so many can be, and none moves when there is one
 * more.
 */
function phaseOf(round: number): number {
  let phase = 0
  for (let [rest, share] = [round, 0.5]; rest > 0; rest >>= 1, share /= 2) if (rest & 1) phase += share
  return phase
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

function groupId(plan: string | undefined, { limit, key, degraded }: Loan): string {
  return `${plan ?? ''}\n${limit}\n${degraded ? 1 : 0}${key}`
}

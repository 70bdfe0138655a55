/**
 * The queue of a store that others share: where nothing can be booked, it claims a key that others
 * would keep from its first waiter (claim.ts).
 */
import type { Verdict } from '../../algorithms/decide.ts'
import { chargesOf, giveBacks } from '../settlement.ts'
import { allAllowed, type Part } from '../store.ts'
import { type Claim, claimedParts, claimOf, HeldUp, renewalUs } from './claim.ts'
import { LateQueue } from './late-queue.ts'
import type { Question } from './question.ts'
import { mayBook, type Waiter } from './waiter.ts'

export class SharedQueue extends LateQueue {
  /** What stands in the store for the first outside, so that others leave room for it. */
  #claim: Claim | undefined
  /** Where nothing can be booked: how long a waiter has been the first and was refused. */
  readonly #heldUps = new WeakMap<Waiter, HeldUp>()

  override startAnew(): void {
    this.#claim = undefined
    super.startAnew()
  }

  override unbook(): void {
    super.unbook()
    this.#giveUpClaim()
  }

  /** Also when its claim is renewed. */
  protected override triesAtUs(first: Waiter): number {
    const renewUs = this.mayTry(first) && !mayBook(first.parts) ? this.#claim?.renewUs : undefined
    return Math.min(super.triesAtUs(first), renewUs ?? Number.POSITIVE_INFINITY)
  }

  protected override ask(op: 'take' | 'ask', waiter: Waiter, mayNotWait: boolean): void {
    // In one turn with what follows, so that a store which is far away decides both at once.
    const claim = this.#claim
    if (op === 'take' && claim?.waiter === waiter) {
      this.#giveUpClaim()
      const nowUs = this.nowUs()
      if (nowUs < this.retryAtUs && this.#heldUps.get(waiter)?.mayRenew(nowUs)) {
        this.#claimFor(waiter, claim.parts, this.retryAtUs)
        return
      }
    }
    super.ask(op, waiter, mayNotWait)
  }

  protected override notTaken(question: Question, verdicts: readonly Verdict[]): void {
    const { op, waiter } = question
    super.notTaken(question, verdicts)
    const isFirst = op === 'take' && waiter === this.line.firstOutside
    if (isFirst && this.room.isShared && !mayBook(waiter.parts) && !waiter.awaitsRelease) this.#heldUp(waiter, verdicts)
  }

  protected override takeOut(waiter: Waiter): Waiter {
    super.takeOut(waiter)
    if (this.#claim?.waiter === waiter) this.#giveUpClaim()
    return waiter
  }

  /** Where nothing can be booked, the first was refused: others may have been faster. */
  #heldUp(waiter: Waiter, verdicts: readonly Verdict[]): void {
    const claimed = claimedParts(waiter.parts, verdicts, this.room.store !== undefined)
    if (claimed === undefined) return
    const nowUs = this.nowUs()
    const heldUp = this.#heldUps.get(waiter) ?? new HeldUp(claimed, nowUs)
    this.#heldUps.set(waiter, heldUp)
    if (heldUp.mayClaim(nowUs)) this.#claimFor(waiter, claimed, this.retryAtUs)
    if (this.#claim === undefined) this.retryAtUs = Math.min(this.retryAtUs, heldUp.nextUs)
  }

  /** Others shall leave room for it until its time has come, as far as is known now. */
  #claimFor(waiter: Waiter, parts: readonly Part[], dueUs: number): void {
    const { plan } = this
    const { store } = this.room
    const limits = claimOf(parts, store !== undefined)
    const step = this.step('take', limits, -1, -1)
    const answered = (verdicts: readonly Verdict[]) => {
      if (!allAllowed(verdicts) || verdicts[0]?.degraded) return
      const claim = { waiter, parts, limits, verdicts, renewUs: this.nowUs() + renewalUs(parts) }
      if (plan !== this.plan || waiter.state !== 'outside' || waiter !== this.line.firstOutside) {
        this.#giveBack(claim)
        return
      }
      this.#claim = claim
      this.retryAtUs = dueUs
    }
    if (store !== undefined) {
      this.sendLater(store, step, 1, answered, () => {})
      return
    }
    try {
      answered(this.apply(step))
    } catch {}
  }

  #giveUpClaim(): void {
    const claim = this.#claim
    this.#claim = undefined
    if (claim !== undefined) this.#giveBack(claim)
  }

  #giveBack({ limits, verdicts }: Claim): void {
    this.give(giveBacks(limits, chargesOf(limits, verdicts)))
  }
}

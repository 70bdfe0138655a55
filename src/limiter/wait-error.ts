import { SluiceError } from '../errors.ts'
import type { WaitRefusal } from '../stores/queue/waiter.ts'
import type { Decision } from './decision.ts'

const REASONS: Record<WaitRefusal, string> = {
  TIMEOUT: 'cannot have its turn within timeoutMs',
  IMPOSSIBLE: 'can never have its turn: the cost is more than the limit admits at once',
  QUEUE_FULL: 'may not wait: as many as maxQueue and maxWaiting allow are waiting already',
}

/** A wait that a limit ended. Nothing was taken. */
export class WaitError extends SluiceError {
  declare readonly code: WaitRefusal
  /**
   * The last decision of the limits. Where permits are booked ahead, `retryAfterMs` of a `TIMEOUT`
   * is how long until the same call could be booked.
   */
  readonly decision: Decision | undefined

  constructor(code: WaitRefusal, what: string, decision: Decision | undefined) {
    super(code, `${what} ${REASONS[code]}`)
    this.name = 'WaitError'
    this.decision = decision
  }
}

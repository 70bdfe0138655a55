/** Mistakes in the use of the middleware itself, noticed while it is used. */
import { explainOnce } from './warnings.ts'

/** So many, because a test may well make one and use it at once. */
const MADE_AND_USED_AT_ONCE = 3

let madeAndUsedAtOnce = 0

/**
 * The making of a middleware. One that meets its first request before the code that made it has
 * come to its end was made for that request.
 */
export class PerRequestMisuse {
  #isNew = true

  constructor() {
    queueMicrotask(() => {
      this.#isNew = false
    })
  }

  noticeFirstRequest(): void {
    if (!this.#isNew) return
    madeAndUsedAtOnce += 1
    if (madeAndUsedAtOnce === MADE_AND_USED_AT_ONCE) explainOnce('SLUICE_LIMITER_PER_REQUEST')
  }
}

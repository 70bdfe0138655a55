/** Mistakes in the use of the middleware itself, noticed while it is used. */
import type { Store } from '../stores/store.ts'
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

interface Named {
  readonly name: string
  readonly store: Store | undefined
}

/** The limiters in use by name; not held on to, so that one that was dropped may be made again. */
const named = new Map<string, WeakRef<Named>>()

/** Limiters without a name have one of their own. */
export function noticeLimiter(limiter: Named): void {
  // Cloudflare Workers have it since the compatibility date of 2025-05-05.
  if (typeof WeakRef === 'undefined') return
  const known = named.get(limiter.name)?.deref()
  if (known !== undefined && known !== limiter) explainOnce('SLUICE_SAME_NAME', limiter.name)
  named.set(limiter.name, new WeakRef(limiter))
}

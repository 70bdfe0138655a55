/**
 * Rules that look as if they wanted `charge: true`: they are asked with 0 hits before a stream, and
 * then refuse the hits that its end brings. Those were used, and nobody is charged for them.
 */

import { titleOf } from '../config/config.ts'
import type { Journal } from '../journal.ts'
import type { Answer } from '../running/request.ts'
import type { RunningLimiter } from '../running/running-limiter.ts'

export class Uncharged {
  readonly #journal: Journal
  readonly #asked = new WeakSet<RunningLimiter>()
  readonly #told = new WeakSet<RunningLimiter>()

  constructor(journal: Journal) {
    this.#journal = journal
  }

  /** Of a descriptor that brought its hits along. */
  note(limiter: RunningLimiter, hits: number, { outcome }: Answer): void {
    if (hits === 0) this.#asked.add(limiter)
    else if (outcome !== 'allowed' && this.#asked.has(limiter) && !this.#told.has(limiter)) {
      this.#told.add(limiter)
      this.#journal.notCharged(titleOf(limiter.config), hits)
    }
  }
}

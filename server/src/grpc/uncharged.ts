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
  /** By title: limits that callers bring along are many limiters under one. */
  readonly #asked = new Set<string>()
  readonly #told = new Set<string>()

  constructor(journal: Journal) {
    this.#journal = journal
  }

  /** Of a descriptor that brought its hits along. */
  note({ config }: RunningLimiter, hits: number, { outcome }: Answer): void {
    const title = titleOf(config)
    if (hits === 0) this.#asked.add(title)
    else if (outcome !== 'allowed' && this.#asked.has(title) && !this.#told.has(title)) {
      this.#told.add(title)
      this.#journal.notCharged(title, hits)
    }
  }
}

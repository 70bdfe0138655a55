/**
 * A store of your own: states as bytes in a Map. Put a file, LevelDB or SQLite in its place, and
 * make `apply` one transaction. `decide` does the rest: every algorithm, several limits at once,
 * reservations, refunds, changed numbers.
 */
import { createLimiter, fixedWindow, tokenBucket } from 'sluice'
import { decide, load, type OpenStates, type Part, readState, type Scope, type Step, type SyncStore, writeState } from 'sluice/store'
import { storeCases } from 'sluice/testing'

class BytesStore implements SyncStore {
  readonly mode = 'sync'
  /** Whether others than the limiters of this thread use it. */
  readonly shared = false
  readonly #bytes = new Map<string, Uint8Array>()

  /** Called for each limiter. `nowUs` reads its clock. */
  open({ name }: Scope, nowUs: () => number): OpenStates {
    return { apply: (step) => this.#apply(name, step, nowUs), close() {} }
  }

  #apply(limiter: string, { op, parts, aheadUs, ofUs }: Step, nowUs: () => number): boolean {
    if (op === 'forget') return this.#forget(limiter, parts)
    for (const part of parts) {
      const bytes = this.#bytes.get(idOf(limiter, part))
      load(part, bytes && readState(bytes, 0))
    }
    // Not before the states were read: others may have written them later than that.
    const atUs = nowUs()
    const granted = decide(op, parts, atUs, aheadUs, ofUs, true)
    for (const part of parts) {
      const { own, s, i, limit, verdict, changed } = part
      if (changed) this.#bytes.set(idOf(limiter, part), writeState(own, s, i, atUs + verdict.resetUs, limit))
    }
    return granted
  }

  #forget(limiter: string, parts: readonly Part[]): boolean {
    for (const part of parts) this.#bytes.delete(idOf(limiter, part))
    return true
  }
}

function idOf(limiter: string, { limit, key }: Part): string {
  return JSON.stringify([limiter, limit, key])
}

const limiter = createLimiter(
  { burst: tokenBucket({ capacity: 3, refill: '1/s' }), daily: fixedWindow({ limit: 1_000, window: '1d' }) },
  { store: new BytesStore() },
)
console.log([1, 2, 3, 4].map(() => limiter.tryAcquire('user:42')).join(' '))

// The cases that every store must pass, for your own tests: each resolves, or rejects with what was
// wrong.
const cases = storeCases(() => new BytesStore())
const results = await Promise.allSettled(cases.map(([, run]) => run()))
const failed = cases.filter((_, k) => results[k]?.status === 'rejected').map(([name]) => name)
console.log(failed.length === 0 ? 'all cases pass' : failed)

// prints:
// true true true false
// all cases pass

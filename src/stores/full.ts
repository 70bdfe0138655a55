/**
 * A store without room for a new key: the refusal says so, and so do a warning, once, and the
 * health of each limiter that meets it.
 */
import type { Verdict } from '../algorithms/decide.ts'
import { SluiceError, warn } from '../errors.ts'

/** Told of every new key that found no room. It is called in the middle of a step. */
export type OnFull = (why: SluiceError) => void

export class FullStore {
  readonly #store: string
  readonly #outcome: string
  #error: SluiceError | undefined = undefined

  /** `store`: as it was made, such as `memoryStore({ maxKeys: 5 })`. */
  constructor(store: string, isRefused: boolean) {
    this.#store = store
    this.#outcome = isRefused ? "is refused until one of them is idle (onFull: 'deny')" : "passes uncounted (onFull: 'allow')"
  }

  /** `mayWarn`: whether nobody has yet. It is asked once. */
  tell(onFull: OnFull | undefined, limiter: string, mayWarn: () => boolean = () => true): void {
    if (this.#error === undefined) {
      const what = `${this.#store} is full: all keys that it looked at are in use, and a new key`
      this.#error = new SluiceError('STORE', `${what} ${this.#outcome}; make it with a larger maxKeys`)
      if (mayWarn()) warn('SLUICE_FULL', `${this.#error.message} (limiter '${limiter}')`)
    }
    onFull?.(this.#error)
  }
}

/** Says of a verdict that it limits for so long, because the store has no room for the key. */
export function refusedByFull(verdict: Verdict, us: number): void {
  if (verdict.outcome === 'impossible' || (verdict.outcome === 'limited' && verdict.retryUs >= us)) return
  verdict.outcome = 'full'
  verdict.retryUs = us
  verdict.delayUs = 0
}

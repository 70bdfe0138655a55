/**
 * Whether the store answers. It is asked what callers ask, a decision that writes, when the service
 * starts and then every two seconds: so an outage is noticed without traffic, and by a server that
 * answers but takes no writes too.
 */
import { type Clock, createLimiter, gcra, type SluiceError, type Store, systemClock } from '../sluice.ts'

const PERIOD_US = 2_000_000
/** Below the prefix that no limiter of a file may have. */
const NAME = 'rls.readiness'
/** In a cluster they lie on all nodes, but for bad luck: the store answers if one of them does. */
const KEYS = Array.from({ length: 16 }, (_, k) => `probe-${k}`)
const NEVER_FULL = gcra({ rate: '1000000/s', burst: 1_000_000 })

export interface StoreState {
  readonly state: 'up' | 'down'
  /** Why it is down. */
  readonly error: SluiceError | undefined
}

const UP: StoreState = { state: 'up', error: undefined }

interface Probed {
  consume(key: string): Promise<unknown>
  close(): void
}

export class StoreWatch {
  /** Undefined where the store is the memory of this process, which always answers. */
  readonly #limiter: Probed | undefined
  readonly #clock: Clock
  readonly #onChange: (state: StoreState) => void
  #state: StoreState = UP
  #stopTimer: () => void = () => undefined
  #isClosed = false

  constructor(store: Store, clock: Clock | undefined, onChange: (state: StoreState) => void) {
    const options = { name: NAME, store, onStoreError: 'throw', ...(clock === undefined ? {} : { clock }) }
    this.#limiter = store.mode === 'sync' ? undefined : (createLimiter(NEVER_FULL, options as object) as unknown as Probed)
    this.#clock = clock ?? systemClock
    this.#onChange = onChange
  }

  get state(): StoreState {
    return this.#state
  }

  /** Resolves when the store has been asked once, whatever it answered. */
  async start(): Promise<void> {
    if (this.#limiter === undefined) return
    await this.#check(this.#limiter)
  }

  close(): void {
    this.#isClosed = true
    this.#stopTimer()
    this.#limiter?.close()
  }

  async #check(limiter: Probed): Promise<void> {
    const answers = await Promise.allSettled(KEYS.map((key) => limiter.consume(key)))
    if (this.#isClosed) return
    const failed = answers.filter((answer) => answer.status === 'rejected')
    this.#become(failed.length < answers.length ? UP : { state: 'down', error: failed[0]?.reason as SluiceError })
    this.#stopTimer = this.#clock.setTimer(() => void this.#check(limiter), PERIOD_US, false)
  }

  #become(next: StoreState): void {
    const before = this.#state.state
    this.#state = next
    if (next.state !== before) this.#onChange(next)
  }
}

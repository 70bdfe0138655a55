/**
 * All journals, as one thread sees them: which of them it may have. Threads at rest hold none, so
 * any number of threads may come and go.
 *
 * The journal of a thread that is known to have ended is taken over at once, and any that has been
 * seen in the same step for `reclaimAfterMs`: recovery.ts tells which records it holds.
 */
import { SluiceError } from '../../errors.ts'
import type { AtomicOperations } from './atomic.ts'
import { fixedDoubles } from './bytes.ts'
import { type Journal, journalOf } from './journal.ts'
import {
  AT_REST,
  BEFORE_SHIFT,
  COUNT_MASK,
  COUNTS,
  FENCE,
  FREED_SHIFT,
  HELD,
  NEXT_JOURNAL,
  NOTHING,
  type SharedMemory,
  SPARES,
  STATE,
  THREAD,
  USED_SHIFT,
} from './layout.ts'
import { wasSwapped } from './recovery.ts'
import { rest, spin, threadNumber } from './thread.ts'

/**
 * How often a thread looks at all journals when all are claimed, before it gives up: for about a
 * millisecond, and then, letting other threads have the processor, for twenty more, in case there
 * are more threads at work than journals. It counts looks, not time, in which it may not have run
 * itself.
 */
const ROUNDS_AWAKE = 64
const ROUNDS_ASLEEP = 20
/**
 * How often a thread looks at all journals, so that the age of those of dead threads is known when
 * one is needed.
 */
const LOOK_EVERY_US = 1_000_000
/**
 * A look counts for no more than this of the time since the last, and for half of `reclaimAfterMs`:
 * if the whole process was stopped in between, no thread had a chance to go on.
 */
const LONGEST_LOOK_MS = 1_000

/** A journal that was seen claimed: in which step, when last, and for how long in all. */
interface Sighting {
  readonly state: number
  lastMs: number
  heldMs: number
}

export class Journals {
  readonly #memory: SharedMemory
  readonly #atomic: AtomicOperations
  readonly journal: Journal
  /** This thread, as journals and holders name it. */
  readonly thread: number
  /**
   * A word for `isStill`: of the journal that the thread began with, which others hardly ever use,
   * and which it may since have left.
   */
  readonly fence: number
  /** When to call `look` next. */
  readonly nextLookUs = fixedDoubles(1)
  readonly #sightings: (Sighting | undefined)[] = []
  #hasWaitedInVain = false

  /** `thread`: as journals name it; 0 where threads have no names. */
  constructor(memory: SharedMemory, thread = threadNumber()) {
    this.#memory = memory
    this.thread = thread
    this.#atomic = memory.atomic
    const first = (Atomics.add(memory.ints, NEXT_JOURNAL, 1) >>> 0) % memory.journalCount
    this.journal = journalOf(memory, thread, first)
    this.fence = memory.journalAt(first) + FENCE
  }

  claim(): void {
    if (!this.journal.reclaim()) this.#claimAny()
  }

  release(): void {
    this.journal.release()
  }

  /**
   * Whether there are more spare records than all journals have at rest. Then the chains hold fewer
   * keys than fit: a thread has taken a record out of a chain and has not put one in yet. A step
   * that is about to free a record, or has just used one, counts as such a thread: a new key may be
   * let in too early, and is never refused without need.
   */
  get anyInHand(): boolean {
    const { journalCount, ints } = this.#memory
    let spares = 0
    for (let k = 0; k < journalCount; k++) {
      const at = this.#memory.journalAt(k)
      const counts = this.#atomic.load(at + COUNTS)
      const after = ((counts >> BEFORE_SHIFT) & COUNT_MASK) - ((counts >> USED_SHIFT) & COUNT_MASK) + ((counts >> FREED_SHIFT) & COUNT_MASK)
      spares += Math.max(ints[at + HELD] as number, counts === NOTHING ? 0 : after)
    }
    return spares > journalCount * AT_REST
  }

  /** Goes over to a journal that has more spares than it needs, if this one has not. */
  changeToSpare(): boolean {
    const { journal } = this
    if (journal.hasReserve()) return true
    journal.release()
    for (let k = 0; k < this.#memory.journalCount; k++) {
      const at = this.#memory.journalAt(k)
      const isWorthClaiming = (this.#memory.ints[at + HELD] as number) > SPARES
      if (!this.takeOver(k) && !(isWorthClaiming && journal.claim(at))) continue
      if (journal.hasReserve()) return true
      journal.release()
    }
    this.claim()
    return journal.hasReserve()
  }

  /**
   * Takes over what a thread held that has ended. It must have: one that goes on would write into
   * records that are others' by then.
   */
  free(thread: number): void {
    this.#besides(() => {
      for (let k = 0; k < this.#memory.journalCount; k++) {
        const at = this.#memory.journalAt(k)
        const state = this.#atomic.load(at + STATE)
        const isItsOwn = (state & 1) === 1 && this.#atomic.load(at + THREAD) === thread
        if (isItsOwn && this.#seize(at, state, thread)) this.release()
      }
    })
  }

  /**
   * Looks at all journals, and takes over those that were claimed for too long. To be called when
   * `nextLookUs` has come.
   */
  look(nowUs: number): void {
    const isFirst = this.nextLookUs[0] === 0
    this.nextLookUs[0] = nowUs + LOOK_EVERY_US
    // A thread that has just begun has seen nothing yet, and may make one call only.
    if (isFirst) return
    this.#besides(() => {
      for (let k = 0; k < this.#memory.journalCount; k++) if (this.takeOver(k)) this.release()
    })
  }

  /**
   * Takes over a journal whose thread has been in the same step for too long: then it is this
   * thread's, as if claimed.
   */
  takeOver(k: number): boolean {
    const at = this.#memory.journalAt(k)
    const state = this.#atomic.load(at + STATE)
    if ((state & 1) === 0 || !this.#isClaimedForTooLong(k, state)) return false
    return this.#seize(at, state, this.#atomic.load(at + THREAD))
  }

  #seize(at: number, state: number, thread: number): boolean {
    // Still odd, but another step: of two that want to take it over one fails here. A thread that
    // dies from here on has left its own name.
    if (!this.journal.take(at, state, thread, (state + 2) | 0)) return false
    this.journal.finishNote(wasSwapped(this.#memory, at))
    return true
  }

  #claimAny(): void {
    const { journalCount } = this.#memory
    if (this.journal.claim(this.journal.held.at)) return
    // While all stay claimed, one call waits for long, and not each.
    const rounds = this.#hasWaitedInVain ? ROUNDS_AWAKE : ROUNDS_AWAKE + ROUNDS_ASLEEP
    this.#hasWaitedInVain = false
    for (let round = 0; round < rounds; round++) {
      for (let k = 0; k < journalCount; k++) if (this.journal.claim(this.#memory.journalAt(k)) || this.takeOver(k)) return
      if (round < ROUNDS_AWAKE) spin(round)
      else rest(1)
    }
    this.#hasWaitedInVain = true
    throw tooMany(journalCount)
  }

  /**
   * Has other journals for a while, and afterwards the one again that it had. Not to be called in
   * the middle of a step.
   */
  #besides(act: () => void): void {
    const before = { ...this.journal.held }
    act()
    Object.assign(this.journal.held, before)
  }

  /**
   * Notes that a journal is claimed, in that state. Tells whether it has been for so long that its
   * thread counts as ended.
   */
  #isClaimedForTooLong(k: number, state: number): boolean {
    const { reclaimAfterMs } = this.#memory
    const nowMs = performance.now()
    const seen = this.#sightings[k]
    if (seen?.state !== state) {
      this.#sightings[k] = { state, lastMs: nowMs, heldMs: 0 }
      return false
    }
    seen.heldMs += Math.min(nowMs - seen.lastMs, LONGEST_LOOK_MS, reclaimAfterMs / 2)
    seen.lastMs = nowMs
    return seen.heldMs >= reclaimAfterMs
  }
}

function tooMany(journals: number): SluiceError {
  return new SluiceError(
    'STORE',
    `all ${journals} places for threads in the middle of a step are taken: make the shared store with a larger maxThreads, and show it the threads that it outlives, by store.watch(worker)`,
  )
}

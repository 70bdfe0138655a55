/**
 * Stories: what happens to the keys of a limiter, told on every store by a clock that the test
 * moves. Each story has a store of its own that holds nothing.
 */
import { describe, test } from 'vitest'
import {
  type AsyncStore,
  type Clock,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  type Limiter,
  type LimiterOptions,
  type Limits,
  leakyBucket,
  type Rate,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { storeCases } from './stores.ts'

/** A time like today's. Hours begin here, and so do windows and slots that divide an hour. */
export const START_MS = 1_699_999_200_000

export interface Stage {
  readonly clock: FakeClock
  /** Sets the clock, in milliseconds since the story began. */
  at(ms: number): void
  /** A limiter of the one name, as if all stores answered later. */
  limiter<const L extends Limits, P extends string = never>(
    limits: L,
    options?: LimiterOptions<L, AsyncStore, P>,
  ): Limiter<L, AsyncStore, P>
  /**
   * Lets time pass until then. It stands still at each timer on the way until the store has
   * answered, so that no answer comes later than its question.
   */
  reach(ms: number): Promise<void>
}

export type Story = (name: string, tell: (stage: Stage) => Promise<void>) => void

/** The stories of `tellAll`, each on every store. */
export function onEveryStore(tellAll: (story: Story) => void): void {
  describe.each(storeCases)('on $name', ({ open }) => {
    tellAll((name, tell) => {
      test(name, async () => {
        const { store, close } = await open()
        try {
          await tell(stageOn(store as AsyncStore))
        } finally {
          close()
        }
      })
    })
  })
}

/** More than any step of a story takes. */
const ROUND_TRIPS = 8

function stageOn(store: AsyncStore): Stage {
  const clock = fakeClock(START_MS)
  const at = (ms: number) => clock.setMs(START_MS + ms)
  /** When timers are due. */
  const dueUs: number[] = []
  const noted: Clock = {
    nowUs: clock.nowUs,
    setTimer(fn, us) {
      dueUs.push(clock.nowUs() + us)
      return clock.setTimer(fn, us)
    },
  }
  const asked = createLimiter(gcra({ rate: '1/s', burst: 1 }), { name: 'round-trips', store, clock })
  const answered = async () => {
    for (let k = 0; k < ROUND_TRIPS; k++) {
      await asked.peek('k')
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return {
    clock,
    at,
    // No call may fail because the clock of the story leapt while the answer was under way.
    limiter: (limits, options) =>
      createLimiter(limits, { name: 'api', store, clock: noted, storeTimeoutMs: Number.POSITIVE_INFINITY, ...options }),
    async reach(ms) {
      const untilUs = Math.round((START_MS + ms) * 1000)
      await answered()
      while (clock.nowUs() < untilUs) {
        clock.setUs(Math.min(untilUs, ...dueUs.filter((us) => us > clock.nowUs())))
        await answered()
      }
    },
  }
}

type MadeOf = (capacity: number, rate: Rate) => Limit

/** The levels: so many at once, that come back at a rate. */
export const LEVELS: readonly (readonly [type: string, of: MadeOf])[] = [
  ['gcra', (burst, rate) => gcra({ rate, burst })],
  ['tokenBucket', (capacity, refill) => tokenBucket({ refill, capacity })],
  ['leakyBucket', (capacity, leak) => leakyBucket({ leak, capacity })],
]

/** Those that can be booked ahead. */
export const BOOKED: readonly (readonly [type: string, of: MadeOf])[] = LEVELS.slice(0, 2)

/** All algorithms: so many in so many seconds. */
export const ALL: readonly (readonly [type: string, of: (limit: number, seconds: number) => Limit])[] = [
  ...LEVELS.map(([type, of]) => [type, (limit: number, seconds: number) => of(limit, `${Math.max(limit, 1)}/${seconds}s`)] as const),
  ['fixedWindow', (limit, seconds) => fixedWindow({ limit, window: `${seconds}s`, anchor: 'first' })],
  ['slidingWindow', (limit, seconds) => slidingWindow({ limit, window: `${seconds}s`, slots: 10 })],
  ['slidingLog', (limit, seconds) => slidingLog({ limit, window: `${seconds}s` })],
]

/** The one file that reaches for the library: the same sources that are published. */
export { durationUs, type Pace, paceOf } from '../../src/algorithms/rate.ts'
export { burst, inOrder, steady } from '../../src/cli/traffic.ts'
export { limitFrom } from '../../src/config/index.ts'
export { aimd, type Governed, type Governor, type GovernorState, govern, knee, vegas } from '../../src/govern/index.ts'
export {
  type Clock,
  concurrency,
  createLimiter,
  type Decision,
  type Duration,
  gcra,
  type Limit,
  type MemoryStore,
  memoryStore,
  type Rate,
  SluiceError,
} from '../../src/index.ts'
export { type FakeClock, fakeClock } from '../../src/testing/fake-clock.ts'
export type { LimitData, Tape } from '../../src/testing/tape.ts'

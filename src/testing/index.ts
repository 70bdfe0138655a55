export { type FakeClock, fakeClock } from './fake-clock.ts'
export { Oracle, type OracleKind, type OracleNumbers, type OracleState } from './oracle.ts'
export { type Expected, type LimitData, playStory, playTape, type Stage, type Story, type StoryStep, type Tape } from './tape.ts'
export { type Admission, type WindowKind, type WindowNumbers, WindowOracle, type WindowState } from './window-oracle.ts'

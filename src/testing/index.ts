export { type FakeClock, fakeClock } from './fake-clock.ts'
export { type Expected, type LimitData, playStory, playTape, type Stage, type Story, type StoryStep, type Tape } from './tape.ts'

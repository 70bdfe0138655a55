export { type ObservedLimiter, type ObserveOptions, observe } from './observe.ts'

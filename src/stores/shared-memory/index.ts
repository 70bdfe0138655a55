export type { SharedHandle } from './memory.ts'
export type { SharedStoreOptions } from './options.ts'
export { type SharedStore, sharedStore } from './shared-store.ts'
export type { WatchedThread } from './thread-number.ts'

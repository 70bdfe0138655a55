export type { SharedHandle } from './layout.ts'
export type { SharedStoreOptions } from './options.ts'
export { type SharedStore, sharedStore } from './store.ts'
export type { WatchedThread } from './thread.ts'

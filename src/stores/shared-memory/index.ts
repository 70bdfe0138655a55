export type { SharedHandle } from './layout.ts'
export { type SharedStore, type SharedStoreOptions, sharedStore } from './shared-store.ts'

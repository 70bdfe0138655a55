export type { SqliteDatabase, SqliteStatement } from './driver.ts'
export { type SqliteStore, type SqliteStoreOptions, sqliteStore } from './sqlite-store.ts'

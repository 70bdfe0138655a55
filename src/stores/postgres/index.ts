export type { DenialCacheOptions } from '../remote/options.ts'
export type { PostgresClient, PostgresJs, QueryClient } from './client.ts'
export { type PostgresStoreOptions, type PostgresTable, postgresMigration, postgresStore } from './postgres-store.ts'

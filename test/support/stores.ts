/**
 * Every store, each made anew for a test. A new store passes the shared suites by being listed
 * here.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { memoryStore, type Store } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import { filesFolder } from './files-folder.ts'
import { sharedTable } from './postgres-client.ts'
import { connectRedis } from './redis-client.ts'

export interface StoreCase {
  readonly name: string
  open(): Promise<{ readonly store: Store; close(): void }>
}

const nothing = () => undefined

export const storeCases: readonly StoreCase[] = [
  { name: 'memory', open: async () => ({ store: memoryStore(), close: nothing }) },
  { name: 'shared memory', open: async () => ({ store: sharedStore({ maxKeys: 1_000, recordWords: 600 }), close: nothing }) },
  {
    name: 'redis',
    // A prefix of its own keeps the tests out of each other's keys.
    open: async () => {
      const client = await connectRedis()
      return { store: redisStore(client, { prefix: `test:${randomUUID()}` }), close: () => client.close() }
    },
  },
  { name: 'sqlite', open: async () => openSqlite() },
  {
    name: 'postgres',
    open: async () => ({ store: sharedTable().store(), close: nothing }),
  },
]

/** A file of its own. */
export function openSqlite() {
  const folder = mkdtempSync(join(filesFolder, 'sluice-'))
  const path = join(folder, 'limits.db')
  const store = sqliteStore(path)
  const close = () => {
    store.close()
    rmSync(folder, { recursive: true })
  }
  return { store, path, close }
}

/**
 * Starts a PostgreSQL of our own on a free port before the tests and stops it after them. Tests
 * find it with `inject('postgresUrl')`.
 */
import type { TestProject } from 'vitest/node'
import { startPostgres } from '../../scripts/postgres-server.mjs'

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres({ fsync: 'off', max_connections: 300 })
  project.provide('postgresUrl', server.url)
  return () => server.remove()
}

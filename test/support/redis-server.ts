/**
 * Starts a Redis of our own on a free port before the tests and stops it after them. Tests find it
 * with `inject('redisPort')`.
 */
import type { TestProject } from 'vitest/node'
import { startServer } from './redis-servers.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    redisPort: number
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startServer()
  project.provide('redisPort', server.port)
  return () => server.kill()
}

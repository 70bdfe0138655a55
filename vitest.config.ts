import { readdirSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { GROUPS, type Group, groupOf } from './test/support/groups.ts'
import LongFirst from './test/support/sequencer.ts'

/** Started before the tests of a group that needs servers, and stopped after them. */
const SERVERS = ['test/support/redis-server.ts', 'test/support/postgres-server.ts']
const WITHOUT_SERVERS: readonly Group[] = ['unit', 'model']

const files = ['src', 'test', 'server/test', 'playground/test'].flatMap((folder) => {
  const paths = readdirSync(new URL(folder, import.meta.url), { recursive: true, encoding: 'utf8' })
  return paths.filter((path) => path.endsWith('.test.ts')).map((path) => `${folder}/${path}`)
})

export default defineConfig({
  test: {
    projects: GROUPS.map((group) => ({
      test: {
        name: group,
        include: files.filter((path) => groupOf(path) === group),
        globalSetup: WITHOUT_SERVERS.includes(group) ? [] : SERVERS,
        // Long property runs are bounded by their number of traces, not by the clock.
        testTimeout: 600_000,
        hookTimeout: 60_000,
      },
    })),
    sequence: { sequencer: LongFirst },
    // On two cores: a third of the files wait for servers, processes and timers most of their time.
    maxWorkers: 3,
  },
})

import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'server/test/**/*.test.ts', 'playground/test/**/*.test.ts'],
    globalSetup: ['test/support/redis-server.ts', 'test/support/postgres-server.ts'],
    // Long property runs are bounded by their number of traces, not by the clock.
    testTimeout: 600_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
})

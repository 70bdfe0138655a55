/** A service on real sockets, with a clock that the test moves. */
import { expect } from 'vitest'
import { type FakeClock, fakeClock } from '../../../src/testing/fake-clock.ts'
import { readConfig } from '../../src/config/read.ts'
import type { Journal } from '../../src/journal.ts'
import { type Service, type ServiceOptions, startService } from '../../src/service.ts'
import { memoryStore, type Store } from '../../src/sluice.ts'
import type { Tokens } from '../../src/tokens.ts'

export const SILENT: Journal = {
  failed: () => undefined,
  flooded: () => undefined,
  connectionFailed: () => undefined,
  storeChanged: () => undefined,
  limiterChanged: () => undefined,
  decisionFailed: () => undefined,
  limitMoved: () => undefined,
  notCharged: () => undefined,
  decided: undefined,
}

export interface TestService extends Service {
  readonly url: string
  readonly clock: FakeClock
  readonly failures: unknown[]
}

export const CONFIG = `
limiters:
  api:
    limits: { type: gcra, rate: 1/s, burst: 3 }
    plans:
      pro: { type: gcra, rate: 10/s, burst: 30 }
  two:
    limits:
      requests: { type: slidingWindow, limit: 5, window: 1min }
      tokens: { type: tokenBucket, capacity: 100, refill: 100/min }
  shaped:
    limits: { type: leakyBucket, capacity: 4, leak: 1/s }
    maxQueue: 1
  quiet:
    limits: { type: fixedWindow, limit: 1, window: 1h }
    shadow: true
  held:
    limits: { type: concurrency, max: 2, lease: 30s }
`

/** With a clock of the test's unless it brings a store, which may have its own. */
export async function serviceOn(
  text: string = CONFIG,
  store?: Store,
  tokens?: Tokens,
  options: Partial<ServiceOptions> = {},
): Promise<TestService> {
  const clock = fakeClock(1_000_000)
  const failures: unknown[] = []
  const service = await startService({
    config: readConfig(text, 'test.yaml'),
    store: store ?? memoryStore(),
    clock: store === undefined ? clock : undefined,
    host: '127.0.0.1',
    httpPort: 0,
    grpcPort: 0,
    healthPort: undefined,
    tls: undefined,
    grpcMaxAgeMs: 0,
    tokens,
    allowHosts: [],
    page: undefined,
    topRefused: undefined,
    journal: { ...SILENT, failed: (error) => failures.push(error) },
    ...options,
  })
  return Object.assign(service, { url: `http://127.0.0.1:${service.httpPort}`, clock, failures })
}

/**
 * Lets everything else run until something is so. There is no sleep, and the test's own timeout is
 * the end.
 */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

export function expectNoFailure({ failures }: TestService): void {
  expect(failures).toEqual([])
}

/** Signals: of the interval, not since the start; CPU by quota in every kind of container. */
import { expect, test } from 'vitest'
import { cpuReading, type ReadText } from '../../src/load/cpu.ts'
import { cpu, errorRate, eventLoopDelay, eventLoopUtilization, heap, latency } from '../../src/load/index.ts'

const files =
  (texts: Readonly<Record<string, string>>): ReadText =>
  (path) =>
    texts[path]
const V2 = '/sys/fs/cgroup'

test.each([
  ['v2 with a quota', { [`${V2}/cpu.max`]: '150000 100000\n', [`${V2}/cpu.stat`]: 'usage_usec 5000000\nuser_usec 1\n' }, [5_000_000, 1.5]],
  [
    'v2 seen from above',
    {
      '/proc/self/cgroup': '0::/app.slice\n',
      [`${V2}/app.slice/cpu.max`]: '50000 100000\n',
      [`${V2}/app.slice/cpu.stat`]: 'usage_usec 7\n',
    },
    [7, 0.5],
  ],
  ['v2 without a quota', { [`${V2}/cpu.max`]: 'max 100000\n', [`${V2}/cpu.stat`]: 'usage_usec 5000000\n' }, [42, 8]],
  ['v2 with more than the machine has', { [`${V2}/cpu.max`]: '1600000 100000\n', [`${V2}/cpu.stat`]: 'usage_usec 9\n' }, [9, 8]],
  [
    'v1 with a quota',
    {
      [`${V2}/cpu/cpu.cfs_quota_us`]: '200000\n',
      [`${V2}/cpu/cpu.cfs_period_us`]: '100000\n',
      [`${V2}/cpuacct/cpuacct.usage`]: '3000000\n',
    },
    [3_000, 2],
  ],
  [
    'v1 without',
    { [`${V2}/cpu/cpu.cfs_quota_us`]: '-1\n', [`${V2}/cpu/cpu.cfs_period_us`]: '100000\n', [`${V2}/cpuacct/cpuacct.usage`]: '3\n' },
    [42, 8],
  ],
  ['no cgroup', {}, [42, 8]],
])('CPU by %s', (_, texts, [usedUs, cores]) => {
  expect(cpuReading(files(texts as Record<string, string>), () => 42, 8, 1)).toEqual({ atUs: 1, usedUs, cores })
})

test('CPU is that of the interval', () => {
  let reading = { atUs: 0, usedUs: 1_000_000, cores: 2 }
  const signal = cpu(() => reading)
  reading = { atUs: 1_000_000, usedUs: 2_000_000, cores: 2 }
  expect(signal.read()).toBe(0.5)
  reading = { atUs: 2_000_000, usedUs: 2_500_000, cores: 2 }
  expect(signal.read()).toBe(0.25)
  expect(signal.read()).toBe(undefined)
})

test('latency and errors are those of the interval', () => {
  const slow = latency()
  const failing = errorRate()
  expect([slow.read(), failing.read()]).toEqual([undefined, undefined])
  for (let k = 1; k <= 1_000; k++) slow.record(k)
  for (let k = 0; k < 10; k++) failing.record(k < 3)
  expect(slow.read()).toBeGreaterThan(980)
  expect(failing.read()).toBe(0.3)
  slow.record(5)
  failing.record(false)
  expect(slow.read()).toBeLessThan(6)
  expect(failing.read()).toBe(0)
  expect(() => slow.record(Number.NaN)).toThrow(/latency NaN must be 0 milliseconds or more/)
})

test('the signals of the process answer numbers of their interval', async () => {
  const signals = { delay: eventLoopDelay(), busy: eventLoopUtilization(), used: heap(), cpu: cpu() }
  // Until the delay was sampled at all.
  let delay: number | undefined
  for (let k = 0; k < 1_000 && delay === undefined; k++) {
    await new Promise((resolve) => setTimeout(resolve, 5))
    delay = signals.delay.read()
  }
  expect(delay).toBeGreaterThanOrEqual(0)
  const busy = signals.busy.read() as number
  expect(busy >= 0 && busy <= 1).toBe(true)
  const used = signals.used.read() as number
  expect(used > 0 && used < 1).toBe(true)
  expect(signals.cpu.read()).toBeGreaterThanOrEqual(0)
  signals.delay.close?.()
})

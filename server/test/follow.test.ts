/** Limits that follow the load of the service. The signal and the clock are the test's. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { explained } from '../src/config/explain.ts'
import { readConfig, readConfigs } from '../src/config/read.ts'
import type { LoadSignal, RateChange } from '../src/sluice.ts'
import { call } from './support/client.ts'
import { main, startedProcess } from './support/process.ts'
import { expectNoFailure, SILENT, serviceOn, type TestService } from './support/service.ts'

const FOLLOW = '{ signal: cpu, min: 20/s, max: 100/s, from: 0.5, to: 1, limit: rate }'
const config = (follow: string, rate = '100/s') => `
limiters:
  api:
    limits:
      rate: { type: gcra, rate: ${rate}, burst: 10 }
      daily: { type: fixedWindow, limit: 1000000, window: 1d }
    plans:
      pro:
        rate: { type: gcra, rate: 500/s, burst: 10 }
        daily: { type: fixedWindow, limit: 1000000, window: 1d }
    ${follow === '' ? '' : `follow: ${follow}`}
  other:
    limits: { type: gcra, rate: 1/s, burst: 1 }
`

describe('the service', () => {
  let service: TestService
  let load: number
  let open: number
  let told: RateChange[]

  beforeEach(async () => {
    load = 0
    open = 0
    told = []
    const signal = (): LoadSignal => {
      open += 1
      const close = () => {
        open -= 1
      }
      return { read: () => load, close }
    }
    const signals = { cpu: signal, eventLoopDelay: signal, eventLoopUtilization: signal, heap: signal }
    const journal = { ...SILENT, limitMoved: (change: RateChange) => void told.push(change) }
    service = await serviceOn(config(FOLLOW), undefined, undefined, { signals, journal })
  })

  afterEach(async () => {
    await service.stop(0)
    expectNoFailure(service)
    expect(open).toBe(0)
  })

  const metric = async (line: string) => {
    const { body } = await call(service.url, 'GET', '/metrics')
    return Number(new RegExp(`^${line} (.*)$`, 'm').exec(body)?.[1])
  }
  const rateNow = () => metric('sluice_limit_now\\{limiter="api",limit="rate"\\}')
  const changes = (reason: string) => metric(`sluice_limit_changes_total\\{limiter="api",limit="rate",reason="${reason}"\\}`)
  const seconds = (n: number) => {
    for (let k = 0; k < n; k++) service.clock.advanceMs(1000)
  }
  /** How many of a hundred calls pass a second after the key was used up. */
  const passInASecond = async (plan?: string) => {
    const ask = { limiter: 'api', key: `k${plan}`, plan }
    const ten = { decisions: Array(10).fill(ask) }
    await call(service.url, 'POST', '/v1/decide', ten)
    let passed = 0
    for (let k = 0; k < 20; k++) {
      service.clock.advanceMs(50)
      const { body } = await call(service.url, 'POST', '/v1/decide', { decisions: Array(30).fill(ask) })
      passed += body.decisions.filter(({ allowed }: { allowed: boolean }) => allowed).length
    }
    return passed
  }

  test('a rate falls with the load of the process, at most a tenth a second, and comes back', async () => {
    expect([await rateNow(), await changes('more load'), await changes('less load')]).toEqual([100, 0, 0])
    load = 1
    seconds(1)
    expect(await rateNow()).toBeCloseTo(90)
    expect(told).toEqual([{ limiter: 'api', limit: 'rate', from: 100, to: expect.closeTo(90), signal: 1, reason: 'more load' }])
    seconds(30)
    expect(await rateNow()).toBe(20)
    expect(await passInASecond()).toBe(20)
    expect(await passInASecond('pro')).toBe(200)
    const { limiters } = (await call(service.url, 'GET', '/v1/limiters')).body
    expect(limiters.map(({ now }: { now: object }) => now)).toEqual([{ rate: 20 }, {}])
    expect(limiters[0].follow).toMatchObject({ signal: 'cpu', min: '20/s' })
    load = 0.75
    seconds(60)
    expect(await rateNow()).toBeCloseTo(60)
    expect([await changes('more load'), await changes('less load')]).toEqual([
      told.filter(({ reason }) => reason === 'more load').length,
      told.filter(({ reason }) => reason === 'less load').length,
    ])
  })

  test('a reload keeps the rate that the load has left, under other bounds too, and one without it ends the following', async () => {
    load = 1
    seconds(5)
    const before = await rateNow()
    expect(before).toBeCloseTo(100 * 0.9 ** 5)
    const use = (text: string) => service.limiters.use(readConfig(text, 'test.yaml'))
    expect(use(config(FOLLOW.replace('to: 1', 'to: 0.9')))).toMatchObject({ changed: ['api'] })
    expect([await rateNow(), open]).toEqual([expect.closeTo(before), 1])
    const changed = await changes('more load')
    seconds(1)
    expect(await rateNow()).toBeCloseTo(before * 0.9)
    expect(await changes('more load')).toBe(changed + 1)
    use(config(FOLLOW.replace('100/s', '40/s')))
    expect(await rateNow()).toBe(40)
    use(config(''))
    expect([await rateNow(), open, told.length]).toEqual([Number.NaN, 0, changed + 1])
    seconds(5)
    expect(await passInASecond()).toBe(100)
    use(config(FOLLOW, '50/s'))
    expect([await rateNow(), open]).toEqual([50, 1])
  })

  test('a reload goes to bounds that the rate so far could not have with a much larger burst', async () => {
    const use = (text: string) => service.limiters.use(readConfig(text, 'test.yaml'))
    use(config(FOLLOW.replace('20/s', '1/h').replace('100/s', '2/h'), '1/h'))
    use(config(FOLLOW).replace('burst: 10', 'burst: 4000000'))
    expect([await rateNow(), open]).toEqual([20, 1])
  })
})

describe('a configuration', () => {
  const messageFor = (text: string, isShared?: boolean): string => {
    try {
      readConfigs([{ file: 'x.yaml', text }], undefined, isShared)
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }

  test.each([
    [FOLLOW.replace('cpu', 'load'), 'signal "load" must be one of eventLoopDelay, eventLoopUtilization, cpu, heap'],
    ['{ limit: rate, signal: cpu, min: 20/s, max: 100/s, from: 0.5 }', 'to is missing: it must be a number other than from (0.5)'],
    [FOLLOW.replace('20/s', '200/s'), 'follow min "200/s" must be at most max ("100/s")'],
    [FOLLOW.replace('20/s', 'few'), 'follow min "few" must'],
    [FOLLOW.replace('rate', 'rat'), 'follow limit "rat" must be one of the limits: rate, daily'],
    [FOLLOW.replace(', limit: rate', ''), 'limit is missing: it must be one of the limits: rate, daily'],
    [FOLLOW.replace(' }', ', everyMs: 1 }'), 'follow everyMs 1 must be from 10 to 600,000 milliseconds'],
    [FOLLOW.replace(' }', ', share: 2 }'), 'follow share 2 must be above 0 and at most 1'],
    [FOLLOW.replace(' }', ', step: 2 }'), '"step" is not an option of follow: there is limit, signal, min, max, from, to, everyMs, share'],
    ['5', 'follow 5 must be a mapping of limit, signal'],
  ])('%s', (follow, message) => {
    expect(messageFor(config(follow))).toMatch(/^x\.yaml:11:\d+: /)
    expect(messageFor(config(follow))).toContain(message)
  })

  test('tells every mistake, each at its place', () => {
    const mistakes = messageFor(config('{ limit: rate, signal: x, min: few, max: many, from: a, to: b, everyMs: 0, share: 0 }')).split('\n')
    expect(mistakes.map((line) => /(signal|min|max|from|to|everyMs|share) /.exec(line)?.[1])).toEqual([
      'signal',
      'min',
      'max',
      'from',
      'to',
      'everyMs',
      'share',
    ])
  })

  test('on a store that others share must say its share; where the store is not known it need not', () => {
    expect(messageFor(config(FOLLOW), true)).toContain('x.yaml:11:13: share is missing: it must be said on a store that others share')
    expect(messageFor(config(FOLLOW.replace(' }', ', share: 1 }')), true)).toBe('')
    expect([messageFor(config(FOLLOW), false), messageFor(config(FOLLOW))]).toEqual(['', ''])
  })

  test('follows with rates only, in limiters and in rules, and is explained', () => {
    const held =
      'limiters: { a: { limits: { type: concurrency, max: 1, lease: 1s }, follow: { signal: cpu, min: 1/s, max: 2/s, from: 0, to: 1 } } }'
    expect(messageFor(held)).toContain('follow limit "default" is a concurrency, which has no rate')
    const rule = (limit: string) =>
      `domains: { d: { descriptors: [{ key: k, ${limit}follow: { signal: heap, min: 1/s, max: 2/s, from: 0, to: 1 } }] } }`
    expect(messageFor(rule('unlimited: true, '))).toContain('follow must stand beside a limit')
    const shared = rule('limit: { type: gcra, rate: 2/s, burst: 1 }, ').replace('to: 1', 'to: 1, share: 0.29')
    const text = explained(readConfig(shared, 'x.yaml'))
    expect(text).toContain('the rate follows heap of this process: 2 per s up to 0, 1 per s from 1 on, and 29 % of that')
  })
})

describe('the service as it is built', () => {
  let folder: string
  let file: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-follow-'))
    file = join(folder, 'sluice.yaml')
    // Some of the heap is always in use.
    const follow = '{ signal: heap, min: 1/s, max: 100/s, from: 0, to: 0.000001, everyMs: 10 }'
    writeFileSync(file, `limiters: { api: { limits: { type: gcra, rate: 100/s, burst: 10 }, follow: ${follow} } }\n`)
  })

  afterEach(() => rmSync(folder, { recursive: true }))

  test('follows its own load, and says so in its log', async () => {
    const { process, line, ended } = await startedProcess(file)
    try {
      const told = JSON.parse(await line('a limit has followed the load'))
      expect(told).toMatchObject({ limiter: 'api', limit: 'default', from: 100, to: expect.any(Number), reason: 'more load' })
      expect(told.to).toBeLessThan(100)
      expect(told.signal).toBeGreaterThan(0)
    } finally {
      process.kill('SIGKILL')
      await ended
    }
  })

  test('does not start on a store that others share without a share', () => {
    const { status, stderr } = spawnSync(process.execPath, [main, 'serve', file, '--sqlite', join(folder, 'limits.db')], {
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([1, expect.stringMatching(/sluice\.yaml:1:\d+: share is missing/)])
  })
})

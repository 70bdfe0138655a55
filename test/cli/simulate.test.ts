/** `sluice simulate`, as it is built. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

const sluice = (...args: string[]) => sluiceIn({}, ...args)

function sluiceIn(env: Record<string, string>, ...args: string[]) {
  return spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8', env: { ...process.env, COLUMNS: '', ...env } })
}

interface Traffic {
  readonly traffic: string
  readonly runs: readonly { readonly name: string; readonly admitted: number[]; readonly refused: number[] }[]
}

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0)

function totals(...args: string[]): Record<string, [admitted: number, refused: number]> {
  const [{ runs }] = JSON.parse(sluice('simulate', '--json', ...args).stdout) as [Traffic]
  return Object.fromEntries(runs.map(({ name, admitted, refused }) => [name, [sum(admitted), sum(refused)]]))
}

test('simulate shows every traffic on every algorithm, without colours when piped', () => {
  const { status, stdout } = sluice('simulate')
  expect(status).toBe(0)
  for (const name of ['boundary-burst', 'first-half', 'smoothing', 'after-idling']) expect(stdout).toContain(`(${name})`)
  for (const name of ['fixedWindow', 'slidingWindow', 'slidingLog', 'tokenBucket', 'gcra', 'leakyBucket']) expect(stdout).toContain(name)
  expect(stdout).not.toContain('\u001b[')
})

test('only the fixed window lets twenty pass around the boundary', () => {
  expect(totals('--traffic', 'boundary-burst')).toEqual({
    fixedWindow: [20, 0],
    slidingWindow: [10, 10],
    slidingLog: [10, 10],
    tokenBucket: [10, 10],
    gcra: [10, 10],
    leakyBucket: [10, 10],
  })
})

test('only the leaky bucket spreads a burst out', () => {
  const [{ runs }] = JSON.parse(sluice('simulate', '--json', '--traffic', 'smoothing').stdout) as [Traffic]
  const highest = Object.fromEntries(runs.map(({ name, admitted }) => [name, Math.max(...admitted)]))
  expect(highest).toEqual({ fixedWindow: 10, slidingWindow: 10, slidingLog: 10, tokenBucket: 10, gcra: 10, leakyBucket: 1 })
})

test('a limit and arrivals of your own', () => {
  const limit = '{ "type": "gcra", "rate": "5/s", "burst": 3 }'
  expect(totals('--limit', limit, '--traffic', '0,0,0,0,200')).toEqual({ gcra: [4, 1] })
})

test.each([
  [['simulat'], "there is no command 'simulat'"],
  [['simulate', '--traffic', 'x'], "--traffic 'x' is none of boundary-burst"],
  [['simulate', '--jsno'], '--jsno'],
  [['simulate', '--limit', '{'], "--limit '{' must be JSON"],
  [['simulate', '--limit', '{ "type": "gcra", "rate": "5/s", "burst": -1 }'], 'gcra burst -1 must be a whole number'],
  [['simulate', '--limit', '{ "type": "slidingLog", "limit": 5, "window": 60 }'], "window 60 of what? write '60s' or '60ms'"],
])('%j is refused with what there is', (args, message) => {
  expect(sluice(...args)).toMatchObject({ status: 2, stderr: expect.stringContaining(message) })
})

describe('the picture', () => {
  const picture = (columns: string, ...args: string[]) => sluiceIn({ COLUMNS: columns }, 'simulate', ...args).stdout.split('\n')

  test.each([60, 80, 135, 200])('fits %i columns, and uses them', (width) => {
    const lines = picture(`${width}`)
    const widest = Math.max(...lines.map((line) => [...line].length))
    expect(widest).toBeLessThanOrEqual(width)
    expect(widest).toBeGreaterThan(0.75 * width)
  })

  test('has a row of what arrives, a time axis and a legend for each traffic, and says once what to look at', () => {
    const lines = picture('80', '--traffic', 'boundary-burst', '--traffic', 'smoothing')
    expect(lines.slice(0, 4)).toEqual([
      'Ten calls just before a full second, ten just after it (boundary-burst)',
      '  arrivals       ·········██···················  20',
      '  fixedWindow    ·········██···················  20 admitted',
      '                 ······························  0 refused',
    ])
    // A mark stands where its time is: the bursts on both sides of a full second are on both sides
    // of it.
    expect(lines.filter((line) => line === '                 |0        |1 s      |2 s')).toHaveLength(2)
    expect(lines.filter((line) => line.includes('Each column is 100 ms: · no call, ▁ to █ up to 10 calls.'))).toHaveLength(2)
    expect(lines.filter((line) => line.includes('never more than ten in any second'))).toHaveLength(1)
  })

  test('of two limits of one type tells them apart', () => {
    const limit = (burst: number) => `{ "type": "gcra", "rate": "5/s", "burst": ${burst} }`
    const text = picture('80', '--traffic', '0,0', '--limit', limit(1), '--limit', limit(2)).join('\n')
    expect(text).toMatch(/ {2}gcra {6}▄.* 1 admitted\n.* 1 refused\n {2}gcra 2 {4}█.* 2 admitted/)
  })
})

test('traffic may be given by its pace', () => {
  const limit = ['--limit', '{ "type": "fixedWindow", "limit": 10, "window": "1s" }']
  expect(totals(...limit, '--traffic', '25/s for 3s')).toEqual({ fixedWindow: [30, 45] })
  expect(totals(...limit, '--traffic', '5/s for 2s, 0/s for 1s, 40 / s for 500ms')).toEqual({ fixedWindow: [20, 10] })
  for (const wrong of ['25/s', '25/s for ever', '1/s for 3s,', '100000/ms for 9min']) {
    expect(sluice('simulate', '--traffic', wrong)).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(`--traffic '${wrong}' is none of`),
    })
  }
})

describe('help', () => {
  test.each([[], ['--help'], ['-h'], ['help']])('%j lists every command, and what the exit codes mean', (...args) => {
    const { status, stdout, stderr } = sluice(...args)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    for (const name of ['simulate', 'inspect', 'serve', 'check', 'schema']) expect(stdout).toContain(`sluice ${name}`)
    for (const code of [0, 1, 2, 3]) expect(stdout).toMatch(new RegExp(`^ {2}${code} {2}\\w`, 'm'))
  })

  test.each([
    ['simulate', '--traffic', 'inspect KEY'],
    ['inspect', 'inspect KEY', '--traffic'],
  ])('of %s is about that command only', (command, own, other) => {
    for (const args of [
      [command, '--help'],
      [command, '-h'],
      ['help', command],
    ]) {
      const { status, stdout } = sluice(...args)
      expect(status).toBe(0)
      expect(stdout).toContain(own)
      expect(stdout).not.toContain(other)
    }
  })
})

test('the version is that of the package', () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  for (const flag of ['--version', '-v', 'version']) expect(sluice(flag)).toMatchObject({ status: 0, stdout: `${version}\n` })
})

test.each(['serve', 'check', 'schema'])('%s is a command of the service, and is said to be', (command) => {
  const { status, stderr } = sluice(command, 'sluice.yaml')
  expect(stderr).toContain(`'${command}' is a command of the service, which this package does not hold`)
  expect(stderr).toContain('npm start')
  expect(status).toBe(2)
})

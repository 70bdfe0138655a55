import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

const sluice = (...args: string[]) => spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8' })

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
  [['simulate', '--limit', '{ "type": "gcra", "rate": "5/s", "burst": 0 }'], 'gcra burst 0 must be a whole number'],
])('%j is refused with what there is', (args, message) => {
  expect(sluice(...args)).toMatchObject({ status: 2, stderr: expect.stringContaining(message) })
})

test('help is an answer, not an error', () => {
  expect(sluice('--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('sluice simulate') })
})

test.each(['serve', 'check', 'schema'])('%s is a command of the service, and is said to be', (command) => {
  const { status, stderr } = sluice(command, 'sluice.yaml')
  expect(stderr).toContain(`'${command}' is a command of the service, which this package does not hold`)
  expect(stderr).toContain('npm start')
  expect(status).toBe(2)
})

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

test('simulate shows every traffic, without colours when piped', () => {
  const { status, stdout } = sluice('simulate')
  expect(status).toBe(0)
  expect(stdout).toContain('boundary-burst')
  expect(stdout).toContain('after-idling')
  expect(stdout).not.toContain('\u001b[')
})

test('simulate --json counts what each algorithm admits', () => {
  const [burst] = JSON.parse(sluice('simulate', '--traffic', 'boundary-burst', '--json').stdout) as [Traffic]
  const totals = burst.runs.map(({ name, admitted, refused }) => [name, sum(admitted), sum(refused)])
  expect(totals).toEqual([
    ['gcra', 10, 10],
    ['tokenBucket', 20, 0],
  ])
})

test('a mistyped command, traffic or option is refused with what there is', () => {
  expect(sluice('simulat')).toMatchObject({ status: 2, stderr: expect.stringContaining("there is no command 'simulat'") })
  const traffic = sluice('simulate', '--traffic', 'x')
  expect(traffic).toMatchObject({ status: 2, stderr: expect.stringContaining("'x' is none of boundary-burst") })
  expect(sluice('simulate', '--jsno')).toMatchObject({ status: 2, stderr: expect.stringContaining('--jsno') })
})

test('help is an answer, not an error', () => {
  expect(sluice('--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('sluice simulate') })
})

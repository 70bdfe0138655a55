/**
 * The workflows in .github: they parse, every job runs existing commands, and actions of others are
 * pinned to a commit.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

interface Step {
  readonly uses?: string
  readonly run?: string
  readonly with?: Readonly<Record<string, unknown>>
}

interface Workflow {
  readonly on: Readonly<Record<string, unknown>>
  readonly permissions: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, Job>>
}

interface Job {
  readonly 'timeout-minutes': number
  readonly permissions?: Readonly<Record<string, string>>
  readonly strategy?: { readonly matrix: { readonly node: readonly number[] } }
  readonly steps: readonly Step[]
}

interface Form {
  readonly name: string
  readonly description: string
  readonly body: readonly { readonly type: string; readonly id?: string; readonly attributes: object }[]
}

const root = fileURLToPath(new URL('../../', import.meta.url))
// The service brings the parser.
const { parse } = createRequire(join(root, 'server/package.json'))('yaml') as { parse(text: string): unknown }
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

function read<T>(folder: string): [name: string, content: T][] {
  const path = join(root, '.github', folder)
  return readdirSync(path).map((name) => [name, parse(readFileSync(join(path, name), 'utf8')) as T])
}

const workflows = read<Workflow>('workflows')
const commandsOf = ({ steps }: Job) => steps.flatMap(({ run }) => run ?? [])

describe.each(workflows)('%s', (_, { permissions, jobs }) => {
  test('may write nothing, but where a job says so', () => {
    expect(permissions).toEqual({ contents: 'read' })
  })

  test.each(Object.entries(jobs))('%s ends in bounded time, and names what it runs of others by commit and version', (_, job) => {
    expect(job['timeout-minutes']).toBeLessThanOrEqual(30)
    const used = job.steps.flatMap(({ uses }) => uses ?? [])
    expect(used.filter((name) => !/^actions\/[\w-]+@[0-9a-f]{40}$/.test(name))).toEqual([])
  })

  test.each(Object.entries(jobs))('%s runs npm commands that there are', (_, job) => {
    const names = commandsOf(job).flatMap((command) => [...command.matchAll(/\bnpm (?:run )?([\w:]+)/g)].map((match) => match[1] as string))
    for (const name of names) expect([...Object.keys(manifest.scripts), 'publish']).toContain(name)
  })
})

test('the tests run on every version of Node that is supported, by the one command', () => {
  const { jobs } = Object.fromEntries(workflows)['test.yaml'] as Workflow
  expect(jobs.test?.strategy?.matrix.node).toEqual([20, 22, 24])
  expect(commandsOf(jobs.test as Job)).toEqual(['npm test'])
  expect(manifest.engines.node).toBe('>=20.19')
})

test('a release is tested, and then published with its provenance', () => {
  const { on, jobs } = Object.fromEntries(workflows)['publish.yaml'] as Workflow
  const job = jobs.publish as Job
  expect(on).toEqual({ release: { types: ['published'] } })
  expect(job.permissions).toEqual({ contents: 'read', 'id-token': 'write' })
  const [tag, tests, publish] = commandsOf(job)
  expect(tag).toContain("require('./package.json').version")
  expect(tests).toBe('npm test')
  expect(publish).toContain('npm publish --provenance')
})

test.each(read<Form>('ISSUE_TEMPLATE'))('%s is a form with a field to fill in', (_, { name, description, body }) => {
  expect([name, description]).toEqual([expect.any(String), expect.any(String)])
  for (const { type } of body) expect(['markdown', 'textarea', 'input', 'dropdown', 'checkboxes']).toContain(type)
  const ids = body.flatMap(({ id }) => id ?? [])
  expect(ids.length).toBeGreaterThan(0)
  expect(new Set(ids).size).toBe(ids.length)
})

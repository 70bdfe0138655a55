/**
 * The commands in the heads of the files in deploy/, as a user pastes them, and those of the guide
 * to the service. A real shell reads each into words. What can run here is run; docker, kubectl and
 * Envoy are not here, so their words are held against what they take.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig } from '../src/config/read.ts'
import { SERVE_OPTIONS } from '../src/serve.ts'
import { tokensFrom } from '../src/tokens.ts'
import { type ServiceProcess, startedProcess } from './support/process.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const textOf = (path: string) => readFileSync(join(root, path), 'utf8')

/** Programs that heads may name. Any other word in their place is part of a broken command. */
const PROGRAMS = ['docker', 'kubectl', 'envoy', 'npm', 'curl', 'openssl']

/** Lines of the head that are indented: a command each. */
function commandsIn(path: string): string[] {
  const [head = ''] = /^(#.*\n)*/.exec(textOf(path)) ?? []
  return [...head.matchAll(/^# {3,}(.+)$/gm)].map(([, command]) => command as string)
}

/** The words of each program that the line would start, as bash reads them. */
function startedBy(line: string): string[][] {
  const shims = PROGRAMS.map((name) => `${name}() { printf '%s\\0' ${name} "$@" >&3; printf '\\n\\0' >&3; }`)
  // In a folder of its own: a line may write a file.
  const cwd = mkdtempSync(join(tmpdir(), 'sluice-heads-'))
  const { output, status, stderr } = spawnSync('/bin/bash', ['-euc', [...shims, line].join('\n')], {
    encoding: 'utf8',
    cwd,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    env: { PATH: '' },
  })
  rmSync(cwd, { recursive: true })
  expect({ line, status, stderr }).toEqual({ line, status: 0, stderr: '' })
  const started = (output[3] as string).split('\n\0').slice(0, -1)
  return started.map((words) => words.split('\0').slice(0, -1))
}

function wordsOf(line: string): string[] {
  const started = startedBy(line)
  expect(started, line).toHaveLength(1)
  return started[0] as string[]
}

const files = readdirSync(join(root, 'deploy'), { recursive: true, encoding: 'utf8' })
  .map((path) => `deploy/${path}`)
  .filter((path) => statSync(join(root, path)).isFile() && !path.endsWith('.json'))
const heads = files.flatMap((path) => commandsIn(path).map((command) => [path, command] as const))
const guide = [...textOf('docs/guides/service.md').matchAll(/^(?:docker|kubectl|openssl) .*$/gm)].map(
  ([command]) => ['the guide', command] as const,
)
const commands = [...heads, ...guide]
const linesOf = (program: string) =>
  [...new Set(commands.map(([, command]) => command))].filter((command) => command.startsWith(`${program} `))

test('heads have the commands that are held below, and the guide has no others of theirs', () => {
  expect(heads.map(([path, command]) => `${path}: ${command.split(' ')[0]}`).sort()).toEqual([
    'deploy/Dockerfile: docker',
    'deploy/compose.yaml: curl',
    'deploy/compose.yaml: docker',
    'deploy/envoy/envoy.yaml: envoy',
    'deploy/envoy/envoy.yaml: npm',
    'deploy/kubernetes/sluice.yaml: kubectl',
    'deploy/kubernetes/sluice.yaml: kubectl',
    'deploy/kubernetes/sluice.yaml: openssl',
  ])
  const ofHeads = heads.map(([, command]) => command)
  for (const [, command] of guide) expect(ofHeads).toContain(command)
})

test.each(commands)('%s: %s is one command', (_, command) => {
  expect(PROGRAMS).toContain(wordsOf(command)[0])
})

test.each([
  'docker compose up --build curl localhost:8080',
  'docker compose up --build curl -H \'content-type: application/json\' -d \'{ "limiter": "api",',
  'kubectl create secret generic',
  'sluice --from-literal=redis-url=redis://redis:6379 --from-file=tokens kubectl apply -f',
  'deploy/kubernetes/sluice.yaml',
])('%s, as a formatter once joined and broke it, is found', (line) => {
  expect(() => check(line)).toThrow()
})

test.each(commands)('%s: %s has the arguments that its program takes, and its files are there', (_, command) => {
  check(command)
})

/** Throws unless every word is one that the program takes. */
function check(line: string): void {
  const [program, ...words] = wordsOf(line) as [string, ...string[]]
  const isFile = (path: unknown) => expect(existsSync(join(root, path as string)), `${path}`).toBe(true)
  const read = (args: string[], options: ParseArgsConfig['options']) => {
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options: options as NonNullable<typeof options> })
    return { values: values as Record<string, unknown>, positionals }
  }
  const checks: Record<string, () => void> = {
    docker() {
      if (words[0] === 'build') {
        const options = { file: { type: 'string', short: 'f' }, tag: { type: 'string', short: 't' } } as const
        const { values, positionals } = read(words.slice(1), options)
        isFile(values.file)
        expect([values.tag, positionals]).toEqual(['sluice', ['.']])
        return
      }
      const options = { file: { type: 'string', short: 'f' }, build: { type: 'boolean' }, wait: { type: 'boolean' } } as const
      const { values, positionals } = read(words, options)
      isFile(values.file)
      expect([values.build, values.wait]).toEqual([true, true])
      expect(positionals.slice(0, 2)).toEqual(['compose', 'up'])
      const { services } = parse(textOf(values.file as string), { merge: true }) as { services: object }
      for (const name of positionals.slice(2)) expect(Object.keys(services)).toContain(name)
    },
    kubectl() {
      if (words[0] === 'apply') {
        const { values, positionals } = read(words, { filename: { type: 'string', short: 'f' } })
        isFile(values.filename)
        expect(positionals).toEqual(['apply'])
        return
      }
      const options = { 'from-literal': { type: 'string', multiple: true }, 'from-file': { type: 'string', multiple: true } } as const
      const { values, positionals } = read(words, options)
      expect(positionals).toEqual(['create', 'secret', 'generic', expect.any(String)])
      const given = [...(values['from-literal'] as string[]).map((pair) => pair.split('=')[0]), ...(values['from-file'] as string[])]
      expect({ name: positionals[3], given: given.sort() }).toEqual(secretOfManifest())
    },
    envoy() {
      const { values, positionals } = read(words, { 'config-path': { type: 'string', short: 'c' } })
      isFile(values['config-path'])
      expect(positionals).toEqual([])
    },
    npm() {
      expect(words.slice(0, 2)).toEqual(['start', '--'])
      const { positionals } = read(words.slice(2), SERVE_OPTIONS)
      expect(positionals).not.toEqual([])
      for (const path of positionals) readConfig(textOf(path), path)
    },
    // These are run, below.
    curl() {},
    openssl() {},
  }
  const held = checks[program]
  if (held === undefined) throw new Error(`${program} is no program that is known here`)
  held()
}

/** The keys that the pods read, and the name under which they do. */
function secretOfManifest(): { name: string; given: string[] } {
  // biome-ignore lint/suspicious/noExplicitAny: toJS() has no type, and manifests.test.ts checks it.
  const documents = parseAllDocuments(textOf('deploy/kubernetes/sluice.yaml')).map((document) => document.toJS() as any)
  const { containers, volumes } = documents.find(({ kind }) => kind === 'Deployment').spec.template.spec
  const { name, key } = containers[0].env.find(({ valueFrom }: { valueFrom?: object }) => valueFrom !== undefined).valueFrom.secretKeyRef
  const { secret } = volumes.find(({ secret }: { secret?: object }) => secret !== undefined)
  expect(secret.secretName).toBe(name)
  return { name, given: [key, ...secret.items.map((item: { key: string }) => item.key)].sort() }
}

describe('run', () => {
  let folder: string
  let service: ServiceProcess | undefined

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-heads-'))
  })

  afterAll(() => {
    service?.process.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  })

  const pasted = (line: string) => {
    const { status, stdout, stderr } = spawnSync('bash', ['-c', line], { cwd: folder, encoding: 'utf8', timeout: 60_000 })
    return { status, stdout, stderr }
  }

  test('the question is answered by a service with the configuration of the compose file', async () => {
    service = await startedProcess(join(root, 'deploy/config/sluice.yaml'))
    const [line] = linesOf('curl') as [string]
    const { status, stdout } = pasted(line.replace('localhost:8080', `localhost:${service.httpPort}`))
    expect(status).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ limiter: 'api', allowed: true })
  })

  test('the service starts with the rules for Envoy', async () => {
    const [line] = linesOf('npm') as [string]
    const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> }
    expect(scripts.start).toBe('node scripts/start.mjs')
    const args = wordsOf(line).slice(3)
    const started = await startedProcess(...args.map((path) => join(root, path)))
    started.process.kill('SIGTERM')
    expect(await started.ended).toEqual([0, null])
  })

  test('tokens are made that the service takes', () => {
    const [line] = linesOf('openssl') as [string]
    expect(pasted(line)).toMatchObject({ status: 0 })
    expect(tokensFrom(join(folder, 'tokens'), undefined)).toMatchObject({ count: 1 })
  })
})

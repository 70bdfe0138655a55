/**
 * The files in deploy/: the image, built here without an engine; the compose file; the dashboard
 * and the alerts.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { run } from '../../test/package/run.ts'
import { freePort } from '../../test/support/redis-servers.ts'
import { readConfig } from '../src/config/read.ts'
import { built, ignoredBy, instructionsOf, type Stage } from './support/dockerfile.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const textOf = (path: string) => readFileSync(join(root, path), 'utf8')
const deploy = (path: string) => textOf(join('deploy', path))

describe('the image', () => {
  const instructions = instructionsOf(deploy('Dockerfile'))
  let folder: string
  let image: Stage

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-image-'))
    image = await built(instructions, root, folder)
  }, 600_000)

  afterAll(() => rmSync(folder, { recursive: true, force: true }), 600_000)

  const listed = (name: string): string[] => JSON.parse((image.said[name] as string).replace(/^.*?CMD /, ''))

  test('holds the built service, what it needs, and nothing else', () => {
    const app = join(image.root, image.workdir)
    expect(readdirSync(app).sort()).toEqual(['dist', 'node_modules', 'package.json', 'sample.yaml'])
    const { dependencies } = JSON.parse(textOf('server/package.json')) as { dependencies: object }
    for (const name of Object.keys(dependencies)) expect(existsSync(join(app, 'node_modules', name)), name).toBe(true)
    expect(existsSync(join(app, 'node_modules/typescript'))).toBe(false)
  })

  test('answers, is found healthy, and stops when it is told to', async () => {
    const port = `${await freePort()}`
    const env = { ...process.env, ...image.env, SLUICE_PORT: port, SLUICE_GRPC_PORT: '0' }
    const cwd = join(image.root, image.workdir)
    const [command, ...args] = [...listed('ENTRYPOINT'), ...listed('CMD')] as [string, ...string[]]
    const service = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] })
    const [probe, ...probeArgs] = listed('HEALTHCHECK') as [string, ...string[]]
    const isHealthy = async () => (await run(probe, probeArgs, cwd, env)).code === 0
    expect(JSON.parse((await once(createInterface({ input: service.stdout }), 'line'))[0])).toMatchObject({
      msg: 'sluice is serving',
      store: 'the memory of this process',
    })
    expect(await isHealthy()).toBe(true)
    const response = await fetch(`http://127.0.0.1:${port}/v1/decide`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{ "limiter": "api", "key": "u1" }',
    })
    expect(await response.json()).toMatchObject({ allowed: true })
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toContain('<title>Sluice')
    service.kill('SIGTERM')
    expect((await once(service, 'exit'))[0]).toBe(0)
    expect(await isHealthy()).toBe(false)
  })

  test('is of a pinned Node that the service supports, and does not run as root', () => {
    const bases = instructions.filter(({ name }) => name === 'FROM').map(({ text }) => /^node:(\d+)\.\d+\.\d+-\w+-slim\b/.exec(text)?.[1])
    expect(bases).toEqual(['22', '22'])
    expect(image.said.USER).toBe('node')
    expect(image.said.EXPOSE).toBe('8080 8081')
    expect(listed('CMD')).toEqual(['serve', '--host', '0.0.0.0'])
  })

  test('is built from what git has, not from what lies about', () => {
    const isIgnored = ignoredBy(textOf('.dockerignore'))
    const sent = [
      'package.json',
      'src/index.ts',
      'server/src/main.ts',
      'scripts/build-server.mjs',
      'playground/index.html',
      'test/vectors/seeds.json',
    ]
    const kept = [
      '.git/config',
      '.env',
      'node_modules/x',
      'server/node_modules/x',
      'server/dist/x',
      'dist/x',
      'test/x',
      'server/test/x',
      'playground/dist/x',
    ]
    expect(sent.filter(isIgnored)).toEqual([])
    expect(kept.filter((path) => !isIgnored(path))).toEqual([])
  })
})

describe('the compose file', () => {
  interface Service {
    readonly image: string
    readonly build?: { readonly context: string; readonly dockerfile: string }
    readonly command?: readonly string[]
    readonly environment?: Readonly<Record<string, string>>
    readonly ports?: readonly string[]
    readonly volumes?: readonly string[]
  }
  const { services, volumes } = parse(deploy('compose.yaml'), { merge: true }) as {
    services: Readonly<Record<string, Service>>
    volumes: object
  }
  const copies = Object.entries(services).filter(([, { build }]) => build !== undefined)
  /** Where the container sees what lies here. */
  const mounted = Object.values(services).flatMap(({ volumes = [] }) => volumes.map((each) => each.split(':') as [string, string]))

  test('has two copies of the service on one Redis', () => {
    expect(copies).toHaveLength(2)
    for (const [, { build, environment, command }] of copies) {
      expect(existsSync(join(root, 'deploy', build?.context ?? '', build?.dockerfile ?? ''))).toBe(true)
      expect(Object.keys(services)).toContain(new URL(environment?.SLUICE_REDIS_URL ?? '').hostname)
      expect(command).toEqual(['serve', '/etc/sluice/sluice.yaml', '--host', '0.0.0.0'])
    }
  })

  test('mounts what is there, and opens no port to other machines', () => {
    for (const [here] of mounted) {
      expect(here.startsWith('./') ? existsSync(join(root, 'deploy', here)) : Object.hasOwn(volumes, here), here).toBe(true)
    }
    for (const { ports = [] } of Object.values(services)) for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/)
  })

  test('pins what it does not build', () => {
    for (const { build, image } of Object.values(services)) if (build === undefined) expect(image).toMatch(/:v?\d+\.\d+\.\d+/)
  })

  test('is configured without a mistake', () => {
    const text = deploy('config/sluice.yaml')
    expect([...readConfig(text, 'sluice.yaml').limiters.keys()]).toEqual(['api'])
  })

  test('Prometheus asks both copies and knows the alerts; Grafana asks Prometheus and finds the dashboard', () => {
    const prometheus = parse(deploy('prometheus/prometheus.yaml'))
    expect(prometheus.scrape_configs[0].static_configs[0].targets).toEqual(copies.map(([name]) => `${name}:8080`))
    for (const file of prometheus.rule_files) expect(existsSync(join(root, 'deploy/prometheus', file))).toBe(true)
    const [source] = parse(deploy('grafana/datasource.yaml')).datasources
    expect(Object.keys(services)).toContain(new URL(source.url).hostname)
    const [provider] = parse(deploy('grafana/dashboards.yaml')).providers
    const there = mounted.find(([here]) => basename(here) === 'sluice.json')?.[1]
    expect(there).toBe(join(provider.options.path, 'sluice.json'))
  })
})

test('promtool finds nothing wrong with the alerts', ({ skip }) => {
  skip(spawnSync('promtool', ['--version']).status !== 0, 'promtool is not installed; dashboards.test.ts parses the expressions')
  const { status, stderr } = spawnSync('promtool', ['check', 'config', join(root, 'deploy/prometheus/prometheus.yaml')], {
    encoding: 'utf8',
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
})

/**
 * The structure of the folders: imports point one way, every algorithm has its four files, and the
 * embedded Lua equals its sources.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { algorithmFolders, generated, luaSources } from '../../scripts/embed-lua.mjs'
import * as factories from '../../src/algorithms/all.ts'
import { ABOUTS, FORMATS } from '../../src/algorithms/list.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const src = join(root, 'src')
const peers = Object.keys(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).peerDependencies)

/** For each layer, the layers it may import from, besides itself. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  algorithms: ['errors'],
  clock: [],
  config: ['limiter', 'algorithms', 'errors'],
  stores: ['algorithms', 'clock', 'errors'],
  limiter: ['stores', 'algorithms', 'clock', 'errors'],
  govern: ['limiter', 'stores', 'algorithms', 'clock', 'errors'],
  load: ['govern', 'limiter', 'stores', 'algorithms', 'clock', 'errors'],
  http: ['limiter', 'stores', 'algorithms', 'clock', 'errors'],
  adapters: ['http', 'limiter', 'stores', 'errors'],
  client: ['limiter', 'stores', 'algorithms', 'clock', 'errors'],
  otel: ['limiter', 'stores', 'algorithms', 'errors'],
  testing: ['config', 'limiter', 'stores', 'algorithms', 'clock', 'errors'],
  cli: ['config', 'limiter', 'stores', 'algorithms', 'clock', 'errors'],
  index: ['limiter', 'stores', 'algorithms', 'clock', 'errors'],
}

/** The part that also runs in browsers, Bun, Deno and Workers. */
const CORE = ['errors', 'algorithms', 'config', 'clock', 'stores', 'limiter', 'govern', 'http', 'adapters', 'client', 'otel', 'index']

const sources = (readdirSync(src, { recursive: true, encoding: 'utf8' }) as string[])
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
  .map((path) => ({ path, layer: layerOf(path), imports: importsOf(path) }))

function layerOf(path: string): string {
  return (path.split('/')[0] as string).replace(/\.ts$/, '')
}

function importsOf(path: string): string[] {
  const text = readFileSync(join(src, path), 'utf8')
  return [...text.matchAll(/^(?:import|export)\b[^'"]*?from '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm)].map(
    (match) => match[1] ?? match[2] ?? (match[3] as string),
  )
}

describe('imports point one way', () => {
  test.each(sources)('$path', ({ path, layer, imports }) => {
    for (const target of imports.filter((name) => name.startsWith('.'))) {
      const imported = relative(src, resolve(src, dirname(path), target))
      expect(existsSync(join(src, imported)), `${path} imports ${target}`).toBe(true)
      expect([layer, ...(MAY_IMPORT[layer] ?? [])], `${path} imports ${imported}`).toContain(layerOf(imported))
    }
  })

  test('every folder of src is a known layer', () => {
    expect([...new Set(sources.map(({ layer }) => layer))].sort()).toEqual(Object.keys(MAY_IMPORT).sort())
  })

  test('nothing is imported from packages, and the core imports nothing from node', () => {
    const outside = sources.flatMap(({ path, layer, imports }) =>
      imports.filter((name) => !name.startsWith('.')).map((name) => ({ path, layer, name })),
    )
    const packages = outside.filter(({ name }) => !name.startsWith('node:'))
    // The command line connects with whichever client is installed beside it; Nest makes guards and
    // filters of classes that its own decorators mark; the global meter is where OpenTelemetry's
    // package keeps it.
    const needed: Readonly<Record<string, readonly string[]>> = {
      'adapters/nest.ts': ['@nestjs/core'],
      'adapters/nest-boot.ts': ['@nestjs/common', '@nestjs/core'],
      'adapters/nest-guard.ts': ['@nestjs/common'],
      'adapters/nest-limits.ts': ['@nestjs/common/constants.js'],
      'otel/observe.ts': ['@opentelemetry/api'],
      'otel/tracing.ts': ['@opentelemetry/api'],
    }
    const isAllowed = (path: string, name: string) =>
      (['cli/inspect.ts', 'cli/postgres.ts'].includes(path) && peers.includes(name)) || needed[path]?.includes(name)
    expect(packages.filter(({ path, name }) => !isAllowed(path, name))).toEqual([])
    expect(outside.filter(({ path, layer, name }) => CORE.includes(layer) && !isAllowed(path, name))).toEqual([])
  })
})

describe('every algorithm folder has its four files, and no others but the parts that its module is made of', () => {
  test.each(algorithmFolders())('%s', (name) => {
    const wanted = ['.about.ts', '.md', '.test.ts', '.ts'].map((ending) => `${name}${ending}`)
    const parts = importsOf(`algorithms/${name}/${name}.ts`).filter((path) => path.startsWith('./'))
    expect(readdirSync(join(src, 'algorithms', name)).sort()).toEqual([...wanted, ...parts.map((path) => path.slice(2))].sort())
  })
})

test('every algorithm has a format in bytes, and says something of itself', () => {
  const types = Object.keys(factories).sort()
  expect(FORMATS.map(({ algorithm }) => algorithm.type).sort()).toEqual(types)
  expect(ABOUTS.map(({ type }) => type).sort()).toEqual(types)
})

describe('the embedded Lua', () => {
  test('is what the generator writes today', () => {
    expect(readFileSync(join(src, 'stores/redis/script.generated.ts'), 'utf8')).toBe(generated())
  })

  test.each(Object.entries(luaSources()))('%s equals its source', async (name, path) => {
    const embedded = (await import('../../src/stores/redis/script.generated.ts')) as unknown as Record<string, string>
    expect(embedded[name]).toBe(readFileSync(join(root, path), 'utf8'))
  })
})

test.each(['all', 'list'])('algorithms/%s.ts has every folder', (list) => {
  const listed = importsOf(`algorithms/${list}.ts`).flatMap((path) => path.split('/').slice(1, -1))
  expect([...new Set(listed)].sort()).toEqual(algorithmFolders().sort())
})

test('only its folder, the list and the exports name an algorithm, apart from what tests it', () => {
  const lists = ['algorithms/all.ts', 'algorithms/list.ts']
  // What to write instead of another library's options, and one line of a legend.
  const texts = ['algorithms/rate.ts', 'http/options-check.ts', 'cli/draw.ts']
  // What brings the limiter that makes permits.
  const permits = ['limiter/concurrency.ts', 'config/config.ts', 'index.ts']
  const names = new RegExp(
    `\\b(?:${Object.keys(factories)
      .filter((name) => name !== 'gcra')
      .join('|')})\\b`,
  )
  const naming = sources
    .map(({ path }) => path)
    .filter(
      (path) =>
        ![...lists, ...texts, ...permits].includes(path) && !/^algorithms\/[^/]+\/|^testing\//.test(path) && !path.includes('generated'),
    )
    .filter((path) => names.test(readFileSync(join(src, path), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')))
  expect(naming).toEqual([])
})

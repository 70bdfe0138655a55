/**
 * The packed tarball is what users get, so it is packed, installed and used here: in every runtime,
 * by every kind of importer.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, normalize } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createContext, runInContext } from 'node:vm'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import * as sources from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import * as sharedSources from '../../src/stores/shared-memory/index.ts'
import { connectRedis } from '../support/redis-client.ts'
import { type Bundle, bundled, weights } from './bundle.ts'
import { type NestProject, nestProject } from './nest-project.ts'
import { algorithms, manifest, type Project, projectOfAUser, root, specifiers } from './project.ts'
import { output, run } from './run.ts'
import { installRuntimes, OLDEST_NODE, RUNTIMES, runIn, whyMissing } from './runtimes.ts'
import { servedByWorkerd, servicesOn, WORKERD } from './workerd.ts'

interface Story {
  readonly LIMITS: Readonly<Record<string, object>>
  story(sluice: object, store?: object): string[]
  storyOnBothStores(sluice: object, shared: object): string[]
}

let project: Project
/** The story is JavaScript, as every runtime has to read it. */
let told: Story

beforeAll(async () => {
  project = await projectOfAUser()
  told = await import(pathToFileURL(join(import.meta.dirname, 'user/story.mjs')).href)
  await installRuntimes()
}, 600_000)

afterAll(() => project?.remove())

function textOf(path: string): string {
  return readFileSync(join(project.package, path), 'utf8')
}

describe('the tarball', () => {
  test('holds what a user needs and nothing else', () => {
    const folders = new Set(project.files.map((path) => path.split('/')[0]))
    expect([...folders].sort()).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'README.zh-CN.md', 'dist', 'package.json', 'src'])
  })

  test('holds no tests', () => {
    expect(project.files.filter((path) => /(^|\/)tests?\/|\.test\./.test(path))).toEqual([])
  })

  test('holds the source of every compiled file, where its source map says', () => {
    const maps = project.files.filter((path) => path.endsWith('.map'))
    expect(maps.length).toBeGreaterThan(0)
    for (const map of maps) {
      const { sources } = JSON.parse(textOf(map)) as { sources: string[] }
      for (const source of sources) expect(project.files, map).toContain(normalize(join(dirname(map), source)))
    }
  })

  test('names no path of the machine that made it', () => {
    const ofMachines = [root, `${homedir()}/`, 'file:///', '/home/', '/Users/', ':\\Users\\']
    for (const path of project.files) {
      const text = textOf(path)
      const found = ofMachines.filter((part) => text.includes(part))
      expect(found, path).toEqual([])
    }
  })

  test('depends on nothing', () => {
    const { dependencies, scripts } = JSON.parse(textOf('package.json')) as Record<string, Record<string, string> | undefined>
    expect(dependencies).toBeUndefined()
    expect(Object.keys(scripts ?? {}).filter((name) => /^(pre|post)?install$/.test(name))).toEqual([])
  })

  test('installs a command line that runs', async () => {
    expect(Object.keys(manifest.bin)).toEqual(['sluice'])
    expect(await output(join(project.folder, 'node_modules/.bin/sluice'), ['--help'], project.folder)).toContain('sluice simulate')
  })
})

describe('the package runs in', () => {
  test('every runtime, told by a story that meets every algorithm and every outcome', () => {
    expect(Object.keys(told.LIMITS).sort()).toEqual(algorithms.map(({ factory }) => factory).sort())
    const lines = told.story(sources)
    for (const { factory } of algorithms) {
      const outcomes = lines.filter((line) => line.startsWith(`${factory} `)).map((line) => /"outcome":"(\w+)"/.exec(line)?.[1])
      expect(outcomes, factory).toEqual(expect.arrayContaining(['allowed', 'limited', 'impossible']))
    }
  })

  test('the oldest Node that package.json promises', async ({ skip }) => {
    skip(whyMissing(OLDEST_NODE) !== undefined, whyMissing(OLDEST_NODE))
    const { stdout } = await runIn(OLDEST_NODE, ['--version'], project.folder)
    const promised = manifest.engines.node.replace('>=', 'v')
    expect([promised, `${promised}.0`, `${promised}.0.0`]).toContain(stdout.trim())
  })

  describe.each(RUNTIMES)('$name', (runtime) => {
    const missing = whyMissing(runtime)

    /** What a program of the user's prints. A warning counts as a failure. */
    async function printed(...args: string[]): Promise<string> {
      const { code, stdout, stderr } = await runIn(runtime, args, project.folder)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      return stdout.trimEnd()
    }

    test('deciding by `import` what the sources decide', async ({ skip }) => {
      skip(missing !== undefined, missing)
      expect((await printed('esm.mjs')).split('\n'), 'if dist/ is old: npm run build').toEqual(
        told.storyOnBothStores(sources, sharedSources),
      )
    })

    test('deciding by `require` the same, without a warning', async ({ skip }) => {
      skip(missing !== undefined, missing)
      expect(await printed('cjs.cjs')).toBe(await printed('esm.mjs'))
    })

    test('sharing memory between threads', async ({ skip }) => {
      skip(missing !== undefined, missing)
      expect(await printed('threads.mjs')).toBe('remaining there 2, here 2')
    })

    test('with every path of `exports`, for `import` and for `require` alike', async ({ skip }) => {
      skip(missing !== undefined, missing)
      const imported = JSON.parse(await printed('import-all.mjs', ...specifiers)) as Record<string, string[]>
      expect(Object.keys(imported)).toEqual(specifiers)
      for (const specifier of specifiers) expect(imported[specifier]?.length, specifier).toBeGreaterThan(0)
      expect(imported.sluice).toEqual(Object.keys(sources).sort())
      expect(JSON.parse(await printed('require-all.cjs', ...specifiers))).toMatchObject(imported)
    })
  })
})

describe('a process that both imports and requires the package', () => {
  test('has two copies, whose limits, stores, limiters and errors work together', async () => {
    expect((await output(process.execPath, ['mixed.mjs'], project.folder)).trimEnd().split('\n')).toEqual([
      'limits imported true',
      'limits required true',
      'stores imported true',
      'stores required true',
      'one state 4 3',
      'updated 7',
      'errors true CONFIG true true TIMEOUT true CONFIG true true TIMEOUT false false false true true',
      'middleware 200 429',
    ])
  })
})

describe('a Nest project in CommonJS', () => {
  let nest: NestProject

  beforeAll(async () => {
    nest = await nestProject(project.tarball)
  }, 600_000)

  test('passes its tests by Jest', async () => {
    const { code, stdout, stderr } = await nest.test()
    expect({ code, output: stdout + stderr }).toEqual({ code: 0, output: expect.stringContaining('6 passed') })
  })

  test.each([
    ['node16', ['--module', 'node16', '--moduleResolution', 'node16']],
    ['nodenext', ['--module', 'nodenext', '--moduleResolution', 'nodenext']],
    ['CommonJS as it was before packages had exports', ['--module', 'commonjs', '--moduleResolution', 'node10']],
  ])('type-checks by %s', async (_name, options) => {
    const { code, stdout } = await nest.typecheck(...options)
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
  })
})

describe('a strict TypeScript project that also checks our declarations type-checks with', () => {
  const KINDS = [
    { kind: 'moduleResolution node16', file: 'types.ts', module: 'node16', moduleResolution: 'node16', lib: ['es2022'] },
    { kind: 'moduleResolution bundler', file: 'types.ts', module: 'esnext', moduleResolution: 'bundler', lib: ['es2022', 'dom'] },
    {
      kind: 'CommonJS files',
      file: 'types.cts',
      module: 'nodenext',
      moduleResolution: 'nodenext',
      lib: ['es2022'],
    },
    { kind: 'CommonJS files by node16', file: 'types.cts', module: 'node16', moduleResolution: 'node16', lib: ['es2022'] },
  ]

  test.each(KINDS)('$kind', async ({ file, module, moduleResolution, lib }) => {
    // Kept as text until here: within the project it would make `tsc` depend on a built dist/.
    writeFileSync(join(project.folder, file), readFileSync(join(project.folder, 'types.ts.txt')))
    const everything = specifiers.map((specifier, k) => `export * as path${k} from '${specifier}'`).join('\n')
    // OpenTelemetry's declarations expect one, and not every platform's types have it.
    const platform = lib.includes('dom') ? '' : 'declare const console: Record<string, (...args: unknown[]) => void>\n'
    writeFileSync(join(project.folder, 'paths.ts'), everything)
    writeFileSync(join(project.folder, 'platform.d.ts'), platform)
    const compilerOptions = { strict: true, skipLibCheck: false, noEmit: true, target: 'es2022', types: [], module, moduleResolution, lib }
    writeFileSync(join(project.folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file, 'paths.ts', 'platform.d.ts'] }))
    const { stdout } = await run(join(root, 'node_modules/.bin/tsc'), ['-p', project.folder], project.folder)
    expect(stdout).toBe('')
  })
})

describe('the linters of packages', () => {
  test('publint has nothing to say', async () => {
    const bytes = new Uint8Array(readFileSync(project.tarball))
    const { messages } = await publint({ pack: { tarball: bytes.buffer }, level: 'suggestion', strict: true })
    expect(messages).toEqual([])
  })

  test('are-the-types-wrong finds no fault', async () => {
    const result = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(project.tarball))))
    if (!result.types) throw new Error('the tarball holds no types')
    const faults = result.problems.filter((problem) => {
      // `node10` is how TypeScript resolved before packages had `exports`. TypeScript 7 has dropped
      // it.
      return !('resolutionKind' in problem && problem.resolutionKind === 'node10')
    })
    expect(faults).toEqual([])
    expect(Object.keys(result.entrypoints)).toEqual(Object.keys(manifest.exports))
  })
})

describe('in a browser', () => {
  /**
   * The globals that a page has for sure: JavaScript's own without shared memory, timers and a
   * clock. No `process`.
   */
  function page(extra: object = {}): object {
    const context = createContext({ performance, setTimeout, clearTimeout, ...extra })
    if (!('crypto' in extra)) runInContext('delete globalThis.SharedArrayBuffer; delete globalThis.Atomics', context)
    expect(runInContext('typeof process + typeof require', context)).toBe('undefinedundefined')
    return context
  }

  function expectSelfContained({ code, imports, warnings }: Bundle): void {
    expect(warnings).toEqual([])
    expect(imports).toEqual([])
    // Asking `process` for a module of Node's, if there is a `process`, loads nothing.
    expect(code.match(/\brequire\(|\bimport *[("'`{*]|\bfrom *["'`]|(?<!getBuiltinModule(\?\.)?\()["'`]node:/g)).toBeNull()
  }

  test('the bundle loads nothing from Node and decides what the sources decide', async () => {
    const bundle = await bundled(
      project,
      "import * as sluice from 'sluice'\nimport { story } from './story.mjs'\nglobalThis.lines = story(sluice)",
      'iife',
    )
    expectSelfContained(bundle)
    expect(runInContext(`${bundle.code}\nlines.join('\\n')`, page())).toBe(told.story(sources).join('\n'))
  })

  test('a clock that does not tell when it began, as in React Native, will do', async () => {
    const code = [
      "import { createLimiter, gcra, systemClock } from 'sluice'",
      "const limiter = createLimiter(gcra({ rate: '1/h', burst: 1 }))",
      "globalThis.lines = [limiter.tryAcquire('key'), limiter.tryAcquire('key'), Math.abs(systemClock.nowUs() / 1000 - Date.now()) < 60_000]",
    ]
    const { code: bundle } = await bundled(project, code.join('\n'), 'iife')
    const native = page({ performance: { now: () => performance.now() } })
    expect(runInContext(`${bundle}\nlines.join()`, native)).toBe('true,false,true')
  })

  test('a page that may share memory can use the shared store too', async () => {
    const code = [
      "import * as sluice from 'sluice'",
      "import * as shared from 'sluice/shared'",
      "import { storyOnBothStores } from './story.mjs'",
      'globalThis.lines = storyOnBothStores(sluice, shared)',
    ]
    const bundle = await bundled(project, code.join('\n'), 'iife')
    expectSelfContained(bundle)
    const expected = told.storyOnBothStores(sources, sharedSources).join('\n')
    expect(runInContext(`${bundle.code}\nlines.join('\\n')`, page({ crypto }))).toBe(expected)
  })
})

describe.skipIf(whyMissing(WORKERD) !== undefined)('in Cloudflare Workers', () => {
  let url: string
  let stop = () => {}

  beforeAll(async () => {
    const { code, imports } = await bundled(project, "export { default, Places } from './worker.mjs'")
    expect(imports).toEqual([])
    ;({ url, stop } = await servedByWorkerd(code, project.folder))
  })
  afterAll(() => stop())

  test('the package decides what the sources decide', async () => {
    expect(await (await fetch(`${url}/story`)).text()).toBe(told.story(sources).join('\n'))
  })

  test('requests share a limiter that was made before all of them', async () => {
    const ask = async (address: string) => {
      const response = await fetch(`${url}/limited`, { headers: { 'cf-connecting-ip': address } })
      return response.ok ? await response.text() : response.status
    }
    const first = [await ask('203.0.113.1'), await ask('203.0.113.1'), await ask('203.0.113.1')]
    expect([...first, await ask('203.0.113.2')]).toEqual(['1 left', '0 left', 429, '1 left'])
  })

  test('calls of one request wait for each other', async () => {
    const { waitedMs, ...rest } = (await (await fetch(`${url}/wait`)).json()) as { waitedMs: [number, number, number] }
    expect([waitedMs[0] === 0, waitedMs[1] > 0, waitedMs[2] > waitedMs[1]]).toEqual([true, true, true])
    expect(rest).toEqual({ ran: [1, 2, 3], inflight: 0 })
  })

  test('a request is settled after its response was sent, however long that takes', async () => {
    const redis = await connectRedis()
    const services = await servicesOn(redis)
    const key = randomUUID()
    const limit = sources.fixedWindow({ limit: 100, window: '1h' })
    const limiter = sources.createLimiter(limit, { name: 'worker', store: redisStore(redis) })
    const response = await fetch(`${url}/settled?${new URLSearchParams({ key, services: services.url })}`)
    expect([response.status, await response.text()]).toEqual([200, '50 left'])
    // The worker has served another request since.
    await (await fetch(`${url}/story`)).text()
    expect((await limiter.peek(key)).remaining).toBe(50)
    services.tellUsage('4')
    await vi.waitFor(async () => expect((await limiter.peek(key)).remaining).toBe(96), { timeout: 60_000 })
    services.stop()
    redis.close()
  })

  test('requests to a Durable Object wait for each other', async () => {
    let most = 0
    // Until some met: how fast they come is up to the machine.
    while (most === 0) {
      const answers = await Promise.all(Array.from({ length: 8 }, async () => (await fetch(`${url}/object`)).text()))
      most = Math.max(...answers.map(Number))
    }
    expect(most).toBeGreaterThan(0)
  })
})

describe('the size of what is imported, minified and gzipped,', () => {
  // The goal is 13 kB (13,312 bytes); waiting brings more than a quarter of this
  // (docs/decisions/packaging.md). It should only go down: a change that raises it says why here.
  // Circuit breaker, fallbacks, and what waiting needs between processes travel with the stores
  // that need them. Last raised by 1,700: decisions are settled by what they really cost, and
  // charges land beyond the limit. Then by 1,000: who waits for a release has a place in line
  // (decide, queue). Then by 100: memory reads the characters of a key only where it is new.
  // Permits and leases travel with `concurrency`; raised by 700: leases are renewed in rounds.
  // Then by 200: what a failure policy lends is renewed, and leases count by the wall clock, too,
  // from before they were asked for. Then by 150: the newest entry of a sliding log stands in its
  // head. Then by 50: a pace that cannot be counted exactly is kept a little slower, which limits
  // without a pace do not bring. Then by 200: the queue works out when permits come due, because no
  // store tells it more than when a booking may be acted on. Then by 450: a span without a unit,
  // and units of others, are answered with the line to write. Then by 1,100: limiters that limit
  // nothing are noticed when they are made. Then by 550: a store that is full tells of it, and
  // refusals say why.
  const MOST_BYTES = 23_100
  const MOST_WITH_PERMITS = 27_300

  function aloneWith(factory: string): Promise<Bundle> {
    return bundled(project, `export { createLimiter, ${factory} } from 'sluice'`)
  }

  test.each(algorithms)('with $factory alone does not grow', async ({ factory }) => {
    const bundle = await aloneWith(factory)
    console.log(`createLimiter and ${factory}: ${bundle.gzippedBytes} bytes`)
    expect(bundle.gzippedBytes, `what each module costs:\n${weights(bundle)}\n`).toBeLessThanOrEqual(
      factory === 'concurrency' ? MOST_WITH_PERMITS : MOST_BYTES,
    )
  })

  test.each(algorithms)('with $factory alone holds no other algorithm', async ({ factory, folder }) => {
    const { modules } = await aloneWith(factory)
    const folders = modules.map(({ path }) => /^dist\/algorithms\/(.+)\//.exec(path)?.[1]).filter((name) => name !== undefined)
    expect([...new Set(folders)]).toEqual([folder])
  })

  test.each(specifiers)('with all of %s is printed', async (specifier) => {
    const bundle = await bundled(project, `export * from '${specifier}'`)
    console.log(`all of ${specifier}: ${bundle.gzippedBytes} bytes`)
    expect(bundle.gzippedBytes).toBeGreaterThan(0)
  })
})

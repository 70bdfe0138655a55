/**
 * The groups of tests. A file is in the first group that has what it needs, and that is read from
 * the file and from all that it imports, so that there is no list to keep.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

export const GROUPS = ['browser', 'threads', 'package', 'redis', 'model', 'unit'] as const
export type Group = (typeof GROUPS)[number]

/**
 * Every file that takes more than about ten seconds on a busy machine, in the order in which they
 * begin.
 */
export const LONG = [
  'test/concurrency/model-check',
  'playground/test/page',
  'test/redis/failover',
  'test/package/package',
  'playground/test/service',
  'test/model/stores-agree',
  'server/test/floods',
  'test/concurrency/terminate',
  'server/test/cli',
  'test/stores/bounded',
  'test/faults/errors',
  'test/adapters/matrix',
  'test/adapters/proxies',
  'test/docs/snippets',
  'test/permits/processes',
  'test/cli/inspect',
  'test/model/stores-agree-windows',
  'test/docs/examples',
  'server/test/journal',
  'server/test/log-floods',
  'test/model/laws',
  'server/test/deploy',
  'test/concurrency/late',
  'playground/test/access',
  'test/faults/server-faults',
  'server/test/live',
  'test/stores/memory',
  'server/test/fuzz',
  'test/faults/stalls',
  'test/concurrency/races',
  'test/faults/network-faults',
  'test/redis/matrix',
  'test/faults/slow-disk',
  'server/test/rolling-deploy',
  'test/postgres/slow-disk',
  'test/faults/cuts',
  'test/model/laws-sliding-window',
  'test/redis/leaving',
  'test/waiting/crowds',
  'test/faults/shards',
  'test/govern/random-servers',
  'test/conformance/rules-booking',
  'test/conformance/rules-settling',
  'server/test/grpc-fuzz',
]

/**
 * A test, and what it reaches: the paths of the tests' own files, and their text. Code of the
 * library is not looked into.
 */
interface Reached {
  readonly own: string
  readonly paths: readonly string[]
  readonly text: string
}

const NEEDS: Readonly<Record<Group, (reached: Reached) => boolean>> = {
  /** A Chromium. */
  browser: ({ paths }) => paths.includes('playground/test/support/chromium.ts'),
  /** Several threads or processes on one memory, and the built library for them. */
  threads: ({ own }) => own.startsWith('test/concurrency/'),
  /** What `npm run build` makes, or a compiler. */
  package: ({ paths, text }) => paths.some((path) => /^test\/package\/|^test\/support\/compile\.ts$/.test(path)) || /\.\/dist\b/.test(text),
  /** Servers, of its own or those that are started for all. */
  redis: ({ paths, text }) => paths.some((path) => /^test\/support\/\w+-(?:client|server)s?\.ts$/.test(path)) || /\binject\('/.test(text),
  /** Time: long random traces, and all else that takes long. */
  model: ({ own }) => own.startsWith('test/model/') || isLong(own) || /\btraceCount\(/.test(textOf(resolve(root, own))),
  /** Nothing but the packages. */
  unit: () => true,
}

const isLong = (test: string) => LONG.some((name) => test === `${name}.test.ts`)

export function groupOf(test: string): Group {
  const paths = [...reachedFrom(resolve(root, test), new Set())]
  const text = paths.map(textOf).join('\n')
  const reached = { own: test, paths: paths.map((path) => relative(root, path)), text }
  return GROUPS.find((group) => NEEDS[group](reached)) as Group
}

function reachedFrom(path: string, known: Set<string>): Set<string> {
  if (known.has(path) || !existsSync(path)) return known
  known.add(path)
  for (const [, from, url] of textOf(path).matchAll(/from '(\.[^']+)'|new URL\('(\.[^']+\.(?:mjs|ts))'/g)) {
    const next = resolve(dirname(path), (from ?? url) as string)
    if (/^(?:\w+\/)?test\//.test(relative(root, next))) reachedFrom(next, known)
  }
  return known
}

const texts = new Map<string, string>()

function textOf(path: string): string {
  const known = texts.get(path) ?? readFileSync(path, 'utf8')
  texts.set(path, known)
  return known
}

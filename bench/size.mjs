// Size: createLimiter and one algorithm, bundled for a browser, minified and gzipped.
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { ALGORITHMS } from './jobs.mjs'

const library = fileURLToPath(new URL('../dist/index.js', import.meta.url))

export default async function size() {
  const { build } = await import('rolldown').catch(() => ({}))
  if (build === undefined) return { skipped: 'no bundler (rolldown) is installed' }
  const bytes = {}
  for (const algorithm of ALGORITHMS) bytes[algorithm] = await gzippedBytes(build, algorithm)
  return { bytes }
}

async function gzippedBytes(build, algorithm) {
  const code = `export { createLimiter, ${algorithm} } from ${JSON.stringify(library)}`
  const { output } = await build({ input: ENTRY, platform: 'browser', write: false, plugins: [entryOf(code)], output: { minify: true } })
  return gzipSync(output[0].code, { level: 9 }).length
}

const ENTRY = 'entry-of-the-bench'

function entryOf(code) {
  return {
    name: ENTRY,
    resolveId: (id) => (id === ENTRY ? id : undefined),
    load: (id) => (id === ENTRY ? code : undefined),
  }
}

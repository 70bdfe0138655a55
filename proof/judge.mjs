// A process that judges mutants, one after the other: bundles tests with one source replaced, runs
// them, and tells how it went. Its parent kills it when it takes too long.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { compileFunction } from 'node:vm'
import * as fastCheck from 'fast-check'
import * as redis from 'redis'
import { rolldown } from 'rolldown'
import { SEED } from './suites.mjs'
import { collector } from './test-api.mjs'

const GENERATED = 'src/stores/redis/script.generated.ts'
const ENTRY = '\0tests'
const [root, redisPort] = [process.argv[2], Number(process.argv[3])]
const builtin = createRequire(import.meta.url)
const client = redis.createClient({ socket: { host: '127.0.0.1', port: redisPort } })
await client.connect()

console.log = () => undefined
console.info = () => undefined
// An error outside of a test does not count against a mutant: it may come late, from the one
// before.
for (const event of ['unhandledRejection', 'uncaughtException']) process.on(event, () => undefined)
process.on('message', async (job) => process.send(await judge(job)))
process.send({ ready: true })

/**
 * `job`: { file, text, path, only, traces }: `text` replaces the file, `path` is the test, `only`
 * what the names of its tests must match.
 */
async function judge({ file, text, path, only, traces }) {
  process.env.SLUICE_TRACES = `${traces}`
  process.env.SLUICE_SEED = `${SEED}`
  const { api, run } = collector(redisPort)
  let failure
  try {
    const code = await bundled(path, file, text)
    await clearRedis()
    evaluate(code, api, { ...fs, readFileSync: reading(file, text) })
    failure = await run(new RegExp(only ?? ''))
  } catch (error) {
    failure = { test: 'while the tests are collected', message: `${error}` }
  }
  if (failure === undefined) return { status: 'passed' }
  return { status: (await loads(file, text, failure)) ? 'killed' : 'did not compile', ...failure }
}

/**
 * A test that failed may have left commands on their way, which Redis would carry out after it was
 * emptied: the next test would find the states of this one. So their connections are ended first.
 */
async function clearRedis() {
  await client.sendCommand(['CLIENT', 'KILL', 'SKIPME', 'yes'])
  await client.flushAll()
  await client.sendCommand(['SCRIPT', 'FLUSH'])
}

/**
 * Whether the replaced source can be loaded at all: what cannot is told apart from what a test has
 * noticed.
 */
async function loads(file, text, { message }) {
  if (file === undefined || file.endsWith('.lua')) return !message.includes('Error compiling script')
  try {
    evaluate(await bundled(file, file, text), {}, fs)
    return true
  } catch {
    return false
  }
}

async function bundled(path, file, text) {
  const bundle = await rolldown({
    input: ENTRY,
    platform: 'node',
    external: /^(?!@oxc-project)[@a-z]/,
    treeshake: false,
    // `using` is younger than Node 20: the bundler has what it becomes.
    transform: { target: 'es2022' },
    logLevel: 'silent',
    plugins: [replacing(path, file, text)],
  })
  const { output } = await bundle.generate({ format: 'cjs' })
  await bundle.close()
  return output[0].code
}

function replacing(path, file, text) {
  return {
    name: 'replacing',
    resolveId: (id) => (id === ENTRY ? id : undefined),
    load(id) {
      if (id === ENTRY) return `import ${JSON.stringify(`${root}/${path}`)}`
      if (id === `${root}/${file}`) return { code: text, moduleType: 'ts' }
      if (id === `${root}/${GENERATED}` && file?.endsWith('.lua')) return { code: embedded(file, text), moduleType: 'ts' }
      return undefined
    },
    // A bundle lies nowhere: what is read from beside a test is named by where the test was.
    transform: {
      filter: { code: 'import.meta.url' },
      handler: (code, id) => code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href)),
    },
  }
}

/**
 * The embedded sources with that of one file replaced: each stands there as a whole, by a name or
 * as a module.
 */
function embedded(file, text) {
  const escaped = (source) => source.replace(/[`\\]|\$(?=\{)/g, '\\$&')
  const before = fs.readFileSync(`${root}/${GENERATED}`, 'utf8')
  const parts = before.split(`\`${escaped(fs.readFileSync(`${root}/${file}`, 'utf8'))}\``)
  if (parts.length !== 2) throw new Error(`${file} is not what is embedded: run scripts/embed-lua.mjs`)
  return parts.join(`\`${escaped(text)}\``)
}

/** Reads files, the replaced one too: the generator takes the prelude from the disk. */
function reading(file, text) {
  return (path, ...options) => (`${path}` === pathToFileURL(`${root}/${file}`).href ? text : fs.readFileSync(path, ...options))
}

function evaluate(code, api, files) {
  const packages = { vitest: api, 'fast-check': fastCheck, redis, 'node:fs': files }
  const require = (name) => (name in packages ? { __esModule: true, ...packages[name] } : builtin(name))
  compileFunction(code, ['require', 'exports', 'module'])(require, {}, {})
}

/**
 * A memory of its own in each of several processes is warned about, once: in real workers of a
 * cluster, and by the variables that others set.
 */
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { run } from '../package/run.ts'
import { binaryOf, installRuntimes, RUNTIMES, type Runtime, whyMissing } from '../package/runtimes.ts'

const dist = fileURLToPath(new URL('../../dist/', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'sluice-processes-'))
const program = join(folder, 'program.mjs')

const DENO = RUNTIMES.find(({ name }) => name === 'Deno') as Runtime
const deno = join(folder, 'deno.mjs')
writeFileSync(
  deno,
  `
  import { gcra } from ${JSON.stringify(join(dist, 'index.js'))}
  import { rateLimit } from ${JSON.stringify(join(dist, 'adapters/fetch.js'))}
  rateLimit({ limit: gcra({ rate: '1/s', burst: 1 }) })(() => new Response())
  console.log('made')`,
)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/**
 * Makes two middlewares, or two limiters, and prints the codes of its warnings. With `workers` it
 * does so in that many workers of a cluster.
 */
writeFileSync(
  program,
  `
  import cluster from 'node:cluster'
  import { createLimiter, gcra } from ${JSON.stringify(join(dist, 'index.js'))}
  import { sharedStore } from ${JSON.stringify(join(dist, 'stores/shared-memory/index.js'))}
  import { rateLimit } from ${JSON.stringify(join(dist, 'adapters/node.js'))}
  const [where, workers] = process.argv.slice(2)
  if (workers !== undefined && cluster.isPrimary) {
    for (let k = 0; k < Number(workers); k++) cluster.fork()
  } else {
    process.on('warning', ({ code, message }) => process.stdout.write(code + ': ' + message.match(/sqliteStore|redisStore/g) + '\\n'))
    const limit = gcra({ rate: '1/s', burst: 1 })
    const shared = () => createLimiter(limit, { name: 'api', store: sharedStore({ maxKeys: 10, limits: limit }) })
    const made = where === 'limiters' ? createLimiter : rateLimit
    for (let k = 0; k < 2; k++) made(where === 'limiters' ? limit : where === 'shared' ? { limiter: shared() } : { limit })
    if (cluster.isWorker) setImmediate(() => process.disconnect())
  }`,
)

/** Each has a channel to its parent, and is no worker of a cluster for that. */
function warnings(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const child = fork(program, [...args], { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'ignore', 'ipc'] })
    let printed = ''
    child.stdout?.on('data', (data) => {
      printed += data
    })
    child.once('error', reject)
    child.once('close', () => resolve(printed.split('\n').filter((line) => line !== '')))
  })
}

/** Its code, and the stores that it points to. */
const WARNED = 'SLUICE_MEMORY_PER_PROCESS: sqliteStore,redisStore'

test('in each worker of a cluster, once', async () => {
  expect(await warnings(['memory', '2'])).toEqual([WARNED, WARNED])
})

test('also of limiters without a middleware', async () => {
  expect(await warnings(['limiters', '2'])).toEqual([WARNED, WARNED])
})

test.each<[string, NodeJS.ProcessEnv, string[]]>([
  ['a process alone', {}, []],
  ['one process of PM2', { NODE_APP_INSTANCE: '0', pm_id: '0', exec_mode: 'fork_mode', instances: '1' }, []],
  ['one of several of PM2', { NODE_APP_INSTANCE: '0', pm_id: '0', exec_mode: 'cluster_mode', instances: '4' }, [WARNED]],
  ['another of several of PM2', { NODE_APP_INSTANCE: '3', pm_id: '3', exec_mode: 'fork_mode' }, [WARNED]],
  ['AWS Lambda', { AWS_LAMBDA_FUNCTION_NAME: 'api' }, [WARNED]],
  ['Cloud Run', { K_SERVICE: 'api' }, [WARNED]],
  ['Vercel', { VERCEL: '1' }, [WARNED]],
])('%s', async (_name, env, expected) => {
  expect(await warnings(['memory'], env)).toEqual(expected)
})

test('not for a store that others may share', async () => {
  expect(await warnings(['shared'], { K_SERVICE: 'api' })).not.toContain(WARNED)
})

/** Without the right the middleware is made, and the variable is not read. */
test.skipIf(whyMissing(DENO) !== undefined).each([
  ['no right to read variables', [], 0],
  ['the right to read this one', ['--allow-env=K_SERVICE'], 1],
])('Deno, with %s', async (_name, rights, expected) => {
  await installRuntimes()
  const args = ['run', '--no-prompt', ...rights, deno]
  const { code, stdout, stderr } = await run(binaryOf(DENO), args, folder, { HOME: folder, K_SERVICE: 'api' })
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'made\n' })
  expect(stderr.match(/SLUICE_MEMORY_PER_PROCESS/g) ?? []).toHaveLength(expected)
})

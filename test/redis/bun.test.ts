/** Bun's own client of Redis, made as the guide says, under Bun. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { binaryOf, installRuntimes, RUNTIMES, type Runtime, whyMissing } from '../package/runtimes.ts'
import { type FaultProxy, startProxy } from '../support/fault-proxy.ts'
import { until } from '../support/redis-servers.ts'

const root = join(import.meta.dirname, '../..')
const BUN = RUNTIMES.find(({ name }) => name === 'Bun') as Runtime
const missing = whyMissing(BUN)

/** The guide's lines, but for its imports, with the address of a server. */
function guideFor(port: number): string {
  const page = readFileSync(join(root, 'docs/guides/redis.md'), 'utf8')
  const block = [...page.matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => code as string).find((code) => code.includes("from 'bun'"))
  return (block as string).replaceAll(/^import .*\n/gm, '').replace(/redis:\/\/[^']*/, `redis://127.0.0.1:${port}`)
}

interface Answer {
  readonly decisions: readonly { allowed: boolean; remaining: number; degraded?: boolean; policy: string }[]
  readonly health: { readonly state: string; readonly error?: { readonly message: string } }
}

function startBun(port: number) {
  const child = spawn(binaryOf(BUN), ['--no-install', 'run', join(import.meta.dirname, 'bun.process.ts'), guideFor(port)], {
    cwd: root,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const ask = async (key: string): Promise<Answer> => {
    child.stdin.write(`${key}\n`)
    const { value, done } = await lines.next()
    if (done) throw new Error('Bun has ended')
    return JSON.parse(value as string) as Answer
  }
  return { ask, kill: () => child.kill() }
}

describe.skipIf(missing !== undefined)(`Bun.RedisClient${missing === undefined ? '' : `: ${missing}`}`, () => {
  let proxy: FaultProxy
  let bun: ReturnType<typeof startBun>

  beforeAll(async () => {
    await installRuntimes()
    proxy = await startProxy(inject('redisPort'))
    bun = startBun(proxy.port)
  }, 600_000)

  afterAll(async () => {
    bun?.kill()
    await proxy?.close()
  })

  test('Redis decides, and refuses above the limit', async () => {
    expect((await bun.ask('limited')).decisions).toMatchObject([
      { allowed: true, remaining: 2, degraded: false },
      { allowed: true, remaining: 1 },
    ])
    expect((await bun.ask('limited')).decisions).toMatchObject([
      { allowed: true, remaining: 0 },
      { allowed: false, remaining: 0, policy: 'hour', degraded: false },
    ])
  })

  test.each<[what: string, strike: (proxy: FaultProxy) => void]>([
    ['was cut', (proxy) => proxy.cutAll()],
    ['is half open', (proxy) => proxy.forgetAll()],
  ])('a connection that %s is replaced', async (what, strike) => {
    strike(proxy)
    await bun.ask(what)
    await until(async () => {
      const { decisions, health } = await bun.ask(`${what}, later`)
      return health.state === 'up' && decisions.every(({ degraded }) => degraded === false)
    }, 20_000)
  })
})

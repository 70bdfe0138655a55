/** The command line as it is built. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { configSchema } from '../src/config/schema.ts'
import { hints } from '../src/hints.ts'
import { SERVE_OPTIONS } from '../src/serve.ts'
import { watching } from './support/live-client.ts'
import { main, postDecide, startedProcess } from './support/process.ts'

const sample = fileURLToPath(new URL('../sample.yaml', import.meta.url))
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-'))
})

afterAll(() => rmSync(folder, { recursive: true }))

function sluice(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], { encoding: 'utf8', timeout: 30_000 })
  return { status, stdout, stderr }
}

describe('sluice check', () => {
  test('explains a configuration', () => {
    expect(sluice('check', sample)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('10 per s, up to 20 at once after a rest'),
      stderr: '',
    })
  })

  test('says what is wrong, and where', () => {
    const file = join(folder, 'bad.yaml')
    writeFileSync(file, 'limiters:\n  api: { limits: { type: gcra, rate: 1/s, burst: -1 } }\n')
    expect(sluice('check', file)).toEqual({
      status: 1,
      stdout: '',
      stderr: `${file}:2:50: gcra burst -1 must be a whole number from 0 to 1,000,000,000\n`,
    })
  })

  test('wants a file that is there', () => {
    expect(sluice('check')).toMatchObject({ status: 2, stderr: expect.stringContaining('check wants a file') })
    expect(sluice('check', join(folder, 'nothing.yaml'))).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^sluice: .*nothing\.yaml cannot be read: there is no such file$/m),
    })
  })
})

test('an unknown option is named, with the nearest known one and where all are listed', () => {
  expect(sluice('serve', '--prot', '9000')).toEqual({
    status: 2,
    stdout: '',
    stderr: 'sluice: there is no option --prot: did you mean --port?\n\nsluice serve --help says what there is.\n',
  })
  expect(sluice('check', '--strict', sample)).toMatchObject({ status: 2, stderr: expect.stringContaining('no option --strict\n') })
})

test('sluice schema prints the schema', () => {
  expect(JSON.parse(sluice('schema').stdout)).toEqual(JSON.parse(JSON.stringify(configSchema)))
})

test('the commands of the library are there too', () => {
  expect(sluice('simulate', '--traffic', '0,10', '--json')).toMatchObject({ status: 0, stdout: expect.stringContaining('"runs"') })
})

test('help and a command that there is not list all commands; there is a version', () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const help = sluice('--help')
  const unknown = sluice('dance')
  expect([help.status, unknown.status]).toEqual([0, 2])
  expect(unknown.stderr).toContain("there is no command 'dance'")
  for (const name of ['serve', 'check', 'schema', 'simulate', 'inspect', 'migrate']) {
    for (const text of [help.stdout, unknown.stderr]) expect(text).toMatch(new RegExp(`^ {2}sluice ${name} +\\w`, 'm'))
  }
  expect(sluice('--version').stdout).toBe(`${version}\n`)
  expect(sluice('serve', '--help')).toMatchObject({ status: 0, stdout: expect.stringMatching(/^sluice serve \[FILE \.\.\.\]/) })
  expect(sluice('check', '--help')).toMatchObject({ status: 0, stdout: expect.stringMatching(/^sluice check FILE \.\.\./) })
})

test('every option of serve is in its help, with the variable that sets it too', async () => {
  const { stdout } = sluice('serve', '--help')
  for (const option of Object.keys(SERVE_OPTIONS)) expect(stdout).toContain(`--${option}`)
  for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(150)
})

describe('sluice serve', () => {
  test('serves the sample, prints what to try, takes up a change and stops in peace', async () => {
    const file = join(folder, 'live.yaml')
    writeFileSync(file, 'limiters: { api: { limits: { type: gcra, rate: 1/s, burst: 3 } } }\n')
    const service = await startedProcess(file, '--hints')
    try {
      expect(await service.line('/v1/acquire')).toContain('curl -H')
      // Before the log.
      expect(service.lines.find((line) => line !== '')).toMatch(/^Sluice is running/)
      expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
      writeFileSync(file, 'limiters: { api: { limits: { type: gcra, rate: 1/s, burst: -1 } } }\n')
      expect(JSON.parse(await service.line('is refused, the old one goes on'))).toMatchObject({
        reason: expect.stringContaining(`${file}:1:`),
      })
      writeFileSync(file, 'limiters: { api: { limits: { type: gcra, rate: 1/s, burst: 9 } } }\n')
      await service.line('the configuration was reloaded')
      expect(await (await fetch(`${service.url}/v1/limiters/api/keys/k`)).json()).toMatchObject({ limit: 9 })
    } finally {
      service.process.kill('SIGTERM')
    }
    expect(await service.ended).toEqual([0, null])
    expect(service.lines.at(-1)).toContain('stopped')
  })

  test('a stop under load fails nobody', async () => {
    // For longer than this process may stand still: who has not heard of the stop by then is cut off.
    const service = await startedProcess('--drain', '3s')
    const agent = new Agent({ keepAlive: true })
    const statuses = new Set<number>()
    let answers = 0
    /** Until the service says that the connection ends. */
    async function caller(): Promise<void> {
      for (;;) {
        const { status, isLast } = await postDecide(service.url, agent, { limiter: 'api', key: 'u1' })
        statuses.add(status)
        answers += 1
        if (answers === 100) service.process.kill('SIGTERM')
        if (isLast) return
      }
    }
    await Promise.all(Array.from({ length: 8 }, caller))
    expect([...statuses]).toEqual([200])
    expect(answers).toBeGreaterThan(100)
    expect(await service.ended).toEqual([0, null])
    agent.destroy()
  })

  test('has a sample for those without a file, and listens on this machine only', async () => {
    const service = await startedProcess()
    try {
      const { limiters } = (await (await fetch(`${service.url}/v1/limiters`)).json()) as { limiters: { name: string }[] }
      expect(limiters.map(({ name }) => name)).toEqual(['api', 'llm', 'login'])
    } finally {
      // As when npm passes on what the terminal sent to all.
      service.process.kill('SIGINT')
      service.process.kill('SIGINT')
    }
    expect(await service.ended).toEqual([0, null])
    expect(service.lines.at(-1)).toContain('stopped')
  })

  test('shows keys, and leaves the page out, if told to', async () => {
    const service = await startedProcess('--no-page', '--top-refused', '5', '--allow-host', 'limits.example, other.example')
    try {
      expect(await (await fetch(service.url)).json()).toMatchObject({ status: 404, code: 'PATH' })
      const sent = request(service.url, { path: '/healthz', headers: { host: 'other.example' } }).end()
      expect(((await once(sent, 'response')) as [IncomingMessage])[0].statusCode).toBe(200)
      await fetch(`${service.url}/v1/decide`, {
        method: 'POST',
        body: '{"limiter":"api","key":"u1","cost":21}',
        headers: { 'content-type': 'application/json' },
      })
      const client = await watching(service.url)
      expect((await client.event(0)).topRefused).toEqual([{ limiter: 'api', key: 'u1', count: 1, atMost: false }])
      // Nobody touches the clock here: it is the real one.
      expect((await client.event(1)).atMs).toBeGreaterThan((await client.event(0)).atMs)
      service.process.kill('SIGTERM')
      expect(await client.ended).toBe('end')
    } finally {
      service.process.kill('SIGTERM')
    }
    expect(await service.ended).toEqual([0, null])
  })

  test('prints the address of the page first, if there is one', () => {
    const ports = { httpPort: 8080, grpcPort: 8081 }
    expect(hints(ports, 'api', true)).toMatch(/^\nSluice is running: http:\/\/localhost:8080\/\n/)
    expect(hints(ports, 'api', false)).toMatch(/^\nSluice is running\.\n/)
  })

  test.each([
    [['--port', 'x'], '--port "x" must be a whole number from 0 to 65535'],
    [['--health-port', '70000'], '--health-port "70000" must be a whole number from 0 to 65535'],
    [['--drain', '-1'], '--drain'],
    [['--drain', '5'], "--drain \"5\" of what? write '5s' or '5ms'"],
    [['--drain', '0'], "--drain \"0\" of what? write '0s' or '0ms'"],
    [['--grace', 'x'], '--grace "x" must be a number with a unit'],
    [['--grace', '1 hour'], "did you mean '1h'?"],
    [['--grace', '25h'], '--grace "25h" must be from 0s to 1d'],
    [['--grpc-max-age', '1800'], "--grpc-max-age \"1800\" of what? write '1800s' or '1800ms'"],
    [['--tls-cert', 'x'], '--tls-cert and --tls-key go together'],
    [['--log-level', 'loud'], '--log-level "loud" must be one of'],
    [['--allow-host', 'a.example,http://b.example'], '--allow-host "http://b.example" must be a name such as'],
    [['--top-refused', '0'], '--top-refused "0" must be a whole number from 1 to 100'],
    [['--top-refused', '101'], '--top-refused "101" must be'],
    [['--postgres', 'nonsense'], 'the Postgres URL "nonsense" must be such as'],
    [['--postgres', 'postgres://a', '--redis', 'redis://b'], '--redis and --postgres are several places'],
    [['--redis', 'nonsense'], 'the Redis URL "nonsense" must be such as'],
    [['--redis', 'redis://localhost', '--sqlite', 'x.db'], '--redis and --sqlite are several places to count in: give one of them'],
    [['--sqlite', 'x.db', '--redis-ca', 'x', '--redis-key', 'y'], '--redis-ca and --redis-key can only be given with --redis'],
    [['--redis-ca', 'x'], '--redis-ca can only be given with --redis'],
    [['--sqlite', '/nowhere/at/all/x.db'], 'SQLite could not open /nowhere/at/all/x.db'],
    [['--prot', '1'], '--prot'],
  ])('refuses %j', (args, message) => {
    const { status, stderr } = sluice('serve', ...args)
    expect(stderr).toContain(message)
    expect(status).toBeGreaterThan(0)
  })

  test('says which port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as { port: number }
    expect(sluice('serve', '--port', `${port}`, '--grpc-port', '0')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(`EADDRINUSE`),
    })
    expect(sluice('serve', '--port', '0', '--grpc-port', `${port}`)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(`${port}`),
    })
    other.close()
  })
})

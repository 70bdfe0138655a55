/**
 * Whatever ends the mutation check, or the judgement of a mutant, also ends what the judged test
 * has started: here a judge in an endless loop, and a Redis in an endless script.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { freePort, until } from '../support/redis-servers.ts'

/** What a judge may compute: for ever, and longer than it needs to begin. */
const FOREVER_MS = 600_000
const SHORT_MS = 2_000

/** What the judged test writes down before it never ends. */
interface Started {
  readonly folder: string
  /** The judge, its Redis, and the one that the test has started. */
  readonly pids: readonly number[]
}

let root: string
let check: ChildProcess
let told: Promise<unknown[]>

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'sluice-endless-'))
  writeFileSync(join(root, 'endless.test.ts'), endless(await freePort()))
})

afterEach(() => {
  check.kill('SIGKILL')
  // A failure must not leave behind what it is about.
  for (const pid of begun().pids.filter(isRunning)) process.kill(pid, 'SIGKILL')
  rmSync(root, { recursive: true })
})

/** A test that starts a server, lets it run an endless script, and never lets go itself. */
const endless = (port: number) => `
import { spawn } from 'node:child_process'
import { renameSync, writeFileSync } from 'node:fs'
import { createClient } from 'redis'
import { inject, test } from 'vitest'

const connected = (port) => createClient({ socket: { host: '127.0.0.1', port } }).on('error', () => undefined).connect()

test('never ends', async () => {
  const own = await connected(inject('redisPort'))
  const [, ofJudge] = /process_id:(\\d+)/.exec(await own.info('server'))
  const server = spawn('redis-server', ['--port', '${port}', '--bind', '127.0.0.1', '--save', '', '--lua-time-limit', '10'])
  const [client, other] = [await connected(${port}), await connected(${port})]
  client.sendCommand(['EVAL', 'while true do end', '0']).catch(() => undefined)
  const isBusy = () => other.sendCommand(['GET', 'x']).then(() => false, (error) => String(error).includes('BUSY'))
  while (!(await isBusy()));
  const started = { folder: process.env.TMPDIR, pids: [process.pid, Number(ofJudge), server.pid] }
  writeFileSync('${root}/started.next', JSON.stringify(started))
  renameSync('${root}/started.next', '${root}/started')
  while (true);
})
`

async function started(limitMs: number): Promise<Started> {
  check = fork(new URL('./judging.process.mjs', import.meta.url), [root, 'endless.test.ts', `${limitMs}`])
  told = once(check, 'message')
  // Mostly it is ended before it tells anything.
  told.catch(() => undefined)
  await until(async () => begun().pids.length > 0)
  return begun()
}

function begun(): Started {
  const path = join(root, 'started')
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : { folder: '', pids: [] }
}

/** A process that has ended, and that nobody has asked about yet, is no longer running. */
function isRunning(pid: number): boolean {
  if (existsSync('/proc/self/stat')) return existsSync(`/proc/${pid}/stat`) && !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

// The process of the check ends by itself on SIGINT, and has no time to do anything on the others.
test.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGKILL'] as const)(
  'a check that %s ends leaves nothing running, and no files',
  async (signal) => {
    const { pids, folder } = await started(FOREVER_MS)
    expect([pids.map(isRunning), existsSync(folder)]).toEqual([[true, true, true], true])
    check.kill(signal)
    await until(async () => !pids.some(isRunning), 10_000)
    await until(async () => !existsSync(folder), 10_000)
  },
)

test('a mutant that takes too long leaves nothing running, while the check goes on', async () => {
  const { pids } = await started(SHORT_MS)
  expect(await told).toEqual([{ status: 'timed out' }, undefined])
  expect(pids.filter(isRunning)).toEqual([])
  expect([check.exitCode, check.signalCode]).toEqual([null, null])
})

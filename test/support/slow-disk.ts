/**
 * A disk that is slow: `strace` holds up every fsync and fdatasync of processes that run, and of
 * those that they start. Nothing else of them is touched, and they go on when it lets go of them.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from './redis-servers.ts'

const SYNCS = 'fsync,fdatasync'

/** To trace a process that one has not started may take root. */
function strace(...args: string[]): [program: string, args: string[]] {
  return process.getuid?.() === 0 ? ['strace', args] : ['sudo', ['-n', 'strace', ...args]]
}

/** Why there can be no slow disk here, or undefined. */
export const whyNoSlowDisk: string | undefined = (() => {
  if (process.platform !== 'linux') return 'strace is for Linux'
  if (spawnSync('strace', ['-V']).status !== 0) return 'there is no strace (on Debian and Ubuntu npm test installs it)'
  const traced = spawn('sleep', ['0.5'], { stdio: 'ignore' })
  const [program, args] = strace(
    '-q',
    '-o',
    '/dev/null',
    '-e',
    `trace=${SYNCS}`,
    '-e',
    `inject=${SYNCS}:delay_enter=1`,
    '-p',
    `${traced.pid}`,
  )
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8', timeout: 10_000 })
  return status === 0 ? undefined : `strace may not trace here: ${stderr.trim()}`
})()

export interface SlowDisk {
  /** How many syncs have come to their end since it is slow. */
  readonly syncs: number
  /** It is as fast as ever: what waits for it goes on at once. */
  mend(): Promise<void>
}

/** Resolves when every sync of these processes takes so long. */
export async function slowDisk(pids: readonly number[], ms: number): Promise<SlowDisk> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-strace-'))
  const log = join(folder, 'log')
  const of = pids.flatMap((pid) => ['-p', `${pid}`])
  // Before it begins: its end is in the log when it has come to it.
  const slow = ['-f', '-o', log, '-e', `trace=${SYNCS}`, '-e', `inject=${SYNCS}:delay_enter=${ms * 1000}`, ...of]
  const [program, args] = strace(...slow)
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  await attached(child, pids)
  const disk: SlowDisk = {
    get syncs() {
      return readFileSync(log, 'utf8').split('= 0 (DELAYED)').length - 1
    },
    async mend() {
      if (!slowNow.delete(disk)) return
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
  slowNow.add(disk)
  return disk
}

const slowNow = new Set<SlowDisk>()

/** After a test, also one that failed: a process that is held up cannot even end. */
export async function mendAll(): Promise<void> {
  for (const disk of [...slowNow]) await disk.mend()
}

/** It says of each thread that it is attached. */
async function attached(child: ChildProcess, pids: readonly number[]): Promise<void> {
  let said = ''
  let isEnded = false
  child.stderr?.on('data', (chunk) => {
    said += chunk
  })
  child.once('exit', () => {
    isEnded = true
  })
  await until(async () => {
    return isEnded || pids.every((pid) => new RegExp(`Process ${pid} attached`).test(said))
  })
  if (isEnded) throw new Error(`strace ended: ${said}`)
}

/** A process and those that it has started. */
export function withChildren(pid: number): number[] {
  const others = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return [pid, ...others.map(Number).filter((other) => parentOf(other) === pid)]
}

/** Undefined if it has ended meanwhile. */
function parentOf(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1])
  } catch {
    return undefined
  }
}

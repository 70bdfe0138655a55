/**
 * Processes whose callers leave before their turn. As long as each process has a caller who waits,
 * nobody else's permits are lost with those who leave: the limit is given out nearly in full.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { expect, inject, test } from 'vitest'

const LEAVING = [0, 0.5, 0.9, 0.99]
const CALLERS = 8
const RUN_MS = 2_500
const INTERVAL_US = 10_000
/**
 * Where the turns are counted: the beginning and the end of a run, when processes come and go, are
 * left out.
 */
const SETTLED_US = 500_000

interface Report {
  /** Of each key, by the server's time. */
  readonly turns: Readonly<Record<string, readonly number[]>>
  readonly waiting: number
}

test.each([1, 3, 8])(
  '%d processes whose callers leave lose less than 5 of 100 permits by it, and give out none too many',
  async (processes) => {
    const tasks = LEAVING.map((leaving) => ({ key: `${100 * leaving} % leave`, leaving }))
    const task = { port: inject('redisPort'), prefix: `leaving-${randomUUID()}`, tasks, callers: CALLERS, ms: RUN_MS }
    const children = Array.from({ length: processes }, () =>
      fork(new URL('./leaving.process.mjs', import.meta.url), [JSON.stringify(task)]),
    )
    await Promise.all(children.map((child) => told<'ready'>(child)))
    const reports = children.map((child) => told<Report>(child))
    for (const child of children) child.send('go')
    const all = await Promise.all(reports)
    expect(all.map(({ waiting }) => waiting)).toEqual(children.map(() => 0))
    const shares = tasks.map(({ key }) => [key, shareOf(all.flatMap(({ turns }) => turns[key] ?? []))] as const)
    console.log(`${processes} processes: ${shares.map(([key, share]) => `${key}: ${(100 * share).toFixed(1)}`).join(', ')}`)
    // A machine that is too busy to keep up costs all keys alike: those whose callers leave are
    // held against the one whose callers stay.
    const [[, unleft]] = shares as [(typeof shares)[number]]
    for (const [key, share] of shares) {
      expect(share, key).toBeGreaterThanOrEqual(0.95 * Math.min(1, unleft))
      // A turn that was handed on is told as of the moment it was handed on, a few milliseconds
      // beside its time.
      expect(share, key).toBeLessThanOrEqual(1.02)
    }
  },
)

/** How many of the permits between the first and the last turn that count were given out. */
function shareOf(times: readonly number[]): number {
  const turns = times.toSorted((a, b) => a - b)
  const fromUs = (turns[0] as number) + SETTLED_US
  const untilUs = (turns.at(-1) as number) - SETTLED_US
  return (turns.filter((us) => us >= fromUs && us < untilUs).length * INTERVAL_US) / (untilUs - fromUs)
}

function told<Message>(child: ChildProcess): Promise<Message> {
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as Message))
    child.once('exit', (code) => reject(new Error(`a process ended with ${code}`)))
  })
}

/**
 * Processes whose callers leave before their turn. As long as each process has a caller who waits,
 * nobody else's permits are lost with those who leave: the limit is given out nearly in full.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { expect, inject, test } from 'vitest'

const LEAVING = [0, 0.5, 0.9, 0.99]
const INTERVAL_US = 25_000
/** Of each key, in all processes together: the line is 1.6 s long, also on a busy machine. */
const CALLERS = 64
/** Who leaves does so within this time: some have their turn before. */
const LEAVE_MS = 400
const RUN_MS = 5_000
/** With all that is added to it. */
const LONGEST_RUN_MS = 60_000
/**
 * Where the turns are counted: the beginning and the end of a run, when processes come and go, are
 * left out.
 */
const SETTLED_US = 500_000
/**
 * So is a time in which a process, or the server, stood still: nobody comes then, and the line may
 * end. What is shorter the line outlasts.
 */
const STILL_MS = 1_000
/** Of what is left, so much must be. */
const LEAST_US = 500_000

type Span = readonly [fromUs: number, untilUs: number]

interface Report {
  /** Of each key, by the server's time. */
  readonly turns: Readonly<Record<string, readonly number[]>>
  /** When nothing could run. */
  readonly stills: readonly Span[]
  readonly waiting: number
}

test.each([1, 3, 8])(
  '%d processes whose callers leave lose less than 5 of 100 permits by it, and give out none too many',
  async (processes) => {
    const tasks = LEAVING.map((leaving) => ({ key: `${100 * leaving} % leave`, leaving }))
    const where = { port: inject('redisPort'), prefix: `leaving-${randomUUID()}` }
    const times = { ms: RUN_MS, longestMs: LONGEST_RUN_MS, stillMs: STILL_MS, leaveMs: LEAVE_MS }
    const task = { ...where, ...times, tasks, callers: Math.ceil(CALLERS / processes), perSecond: 1_000_000 / INTERVAL_US }
    const children = Array.from({ length: processes }, () =>
      fork(new URL('./leaving.process.mjs', import.meta.url), [JSON.stringify(task)]),
    )
    await Promise.all(children.map((child) => told<'ready'>(child)))
    const reports = children.map((child) => told<Report>(child))
    for (const child of children) child.send('go')
    const all = await Promise.all(reports)
    expect(all.map(({ waiting }) => waiting)).toEqual(children.map(() => 0))
    const stills = all.flatMap((report) => report.stills)
    const shares = tasks.map(
      ({ key }) =>
        [
          key,
          shareOf(
            all.flatMap(({ turns }) => turns[key] ?? []),
            stills,
          ),
        ] as const,
    )
    const still = stills.length === 0 ? '' : `, ${stills.length} times one stood still`
    console.log(`${processes} processes: ${shares.map(([key, share]) => `${key}: ${(100 * share).toFixed(1)}`).join(', ')}${still}`)
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
function shareOf(times: readonly number[], stills: readonly Span[]): number {
  const turns = times.toSorted((a, b) => a - b)
  const counted = without(stills, [(turns[0] as number) + SETTLED_US, (turns.at(-1) as number) - SETTLED_US])
  const lengthUs = counted.reduce((sum, [fromUs, untilUs]) => sum + untilUs - fromUs, 0)
  expect(lengthUs).toBeGreaterThan(LEAST_US)
  const inThem = turns.filter((us) => counted.some(([fromUs, untilUs]) => us >= fromUs && us < untilUs))
  return (inThem.length * INTERVAL_US) / lengthUs
}

/**
 * What is left of a time, also without as much behind each standstill until all are gone who stood
 * in line then: many leave late.
 */
function without(stills: readonly Span[], whole: Span): Span[] {
  let left: Span[] = [whole]
  for (const [fromUs, stillUntilUs] of stills) {
    const untilUs = stillUntilUs + CALLERS * INTERVAL_US
    left = left.flatMap((span): Span[] => [
      [span[0], Math.min(span[1], fromUs)],
      [Math.max(span[0], untilUs), span[1]],
    ])
    left = left.filter((span) => span[1] > span[0])
  }
  return left
}

function told<Message>(child: ChildProcess): Promise<Message> {
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as Message))
    child.once('exit', (code) => reject(new Error(`a process ended with ${code}`)))
  })
}

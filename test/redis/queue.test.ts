/** Several processes wait for one key: the server is the queue. */
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { expect, inject, test } from 'vitest'

const PROCESSES = 3
const CALLERS = 20
const LEAVERS = 10
const INTERVAL_US = 5_000

interface Report {
  /** By the server's time, in the order in which the callers were told. */
  readonly turns: readonly number[]
  readonly waiting: number
}

test('callers of three processes get their turn one interval apart, each process in its order, also when some leave', async () => {
  const task = { port: inject('redisPort'), prefix: `queue-${randomUUID()}`, callers: CALLERS, leavers: LEAVERS }
  const children = Array.from({ length: PROCESSES }, () => fork(new URL('./queue.process.mjs', import.meta.url), [JSON.stringify(task)]))
  await Promise.all(children.map((child) => told<'ready'>(child)))
  const reports = children.map((child) => told<Report>(child))
  for (const child of children) child.send('go')
  const all = await Promise.all(reports)
  for (const { turns, waiting } of all) {
    expect(waiting).toBe(0)
    expect(turns.length).toBeGreaterThanOrEqual(CALLERS)
    expect(turns).toEqual([...turns].sort((a, b) => a - b))
  }
  const turns = all.flatMap((report) => report.turns).sort((a, b) => a - b)
  for (let k = 1; k < turns.length; k++) expect((turns[k] as number) - (turns[k - 1] as number)).toBeGreaterThanOrEqual(INTERVAL_US)
})

function told<Message>(child: ChildProcess): Promise<Message> {
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as Message))
    child.once('exit', (code) => reject(new Error(`a process ended with ${code}`)))
  })
}

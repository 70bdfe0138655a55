// Contestants in processes of their own, as they are with their users: what the compiler and the
// garbage collector learn of one, they would else apply to the others. Only one of them is at work
// at a time.
import { fork } from 'node:child_process'
import { once } from 'node:events'

const children = []
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

/**
 * Returns `round(from, calls, atOnce)`, see in-flight.mjs, and `refill()`, see prepared.mjs, which
 * are run over there.
 */
export async function ownProcess(job) {
  const child = fork(new URL('./caller.mjs', import.meta.url), [JSON.stringify(job)], { execArgv: ['--expose-gc'] })
  child.once('exit', (code) => {
    throw new Error(`${job.name} of ${job.algorithm} on ${job.client} ended with code ${code}`)
  })
  children.push(child)
  await once(child, 'message')
  const told = async (message) => {
    child.send(message)
    const [{ answer }] = await once(child, 'message')
    return answer
  }
  return {
    round: (from, calls, atOnce) => told({ work: 'round', from, calls, atOnce }),
    refill: () => told({ work: 'refill' }),
  }
}

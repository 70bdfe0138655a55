/** Where simulations run, so that the page never stands still for one. */
import { Cursor, type Moment } from './cursor.ts'
import { playGoverned } from './governed.ts'
import { type Answer, arrivalsFor, failureOf, type Job, type Request, type RunOf, type TrafficJob } from './job.ts'
import { play, type Run } from './run.ts'
import { playSlow } from './slow.ts'

let cursor: Cursor | undefined

export function startWorker(): void {
  addEventListener('message', async ({ data }: MessageEvent<Request>) => {
    const answer = await answerTo(data)
    postMessage(answer, 'run' in answer && !('scene' in answer.run) ? { transfer: buffersOf(answer.run) } : {})
  })
}

export async function answerTo(request: Request): Promise<Answer> {
  const { id } = request
  try {
    return request.ask === 'run' ? { id, run: await run(request.job) } : { id, moments: look(request.call) }
  } catch (error) {
    return { id, failure: failureOf(error) }
  }
}

function run(job: Job): RunOf<Job> | Promise<RunOf<Job>> {
  if (!('scene' in job)) return runTraffic(job)
  return job.scene === 'slow' ? playSlow(job) : playGoverned(job)
}

function runTraffic({ traffic, limits }: TrafficJob): Run {
  const arrivals = arrivalsFor(traffic)
  // The cursor keeps its own: what is answered is handed over, not copied.
  const next = new Cursor({ ...arrivals, atUs: arrivals.atUs.slice(), cost: arrivals.cost.slice() }, limits)
  const played = play(arrivals, limits)
  // Not before: while a run cannot be made, the one before it is still on the page, and can be gone
  // through.
  cursor = next
  return played
}

function look(call: number): Moment[] {
  return cursor?.at(call) ?? []
}

function buffersOf({ atUs, cost, arrived, rows }: Run): ArrayBuffer[] {
  const ofRows = rows.flatMap(({ admitted, refused, low, high }) => [admitted, refused, low, high])
  return [atUs, cost, arrived, ...ofRows].map(({ buffer }) => buffer)
}

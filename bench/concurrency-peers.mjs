// One contestant of `npm run bench:concurrency` in a process of its own: beside others it would be
// slower, by as much as they leave behind. Started with its name; each message { kind, jobs } is a
// round, and the answer is its CPU time, in nanoseconds a job.

const job = async () => 1

/** `run(job)` of each contestant, with so many places. Only its own library is loaded. */
const CONTESTANTS = {
  sluice: async () => {
    const { concurrency, createLimiter } = await import('../dist/index.js')
    return (max) => {
      const limiter = createLimiter(concurrency({ max }), { maxQueue: Number.POSITIVE_INFINITY })
      return (fn) => limiter.run('key', fn)
    }
  },
  'p-limit': async () => {
    const { default: pLimit } = await import('p-limit')
    return (max) => pLimit(max)
  },
  'p-queue': async () => {
    const { default: PQueue } = await import('p-queue')
    return (max) => {
      const queue = new PQueue({ concurrency: max })
      return (fn) => queue.add(fn)
    }
  },
  'async-sema': async () => {
    const { Sema } = await import('async-sema')
    return (max) => {
      const sema = new Sema(max)
      return async (fn) => {
        await sema.acquire()
        try {
          return await fn()
        } finally {
          sema.release()
        }
      }
    }
  },
  cockatiel: async () => {
    const { bulkhead } = await import('cockatiel')
    return (max) => {
      const policy = bulkhead(max, 1_000_000)
      return (fn) => policy.execute(fn)
    }
  },
  bottleneck: async () => {
    const { default: Bottleneck } = await import('bottleneck')
    return (max) => {
      const limiter = new Bottleneck({ maxConcurrent: max })
      return (fn) => limiter.schedule(fn)
    }
  },
}

const KINDS = {
  /** One job after the other: nobody waits. */
  alone: async (run, jobs) => {
    for (let k = 0; k < jobs; k++) await run(job)
  },
  /** All jobs at once: all but the first wait. */
  together: (run, jobs) => Promise.all(Array.from({ length: jobs }, () => run(job))),
}

export const NAMES = Object.keys(CONTESTANTS)

/** CPU nanoseconds of what it does, for each of so many. */
export async function cpuNs(count, act) {
  // Garbage of the round before is swept now. A whole collection would throw compiled code away.
  globalThis.gc?.({ type: 'minor' })
  const before = process.cpuUsage()
  await act()
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1000) / count
}

if (process.send !== undefined) {
  // One limiter for all rounds, as an application has it.
  const run = (await CONTESTANTS[process.argv[2]]())(10)
  process.on('message', async ({ kind, jobs }) => {
    process.send(await cpuNs(jobs, () => KINDS[kind](run, jobs)))
  })
  process.send('ready')
}

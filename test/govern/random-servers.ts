/** Servers and loads made from a seed: scenarios that no constant of a governor was chosen by. */
import { type Distribution, type Random, randomOf } from './random.ts'
import type { Scenario, Step, Stream } from './simulation.ts'

const oneOf = <T>(random: Random, values: readonly T[]) => values[Math.floor(random() * values.length)] as T
const SECONDS = 60
/** More would only take longer to simulate. */
const MOST_PER_SECOND = 4_000

export function randomServer(seed: number): Scenario {
  const random = randomOf(seed + 5_000)
  const workers = oneOf(random, [2, 4, 8, 12, 20, 32, 50, 80])
  const ms = oneOf(random, [10, 20, 50, 100, 200, 400])
  const serviceMs = serviceTimes(random, ms)
  const load = oneOf(random, [0.5, 0.9, 1.2, 2, 5])
  const perSecond = Math.min(MOST_PER_SECOND, (load * workers * 1_000) / ms)
  const server = {
    workers,
    discipline: oneOf(random, ['queue', 'queue', 'sharing'] as const),
    ...(random() < 0.15 ? { room: Math.ceil(workers * 1.5) } : {}),
    ...(random() < 0.15 ? { flaky: oneOf(random, [0.02, 0.1, 0.2]) } : {}),
  }
  const stream: Stream = { perSecond, serviceMs, ...patience(random, ms) }
  const steps = random() < 0.4 ? [{ atS: SECONDS / 2, ...change(random, workers) }] : []
  return { name: `server ${seed}`, seconds: SECONDS, server, streams: [stream], steps }
}

function serviceTimes(random: Random, ms: number): Distribution {
  const kind = oneOf(random, ['constant', 'uniform', 'exponential', 'lognormal', 'mix', 'pareto'] as const)
  if (kind !== 'mix') return { kind, ms, cv: 1.2, shape: 2.5, spread: 0.5 }
  const of = [
    { share: 0.7, kind: 'exponential', ms: ms / 2 },
    { share: 0.3, kind: 'exponential', ms: ms * 2 },
  ] as const
  return { kind, of }
}

function patience(random: Random, ms: number): Partial<Stream> {
  const timeout = random() < 0.3 ? { timeoutMs: Math.max(500, ms * 8) } : {}
  return random() < 0.2 ? { ...timeout, retries: 2, backoffMs: 100 } : timeout
}

function change(random: Random, workers: number): Omit<Step, 'atS'> {
  return oneOf(random, [{ slowness: 2 }, { workers: Math.ceil(workers / 2) }, { load: 2 }, { load: 0.3 }, { slowness: 0.5 }])
}

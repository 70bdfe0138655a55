/**
 * All faults mixed, for as long as one likes: clients and limiters that live through all of it, and
 * in each round a fault of the server, one of the network, or both at once, in an order that a seed
 * makes up. Each broken promise is in the result, in words.
 */
import { clientCases } from '../support/redis-clients.ts'
import { type Cuts, networkFaults, openSite, serverFaults, together } from './faults.ts'
import { Cell, type Fault, POLICIES, type Policy, play, type Told } from './story.ts'
import { keysWithoutExpiry, unhandled } from './watch.ts'

export interface SoakOptions {
  readonly seed: number
  /** It ends after the round in which this is over. */
  readonly maxMs: number
  /** It ends after so many rounds in any case. */
  readonly maxRounds: number
  log(line: string): void
}

/** All that one policy did in all rounds of one fault. */
export interface SoakRow {
  readonly fault: string
  readonly policy: Policy
  rounds: number
  calls: number
  /** The most that was admitted on one key, and what was promised. */
  byRedis: number
  byRedisBound: number
  byPolicy: number
  byPolicyBound: number
  refusedByPolicy: number
  failed: number
}

export interface SoakResult {
  readonly seed: number
  readonly rounds: number
  readonly ms: number
  readonly clients: readonly string[]
  readonly rows: readonly SoakRow[]
  readonly wrongs: readonly string[]
}

export async function soak({ seed, maxMs, maxRounds, log }: SoakOptions): Promise<SoakResult> {
  const clients = clientCases.filter(({ topology }) => topology === 'single')
  const startMs = performance.now()
  const rows = new Map<string, SoakRow>()
  const wrongs: string[] = []
  const site = await openSite()
  const cells = await Promise.all(clients.flatMap((client) => POLICIES.map((policy) => Cell.open(client, policy, [site.address]))))
  let rounds = 0
  try {
    for (const fault of faultsFrom(randomFrom(seed))) {
      if (rounds >= maxRounds || performance.now() - startMs >= maxMs) break
      rounds += 1
      const told = await play(fault, site, cells, `round-${rounds}`)
      await site.tidy()
      for (const each of told) add(rows, fault, each)
      const found = [
        ...told.flatMap(({ cell, wrongs }) => wrongs.map((wrong) => `${cell.policy} on ${cell.name}: ${wrong}`)),
        ...(await keysWithoutExpiry([site.now.server])).map((key) => `${key} has no time to live`),
        ...unhandled().map((reason) => `a rejection that nobody handled: ${reason}`),
      ]
      wrongs.push(...found.map((wrong) => `round ${rounds}, ${fault.name}: ${wrong}`))
      log(`round ${rounds}: ${fault.name}: ${mostOf(told)}${found.map((wrong) => `\n  WRONG ${wrong}`).join('')}`)
    }
  } catch (error) {
    wrongs.push(`round ${rounds} did not end: ${error}`)
  } finally {
    for (const cell of cells) await cell.close()
    await site.close()
  }
  return { seed, rounds, ms: performance.now() - startMs, clients: clients.map(({ name }) => name), rows: [...rows.values()], wrongs }
}

/** What was observed against what was promised, the most of all clients. */
function mostOf(told: readonly Told[]): string {
  const most = (of: (story: Told) => number, policy: Policy) => Math.max(...told.filter(({ cell }) => cell.policy === policy).map(of))
  return POLICIES.map((policy) => {
    const redis = `${most(({ tally }) => tally.byRedis, policy)}/${most(({ bound }) => bound.byRedis, policy)}`
    return `${policy} ${redis} + ${most(({ tally }) => tally.byPolicy, policy)}/${most(({ bound }) => bound.byPolicy, policy)}`
  }).join(', ')
}

function add(rows: Map<string, SoakRow>, { name: fault }: Fault, { cell: { policy }, tally, bound }: Told): void {
  const none = { rounds: 0, calls: 0, byRedis: 0, byPolicy: 0, refusedByPolicy: 0, failed: 0 }
  const row = rows.get(`${fault}/${policy}`) ?? { fault, policy, ...none, byRedisBound: bound.byRedis, byPolicyBound: bound.byPolicy }
  rows.set(`${fault}/${policy}`, row)
  row.rounds += 1
  row.calls += tally.calls
  row.byRedis = Math.max(row.byRedis, tally.byRedis)
  row.byPolicy = Math.max(row.byPolicy, tally.byPolicy)
  row.refusedByPolicy += tally.refusedByPolicy
  row.failed += tally.failures.length
}

/**
 * Every fault comes once before one comes again, and with every second fault of the server comes
 * one of the network.
 */
function* faultsFrom(random: () => number): Generator<Fault> {
  for (;;) {
    const cuts: Cuts = { requestBytes: Math.floor(random() * 100), replyBytes: Math.floor(random() * 20) }
    const network = shuffled(networkFaults(cuts), random)
    const server = shuffled(serverFaults, random)
    const singles = [...network, ...server]
    const pairs = server.filter((_, k) => k % 2 === 0).map((fault, k) => together(fault, network[k % network.length] as Fault))
    yield* shuffled([...singles, ...pairs], random)
  }
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const left = [...items]
  return items.map(() => left.splice(Math.floor(random() * left.length), 1)[0] as T)
}

/** Numbers from 0 to 1 that a seed decides (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Sentinels replace a primary that only stood still. It wakes up and does not know: until it is
 * told, there are two, and who is still connected to the old one is admitted there. (test/redis has
 * the failovers after a primary has died.)
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clientCases } from '../support/redis-clients.ts'
import { primaryOf, QUICK_MS, type RedisServer, type SentinelTopology, startSentinels, until } from '../support/redis-servers.ts'
import { Cell, type Fault, lineOf, POLICIES, play } from './story.ts'
import { keysWithoutExpiry, unhandled } from './watch.ts'

const STOPPED: Fault<SentinelTopology> = {
  name: 'a primary is replaced while it stands still, and wakes up',
  isOutage: true,
  // Either of the two may not know what the other has admitted, and there are never more than two:
  // what the old one has is thrown away when it becomes a replica.
  forgets: 1,
  why: 'there are two primaries for a while, and each admits what a key has',
  mayForget: true,
  async strike({ servers }) {
    const [primary, replica] = servers as [RedisServer, RedisServer]
    primary.signal('SIGSTOP')
    return async () => {
      await until(async () => (await primaryOf([replica])) !== undefined)
      primary.signal('SIGCONT')
      // What the sentinels tell it too, ten seconds later.
      await primary.command('REPLICAOF', replica.host, `${replica.port}`)
      await primary.command('CLIENT', 'KILL', 'TYPE', 'normal').catch(() => undefined)
    }
  },
}

let topology: SentinelTopology
beforeAll(async () => {
  topology = await startSentinels(QUICK_MS)
}, 120_000)
afterAll(() => topology.stop())

test(`${STOPPED.name}: ${STOPPED.why}; nothing hangs, and everybody finds the new one`, async () => {
  const clients = clientCases.filter((client) => client.topology === 'sentinel')
  const cells = await Promise.all(clients.flatMap((client) => POLICIES.map((policy) => Cell.open(client, policy, topology.sentinels))))
  try {
    const stories = await play(STOPPED, topology, cells, 'u1')
    for (const story of stories) console.log(`${STOPPED.name}: ${lineOf(story)}`)
    expect(stories.flatMap(({ cell, wrongs }) => wrongs.map((wrong) => `${cell.policy} on ${cell.name}: ${wrong}`))).toEqual([])
    expect(await keysWithoutExpiry(topology.servers)).toEqual([])
    expect(unhandled()).toEqual([])
  } finally {
    for (const cell of cells) await cell.close()
  }
})

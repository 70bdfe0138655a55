/** The story of each fault, on every client under every policy, as tests. */
import { afterEach, describe, expect, test } from 'vitest'
import { clientCases } from '../support/redis-clients.ts'
import type { RedisServer } from '../support/redis-servers.ts'
import { openSite } from './faults.ts'
import { boundOf, Cell, type Fault, lineOf, POLICIES, play, type Site } from './story.ts'
import { keysWithoutExpiry, unhandled } from './watch.ts'

const clients = clientCases.filter(({ topology }) => topology === 'single')

/** `addressOf`: where clients reach the server. */
export function tellAll(faults: readonly Fault[], addressOf: (site: Site, fault: Fault) => RedisServer): void {
  const closers: (() => unknown)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
  })

  describe.each([...faults])('$name', (fault) => {
    const bounds = POLICIES.map((policy) => `${policy} ${boundOf(fault, policy).byRedis} + ${boundOf(fault, policy).byPolicy}`)

    test(`admits at most ${bounds.join(', ')}, because ${fault.why}; nothing hangs, and everything recovers`, async () => {
      const site = await openSite()
      closers.push(() => site.close())
      const cells = await Promise.all(
        clients.flatMap((client) => POLICIES.map((policy) => Cell.open(client, policy, [addressOf(site, fault)]))),
      )
      closers.push(() => Promise.all(cells.map((cell) => cell.close())))
      const stories = await play(fault, site, cells, 'u1')
      for (const story of stories) console.log(`${fault.name}: ${lineOf(story)}`)
      expect(stories.flatMap(({ cell, wrongs }) => wrongs.map((wrong) => `${cell.policy} on ${cell.name}: ${wrong}`))).toEqual([])
      expect(await keysWithoutExpiry([site.now.server])).toEqual([])
      expect(unhandled()).toEqual([])
    })
  })
}

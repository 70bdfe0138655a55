/**
 * A Redis that writes to its disk before it answers, and a disk that is slow, or stands still: a
 * real server whose syncs are held up.
 */
import { createClient } from 'redis'
import { afterEach, describe, expect, test } from 'vitest'
import { redisStore } from '../../src/stores/redis/index.ts'
import { permitsOnSlowDisk } from '../permits/on-slow-disk.ts'
import { startServer } from '../support/redis-servers.ts'
import { mendAll, slowDisk, whyNoSlowDisk } from '../support/slow-disk.ts'
import { tellAll } from './stories.ts'
import type { Fault } from './story.ts'

if (whyNoSlowDisk !== undefined) console.log(`The disk of Redis is not slowed down: ${whyNoSlowDisk}`)

/** Every sync of the server takes so long. */
const disk = (name: string, isOutage: boolean, why: string, ms: number): Fault => ({
  name,
  isOutage,
  forgets: 0,
  why,
  async strike({ now }) {
    const slow = await slowDisk([now.server.pid], ms)
    return async () => {
      // Nothing is survived that did not happen, and none has ended that stands still.
      if (isOutage) expect(slow.syncs).toBe(0)
      else expect(slow.syncs).toBeGreaterThan(0)
      await slow.mend()
    }
  },
})

describe.skipIf(whyNoSlowDisk !== undefined)('Redis', () => {
  tellAll(
    [
      disk('its disk stands still', true, 'it does later what it was told, and forgets nothing', 600_000),
      disk('its disk is slow', false, 'its answers come late, but in time', 100),
    ],
    ({ now }) => now.server,
  )

  const closers: (() => unknown)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
  })
  // Before the others.
  afterEach(mendAll)

  test('permits are not exceeded, by the time of the server, and all who wait are served when the disk is well', async () => {
    const server = await startServer(['--appendonly', 'yes', '--appendfsync', 'always'])
    closers.push(() => server.kill())
    const connected = async () => {
      const client = createClient({ socket: { host: server.host, port: server.port } })
      await client.connect()
      closers.push(() => client.destroy())
      return client
    }
    const witness = await connected()
    const clients = await Promise.all([0, 1, 2, 3].map(connected))
    await permitsOnSlowDisk({
      open: () => redisStore(clients.pop() as typeof witness),
      slowMs: 300,
      slow: (ms) => slowDisk([server.pid], ms),
      async nowUs() {
        const [seconds, micros] = (await witness.sendCommand(['TIME'])) as unknown as [string, string]
        return Number(seconds) * 1_000_000 + Number(micros)
      },
    })
  })
})

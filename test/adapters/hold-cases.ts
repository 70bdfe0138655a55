/** Limits on what runs at once, on every adapter and over a real socket: see cases.ts. */
import { expect } from 'vitest'
import { begun, type Case, firstPiece, get, until } from './cases.ts'
import type { Served } from './frameworks.ts'

/**
 * These hand out the promise of the handler before the response has ended, so a handler keeps its
 * place though its client has left.
 */
const KNOW_HANDLERS = ['node:http', 'Hono on Node', 'Koa 3']
/** These tell that a client has left only when the handler is done. */
const TELL_LATE = ['fetch under Bun', 'fetch under Deno']

async function free(served: Served): Promise<string> {
  const parts = (await served.ask('parts', 'nobody')) as string[]
  return parts.find((part) => part.startsWith('inflight')) as string
}

const whenFree = (count: number, served: Served) => until(async () => (await free(served)) === `inflight ${count}`)
const whenReached = (count: number, served: Served) => until(async () => (await served.ask('reached')) === count)
const settled = async (served: Served) => ((await served.ask('settled')) as object[]).length

export const HOLD_CASES: readonly Case[] = [
  {
    name: 'serves no more at once than the limit, and the next when one is done',
    setup: 'hold',
    async run(served) {
      const first = get(served, { 'x-linger': 'yes' })
      const second = get(served, { 'x-linger': 'yes' })
      await whenReached(2, served)
      const refused = await get(served)
      expect(refused.status).toBe(503)
      expect(refused.fields).toEqual({
        ratelimit: '"requests";r=98;t=20,"inflight";r=0',
        'ratelimit-policy': '"requests";q=100;w=60,"inflight";q=2;qu="concurrent-requests"',
        'retry-after': '1',
      })
      expect(JSON.parse(refused.body)).toMatchObject({ 'violated-policies': ['inflight'], retryAfterMs: 1000 })
      await served.ask('end-streams')
      expect([(await first).status, (await second).status]).toEqual([200, 200])
      await whenFree(2, served)
      expect((await get(served)).status).toBe(200)
      // What was refused was charged to no limit.
      expect(await served.ask('parts', 'nobody')).toContain('requests 97')
    },
  },
  {
    name: 'keeps the place of a handler whose client has left, where it can be known when that is done',
    setup: 'hold',
    async run(served, framework) {
      const leaving = begun(served, { 'x-linger': 'yes' })
      await whenReached(1, served)
      leaving.destroy()
      if (!TELL_LATE.includes(framework)) {
        await until(async () => (await settled(served)) === 1)
        await whenFree(KNOW_HANDLERS.includes(framework) ? 1 : 2, served)
      }
      await served.ask('end-streams')
      await whenFree(2, served)
    },
  },
  {
    name: 'keeps the place of a stream until it has ended',
    setup: 'hold-briefly',
    async run(served) {
      const reading = begun(served, { 'x-stream': 'yes' })
      expect(await firstPiece(reading)).toBe('piece')
      expect(await free(served)).toBe('inflight 1')
      await served.ask('end-streams')
      await whenFree(2, served)
    },
  },
  {
    name: 'gives the place back when the client leaves a stream (express-queue: it is held for ever)',
    setup: 'hold-briefly',
    async run(served) {
      const leaving = begun(served, { 'x-stream': 'yes' })
      expect(await firstPiece(leaving)).toBe('piece')
      leaving.destroy()
      await whenFree(2, served)
    },
  },
  {
    name: 'holds requests until a place is free, and takes none for a client that left meanwhile',
    setup: 'hold-waiting',
    async run(served) {
      const first = get(served, { 'x-linger': 'yes' })
      await whenReached(1, served)
      const leaving = begun(served, {})
      await until(async () => (await served.ask('waiting')) === 1)
      const second = get(served)
      await until(async () => (await served.ask('waiting')) === 2)
      leaving.destroy()
      await until(async () => (await served.ask('waiting')) === 1)
      await served.ask('end-streams')
      expect([(await first).status, (await second).status]).toEqual([200, 200])
      await whenFree(1, served)
      expect(await served.ask('reached')).toBe(2)
    },
  },
]

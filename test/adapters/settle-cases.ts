/** Settling the real cost of a request, on every adapter and over a real socket: see cases.ts. */
import { expect } from 'vitest'
import { begun, type Case, firstPiece, get, until } from './cases.ts'
import type { Served } from './frameworks.ts'

const parts = (served: Served) => served.ask('parts', 'nobody') as Promise<string[]>
const settled = (served: Served) => served.ask('settled') as Promise<object[]>

/** Asks until so many have been settled, and says with what outcomes. */
async function whenSettled(count: number, served: Served): Promise<object[]> {
  await until(async () => (await settled(served)).length >= count)
  return settled(served)
}

const isSo = (figures: string[], wanted: string[]) => figures.join() === wanted.join()

/** Settling goes on after the response: asks until the figures are those. */
async function whenLeft(wanted: string[], served: Served): Promise<void> {
  await until(async () => isSo(await parts(served), wanted))
}

export const SETTLE_CASES: readonly Case[] = [
  {
    name: 'settles by what was used, less and more than was charged, beyond the limit too',
    setup: 'settle',
    async run(served) {
      expect((await get(served, { 'x-used': '4' })).fields.ratelimit).toContain('"tokens";r=90')
      await whenLeft(['requests 5', 'tokens 96'], served)
      await get(served, { 'x-used': '30' })
      await whenLeft(['requests 4', 'tokens 66'], served)
      await get(served, { 'x-used': '70' })
      await whenLeft(['requests 3', 'tokens 0'], served)
      expect((await get(served)).status).toBe(429)
      expect(await settled(served)).toEqual(Array(3).fill({ status: 200, aborted: false }))
    },
  },
  {
    name: 'leaves what was charged where nobody knows what was used, and asks nobody about a refusal',
    setup: 'settle',
    async run(served) {
      for (let k = 1; k <= 6; k++) {
        expect((await get(served, { 'x-status': '500' })).status).toBe(500)
        await whenSettled(k, served)
      }
      expect((await get(served)).status).toBe(429)
      expect(await parts(served)).toEqual(['requests 0', 'tokens 40'])
      expect(await settled(served)).toEqual(Array(6).fill({ status: 500, aborted: false }))
    },
  },
  {
    name: 'believes the handler that settled before the response had ended',
    setup: 'settle',
    async run(served) {
      await get(served, { 'x-settle': '{"requests":1,"tokens":25}', 'x-used': '90' })
      await whenSettled(1, served)
      await get(served, { 'x-used': '5' })
      await whenLeft(['requests 4', 'tokens 70'], served)
    },
  },
  {
    name: 'lets a handler settle where no option does',
    setup: 'plain',
    async run(served) {
      await get(served, { 'x-settle': '3' })
      expect(await served.ask('remaining', 'nobody')).toBe(0)
      await served.ask('advance', '3000')
      await get(served, { 'x-settle': '0' })
      expect(await served.ask('remaining', 'nobody')).toBe(3)
    },
  },
  {
    name: 'settles once for a client that leaves before it is answered',
    setup: 'settle',
    async run(served) {
      const leaving = begun(served, { 'x-hold': 'yes', 'x-used': '3' })
      await until(async () => (await served.ask('reached')) === 1)
      leaving.destroy()
      await whenLeft(['requests 5', 'tokens 97'], served)
      expect(await settled(served)).toEqual([{ status: 499, aborted: true }])
    },
  },
  {
    name: 'settles once for a client that leaves in the middle of a stream',
    setup: 'settle',
    async run(served) {
      const leaving = begun(served, { 'x-stream': 'yes', 'x-used': '7' })
      expect(await firstPiece(leaving)).toBe('piece')
      expect(await settled(served)).toEqual([])
      leaving.destroy()
      await whenLeft(['requests 5', 'tokens 93'], served)
      expect(await settled(served)).toEqual([{ status: 200, aborted: true }])
    },
  },
  {
    name: 'settles a stream when it has ended, and not before',
    setup: 'settle',
    async run(served) {
      const reading = begun(served, { 'x-stream': 'yes', 'x-used': '60' })
      expect(await firstPiece(reading)).toBe('piece')
      expect(await parts(served)).toEqual(['requests 5', 'tokens 90'])
      expect(await settled(served)).toEqual([])
      await served.ask('end-streams')
      await whenLeft(['requests 5', 'tokens 40'], served)
      expect(await settled(served)).toEqual([{ status: 200, aborted: false }])
    },
  },
  {
    name: 'gives all back where refundWhen says so, and settles the others',
    setup: 'settle-or-refund',
    async run(served) {
      await get(served, { 'x-status': '503', 'x-used': '50' })
      await whenLeft(['requests 6', 'tokens 100'], served)
      expect(await settled(served)).toEqual([])
      await get(served, { 'x-used': '50' })
      await whenLeft(['requests 5', 'tokens 50'], served)
    },
  },
  {
    name: 'settles what waited for its turn',
    setup: 'settle-waiting',
    async run(served) {
      await get(served)
      await until(async () => (await served.ask('remaining', 'nobody')) === 4)
      const held = get(served)
      await until(async () => (await served.ask('waiting')) === 1)
      await served.ask('advance', '1000')
      expect((await held).status).toBe(200)
      await until(async () => (await served.ask('remaining', 'nobody')) === 4)
    },
  },
  ...(['settle-throws', 'settle-rejects', 'settle-wrong'] as const).map((setup) => ({
    name: `leaves what was charged where the option fails: ${setup}`,
    setup,
    async run(served: Served) {
      expect((await get(served)).status).toBe(200)
      await whenSettled(1, served)
      expect((await get(served)).fields.ratelimit).toBe('"default";r=1;t=2')
    },
  })),
]

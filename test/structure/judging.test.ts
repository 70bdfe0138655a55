/** A judge lets no test see what the one before it has left behind in Redis. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Worker } from '../../proof/worker.mjs'

/** More than a judge may need. */
const LIMIT_MS = 60_000

/** A test that fails, but goes on sending commands for as long as it can. */
const LEAVING = `
import { connect } from 'node:net'
import { inject, test } from 'vitest'

test('fails', async () => {
  const socket = connect(inject('redisPort'), '127.0.0.1').on('error', () => undefined)
  setInterval(() => socket.write('SET left behind\\r\\n'), 1).unref()
  await new Promise((resolve) => socket.once('data', resolve))
  throw new Error('as it should')
})
`

const FINDING = `
import { createClient } from 'redis'
import { expect, inject, test } from 'vitest'

test('finds nothing', async () => {
  const client = await createClient({ socket: { host: '127.0.0.1', port: inject('redisPort') } }).connect()
  await new Promise((resolve) => setTimeout(resolve, 50))
  const found = await client.keys('*')
  client.destroy()
  expect(found).toEqual([])
})
`

let root: string
let worker: Worker

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sluice-judging-'))
  writeFileSync(join(root, 'leaving.test.ts'), LEAVING)
  writeFileSync(join(root, 'finding.test.ts'), FINDING)
  worker = new Worker(root)
})

afterEach(async () => {
  await worker.stop()
  rmSync(root, { recursive: true })
})

test('what a failed test still sends does not reach the next one', async () => {
  const left = await worker.judge({ path: 'leaving.test.ts', traces: 1 }, LIMIT_MS)
  expect(left).toMatchObject({ status: 'killed', message: 'as it should' })
  const found = await worker.judge({ path: 'finding.test.ts', traces: 1 }, LIMIT_MS)
  expect(found).toMatchObject({ status: 'passed' })
})

/**
 * The built store in Node 22 and 24, with `node:sqlite`, which they bring, and with
 * `better-sqlite3` 13, which they need; and in a Node that has neither. All come from the npm
 * registry, as in test/package.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { root } from '../package/project.ts'
import { output } from '../package/run.ts'
import { binaryOf, installed, installRuntimes, RUNTIMES, type Runtime, whyMissing } from '../package/runtimes.ts'
import { filesFolder } from '../support/files-folder.ts'

const NODES = RUNTIMES.filter(({ name }) => /^Node \d+$/.test(name)) as [Runtime, Runtime]
const missing = whyMissing(NODES[0])
if (missing !== undefined) console.log(`Node 22 and 24 are not tried: ${missing}`)

const betterSqlite3 = join(installed, 'better-sqlite3')

let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(filesFolder, 'sluice-nodes-'))
  await installRuntimes()
}, 900_000)
afterAll(() => rmSync(folder, { recursive: true }))

describe.skipIf(missing !== undefined).each(NODES)('in $name', (runtime) => {
  test.each(['path', 'node:sqlite', 'better-sqlite3'])('the published cases hold by %s', async (driver) => {
    const printed = await output(
      binaryOf(runtime),
      ['test/sqlite/cases.process.mjs', driver, mkdtempSync(join(folder, 'x')), betterSqlite3],
      root,
    )
    const { cases, failed, node } = JSON.parse(printed)
    expect(failed).toEqual([])
    expect(cases).toBeGreaterThan(90)
    expect(`Node ${node}`).toBe(runtime.name)
  })
})

test.skipIf(missing !== undefined)('three versions of Node, two drivers and three versions of SQLite share one file', async () => {
  const limit = { type: 'fixedWindow', limit: 500, window: '366d' }
  const task = { path: join(folder, 'shared.db'), races: [{ default: limit }], calls: 300, costs: [1] }
  const nodes = [process.execPath, ...NODES.map(binaryOf)]
  const children = nodes.map((execPath) =>
    fork('test/sqlite/hammer.process.mjs', [JSON.stringify({ ...task, seed: 0 })], { cwd: root, execPath }),
  )
  await Promise.all(children.map((child) => once(child, 'message')))
  const reports = children.map(async (child) => (await once(child, 'message'))[0] as { decisions: [[number, number, boolean][]] })
  for (const child of children) child.send('go')
  const decided = (await Promise.all(reports)).flatMap(({ decisions: [race] }) => race)
  expect(decided.length).toBe(900)
  expect(decided.filter(([, , allowed]) => allowed).length).toBe(500)
})

test('without a driver it says what to install', async () => {
  cpSync(join(root, 'dist'), join(folder, 'bare/dist'), { recursive: true })
  writeFileSync(join(folder, 'bare/package.json'), '{ "type": "module" }')
  const code = (load: string) =>
    `${load}.then(({ sqliteStore }) => { try { sqliteStore('x.db') } catch (e) { console.log(e.code, e.message) } })`
  for (const load of ["import('./dist/stores/sqlite/index.js')", "Promise.resolve(require('./dist/cjs/stores/sqlite/index.js'))"]) {
    const printed = await output(process.execPath, ['-e', code(load)], join(folder, 'bare'))
    if (process.getBuiltinModule('node:sqlite') === undefined) expect(printed).toMatch(/^UNSUPPORTED .*npm install better-sqlite3/)
  }
})

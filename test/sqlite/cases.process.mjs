// Runs the published cases on one driver, in whatever Node runs this, on files in a folder. Prints
// the names of those that failed, and what was used.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { sqliteStore } from '../../dist/stores/sqlite/index.js'
import { storeCases } from '../../dist/testing/index.js'

const [driver, folder, betterSqlite3] = process.argv.slice(2)

let files = 0
const nextPath = () => join(folder, `${driver.replace(':', '-')}-${files++}.db`)

/** By a path the store takes `node:sqlite` where there is one. */
const OPEN = {
  path: () => sqliteStore(nextPath()),
  'node:sqlite': () => sqliteStore(new (process.getBuiltinModule('node:sqlite').DatabaseSync)(nextPath())),
  'better-sqlite3': () => sqliteStore(new (createRequire(import.meta.url)(betterSqlite3))(nextPath())),
}

const failed = []
const cases = storeCases(OPEN[driver])
for (const [name, run] of cases) await run().catch((error) => failed.push(`${name}: ${error}`))
console.log(JSON.stringify({ cases: cases.length, failed, node: process.versions.node.split('.')[0] }))

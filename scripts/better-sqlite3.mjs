// Builds better-sqlite3, which is C++, for the Node that runs the tests. Where GitHub can be
// reached, the built file is downloaded instead.
import { join } from 'node:path'
import { ensureCompiler } from './packages.mjs'
import { fail, root, step, succeeds } from './run.mjs'

const folder = join(root, 'node_modules/better-sqlite3')
/** Tests need it soon, not fast. */
const SOON = { CFLAGS: '-O1', CXXFLAGS: '-O0', JOBS: '2' }

export function ensureBetterSqlite3() {
  if (isBuilt()) return
  step('building better-sqlite3')
  ensureCompiler()
  succeeds('npm', ['run', 'install'], { cwd: folder, stdio: 'inherit', env: { ...process.env, ...SOON } })
  if (isBuilt()) return
  fail(
    'The tests need better-sqlite3, and it could neither be downloaded nor be built. To build it takes python3, make and a C++ compiler.',
  )
}

function isBuilt() {
  return succeeds(process.execPath, ['-e', `new (require(${JSON.stringify(folder)}))(':memory:')`])
}

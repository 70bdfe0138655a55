// `npm run test:quick`: the tests that need nothing but the packages, once. `npm run test:watch`:
// again whenever a file that they use changes. Arguments go to vitest:
// `npm run test:watch -- gcra`.
import { installFolder, installPackages, run } from './run.mjs'

const [mode, ...rest] = process.argv.slice(2)
installPackages()
installFolder('server')
installFolder('playground')
run('npx', ['--no-install', 'vitest', mode, '--project', 'unit', ...rest])

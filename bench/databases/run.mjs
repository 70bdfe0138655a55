// `npm run bench:databases`: Sluice with databases beside peers and plain statements, on servers of
// its own. Writes RESULTS-databases.md.
//   --quick   few short rounds: to see that it works. It is printed, and nothing is written.
import { writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { table } from '../tables.mjs'
import { postgresResults } from './postgres.mjs'
import { sqliteResults } from './sqlite.mjs'

const PARTS = [postgresResults, sqliteResults]

const isQuick = process.argv.includes('--quick')
const results = []
for (const part of PARTS) results.push(await part(isQuick))
const report = `# Results of \`npm run bench:databases\`

Written by the bench, not by hand. Node ${process.version}, ${cpus()[0].model}, ${availableParallelism()} cores.

## Goals

${table(
  ['goal', 'target', 'is', ''],
  results.flatMap(({ goals }) => goals),
  '---',
)}

${results.map(({ text }) => text).join('\n\n')}
`
console.log(report)
if (!isQuick) writeFileSync(new URL('../RESULTS-databases.md', import.meta.url), report)
process.exit()

// The report: what became of the mutants of each file, and for each survivor the proof that it is
// equivalent.
import { proofOf } from './equivalent.mjs'
import { SEED } from './suites.mjs'

const ENDS = ['killed', 'timed out', 'crashed', 'did not compile', 'not judged']

export function reportOf(results) {
  const files = [...new Set(results.map(({ file }) => file))]
  return `# Mutation check

\`npm run proof\` changes one operator or constant of the algorithms at a time, in TypeScript and in the Lua that is written by hand, and runs
the tests. Each change is a mutant. One that the tests do not notice has survived, and needs a proof that nobody could notice it
([proofs.mjs](proofs.mjs)). The Lua of the algorithms is generated from their TypeScript, and has no mutants of its own.

Made by \`npm run proof\` with seed ${SEED} on Node ${process.versions.node.split('.')[0]}.${unfinished(results)}

${table(['file', 'mutants', ...ENDS, 'equivalent', 'unproved'], [...files.map((file) => rowOf(file, results, file)), rowOf('all', results)])}

- killed: a test fails.
- timed out: it had computed at least five times as long as without the change and two seconds more, and was still running, or it did nothing any more.
- crashed: it used up its memory.
- did not compile: it cannot be loaded, so that no test was needed.
- not judged: the run was ended before all of its tests had run.
- equivalent: survived the quick tests, and proved below. Those without a proof were judged by the long tests too.
- unproved: survived, and no proof yet.

${files.map((file) => survivorsOf(file, results)).join('')}${notJudgedOf(results)}`
}

/** Says plainly what this report does not show. */
function unfinished(results) {
  const left = results.filter(({ status }) => status === 'not judged')
  const unproved = results.filter((result) => result.status === 'survived' && proofOf(result) === undefined)
  if (left.length + unproved.length === 0) return ''
  return `\n\n**Unfinished**: ${left.length} mutants are not judged yet, and ${unproved.length} survivors have no proof yet.`
}

function notJudgedOf(results) {
  const left = results.filter(({ status }) => status === 'not judged')
  if (left.length === 0) return ''
  const lines = left.map((mutant) => `- ${proofOf(mutant) === undefined ? 'no proof' : 'proved'}: \`${mutant.id}\``)
  return `## Not judged yet\n\nThese have not been through all of their tests.\n\n${lines.join('\n')}\n`
}

function rowOf(title, results, file) {
  const own = results.filter((result) => file === undefined || result.file === file)
  const counts = ENDS.map((status) => own.filter((result) => result.status === status).length)
  const survivors = own.filter(({ status }) => status === 'survived')
  const proved = survivors.filter(proofOf).length
  return [title, own.length, ...counts, proved, survivors.length - proved]
}

function table(head, rows) {
  return [head, head.map((_, k) => (k === 0 ? '---' : '--:')), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function survivorsOf(file, results) {
  const survivors = results.filter((result) => result.file === file && result.status === 'survived')
  if (survivors.length === 0) return ''
  return `## ${file}\n\n${survivors.map((survivor) => shown(survivor)).join('\n')}\n`
}

function shown(survivor) {
  const { scope, line, before, after } = survivor
  const place = scope === '' ? `line ${line}` : `\`${scope}\`, line ${line}`
  return `${place}\n\n\`\`\`diff\n- ${before}\n+ ${after}\n\`\`\`\n\n${proofOf(survivor) ?? '**No proof.**'}\n`
}

// The storms as a command, and their report: `node test/concurrency/storm.mjs`, after
// `npm run build`. Ends with 1 if anything is not as promised.
//   --victims <n>   how many threads are terminated in each; 1000 unless told
//   --report <path> where the report goes; proof/STORM.md unless told
import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runnerImport } from 'vite'

const pathOf = (name) => fileURLToPath(new URL(name, import.meta.url))

const { values: options } = parseArgs({
  options: {
    victims: { type: 'string', default: '1000' },
    report: { type: 'string', default: pathOf('../../proof/STORM.md') },
  },
})

const MINUTE_MS = 60_000
/** The threads look at the places when they make calls, so each look may come a little late. */
const LATE = 1.05

const { module } = await runnerImport(pathOf('storm.ts'), { configFile: false })
const { AT_WORK, backAfterMs, storm } = module
const STORMS = [
  { name: 'watched, no place to spare', isWatched: true, maxThreads: AT_WORK, reclaimAfterMs: 3_600_000, mayFail: false },
  { name: 'not watched, enough places', isWatched: false, maxThreads: 254, reclaimAfterMs: 5_000, mayFail: false },
  { name: 'not watched, as by default', isWatched: false, maxThreads: 64, reclaimAfterMs: 60_000, mayFail: true },
]

const results = []
for (const { name, mayFail, ...weather } of STORMS) {
  const result = await storm({ victims: Number(options.victims), ...weather })
  const wrongs = [...result.wrongs, ...wrongsOf(result, mayFail)].map((wrong) => `${name}: ${wrong}`)
  results.push({ ...result, name, wrongs })
  console.log(`${name}: ${result.victims} threads terminated in ${secondsOf(result.ms)} s, ${result.inStep} in the middle of a step`)
  console.log(`  ${result.failed} of ${result.calls} calls failed`)
}
const wrongs = results.flatMap((result) => result.wrongs)
writeFileSync(options.report, reportOf(results, wrongs))
for (const wrong of wrongs) console.log(`WRONG ${wrong}`)
console.log(`${results.length} storms, ${wrongs.length} wrongs`)
process.exit(wrongs.length === 0 ? 0 : 1)

function wrongsOf({ ms, inStep, failed, isWatched, longestDeadMs, reclaimAfterMs }, mayFail) {
  const found = []
  if (failed > 0 && !mayFail) found.push(`${failed} calls failed`)
  if (inStep === 0) found.push('no thread ended in the middle of a step')
  if (ms > MINUTE_MS) found.push(`it took ${secondsOf(ms)} s, and it is to show what a minute does: is the machine busy?`)
  if (!isWatched && longestDeadMs > LATE * backAfterMs(reclaimAfterMs)) {
    found.push(`a dead thread held its place for ${secondsOf(longestDeadMs)} s`)
  }
  return found
}

function secondsOf(ms) {
  return (ms / 1000).toFixed(1)
}

function reportOf(results, wrongs) {
  return `# Storm

\`npm run proof\` starts threads on one shared store and terminates them, three at a time and one after the other, while the thread that does so makes calls, too. Every
thread brings new keys to a full table as fast as it can, so that about half of them end in the middle of a step ([storm.ts](../test/concurrency/storm.ts)).
A dead thread of which the store is not told holds its place until it is taken over. Promised are: with \`store.watch\` no call fails; without it
none fails while the dead hold no more places than are to spare, which is \`maxThreads\` less the ${AT_WORK} threads at work.

Made on Node ${process.versions.node.split('.')[0]} with ${availableParallelism()} processors. Starting a thread takes about 45 ms of a processor, and that is what bounds the pace.

${wrongs.length === 0 ? 'Nothing was wrong: no call failed that must not, every place came back, every record is in one place, and each storm was over within a minute.' : `**Wrong**:\n\n${wrongs.map((wrong) => `- ${wrong}`).join('\n')}`}

${table(results)}

- processor: what all threads of the process used of the processors meanwhile.
- in a step: how many were terminated in the middle of a step.
- held by the dead: the most places at the same time, and how many are to spare. In the last storm they are too few, by intent: calls fail there, and only while the dead
  hold more than that.
- back after: the longest that a dead thread held its place, and the bound, \`reclaimAfterMs\` and two seconds (judged with ${Math.round((LATE - 1) * 100)} % more, because looks come with calls).
`
}

function table(results) {
  const columns = {
    storm: ({ name }) => name,
    '`maxThreads`': ({ maxThreads }) => maxThreads,
    '`reclaimAfterMs`': ({ reclaimAfterMs }) => reclaimAfterMs,
    terminated: ({ victims }) => victims,
    seconds: ({ ms }) => secondsOf(ms),
    'processor, s': ({ cpuMs }) => secondsOf(cpuMs),
    'in a step': ({ inStep }) => inStep,
    'held by the dead': ({ mostDead }) => mostDead,
    'to spare': ({ maxThreads }) => maxThreads - AT_WORK,
    'back after, s': ({ isWatched, longestDeadMs }) => (isWatched ? 'at once' : secondsOf(longestDeadMs)),
    'bound, s': ({ isWatched, reclaimAfterMs }) => (isWatched ? '' : secondsOf(backAfterMs(reclaimAfterMs))),
    calls: ({ calls }) => calls,
    failed: ({ failed }) => failed,
  }
  const line = (cells) => `| ${cells.join(' | ')} |`
  const titles = Object.keys(columns)
  const body = results.map((result) => line(Object.values(columns).map((cellOf) => cellOf(result))))
  return [line(titles), line(titles.map((_, k) => (k === 0 ? '---' : '--:'))), ...body].join('\n')
}

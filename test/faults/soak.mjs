// The soak as a command, and its report: `node test/faults/soak.mjs`. Ends with 1 if anything is
// not as promised.
//   --minutes <n>   how long; 5 unless told
//   --seed <n>      which faults come when, and where they cut; 1 unless told
//   --report <path> where the report goes; proof/SOAK.md unless told
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runnerImport } from 'vite'

const pathOf = (name) => fileURLToPath(new URL(name, import.meta.url))

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: '1' },
    report: { type: 'string', default: pathOf('../../proof/SOAK.md') },
  },
})

const { module } = await runnerImport(pathOf('soak.ts'), { configFile: false })
const result = await module.soak({
  seed: Number(options.seed),
  maxMs: Number(options.minutes) * 60_000,
  maxRounds: Number.POSITIVE_INFINITY,
  log: console.log,
})
writeFileSync(options.report, reportOf(result))
for (const wrong of result.wrongs) console.log(`WRONG ${wrong}`)
console.log(`${result.rounds} rounds, ${result.wrongs.length} wrongs`)
// Clients may keep sockets and threads.
process.exit(result.wrongs.length === 0 ? 0 : 1)

function reportOf({ seed, rounds, ms, clients, rows, wrongs }) {
  return `# Soak

\`npm run proof\` lets clients and limiters live through faults of real servers and of a network of ours, one after the other and two at a time, in an order
made up from a seed. In each round every client takes from a key of its own under every failure policy, before, while and after the fault; nothing is
restarted but the servers. Per fault and policy: the most that was admitted on one key, against what may be at most
([story.ts](../test/faults/story.ts) says why).

Made with seed ${seed} on Node ${process.versions.node.split('.')[0]}: ${rounds} rounds in ${Math.round(ms / 1000)} s, with ${clients.join(', ')}.

${wrongs.length === 0 ? 'Nothing was wrong: no bound was exceeded, no call hung, no rejection was left unhandled, no key was without time to live, and Redis decided again after every fault.' : `**Wrong**:\n\n${wrongs.map((wrong) => `- ${wrong}`).join('\n')}`}

${table(rows)}

- by Redis, by the policy: the most that was admitted on one key, and the bound. Each key has 60 permits, and nothing comes back meanwhile.
- refused, failed: what the policy answered with no, and what was rejected with \`STORE\`, in all rounds.
`
}

function table(rows) {
  const titles = ['fault', 'policy', 'keys', 'calls', 'by Redis', 'bound', 'by the policy', 'bound', 'refused', 'failed']
  const line = (cells) => `| ${cells.join(' | ')} |`
  const sorted = [...rows].sort((a, b) => a.fault.localeCompare(b.fault))
  const body = sorted.map((row) =>
    line([
      row.fault,
      row.policy,
      row.rounds,
      row.calls,
      row.byRedis,
      row.byRedisBound,
      row.byPolicy,
      row.byPolicyBound,
      row.refusedByPolicy,
      row.failed,
    ]),
  )
  return [line(titles), line(titles.map(() => '---')), ...body].join('\n')
}

// The results of single jobs, kept in .results/ so that parts can be run again and the report be
// put together from all of them. Those of quick runs have a folder of their own.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folderOf = (quick) => fileURLToPath(new URL(quick ? './.results/quick/' : './.results/whole/', import.meta.url))

export function keep(job, result) {
  const folder = folderOf(job.quick)
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}${job.name.replace(/[^\w.-]+/g, '_')}.json`, JSON.stringify({ ...job, result }))
}

/** What has been measured so far. `of(part, where, subject)` is one result, or undefined. */
export function keptResults(quick) {
  const folder = folderOf(quick)
  mkdirSync(folder, { recursive: true })
  const kept = readdirSync(folder).map((file) => JSON.parse(readFileSync(folder + file, 'utf8')))
  return {
    of: (part, where, subject) => kept.find((job) => job.part === part && job.where === where && job.subject === subject)?.result,
    all: (part, subject) => kept.filter((job) => job.part === part && job.subject === subject).map(({ result }) => result),
    has: ({ name }) => kept.some((job) => job.name === name),
    everySpeed: kept.filter(({ part }) => part === 'speed').flatMap(({ result }) => Object.values(result)),
    quick,
    machine: kept[0]?.machine,
  }
}

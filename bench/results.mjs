// The results of single jobs, kept in .results/ so that parts can be run again and the report be put together from all of them.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('./.results/', import.meta.url))

export function keep(job, result) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}${job.name.replace(/[^\w.-]+/g, '_')}.json`, JSON.stringify({ ...job, result }))
}

/** What has been measured so far. `of(part, where, subject)` is one result, or undefined. */
export function keptResults() {
  mkdirSync(folder, { recursive: true })
  const kept = readdirSync(folder).map((file) => JSON.parse(readFileSync(folder + file, 'utf8')))
  return {
    of: (part, where, subject) => kept.find((job) => job.part === part && job.where === where && job.subject === subject)?.result,
    all: (part, subject) => kept.filter((job) => job.part === part && job.subject === subject).map(({ result }) => result),
    everySpeed: kept.filter(({ part }) => part === 'speed').flatMap(({ result }) => Object.values(result)),
    quick: kept.some(({ quick }) => quick),
    machine: kept[0]?.machine,
  }
}

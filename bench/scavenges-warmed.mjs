// Scavenges after all six algorithms have been warmed up in the process.
import scavenges from './scavenges.mjs'
import { warmUpAll } from './warmed.mjs'

export default async function scavengesWarmed(job) {
  await warmUpAll(job.scenario)
  return scavenges(job)
}

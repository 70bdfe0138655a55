// Speed under one scenario after all six algorithms have been warmed up in the process.
import speed from './speed.mjs'
import { warmUpAll } from './warmed.mjs'

export default async function speedWarmed(job) {
  await warmUpAll(job.scenario)
  return speed(job)
}

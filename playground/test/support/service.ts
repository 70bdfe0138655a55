/** The built service as a process of its own, with limits that a test can use up. */
import { fileURLToPath } from 'node:url'
import { type RunningService, startService as start } from '../../scripts/service.mjs'

const CONFIG = fileURLToPath(new URL('./service.yaml', import.meta.url))

export type { RunningService }

/** On any port unless told one: a service that comes back must be found where it was. */
export function startService(port = 0, ...options: string[]): Promise<RunningService> {
  return start(CONFIG, '--port', String(port), ...options)
}

export async function decide(url: string, question: object): Promise<void> {
  const response = await fetch(`${url}v1/decide`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(question),
  })
  await response.arrayBuffer()
}

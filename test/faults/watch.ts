/**
 * Checks for every fault: no unhandled rejection, no call that hangs, no key that stays for ever.
 */
import type { RedisServer } from '../support/redis-servers.ts'

const seen: unknown[] = []
process.on('unhandledRejection', (reason) => seen.push(reason))

/** Every rejection of this process that nobody handled. */
export function unhandled(): readonly unknown[] {
  return seen
}

/**
 * How long a call may take before it counts as hanging: many times what any of them is allowed,
 * because the machine may be busy.
 */
const PATIENCE_MS = 20_000

/** Gives what the call gives, or rejects if it hangs. */
export async function settling<T>(call: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const hanging = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`a call hangs: it has not settled after ${PATIENCE_MS} ms`)), PATIENCE_MS)
  })
  try {
    return await Promise.race([call, hanging])
  } finally {
    clearTimeout(timer)
  }
}

/** The keys on these servers that would never go away. */
export async function keysWithoutExpiry(servers: readonly RedisServer[]): Promise<string[]> {
  const found: string[] = []
  for (const server of servers) {
    for (const key of await keysOf(server)) if ((await ttlMsOf(server, key)) === -1) found.push(key)
  }
  return found
}

/** Undefined for a key that is on its way to another node of a cluster. */
async function ttlMsOf(server: RedisServer, key: string): Promise<number | undefined> {
  try {
    return Number(await server.command('PTTL', key))
  } catch (error) {
    if (/MOVED|ASK/.test(`${error}`)) return undefined
    throw error
  }
}

async function keysOf(server: RedisServer): Promise<string[]> {
  const keys: string[] = []
  let cursor = '0'
  do {
    const [next, some] = (await server.command('SCAN', cursor, 'COUNT', '1000')) as [string, string[]]
    keys.push(...some)
    cursor = `${next}`
  } while (cursor !== '0')
  return keys
}

import { createClient } from 'redis'
import { inject } from 'vitest'

export interface TestRedis {
  send(args: readonly string[]): Promise<unknown>
  close(): void
}

/** A connection to the tests' own Redis, or to the one at that port, as the store wants it. */
export async function connectRedis(port = inject('redisPort')): Promise<TestRedis> {
  const client = createClient({ socket: { host: '127.0.0.1', port } })
  await client.connect()
  return {
    send: (args) => client.sendCommand([...args]),
    close: () => client.destroy(),
  }
}

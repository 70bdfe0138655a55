// The two clients, each with one connection. A comparison is always between contestants on the same
// client.
import { HOST } from './server.mjs'

/**
 * `client` is what a limiter is given. `send(...words)` sends one command in the client's shortest
 * way, and `incrAll(keys)` one `INCR` for each key in the client's explicit pipeline: these are for
 * the floors.
 */
const CONNECT = {
  ioredis: async (port, database) => {
    const { Redis } = await import('ioredis')
    // Zero, so that no command is sent twice: what Sluice asks of this client. It makes no
    // difference while the connection holds.
    const client = new Redis({ host: HOST, port, db: database, maxRetriesPerRequest: 0, lazyConnect: true })
    await client.connect()
    const send = (...words) => client.call(...words)
    const incrAll = async (keys) => {
      const pipeline = client.pipeline()
      for (const key of keys) pipeline.incr(key)
      return (await pipeline.exec()).map(([error, count]) => error ?? count)
    }
    return { client, send, incrAll }
  },

  'node-redis': async (port, database) => {
    const { createClient } = await import('redis')
    const client = createClient({ socket: { host: HOST, port }, database })
    await client.connect()
    const send = (...words) => client.sendCommand(words)
    const incrAll = (keys) => {
      const pipeline = client.multi()
      for (const key of keys) pipeline.incr(key)
      return pipeline.execAsPipeline()
    }
    return { client, send, incrAll }
  },
}

export const CLIENTS = Object.keys(CONNECT)

export function connect(name, port, database = 0) {
  return CONNECT[name](port, database)
}

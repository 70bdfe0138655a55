// What was measured, and on what.
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { PEERS } from './peers.mjs'

export async function versionsOf(send) {
  const { dependencies } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const redis = /^redis_version:(\S+)/m.exec(await send('INFO', 'server'))[1]
  return {
    machine: `Node ${process.version}, Redis ${redis}, ${cpus()[0].model}, ${availableParallelism()} cores`,
    packages: ['ioredis', 'redis', ...Object.keys(PEERS)].map((name) => `${name} ${dependencies[name]}`).join(', '),
  }
}

/** Which commands the scripts that are sent call, and how often. */
import type { RedisSender } from '../../src/stores/redis/index.ts'
import type { TestRedis } from './redis-client.ts'

export interface CountingSender extends RedisSender {
  /** Of the last script: by the name of the command. */
  counts: Readonly<Record<string, number>>
}

/** Counts in a transaction of its own: others use the server meanwhile. */
export function countingSender(redis: TestRedis): CountingSender {
  const sender: CountingSender = {
    counts: {},
    async send(args) {
      const queue = [['MULTI'], ['CONFIG', 'RESETSTAT'], args, ['INFO', 'commandstats'], ['EXEC']]
      const replies = await Promise.all(queue.map((each) => redis.send(each)))
      const [, reply, stats] = replies.at(-1) as unknown[]
      const counts = [...`${stats}`.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(
        ([, name, calls]) => [name as string, Number(calls)] as const,
      )
      sender.counts = Object.fromEntries(counts.filter(([name]) => !NOT_COUNTED.includes(name)))
      if (reply instanceof Error) throw reply
      return reply
    },
  }
  return sender
}

const NOT_COUNTED = ['config|resetstat', 'config', 'eval', 'evalsha', 'time', 'multi', 'info']

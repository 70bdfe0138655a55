/**
 * State in Redis or Valkey, decided there: one script call per step, on the server's clock. See runner.lua.
 *
 * A step is never sent twice unless Redis said that it did not run (NOSCRIPT): a step that timed out may have been charged.
 */
import type { Outcome, Ticket, Verdict } from '../../algorithms/decide.ts'
import { onlyKnown, refused } from '../../algorithms/rate.ts'
import type { AsyncStore, Part, Step } from '../store.ts'
import { acrossSlots } from './across-slots.ts'
import { type RedisClient, type RedisSender, senderOf } from './client.ts'
import { isNotRun, storeError } from './failure.ts'
import { type KeyScheme, redisKey, slotOf } from './keys.ts'
import { SCRIPT, scriptSha1 } from './script.ts'

export interface RedisStoreOptions {
  /** What every key begins with. Default `'sluice'`. */
  readonly prefix?: string
  /** Keys for which this gives equal strings are kept together in a cluster, and decided as one. Default: each key for itself. */
  readonly hashTag?: (key: string) => string
}

/** `[nowUs, [outcome, remaining, retryUs, resetUs, delayUs, ticket words], ...]` */
type Reply = readonly [number, ...PartReply[]]
type PartReply = readonly [number, number, number, number, number, string]

const OUTCOMES: readonly Outcome[] = ['allowed', 'limited', 'impossible']

export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): AsyncStore {
  const scheme = checkedScheme(options)
  const sender = senderOf(client)
  return {
    mode: 'async',
    shared: true,
    async apply(step) {
      const keys = step.parts.map((part) => redisKey(scheme, step.scope.name, part))
      const places = sender.cluster ? bySlot(keys) : []
      if (places.length <= 1) return run(sender, keys, step)
      return acrossSlots(step, places, (each) =>
        run(
          sender,
          each.parts.map((part) => redisKey(scheme, step.scope.name, part)),
          each,
        ),
      )
    },
  }
}

function checkedScheme(options: RedisStoreOptions): KeyScheme {
  onlyKnown(options, ['prefix', 'hashTag'], 'redisStore')
  const { prefix = 'sluice', hashTag } = options
  if (typeof prefix !== 'string' || !/^[^{}\s]{1,256}$/.test(prefix)) {
    throw refused('redisStore prefix', prefix, 'must be 1 to 256 characters without braces and white space')
  }
  if (hashTag !== undefined && typeof hashTag !== 'function') {
    throw refused('redisStore hashTag', hashTag, 'must be a function from a key to a string')
  }
  return { prefix, hashTag }
}

/** The places of the keys, together where they have the same slot. */
function bySlot(keys: readonly string[]): number[][] {
  const places = new Map<number, number[]>()
  keys.forEach((key, place) => {
    const slot = slotOf(key)
    places.set(slot, [...(places.get(slot) ?? []), place])
  })
  return [...places.values()]
}

/** One step on one server. */
async function run(sender: RedisSender, keys: readonly string[], step: Step): Promise<Verdict[]> {
  if (step.op === 'forget') {
    await send(sender, ['DEL', ...keys], keys)
    return []
  }
  return verdictsOf(await evaluate(sender, keys, argumentsOf(step)), step)
}

function argumentsOf(step: Step): string[] {
  const args = [step.op, step.nowUs === undefined ? '' : `${step.nowUs}`, `${step.aheadUs}`, `${step.ofUs}`]
  for (const { rule, cost, ticket } of step.parts) {
    args.push(rule.algorithm.type, rule.numbers, `${rule.maxAheadUs}`, `${cost}`)
    args.push(ticket?.numbers ?? '', ticket?.words.join(' ') ?? '')
  }
  return args
}

async function evaluate(sender: RedisSender, keys: readonly string[], args: readonly string[]): Promise<Reply> {
  const rest = [`${keys.length}`, ...keys, ...args]
  const sha1 = await scriptSha1()
  try {
    return (await sender.send(['EVALSHA', sha1, ...rest], keys[0] as string)) as Reply
  } catch (error) {
    if (!isNotRun(error)) throw storeError(error)
  }
  return (await send(sender, ['EVAL', SCRIPT, ...rest], keys)) as Reply
}

async function send(sender: RedisSender, args: readonly string[], [key]: readonly string[]): Promise<unknown> {
  try {
    return await sender.send(args, key as string)
  } catch (error) {
    throw storeError(error)
  }
}

/** Clients may be told to give numbers as strings, and strings as bytes. */
function verdictsOf([nowUs, ...answers]: Reply, step: Step): Verdict[] {
  return answers.map(([outcome, remaining, retryUs, resetUs, delayUs, words], k) => ({
    outcome: OUTCOMES[Number(outcome)] as Outcome,
    remaining: Number(remaining),
    retryUs: OUTCOMES[Number(outcome)] === 'impossible' ? Number.POSITIVE_INFINITY : Number(retryUs),
    resetUs: Number(resetUs),
    delayUs: Number(delayUs),
    atUs: Number(nowUs),
    ticket: ticketOf(`${words}`, step.parts[k] as Part),
  }))
}

function ticketOf(words: string, { rule }: Part): Ticket | undefined {
  return words === '' ? undefined : { numbers: rule.numbers, words: Float64Array.from(words.split(' '), Number) }
}

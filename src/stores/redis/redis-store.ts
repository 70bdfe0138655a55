/**
 * State in Redis or Valkey, decided there: one script call per step, on the server's clock. See runner.lua.
 *
 * A step is never sent twice unless Redis said that it did not run (NOSCRIPT): a step that timed out may have been charged.
 */
import type { Outcome, Ticket, Verdict } from '../../algorithms/decide.ts'
import { onlyKnown, refused } from '../../algorithms/rate.ts'
import { SluiceError, shown } from '../../errors.ts'
import type { AsyncStore, Part, Step } from '../store.ts'
import { SCRIPT, scriptSha1 } from './script.ts'

/** All that Sluice needs of a client: send one command, get its reply. */
export interface RedisSender {
  send(args: readonly string[]): Promise<unknown>
}

export interface RedisStoreOptions {
  /** What every key begins with. Default `'sluice'`. */
  readonly prefix?: string
}

/** `[nowUs, [outcome, remaining, retryUs, resetUs, delayUs, ticket words], ...]` */
type Reply = readonly [number, ...PartReply[]]
type PartReply = readonly [number, number, number, number, number, string]

const OUTCOMES: readonly Outcome[] = ['allowed', 'limited', 'impossible']

export function redisStore(client: RedisSender, options: RedisStoreOptions = {}): AsyncStore {
  const prefix = checkedPrefix(options)
  if (typeof client?.send !== 'function') {
    throw new SluiceError(
      'CONFIG',
      `redisStore client ${shown(client)} must have send(args), such as { send: (args) => client.sendCommand(args) }`,
    )
  }
  return {
    mode: 'async',
    shared: true,
    async apply(step) {
      const keys = step.parts.map((part) => redisKey(prefix, step.scope.name, part))
      if (step.op === 'forget') {
        await sent(client, ['DEL', ...keys])
        return []
      }
      return verdictsOf(await run(client, keys, argumentsOf(step)), step)
    },
  }
}

function checkedPrefix(options: RedisStoreOptions): string {
  onlyKnown(options, ['prefix'], 'redisStore')
  const { prefix = 'sluice' } = options
  if (typeof prefix === 'string' && /^[^{}\s]{1,256}$/.test(prefix)) return prefix
  throw refused('redisStore prefix', prefix, 'must be 1 to 256 characters without braces and white space')
}

/** `sluice:api:{user:42}:burst`. The braces place all limits of one key together in a cluster, so the key's own are escaped. */
export function redisKey(prefix: string, limiter: string, part: Pick<Part, 'key' | 'limit'>): string {
  // Half a surrogate pair has no UTF-8: two such keys would become one.
  if (/\p{Surrogate}/u.test(part.key)) throw new SluiceError('KEY', `key ${shown(part.key)} must be well-formed Unicode`)
  return `${prefix}:${limiter}:{${part.key.replace(/[%{}]/g, encodeURIComponent)}}:${part.limit}`
}

function argumentsOf(step: Step): string[] {
  const args = [step.op, step.nowUs === undefined ? '' : `${step.nowUs}`, `${step.aheadUs}`, `${step.ofUs}`]
  for (const { rule, cost, ticket } of step.parts) {
    args.push(rule.algorithm.type, rule.numbers, `${rule.maxAheadUs}`, `${cost}`)
    args.push(ticket?.numbers ?? '', ticket?.words.join(' ') ?? '')
  }
  return args
}

async function run(client: RedisSender, keys: readonly string[], args: readonly string[]): Promise<Reply> {
  const rest = [`${keys.length}`, ...keys, ...args]
  const sha1 = await scriptSha1()
  try {
    return (await client.send(['EVALSHA', sha1, ...rest])) as Reply
  } catch (error) {
    if (!isNoScript(error)) throw storeError(error)
  }
  return (await sent(client, ['EVAL', SCRIPT, ...rest])) as Reply
}

async function sent(client: RedisSender, args: readonly string[]): Promise<unknown> {
  try {
    return await client.send(args)
  } catch (error) {
    throw storeError(error)
  }
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}

function storeError(cause: unknown): SluiceError {
  return new SluiceError('STORE', `Redis: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
}

function verdictsOf([nowUs, ...answers]: Reply, step: Step): Verdict[] {
  return answers.map(([outcome, remaining, retryUs, resetUs, delayUs, words], k) => ({
    outcome: OUTCOMES[outcome] as Outcome,
    remaining,
    retryUs: OUTCOMES[outcome] === 'impossible' ? Number.POSITIVE_INFINITY : retryUs,
    resetUs,
    delayUs,
    atUs: nowUs,
    ticket: ticketOf(words, step.parts[k] as Part),
  }))
}

function ticketOf(words: string, { rule }: Part): Ticket | undefined {
  return words === '' ? undefined : { numbers: rule.numbers, words: Float64Array.from(words.split(' '), Number) }
}

/** Reads one key of Redis and says what it means. It writes nothing. */
import { type EncodedState, figuresNamed, type Rule } from '../../algorithms/algorithm.ts'
import { type Decoder, decoders } from '../../algorithms/decoders.ts'
import { SluiceError, shown } from '../../errors.ts'
import { type RedisClient, senderOf } from './client.ts'
import { storeError } from './failure.ts'
import { READ_STRING } from './script.ts'

export interface Inspected {
  readonly key: string
  /** The name of the limit, where several share the key. */
  readonly section?: string
  /** The algorithm. */
  readonly type: string
  /** What an idle key admits at once, and how long a full charge is felt. */
  readonly limit: number
  readonly windowMs: number
  /** Whole permits left now. */
  readonly remaining: number
  readonly resetAfterMs: number
  /** How long until Redis forgets the key; -1 if it never does. */
  readonly ttlMs: number
  /** What stands in Redis, as text. */
  readonly state: EncodedState
}

/** What a key of Sluice holds now, by the server's clock: one state or, where limits share the key, one of each; none if there is no such key. */
export async function inspectKey(client: RedisClient, key: string): Promise<Inspected[]> {
  const sender = senderOf(client)
  const send = (...args: string[]) => sender.send(args, key).catch((error) => Promise.reject(storeError(error)))
  const kind = await send('TYPE', key)
  if (kind === 'none') return []
  const states = await statesOf(`${kind}`, key, send)
  const [seconds, micros] = (await send('TIME')) as [string, string]
  const nowUs = Number(seconds) * 1_000_000 + Number(micros)
  const ttlMs = Number(await send('PTTL', key))
  return states.map(([section, state]) => ({ key, ...section, ...described(key, state, nowUs), ttlMs }))
}

type Section = Pick<Inspected, 'section'>

async function statesOf(kind: string, key: string, send: (...args: string[]) => Promise<unknown>): Promise<[Section, EncodedState][]> {
  if (kind === 'string') return inString(await send('EVAL', READ_STRING, '1', key))
  if (kind === 'hash') return [[{}, fieldsOf(await send('HGETALL', key))]]
  if (kind === 'zset') {
    const members = (await send('ZRANGE', key, '0', '-1')) as string[]
    return [[{}, Object.fromEntries(members.map((member) => [member, member.startsWith('at ') ? '0' : (member.split(' ')[0] as string)]))]]
  }
  throw notOurs(key, `a ${kind}`)
}

/** The text of one state, or names and texts of several. */
function inString(reply: unknown): [Section, EncodedState][] {
  // It may have expired meanwhile.
  if (reply === null) return []
  if (!Array.isArray(reply)) return [[{}, reply as string]]
  return reply.flatMap((section, k) => (k % 2 === 0 ? [[{ section }, reply[k + 1]]] : []))
}

/** Clients give a hash as an object, as a list of names and values, or as a list of pairs. */
function fieldsOf(reply: unknown): Record<string, string> {
  if (!Array.isArray(reply)) return { ...(reply as Record<string, string>) }
  const flat = reply.flatMap((entry) => (typeof entry === 'object' ? [entry.key, entry.value] : [entry]))
  const names = flat.filter((_, k) => k % 2 === 0)
  return Object.fromEntries(names.map((name, k) => [name, flat[2 * k + 1]]))
}

function described(key: string, state: EncodedState, nowUs: number): Omit<Inspected, 'key' | 'section' | 'ttlMs'> {
  for (const decoder of decoders.values()) {
    const found = decoded(decoder, state)
    if (found === undefined) continue
    const { rule, words } = found
    const { algorithm } = decoder
    return {
      type: algorithm.type,
      limit: rule.capacity,
      windowMs: rule.windowUs / 1000,
      remaining: algorithm.remaining(rule, words, 0, nowUs),
      resetAfterMs: algorithm.resetUs(rule, words, 0, nowUs) / 1000,
      state,
    }
  }
  throw notOurs(key, shown(state))
}

/** The state as this algorithm reads it, if it does. */
function decoded({ algorithm, decode }: Decoder, state: EncodedState): { rule: Rule; words: Float64Array } | undefined {
  const words = new Float64Array(roomFor(state))
  try {
    const numbers = decode(state, words, 0)
    return { rule: algorithm.ruleOf(figuresNamed(numbers), 0), words }
  } catch (error) {
    if (error instanceof SluiceError) return undefined
    throw error
  }
}

/** More than any algorithm makes of so much text: slots and entries are at most two words each. */
function roomFor(state: EncodedState): number {
  return typeof state === 'string' ? 16 : Math.max(1_100, 2 * Object.keys(state).length + 16)
}

function notOurs(key: string, holds: string): SluiceError {
  return new SluiceError('STORE', `the key ${shown(key)} holds ${holds}, which Sluice did not write`)
}

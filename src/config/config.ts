/**
 * From plain JSON to limits, for everything that is configured by a file or over the wire: the
 * command line, the service, the page. A limit's JSON is its type and the options of the factory of
 * that name, so `JSON.stringify(limit)` is its own configuration.
 */
import type { Limit } from '../algorithms/algorithm.ts'
import * as factories from '../algorithms/all.ts'
import { SluiceError, shown } from '../errors.ts'
import { concurrency } from '../limiter/concurrency.ts'
import { nearest } from './nearest.ts'

type Fields = Readonly<Record<string, unknown>>

const FACTORIES: ReadonlyMap<string, (options: Fields) => Limit> = new Map(
  Object.entries({ ...factories, concurrency } as unknown as Readonly<Record<string, (options: Fields) => Limit>>),
)

const TYPES = [...FACTORIES.keys()]
const EXAMPLE = `{ "type": "gcra", "rate": "10/s", "burst": 20 }`

/** The limit that plain JSON describes: `{ "type": "gcra", "rate": "1/s", "burst": 5 }`. */
export function limitFrom(json: unknown): Limit {
  if (!isObject(json)) throw invalid(`limit ${shown(json)} must be an object such as ${EXAMPLE}`)
  const factory = FACTORIES.get(json.type as string)
  if (factory === undefined) throw wrongType(json)
  return factory(json)
}

/**
 * One limit, or several by name: what `createLimiter` takes. An object with a `type` that is a
 * string is one limit.
 */
export function limitsFrom(json: unknown): Limit | Readonly<Record<string, Limit>> {
  if (!isObject(json) || Object.keys(json).length === 0) {
    throw invalid(`limits ${shown(json)} must be one limit such as ${EXAMPLE}, or an object of limits by name`)
  }
  if (typeof json.type === 'string') return limitFrom(json)
  return Object.fromEntries(Object.entries(json).map(([name, limit]) => [name, namedLimitFrom(name, limit)]))
}

/** Says which of several limits is wrong. */
function namedLimitFrom(name: string, json: unknown): Limit {
  try {
    return limitFrom(json)
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    throw new SluiceError(error.code, `limit ${shown(name)}: ${error.message}`, { cause: error, nearest: error.nearest })
  }
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function wrongType(json: Fields): SluiceError {
  const known = TYPES.join(', ')
  if (!Object.hasOwn(json, 'type')) return invalid(`limit ${shown(json)} must have a type, one of ${known}`)
  const meant = typeof json.type === 'string' ? nearest(json.type, TYPES) : undefined
  const hint = meant === undefined ? '' : `: did you mean '${meant}'?`
  return invalid(`limit type ${shown(json.type)} must be one of ${known}${hint}`)
}

function invalid(message: string): SluiceError {
  return new SluiceError('CONFIG', message)
}

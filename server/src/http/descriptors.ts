/**
 * Envoy's question as JSON, as its own service takes it at `/json`: to try the rules of domains
 * with curl.
 */
import type { Descriptor, DescriptorEntry, Override, RateLimitRequest, RateLimitResponse, Unit } from '../grpc/messages.ts'
import { shown } from '../sluice.ts'
import { BadRequest } from './problem.ts'

type Fields = Readonly<Record<string, unknown>>

/** Names as protobuf's JSON has them, or as its definition has. */
export function descriptorsIn(body: unknown): RateLimitRequest {
  const { domain, descriptors, hitsAddend = 0 } = fieldsOf(body, 'the body', ['domain', 'descriptors', 'hitsAddend'])
  if (typeof domain !== 'string') throw wrong(`domain ${shown(domain)} must be a text`)
  return {
    domain,
    descriptors: listOf(descriptors, 'descriptors').map((json, k) => descriptorIn(json, `descriptors[${k}]`)),
    hits_addend: countIn(hitsAddend, 'hitsAddend'),
  }
}

function descriptorIn(json: unknown, place: string): Descriptor {
  const { entries, limit, hitsAddend, isNegativeHits = false } = fieldsOf(json, place, ['entries', 'limit', 'hitsAddend', 'isNegativeHits'])
  if (typeof isNegativeHits !== 'boolean') throw wrong(`${place}.isNegativeHits ${shown(isNegativeHits)} must be true or false`)
  return {
    entries: listOf(entries, `${place}.entries`).map((entry, k) => entryIn(entry, `${place}.entries[${k}]`)),
    limit: limit === undefined ? null : overrideIn(limit, `${place}.limit`),
    hits_addend: hitsAddend === undefined ? null : { value: `${countIn(hitsAddend, `${place}.hitsAddend`)}` },
    is_negative_hits: isNegativeHits,
  }
}

function entryIn(json: unknown, place: string): DescriptorEntry {
  const { key, value = '' } = fieldsOf(json, place, ['key', 'value'])
  if (typeof key !== 'string') throw wrong(`${place}.key ${shown(key)} must be a text`)
  if (typeof value !== 'string') throw wrong(`${place}.value ${shown(value)} must be a text`)
  return { key, value }
}

function overrideIn(json: unknown, place: string): Override {
  const { requestsPerUnit = 0, unit = 'UNKNOWN_UNIT' } = fieldsOf(json, place, ['requestsPerUnit', 'unit'])
  if (typeof unit !== 'string') throw wrong(`${place}.unit ${shown(unit)} must be a text such as SECOND`)
  // Which units and numbers there are is said by who counts them.
  return { requests_per_unit: countIn(requestsPerUnit, `${place}.requestsPerUnit`), unit: unit as Unit }
}

function countIn(value: unknown, place: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number
  throw wrong(`${place} ${shown(value)} must be a whole number from 0`)
}

function listOf(value: unknown, place: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw wrong(`${place} ${shown(value)} must be a list`)
}

/** Under their names in JSON. */
function fieldsOf(json: unknown, place: string, known: readonly string[]): Fields {
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw wrong(`${place} ${shown(json)} must be an object of ${known.join(', ')}`)
  const fields = Object.entries(json).map(
    ([name, value]) => [name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()), value] as const,
  )
  const unknown = fields.find(([name]) => !known.includes(name))
  if (unknown !== undefined) throw wrong(`${place} has no ${shown(unknown[0])}: there is ${known.join(', ')}`)
  return Object.fromEntries(fields)
}

function wrong(message: string): BadRequest {
  return new BadRequest(400, 'DESCRIPTORS', message)
}

/** The answer as protobuf's JSON has it. */
export function responseJson({ overall_code, statuses, response_headers_to_add }: RateLimitResponse): object {
  return {
    overallCode: overall_code,
    statuses: statuses.map(({ code, current_limit, limit_remaining, duration_until_reset }) => ({
      code,
      ...(current_limit === undefined
        ? {}
        : { currentLimit: { name: current_limit.name, requestsPerUnit: current_limit.requests_per_unit, unit: current_limit.unit } }),
      limitRemaining: limit_remaining,
      ...(duration_until_reset === undefined
        ? {}
        : { durationUntilReset: `${duration_until_reset.seconds + duration_until_reset.nanos / 1e9}s` }),
    })),
    responseHeadersToAdd: response_headers_to_add,
  }
}

/**
 * The description of an algorithm for schema, simulation and page: the JSON Schema of its options,
 * a limit of it to try, and a line for the simulation. It stands beside the algorithm, in
 * `<name>.about.ts`, and not in it, so that no bundle carries it.
 */
import type { Limit } from './algorithm.ts'
import type { DurationUnit } from './rate.ts'

export interface About {
  /** The name of its factory. */
  readonly type: string
  /** Its options as JSON Schema; `#/$defs/rate` and `#/$defs/duration` are in config/schema.ts. */
  readonly schema: LimitSchema
  /** A hint for the simulation, where ten may pass in a second. */
  readonly explanation: string
  /**
   * A limit that an idle key admits `capacity` by at once. They come back at that rate; a window is
   * as long as its `per`.
   */
  sample(capacity: number, rate: SampleRate): Limit
}

export interface LimitSchema {
  readonly title: string
  readonly description: string
  readonly type: 'object'
  readonly properties: Options
  readonly required: readonly string[]
  readonly additionalProperties: false
}

interface SampleRate {
  readonly permits: number
  readonly per: `${number}${DurationUnit}`
}

type Options = Readonly<Record<string, object>>

export const permits = { type: 'integer', minimum: 1, maximum: 1_000_000_000 }

export const rateOf = (description: string) => ({ $ref: '#/$defs/rate', description, examples: ['10/s', '100/min', '5/10s'] })
export const permitsOf = (description: string, example: number) => ({ ...permits, description, examples: [example] })
/** What an idle key admits at once: with 0, nothing passes. */
export const capacityOf = (description: string, example: number) => ({ ...permitsOf(description, example), minimum: 0 })
export const windowOf = (description: string) => ({ $ref: '#/$defs/duration', description, examples: ['10s', '1h', '500ms'] })

export function limitSchema(type: string, description: string, required: Options, optional: Options = {}): LimitSchema {
  return {
    title: type,
    description,
    type: 'object',
    properties: { type: { const: type }, ...required, ...optional },
    required: ['type', ...Object.keys(required)],
    additionalProperties: false,
  }
}

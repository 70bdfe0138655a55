/** The messages of rls.proto, as the loader gives and takes them. */

export type Unit = 'UNKNOWN_UNIT' | 'SECOND' | 'MINUTE' | 'HOUR' | 'DAY' | 'MONTH' | 'YEAR' | 'WEEK'
export type Code = 'UNKNOWN' | 'OK' | 'OVER_LIMIT'

export interface DescriptorEntry {
  readonly key: string
  readonly value: string
}

export interface Override {
  readonly requests_per_unit: number
  /** A number where it is none that we know. */
  readonly unit: Unit | number
}

export interface Descriptor {
  readonly entries: readonly DescriptorEntry[]
  readonly limit: Override | null
  /** Text, because it may be larger than a number can say. */
  readonly hits_addend: { readonly value: string } | null
  readonly is_negative_hits: boolean
}

export interface RateLimitRequest {
  readonly domain: string
  readonly descriptors: readonly Descriptor[]
  readonly hits_addend: number
}

export interface DescriptorStatus {
  readonly code: Code
  readonly current_limit?: { readonly requests_per_unit: number; readonly unit: Unit; readonly name: string }
  readonly limit_remaining: number
  readonly duration_until_reset?: { readonly seconds: number; readonly nanos: number }
}

export interface Header {
  readonly key: string
  readonly value: string
}

export interface RateLimitResponse {
  readonly overall_code: Code
  readonly statuses: readonly DescriptorStatus[]
  readonly response_headers_to_add: readonly Header[]
}

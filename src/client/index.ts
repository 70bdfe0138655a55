export { type AnyFetch, type LimitedFetchOptions, limitedFetch, type ResponseLike } from './limited-fetch.ts'
export { type HeadersLike, parseRateLimit, type ToldLimit, type ToldLimits } from './parse.ts'

/**
 * The parts of the library that the service uses. The only file here that reaches out of this
 * folder: it is built together with the library's sources, so that it needs neither a link in
 * node_modules nor a library that was built before.
 */
export { limitOf, RULE } from '../../src/algorithms/algorithm.ts'
export { atRate } from '../../src/algorithms/at-rate.ts'
export { type Duration, durationUs, MAX_PERMITS, type Pace, paceOf, type Rate } from '../../src/algorithms/rate.ts'
export { LIBRARY_COMMANDS } from '../../src/cli/commands.ts'
export { parsedOptions } from '../../src/cli/options.ts'
export { type Command, FAILED, misused, runCommand, said } from '../../src/cli/run.ts'
export { VERSION } from '../../src/cli/version.ts'
export { limitFrom, limitSchema, limitsFrom } from '../../src/config/index.ts'
export { shown } from '../../src/errors.ts'
export { type HeaderStyle, headerWriter, secondsOf } from '../../src/http/headers.ts'
export { EXCEEDED, REDUCED } from '../../src/http/refusal.ts'
export { boundedKey } from '../../src/http/short-key.ts'
export * from '../../src/index.ts'
export { type Cost, checkNames, costFor, type Key, keyFor, spanUs } from '../../src/limiter/input.ts'
export { opened } from '../../src/limiter/limiter.ts'
export type { Entrusted } from '../../src/limiter/permit.ts'
export { type Following, followLoad, type RateChange } from '../../src/load/follow-load.ts'
export type { Signal as LoadSignal } from '../../src/load/signal.ts'
export { cpu, eventLoopDelay, eventLoopUtilization, heap } from '../../src/load/signals.ts'
export * from '../../src/otel/measures.ts'
export { postgresStore } from '../../src/stores/postgres/index.ts'
export { redisStore } from '../../src/stores/redis/index.ts'
export { sqliteStore } from '../../src/stores/sqlite/index.ts'

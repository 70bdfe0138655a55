/** `sluice serve`: the service as a process. */
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import { ConfigFile, loadConfig, type ReloadReport } from './running/reload.ts'
import { type Service, startService } from './service.ts'
import { openStore } from './store.ts'
import { tokensFrom } from './tokens.ts'

export const SERVE_OPTIONS = {
  redis: { type: 'string' },
  'tokens-file': { type: 'string' },
  host: { type: 'string' },
  port: { type: 'string' },
  'grpc-port': { type: 'string' },
  'log-level': { type: 'string' },
  hints: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

const DEFAULT_HOST = '127.0.0.1'
const DEFAULT_HTTP_PORT = 8080
const DEFAULT_GRPC_PORT = 8081
/** How long it goes on when it is told to stop, so that clients let go of their connections, and a balancer of it. */
const DRAIN_MS = 500
/** How long those who wait are let wait after that. */
const GRACE_MS = 10_000
/** npm, a shell and a supervisor may all pass on the same signal. */
const SAME_SIGNAL_MS = 1_000
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

export const SERVE_USAGE = `sluice serve [FILE] [options]

  Runs the service with a configuration, and takes up its changes while it runs (or at SIGHUP). Without FILE: a sample.

  --redis URL        count in Redis or Valkey instead of the memory of this process; several URLs, separated by commas, are
                     nodes of a cluster. Or SLUICE_REDIS_URL
  --host ADDRESS     where to listen. Default ${DEFAULT_HOST}: only this machine. Or SLUICE_HOST
  --port PORT        for HTTP. Default ${DEFAULT_HTTP_PORT}; 0: any. Or SLUICE_PORT
  --grpc-port PORT   for gRPC. Default ${DEFAULT_GRPC_PORT}; 0: any. Or SLUICE_GRPC_PORT
  --tokens-file F    tokens, one on each line, of which whoever wants to do more than look must send one (Authorization: Bearer).
                     Or SLUICE_TOKENS, with commas between them. Default: nobody needs one
  --log-level LEVEL  ${LOG_LEVELS.join(', ')}. Default info
  --hints            print what to try with curl`

type Values = Readonly<Partial<Record<'redis' | 'tokens-file' | 'host' | 'port' | 'grpc-port' | 'log-level', string>>> & {
  readonly hints?: boolean
}

export async function serve(path: string | undefined, values: Values): Promise<void> {
  const file = path ?? sampleFile()
  const log = pino({ level: logLevel(values['log-level']), base: null })
  const { config, text } = loadConfig(file)
  const tokens = tokensFrom(values['tokens-file'], process.env.SLUICE_TOKENS)
  const opened = await openStore(values.redis ?? process.env.SLUICE_REDIS_URL, storeErrorsOnce(log))
  const service = await startService({
    config,
    store: opened.store,
    clock: undefined,
    host: values.host ?? process.env.SLUICE_HOST ?? DEFAULT_HOST,
    httpPort: portIn('--port', values.port ?? process.env.SLUICE_PORT, DEFAULT_HTTP_PORT),
    grpcPort: portIn('--grpc-port', values['grpc-port'] ?? process.env.SLUICE_GRPC_PORT, DEFAULT_GRPC_PORT),
    tokens,
    onFailure: (error) => log.error({ err: error }, 'a request failed by our fault'),
  }).catch((error) => {
    opened.close()
    throw error
  })
  const watched = new ConfigFile(file, text, service.limiters, (report) => reloaded(log, service, report))
  watched.watch()
  log.info({ httpPort: service.httpPort, grpcPort: service.grpcPort, store: opened.description, file }, 'sluice is serving')
  if (values.hints) console.log(hints(service))
  process.on('SIGHUP', () => watched.reload())
  stopAtSignal(log, async () => {
    watched.close()
    await service.stop(GRACE_MS, DRAIN_MS)
    opened.close()
  })
}

/** Beside the sources, and beside what is built from them, which lies two folders deeper. */
function sampleFile(): string {
  const isBuilt = import.meta.url.endsWith('.js')
  return fileURLToPath(new URL(isBuilt ? '../../../sample.yaml' : '../sample.yaml', import.meta.url))
}

function logLevel(level = 'info'): string {
  if (LOG_LEVELS.includes(level)) return level
  throw new Error(`--log-level ${JSON.stringify(level)} must be one of ${LOG_LEVELS.join(', ')}`)
}

function portIn(option: string, text: string | undefined, otherwise: number): number {
  if (text === undefined || text === '') return otherwise
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new Error(`${option} ${JSON.stringify(text)} must be a whole number from 0 to 65535`)
}

/** A client that cannot connect says so many times a second. */
function storeErrorsOnce(log: pino.Logger): (error: Error) => void {
  let last = ''
  return ({ message }) => {
    if (message !== last) log.warn({ reason: message }, 'Redis cannot be reached')
    last = message
  }
}

function reloaded(log: pino.Logger, { metrics }: Service, { result, reason }: ReloadReport): void {
  metrics.reloaded(result)
  if (result === 'ok') log.info('the configuration was reloaded')
  else log.error({ reason }, 'the new configuration is refused, the old one goes on')
}

/** Once, in peace; whoever signals again later has lost patience, and ends the process at once. */
function stopAtSignal(log: pino.Logger, stop: () => Promise<void>): void {
  let sinceMs: number | undefined
  const onSignal = (signal: NodeJS.Signals) => {
    if (sinceMs !== undefined) {
      if (performance.now() - sinceMs > SAME_SIGNAL_MS) process.exit(1)
      return
    }
    sinceMs = performance.now()
    log.info({ signal }, 'stopping')
    stop().then(
      () => log.info('stopped'),
      (error) => {
        log.error({ err: error }, 'the stop failed')
        process.exitCode = 1
      },
    )
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}

function hints({ httpPort, grpcPort, limiters }: Service): string {
  const url = `http://localhost:${httpPort}`
  const name = limiters.named()[0]?.config.name ?? 'api'
  const post = (path: string, body: object) => `  curl -H 'content-type: application/json' -d '${JSON.stringify(body)}' ${url}${path}`
  return [
    '',
    'Sluice is running. Try:',
    '',
    post('/v1/decide', { limiter: name, key: 'user:42' }),
    post('/v1/decide', {
      decisions: [
        { limiter: name, key: 'a' },
        { limiter: name, key: 'b', cost: 3 },
      ],
    }),
    post('/v1/acquire', { limiter: name, key: 'user:42', timeoutMs: 2000 }),
    `  curl ${url}/v1/limiters/${name}/keys/user:42`,
    `  curl -X DELETE ${url}/v1/limiters/${name}/keys/user:42`,
    `  curl ${url}/v1/limiters`,
    `  curl ${url}/metrics`,
    `  curl ${url}/openapi.json`,
    '',
    `Envoy's rate limit service is at localhost:${grpcPort}. Ctrl-C stops.`,
    '',
  ].join('\n')
}

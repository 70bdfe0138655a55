/** `sluice serve`: the service as a process. */
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import { hints } from './hints.ts'
import { isLocal } from './http/origin.ts'
import { journalIn } from './journal.ts'
import { readPage } from './page/page.ts'
import { ConfigFile, loadConfig, type ReloadReport } from './running/reload.ts'
import { type Service, startService } from './service.ts'
import { VERSION } from './sluice.ts'
import { openStore } from './store.ts'
import { tokensFrom } from './tokens.ts'

export const SERVE_OPTIONS = {
  redis: { type: 'string' },
  'tokens-file': { type: 'string' },
  host: { type: 'string' },
  port: { type: 'string' },
  'grpc-port': { type: 'string' },
  'allow-host': { type: 'string' },
  'no-page': { type: 'boolean' },
  'top-refused': { type: 'string' },
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
const MOST_TOP_REFUSED = 100
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
  --allow-host NAMES names, with commas between them, that it answers to besides addresses and localhost: those under which a proxy in
                     front of it is known. Or SLUICE_ALLOW_HOST. Default: on this machine only, none; else all
  --no-page          do not serve the page at /
  --top-refused N    show the N keys that are refused most often, 1 to ${MOST_TOP_REFUSED}, to whoever watches /v1/live. Or SLUICE_TOP_REFUSED.
                     Default: none are kept, because keys may be personal data
  --log-level LEVEL  ${LOG_LEVELS.join(', ')}. Default info. At debug every decision is written down, with
                     its key. Or SLUICE_LOG_LEVEL
  --hints            print what to try with curl`

type Text = 'redis' | 'tokens-file' | 'host' | 'port' | 'grpc-port' | 'allow-host' | 'top-refused' | 'log-level'
type Values = Readonly<Partial<Record<Text, string>>> & { readonly hints?: boolean; readonly 'no-page'?: boolean }

export async function serve(path: string | undefined, values: Values): Promise<void> {
  const file = path ?? sampleFile()
  const log = pino({ level: logLevel(values['log-level'] ?? process.env.SLUICE_LOG_LEVEL), base: null })
  const { config, text } = loadConfig(file)
  const tokens = tokensFrom(values['tokens-file'], process.env.SLUICE_TOKENS)
  const allowHosts = namesIn(values['allow-host'] ?? process.env.SLUICE_ALLOW_HOST)
  const topRefused = topRefusedIn(values['top-refused'] ?? process.env.SLUICE_TOP_REFUSED)
  const page = values['no-page'] ? undefined : readPage(pageFolder())
  const host = values.host ?? process.env.SLUICE_HOST ?? DEFAULT_HOST
  const journal = journalIn(log)
  const opened = await openStore(values.redis ?? process.env.SLUICE_REDIS_URL, journal.connectionFailed, config.bounds)
  const service = await startService({
    config,
    store: opened.store,
    clock: undefined,
    host,
    httpPort: portIn('--port', values.port ?? process.env.SLUICE_PORT, DEFAULT_HTTP_PORT),
    grpcPort: portIn('--grpc-port', values['grpc-port'] ?? process.env.SLUICE_GRPC_PORT, DEFAULT_GRPC_PORT),
    allowHosts,
    tokens,
    page,
    topRefused,
    journal,
  }).catch((error) => {
    opened.close()
    throw error
  })
  const watched = new ConfigFile(file, text, service.limiters, (report) => reloaded(log, service, report))
  watched.watch()
  service.metrics.addProcess(VERSION)
  if (tokens === undefined && !isLocal(host))
    log.warn({ host }, 'other machines can reach the service, and no token is needed: see --tokens-file')
  log.info(
    { version: VERSION, httpPort: service.httpPort, grpcPort: service.grpcPort, store: opened.description, file },
    'sluice is serving',
  )
  if (values.hints) console.log(hints(service, limiterToTry(service), page?.has('/') ?? false))
  process.on('SIGHUP', () => watched.reload())
  stopAtSignal(log, async () => {
    watched.close()
    await service.stop(GRACE_MS, DRAIN_MS)
    opened.close()
  })
}

function limiterToTry({ limiters }: Service): string {
  return limiters.named()[0]?.config.name ?? 'api'
}

function sampleFile(): string {
  return besideSources('../sample.yaml')
}

function pageFolder(): string {
  return besideSources('../../playground/dist')
}

/** What is built from the sources lies two folders deeper. */
function besideSources(path: string): string {
  const isBuilt = import.meta.url.endsWith('.js')
  return fileURLToPath(new URL(isBuilt ? `../../${path}` : path, import.meta.url))
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

function namesIn(text: string | undefined): string[] {
  if (text === undefined || text === '') return []
  const names = text.split(',').map((name) => name.trim())
  const wrong = names.find((name) => !/^[\w.-]+$/.test(name))
  if (wrong === undefined) return names
  throw new Error(`--allow-host ${JSON.stringify(wrong)} must be a name such as limits.example.com, without scheme and port`)
}

function topRefusedIn(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined
  if (/^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= MOST_TOP_REFUSED) return Number(text)
  throw new Error(`--top-refused ${JSON.stringify(text)} must be a whole number from 1 to ${MOST_TOP_REFUSED}`)
}

function reloaded(log: pino.Logger, { metrics }: Service, { result, reason, changes }: ReloadReport): void {
  metrics.reloaded(result)
  if (result === 'ok') log.info(changes, 'the configuration was reloaded')
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

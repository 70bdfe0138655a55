/** `sluice serve`: the service as a process. */
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import type { ServiceConfig } from './config/config.ts'
import { watchFiles } from './files.ts'
import { DEFAULT_MAX_AGE } from './grpc/server.ts'
import { hints } from './hints.ts'
import { isLocal } from './http/origin.ts'
import { type Journal, journalIn } from './journal.ts'
import { readPage } from './page/page.ts'
import { openPostgres } from './postgres-store.ts'
import { redisTls } from './redis-tls.ts'
import { ConfigFiles, type LoadedConfig, loadConfig, type ReloadReport } from './running/reload.ts'
import { type Service, startService } from './service.ts'
import { type Duration, durationUs, VERSION } from './sluice.ts'
import { type OpenedStore, openFile, openStore } from './store.ts'
import { type Tls, tlsFrom } from './tls.ts'
import { type Tokens, tokensFrom } from './tokens.ts'

export const SERVE_OPTIONS = {
  redis: { type: 'string' },
  'redis-ca': { type: 'string' },
  'redis-cert': { type: 'string' },
  'redis-key': { type: 'string' },
  sqlite: { type: 'string' },
  postgres: { type: 'string' },
  'tokens-file': { type: 'string' },
  'read-tokens-file': { type: 'string' },
  'tls-cert': { type: 'string' },
  'tls-key': { type: 'string' },
  'tls-client-ca': { type: 'string' },
  host: { type: 'string' },
  port: { type: 'string' },
  'grpc-port': { type: 'string' },
  'health-port': { type: 'string' },
  'grpc-max-age': { type: 'string' },
  'allow-host': { type: 'string' },
  'no-page': { type: 'boolean' },
  'top-refused': { type: 'string' },
  drain: { type: 'string' },
  grace: { type: 'string' },
  'log-level': { type: 'string' },
  hints: { type: 'boolean' },
} as const

const DEFAULT_HOST = '127.0.0.1'
const DEFAULT_HTTP_PORT = 8080
const DEFAULT_GRPC_PORT = 8081
const DEFAULT_DRAIN = '500ms'
const DEFAULT_GRACE = '10s'
const MOST_SPAN = '1d'
/** npm, a shell and a supervisor may all pass on the same signal. */
const SAME_SIGNAL_MS = 1_000
const MOST_TOP_REFUSED = 100
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

export const SERVE_USAGE = `sluice serve [FILE ...] [options]

  Runs the service with a configuration file, and reloads it when the file changes (or at SIGHUP). Several files, or a folder of them, are one
  configuration. Without FILE: a sample. Every option that has a value can also be set by a variable: --grpc-port by SLUICE_GRPC_PORT, and so
  on; --redis by SLUICE_REDIS_URL, --postgres by SLUICE_POSTGRES_URL.

  --redis URL          count in Redis or Valkey instead of the memory of this process: redis://host:6379, rediss:// with TLS,
                       unix:///run/redis.sock, redis+sentinel://host:26379,host:26379/primary; several redis:// URLs, separated by commas,
                       are nodes of a cluster
  --redis-ca FILE      who signed the certificate of Redis (PEM). Default: the authorities that Node knows
  --redis-cert FILE, --redis-key FILE
                       certificate and key (PEM) that the service shows to Redis. All three are read again at each connection
  --sqlite FILE        count in a file, which other copies on this machine share and which outlives a restart
  --postgres URL       count in PostgreSQL instead: postgres://user:password@host:5432/database. Makes its table if that is missing
  --host ADDRESS       where to listen. Default ${DEFAULT_HOST}: only this machine
  --port PORT          for HTTP. Default ${DEFAULT_HTTP_PORT}; 0: any
  --grpc-port PORT     for gRPC. Default ${DEFAULT_GRPC_PORT}; 0: any
  --health-port PORT   another port, for /healthz, /readyz and /metrics only, over plain HTTP. Default: none
  --tls-cert FILE, --tls-key FILE
                       certificate and key (PEM): HTTP and gRPC speak TLS. Reloaded when the files change
  --tls-client-ca FILE clients must show a certificate that this one has signed (mutual TLS)
  --tokens-file FILE   one token on each line; every request but GET must send one (Authorization: Bearer). Reloaded when the file changes.
                       Or SLUICE_TOKENS, with commas between them. Default: no token is needed
  --read-tokens-file FILE
                       tokens that may only read: /v1/limiters, keys, /v1/live and /metrics then need one of these, or of the above. Or
                       SLUICE_READ_TOKENS. Default: reading needs no token
  --allow-host NAMES   names, with commas between them, that it answers to besides addresses and localhost: those under which a proxy in
                       front of it is known. Default: on this machine only, none; else all
  --grpc-max-age SPAN  how long a gRPC connection lives, so that clients spread over new copies. Default ${DEFAULT_MAX_AGE}; 0s: for ever
  --drain SPAN         how long it goes on after SIGTERM, no longer ready, so that balancers let go of it. Default ${DEFAULT_DRAIN}
  --grace SPAN         how long waiting callers may wait then. Default ${DEFAULT_GRACE}
  --no-page            do not serve the page at /
  --top-refused N      show the N keys that are refused most often, 1 to ${MOST_TOP_REFUSED}, on /v1/live and on the page. Default: none are
                       kept, because keys may be personal data
  --log-level LEVEL    ${LOG_LEVELS.join(', ')}. Default info. At debug every decision is logged, with its key
  --hints              print what to try with curl`

type Options = { readonly [Name in keyof typeof SERVE_OPTIONS]?: string | boolean | undefined }
type TextOption = Exclude<keyof typeof SERVE_OPTIONS, 'no-page' | 'hints'>

/** An option of the command line, or the variable of its name. Empty counts as left out. */
function optionsIn(values: Options): (name: TextOption) => string | undefined {
  return (name) => {
    const isUrl = name === 'redis' || name === 'postgres'
    const variable = `SLUICE_${name.toUpperCase().replaceAll('-', '_')}${isUrl ? '_URL' : ''}`
    const { [variable]: set = '' } = process.env
    // Kubernetes puts the address of a Service that is called sluice into SLUICE_PORT.
    const isOfKubernetes = set.startsWith('tcp://')
    return ((values[name] as string | undefined) ?? (isOfKubernetes ? '' : set)) || undefined
  }
}

export async function serve(paths: readonly string[], values: Options): Promise<void> {
  const option = optionsIn(values)
  const files = paths.length > 0 ? paths : [sampleFile()]
  const log = pino({ level: logLevel(option('log-level')), base: null })
  const places = { redis: option('redis'), postgres: option('postgres'), sqlite: option('sqlite') }
  const loaded = loadConfig(
    files,
    Object.values(places).some((place) => place !== undefined),
  )
  const { config } = loaded
  const tokensFile = option('tokens-file')
  const tokens = tokensFrom(tokensFile, process.env.SLUICE_TOKENS)
  const readTokensFile = option('read-tokens-file')
  const readTokens = tokensFrom(readTokensFile, process.env.SLUICE_READ_TOKENS, 'SLUICE_READ_TOKENS')
  if (readTokens !== undefined && tokens === undefined)
    throw new Error('--read-tokens-file goes with --tokens-file: writing would need no token')
  const tls = tlsFrom(option('tls-cert'), option('tls-key'), option('tls-client-ca'))
  const topRefused = topRefusedIn(option('top-refused'))
  const page = values['no-page'] ? undefined : readPage(pageFolder())
  const host = option('host') ?? DEFAULT_HOST
  const journal = journalIn(log)
  const drainMs = spanMsIn('--drain', option('drain') ?? DEFAULT_DRAIN)
  const graceMs = spanMsIn('--grace', option('grace') ?? DEFAULT_GRACE)
  const listens = {
    host,
    httpPort: portIn('--port', option('port')) ?? DEFAULT_HTTP_PORT,
    grpcPort: portIn('--grpc-port', option('grpc-port')) ?? DEFAULT_GRPC_PORT,
    healthPort: portIn('--health-port', option('health-port')),
    allowHosts: namesIn(option('allow-host')),
    grpcMaxAgeMs: spanMsIn('--grpc-max-age', option('grpc-max-age') ?? DEFAULT_MAX_AGE),
  }
  const certificates = { ca: option('redis-ca'), cert: option('redis-cert'), key: option('redis-key') }
  const opened = await openedStore(places, certificates, config, journal)
  const parts = { config, store: opened.store, clock: undefined, tokens, readTokens, tls, page, topRefused, journal }
  const service = await startService({ ...parts, ...listens }).catch((error) => {
    opened.close()
    throw error
  })
  service.metrics.addProcess(VERSION)
  const reloads = [
    reloadedConfig(log, service, files, loaded),
    ...(tokensFile === undefined ? [] : [reloadedTokens(log, 'tokens', tokens as Tokens, tokensFile)]),
    ...(readTokensFile === undefined ? [] : [reloadedTokens(log, 'read tokens', readTokens as Tokens, readTokensFile)]),
    ...(tls === undefined ? [] : [reloadedTls(log, tls)]),
  ]
  process.on('SIGHUP', () => {
    for (const each of reloads) each.reload()
  })
  stopAtSignal(log, async () => {
    for (const each of reloads) each.close()
    await service.stop(graceMs, drainMs)
    opened.close()
  })
  // Before the log: people who start it by hand read the first line first.
  if (values.hints) console.log(hints(service, limiterToTry(service), page?.has('/') ?? false, tls !== undefined))
  const { httpPort, grpcPort, healthPort } = service
  log.info(
    { version: VERSION, httpPort, grpcPort, healthPort, tls: tls !== undefined, store: opened.description, files },
    'sluice is serving',
  )
  if (tokens === undefined && tls?.wantsCertificates !== true && !isLocal(host)) {
    log.warn({ host }, 'other machines can reach the service, and no token is needed: see --tokens-file')
  }
}

/** Where to count, by the options that say so: one of them at most. */
interface Places {
  readonly redis: string | undefined
  readonly postgres: string | undefined
  readonly sqlite: string | undefined
}

async function openedStore(
  places: Places,
  certificates: Parameters<typeof redisTls>[0],
  { bounds }: ServiceConfig,
  journal: Journal,
): Promise<OpenedStore> {
  const given = namesOfGiven('--', places)
  if (given.length > 1) throw new Error(`${given.join(' and ')} are several places to count in: give one of them`)
  const { redis, postgres, sqlite } = places
  const ofRedis = namesOfGiven('--redis-', certificates)
  if (ofRedis.length > 0 && redis === undefined) throw new Error(`${ofRedis.join(' and ')} can only be given with --redis`)
  if (postgres !== undefined) return openPostgres(postgres, journal.connectionFailed)
  if (sqlite !== undefined) return openFile(sqlite)
  return openStore(redis, journal.connectionFailed, bounds, {
    sentinelPassword: process.env.SLUICE_REDIS_SENTINEL_PASSWORD,
    tls: redisTls(certificates, journal.connectionFailed),
  })
}

/** The options that were given, as a user writes them. */
function namesOfGiven(prefix: string, options: object): string[] {
  return Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [`${prefix}${name}`]))
}

/** A file that is read again when it changes, and at SIGHUP. */
interface Reloaded {
  reload(): void
  close(): void
}

function reloadedConfig(log: pino.Logger, service: Service, files: readonly string[], { texts }: LoadedConfig): Reloaded {
  const watched = new ConfigFiles(files, texts, service.limiters, (report) => reloaded(log, service, report))
  watched.watch()
  return watched
}

function reloadedTokens(log: pino.Logger, what: string, tokens: Tokens, file: string): Reloaded {
  const isChanged = () => tokens.use(tokensFrom(file, undefined) as Tokens)
  return reloadedFiles(log, [file], what, isChanged, () => ({ count: tokens.count }))
}

function reloadedTls(log: pino.Logger, tls: Tls): Reloaded {
  return reloadedFiles(
    log,
    tls.files,
    'certificate',
    () => tls.reload(),
    () => ({ validTo: tls.validTo }),
  )
}

/** `use` says whether anything has changed, and throws if the files are wrong: then nothing has. */
function reloadedFiles(log: pino.Logger, files: readonly string[], what: string, use: () => boolean, told: () => object): Reloaded {
  const reload = () => {
    try {
      if (use()) log.info(told(), `the ${what} was reloaded`.replace('tokens was', 'tokens were'))
    } catch (error) {
      log.error({ reason: (error as Error).message }, `the new ${what} cannot be used, the old goes on`)
    }
  }
  const close = watchFiles(files, reload, (error) => log.error({ reason: error.message }, `the ${what} is no longer watched`))
  return { reload, close }
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

function portIn(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new Error(`${option} ${JSON.stringify(text)} must be a whole number from 0 to 65535`)
}

function spanMsIn(option: string, text: string): number {
  if (/^0(us|ms|s|min|h|d)$/.test(text)) return 0
  const us = durationUs(text as Duration, option)
  if (us <= durationUs(MOST_SPAN, '')) return us / 1_000
  throw new Error(`${option} ${JSON.stringify(text)} must be from 0s to ${MOST_SPAN}`)
}

function namesIn(text: string | undefined): string[] {
  if (text === undefined) return []
  const names = text.split(',').map((name) => name.trim())
  const wrong = names.find((name) => !/^[\w.-]+$/.test(name))
  if (wrong === undefined) return names
  throw new Error(`--allow-host ${JSON.stringify(wrong)} must be a name such as limits.example.com, without scheme and port`)
}

function topRefusedIn(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= MOST_TOP_REFUSED) return Number(text)
  throw new Error(`--top-refused ${JSON.stringify(text)} must be a whole number from 1 to ${MOST_TOP_REFUSED}`)
}

function reloaded(log: pino.Logger, { metrics }: Service, { result, reason, changes }: ReloadReport): void {
  metrics.reloaded(result)
  if (result === 'ok') log.info(changes, 'the configuration was reloaded')
  else log.error({ reason }, 'the new configuration is refused, the old one goes on')
}

/** The first signal stops in peace; a second one ends the process at once. */
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

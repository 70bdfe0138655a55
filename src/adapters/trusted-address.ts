/**
 * The client's address by a framework's own setting for proxies. The framework is asked for its
 * answer, so that a setting means here what it means there. Undefined where the setting is off.
 *
 * A setting that believes every sender lets each client write its own address. It is refused.
 */
import { SluiceError } from '../errors.ts'

/** Addresses for documentation (RFC 5737). A setting may name one of their networks, not both. */
const STRANGERS = ['192.0.2.1', '203.0.113.1']
/** More than the proxies that stand before any server. */
const MANY = 200

type Trust = (address: string, hop: number) => unknown

interface ExpressRequest {
  readonly app?: { readonly settings?: Readonly<Record<string, unknown>> }
  readonly ip?: string
}

/** Settings that do not trust everyone. */
const careful = new WeakSet<Trust>()

export function expressClient(request: object): string | undefined {
  const settings = (request as ExpressRequest).app?.settings
  // What Express makes of the setting, whatever its form.
  const trust = settings?.['trust proxy fn'] as Trust | undefined
  if (!settings?.['trust proxy'] || trust === undefined) return undefined
  if (!careful.has(trust)) {
    if (STRANGERS.every((address) => trust(address, MANY)))
      throw believesAll(
        "'trust proxy'",
        "app.set('trust proxy', 1) if one proxy stands in front, or app.set('trust proxy', ['10.0.0.0/8'])",
      )
    careful.add(trust)
  }
  return (request as ExpressRequest).ip
}

interface FastifyRequest {
  readonly raw: object
  readonly ip?: string
  /** Only there where `trustProxy` is on. */
  readonly ips?: readonly string[]
}

/** Prototypes of requests, of servers that do not trust everyone. */
const checked = new WeakSet<object>()

export function fastifyClient(request: object): string | undefined {
  if (!('ips' in request)) return undefined
  const prototype = Object.getPrototypeOf(request) as object
  if (!checked.has(prototype)) {
    if (fastifyTrustsStrangers(request)) throw believesAll('trustProxy', "Fastify({ trustProxy: ['10.0.0.0/8'] })")
    checked.add(prototype)
  }
  return (request as FastifyRequest).ip
}

/** Fastify does not tell its setting: it is asked about a request that came through strangers. */
function fastifyTrustsStrangers(request: object): boolean {
  const client = '192.0.2.2'
  const headers = { 'x-forwarded-for': `${client}${`, ${STRANGERS.join(', ')}`.repeat(MANY / 2)}` }
  const raw = { headers, socket: { remoteAddress: STRANGERS[0] } }
  return (Object.create(request, { raw: { value: raw } }) as FastifyRequest).ip === client
}

interface KoaContext {
  readonly app?: { readonly proxy?: boolean; readonly maxIpsCount?: number }
  readonly ip?: string
}

/** Without a count Koa takes the first address of the header, which is what the client wrote. */
export function koaClient(ctx: object): string | undefined {
  const { app } = ctx as KoaContext
  if (!app?.proxy) return undefined
  if (!((app.maxIpsCount ?? 0) > 0))
    throw believesAll('proxy without maxIpsCount', 'new Koa({ proxy: true, maxIpsCount: 1 }) if one proxy stands in front')
  return (ctx as KoaContext).ip
}

/** Of Nest, on Fastify or on Express. */
export function nestClient(request: object): string | undefined {
  return 'raw' in request ? fastifyClient(request) : expressClient(request)
}

function believesAll(setting: string, instead: string): SluiceError {
  return new SluiceError(
    'CONFIG',
    `${setting} believes every sender, so that each client writes the address it is limited by: say ${instead}, or key: byIp({ trustProxy: 1 })`,
  )
}

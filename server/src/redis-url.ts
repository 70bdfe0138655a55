/**
 * Where Redis is, as one text: a server, a socket of this machine, the sentinels that know the
 * primary, or nodes of a cluster.
 */
export interface Endpoint {
  readonly host: string
  readonly port: number
}

/** What all servers are told. */
export interface Access {
  readonly username?: string
  readonly password?: string
  readonly db?: number
  readonly tls?: object
}

export type RedisAddress =
  | { readonly kind: 'server'; readonly url: string; readonly access: Access }
  | { readonly kind: 'cluster'; readonly nodes: readonly Endpoint[]; readonly access: Access }
  | { readonly kind: 'socket'; readonly path: string; readonly access: Access }
  | { readonly kind: 'sentinels'; readonly sentinels: readonly Endpoint[]; readonly primary: string; readonly access: Access }

const REDIS_PORT = 6_379
const SENTINEL_PORT = 26_379
const FORMS =
  'redis://localhost:6379, rediss:// with TLS, unix:///run/redis.sock, redis+sentinel://host:26379,host:26379/primary, or several redis:// separated by commas for a cluster'

export function redisAddress(text: string): RedisAddress {
  if (/^rediss?\+sentinel:/.test(text)) return sentinelsIn(text)
  if (text.startsWith('unix:')) return socketIn(text)
  const [first, ...others] = text.split(',').map((url) => url.trim()) as [string, ...string[]]
  for (const url of [first, ...others]) if (!URL.canParse(url) || !/^rediss?:$/.test(new URL(url).protocol)) throw wrong(url)
  if (others.length > 0) return clusterOf([first, ...others].map((url) => new URL(url)))
  return { kind: 'server', url: first, access: new URL(first).protocol === 'rediss:' ? { tls: {} } : {} }
}

/**
 * The nodes that a cluster tells of are spoken to as those that are named: with TLS or without it,
 * and by the same user.
 */
function clusterOf(urls: readonly URL[]): RedisAddress {
  const [{ protocol, username, password }] = urls as [URL, ...URL[]]
  if (urls.some((url) => url.protocol !== protocol || url.username !== username || url.password !== password)) {
    throw new Error('the nodes of a cluster must have URLs of one kind, all redis:// or all rediss://, with the same user and password')
  }
  const nodes = urls.map(({ hostname, port }) => ({ host: unbracketed(hostname), port: port === '' ? REDIS_PORT : Number(port) }))
  return { kind: 'cluster', nodes, access: { ...accessIn(`${username}:${password}`), ...(protocol === 'rediss:' ? { tls: {} } : {}) } }
}

function unbracketed(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}

/**
 * `redis+sentinel://user:password@host:26379,host:26379/primary/0`: user and password are those of
 * Redis itself.
 */
function sentinelsIn(text: string): RedisAddress {
  const [, scheme, access = '', hosts, primary, db] =
    /^(rediss?)\+sentinel:\/\/(?:([^@/]*)@)?([^/?#]+)\/([^/?#]+)(?:\/(\d+))?$/.exec(text) ?? []
  if (hosts === undefined || primary === undefined) throw wrong(text)
  const sentinels = hosts.split(',').map((each) => endpointIn(each.trim(), text))
  const tls = scheme === 'rediss' ? { tls: {} } : {}
  return { kind: 'sentinels', sentinels, primary: decodeURIComponent(primary), access: { ...accessIn(access), ...dbIn(db), ...tls } }
}

/** `unix://user:password@/run/redis.sock?db=0`. */
function socketIn(text: string): RedisAddress {
  const [, access = '', path, db] = /^unix:(?:\/\/(?:([^@/]*)@)?)?(\/[^/?#][^?#]*)(?:\?db=(\d+))?$/.exec(text) ?? []
  if (path === undefined) throw wrong(text)
  return { kind: 'socket', path: decodeURIComponent(path), access: { ...accessIn(access), ...dbIn(db) } }
}

function endpointIn(text: string, whole: string): Endpoint {
  const url = `redis://${text}`
  if (text === '' || !URL.canParse(url)) throw wrong(whole)
  const { hostname, port } = new URL(url)
  return { host: unbracketed(hostname), port: port === '' ? SENTINEL_PORT : Number(port) }
}

function accessIn(text: string): Access {
  const colon = text.indexOf(':')
  const username = decodeURIComponent(colon < 0 ? text : text.slice(0, colon))
  const password = colon < 0 ? '' : decodeURIComponent(text.slice(colon + 1))
  return { ...(username === '' ? {} : { username }), ...(password === '' ? {} : { password }) }
}

function dbIn(text: string | undefined): Access {
  return text === undefined ? {} : { db: Number(text) }
}

/**
 * For people: neither names nor passwords of users, nor options, of which one may be a password.
 */
export function withoutSecrets(text: string): string {
  return text
    .split(',')
    .map((url) =>
      url
        .trim()
        .replace(/\?.*$/, '')
        .replace(/^(\w[\w+.-]*:(?:\/\/)?)?[^/]*@/, '$1')
        .replace(/\/\/.*@/, '//'),
    )
    .join(', ')
}

function wrong(text: string): Error {
  return new Error(`the Redis URL ${JSON.stringify(withoutSecrets(text))} must be such as ${FORMS}`)
}
